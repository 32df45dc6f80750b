"""Kafka client properties: the translation, and that librdkafka takes every name and value that comes out."""

from __future__ import annotations

import random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from connector.config.kafka.security import parse_jaas
from connector.config.kafka.table import CLIENT_PROPERTIES, NATIVE_NAMES, PRODUCER
from connector.config.kafka.translation import KafkaProperties
from tests.config.files import CONNECTOR, STORES, loaded, problem, problems, validate

QUIET = {"log_level": "0", "bootstrap.servers": "127.0.0.1:1"}


def kafka(worker: dict[str, Any], connector: dict[str, Any] | None = None) -> KafkaProperties:
    return loaded(connector, worker).kafka


def start(properties: KafkaProperties) -> None:
    """librdkafka checks names and values when a client is made, before it connects."""
    Producer({**properties.producer, **QUIET, "enable.idempotence": True, "transactional.id": "t"})
    consumer = Consumer({**properties.consumer, **QUIET, "group.id": "g"})
    consumer.close()


@pytest.mark.parametrize(("role", "name"), sorted(CLIENT_PROPERTIES))
def test_every_target_is_a_librdkafka_name(role: str, name: str) -> None:
    target = CLIENT_PROPERTIES[role, name].target(role)
    if target is None:
        return
    assert known_to_librdkafka(target, role == PRODUCER)


def test_every_native_name_is_librdkafkas() -> None:
    assert [name for name in sorted(NATIVE_NAMES) if not known_to_librdkafka(name, True)] == []


def known_to_librdkafka(name: str, producer: bool) -> bool:
    client: Any = Producer if producer else Consumer
    try:
        # A value that hardly any property takes: what matters is which of the two complaints comes.
        made = client({"log_level": "0", "group.id": "g", name: "\x01"})
        if not producer:
            made.close()
    except Exception as error:
        return "No such configuration property" not in str(error)
    return True


def test_an_ordinary_worker_file() -> None:
    properties = kafka(
        {
            "producer.compression.type": "zstd",
            "producer.compression.zstd.level": "5",
            "producer.linger.ms": 20,
            "producer.batch.size": 0,
            "producer.buffer.memory": 33554432,
            "producer.max.block.ms": 60000,
            "producer.max.request.size": 5242880,
            "producer.delivery.timeout.ms": 2147483647,
            "producer.request.timeout.ms": 2147483647,
            "producer.acks": "all",
            "producer.max.in.flight.requests.per.connection": 1,
            "producer.key.serializer": "x",
            "consumer.fetch.max.wait.ms": 100,
            "consumer.max.poll.records": 100,
            "consumer.isolation.level": "read_committed",
            "admin.request.timeout.ms": 20000,
            "request.timeout.ms": 25000,
            "send.buffer.bytes": -1,
            "connections.max.idle.ms": -1,
            "client.dns.lookup": "default",
            "metadata.max.age.ms": 60000,
        },
        {"producer.override.linger.ms": 30, "producer.override.transaction.timeout.ms": 20000},
    )
    assert properties.producer == {
        "bootstrap.servers": "127.0.0.1:9092",
        "transaction.timeout.ms": "20000",
        "compression.type": "zstd",
        "compression.level": "5",
        "linger.ms": "30",
        "batch.size": "1",
        "queue.buffering.max.kbytes": "32768",
        "message.max.bytes": "5242880",
        "delivery.timeout.ms": "20000",
        "request.timeout.ms": "300000",
        "max.in.flight.requests.per.connection": "1",
        "socket.send.buffer.bytes": "0",
        "connections.max.idle.ms": "0",
        "client.dns.lookup": "use_all_dns_ips",
        "metadata.max.age.ms": "60000",
    }
    assert properties.consumer["fetch.wait.max.ms"] == "100"
    assert properties.consumer["socket.timeout.ms"] == "25000"
    assert properties.admin["socket.timeout.ms"] == "20000"
    start(properties)


def test_sessions_and_transactions_have_our_defaults() -> None:
    configuration = loaded()
    assert configuration.kafka.consumer["session.timeout.ms"] == "10000"
    assert configuration.kafka.producer["transaction.timeout.ms"] == "15000"
    changed = loaded(worker={"consumer.session.timeout.ms": 6000, "transaction.timeout.ms": 5000})
    assert changed.worker.session_timeout_ms == 6000
    assert changed.connector.delivery.transaction_timeout_ms == 5000


@pytest.mark.parametrize(
    "given",
    [
        {"producer.acks": "1"},
        {"producer.enable.idempotence": "false"},
        {"producer.transactional.id": "mine"},
        {"consumer.isolation.level": "read_uncommitted"},
        {"consumer.enable.auto.commit": "true"},
        {"group.protocol": "consumer"},
        {"consumer.group.protocol": "consumer"},
        {"producer.retries": "0"},
        {"producer.max.in.flight.requests.per.connection": "6"},
        {"producer.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
        {"producer.partitioner.ignore.keys": "true"},
    ],
)
def test_what_contradicts_the_promises_is_an_error(given: dict[str, str]) -> None:
    found = problem(worker=given)
    assert found.property == next(iter(given))
    assert "Contradicts" in found.problem


@pytest.mark.parametrize("role", ["producer", "consumer", "admin"])
@pytest.mark.parametrize("support", ["required", "disabled"])
def test_records_and_positions_are_in_one_cluster(role: str, support: str) -> None:
    usual, asked = {"bootstrap.servers": "k1:9092, k2:9092"}, {"exactly.once.support": support}
    name, override = f"{role}.bootstrap.servers", f"{role}.override.bootstrap.servers"
    for found in (problem(asked, {**usual, name: "x:9092"}), problem({**asked, override: "x:9092"}, usual)):
        assert found.property in (name, override) and f"The {role}'s Kafka is another one" in found.problem
        assert "(k1:9092, k2:9092)" in found.problem
        assert "bootstrap.servers=x:9092 in the worker's file" in str(found.suggestion)


def test_a_cluster_is_the_same_by_any_of_its_brokers_and_for_all_clients() -> None:
    usual = {"bootstrap.servers": "k1:9092,k2:9092"}
    assert not problems({"producer.override.bootstrap.servers": "K2:9092"}, usual)
    everywhere = {f"{role}.override.bootstrap.servers": "x:9092" for role in ("producer", "consumer", "admin")}
    assert not problems(everywhere, usual)
    found = problems({**everywhere, "admin.override.bootstrap.servers": "k1:9092"}, usual)
    assert {one.property for one in found} == everywhere.keys() - {"admin.override.bootstrap.servers"}


def test_without_a_worker_the_default_is_the_cluster() -> None:
    given = {**CONNECTOR, "producer.override.bootstrap.servers": "x:9092"}
    (found,) = validate(given, None, {})
    assert found.property == "producer.override.bootstrap.servers" and "(localhost:9092)" in found.problem


FREE = {"exactly.once.support": "disabled"}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, (None, None, None)),
        ({"acks": "all"}, (None, None, None)),
        ({"acks": "1"}, ("1", "false", "1")),
        ({"acks": "0", "max.in.flight.requests.per.connection": "5"}, ("0", "false", "5")),
        ({"enable.idempotence": "FALSE"}, (None, "false", "1")),
        ({"enable.idempotence": "true", "acks": "-1"}, (None, None, None)),
    ],
)
@pytest.mark.parametrize("place", ["producer.", "producer.override."])
def test_fewer_acknowledgements_are_taken_where_nobody_asks_for_exactly_once(
    given: dict[str, str], made: tuple[str | None, ...], place: str
) -> None:
    placed = {place + name: text for name, text in given.items()}
    worker, connector = (placed, FREE) if place == "producer." else ({}, FREE | placed)
    found = loaded(connector, worker)
    names = ("acks", "enable.idempotence", "max.in.flight.requests.per.connection")
    assert tuple(found.kafka.producer.get(name) for name in names) == made
    Producer({**found.kafka.producer, **QUIET})
    said = " ".join(map(str, found.notices))
    assert ("records are lost when a leader is" in said) is (made[0] is not None)
    assert ("may change places" in said) is (made[2] == "5")


def test_fewer_acknowledgements_contradict_an_idempotent_producer() -> None:
    found = problem(worker={"producer.acks": "1", "producer.enable.idempotence": "true"}, connector=FREE)
    assert found.property == "producer.acks" and "enable.idempotence=true" in found.problem
    assert problem(worker={"producer.acks": "2"}, connector=FREE).property == "producer.acks"
    told = problem(worker={"producer.acks": "1"}).suggestion
    assert told == "leave it out, or set exactly.once.support=disabled"


@pytest.mark.parametrize(
    "given",
    [
        {"producer.linger.ms": "20000"},
        {"producer.linger.ms": "soon"},
        {"consumer.max.poll.interval.ms": "5000"},
        {"heartbeat.interval.ms": "10000"},
        {"security.protocol": "TLS"},
        {"producer.compression.type": "lzma"},
        {"offset.storage.cleanup.policy": "delete"},
        {"ssl.engine.factory.class": "x.Y"},
    ],
)
def test_values_that_cannot_work(given: dict[str, str]) -> None:
    assert problem(worker=given).property == next(iter(given))


def test_logins() -> None:
    def login(mechanism: str, module: str, options: str, **more: str) -> dict[str, Any]:
        given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
        given["sasl.jaas.config"] = f"org.apache.kafka.common.security.{module} required {options};"
        return {**kafka({**given, **more}).producer}

    plain = login("PLAIN", "plain.PlainLoginModule", 'username="u" password="p\\"q;r"')
    assert (plain["sasl.mechanism"], plain["sasl.username"], plain["sasl.password"]) == ("PLAIN", "u", 'p"q;r')
    scram = login("SCRAM-SHA-512", "scram.ScramLoginModule", "\n  username='u'\n  password=p\n")
    assert (scram["sasl.mechanism"], scram["sasl.password"]) == ("SCRAM-SHA-512", "p")
    oauth = login(
        "OAUTHBEARER",
        "oauthbearer.OAuthBearerLoginModule",
        'clientId="i" clientSecret="s" scope="a" extension_tenant="t"',
        **{
            "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
            "sasl.login.callback.handler.class": "x.y.OAuthBearerLoginCallbackHandler",
        },
    )
    assert oauth["sasl.oauthbearer.method"] == "oidc"
    assert oauth["sasl.oauthbearer.client.id"] == "i"
    assert oauth["sasl.oauthbearer.client.secret"] == "s"
    assert oauth["sasl.oauthbearer.scope"] == "a"
    assert oauth["sasl.oauthbearer.extensions"] == "tenant=t"
    for found in (plain, scram):
        Producer({**found, **QUIET})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"sasl.mechanism": "PLAIN"}, {"sasl.jaas.config"}),
        ({"sasl.mechanism": "PLIAN"}, {"sasl.mechanism"}),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": "PlainLoginModule username=u"}, {"sasl.jaas.config"}),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "a.ScramLoginModule required username=u password=p;"},
            {"sasl.jaas.config"},
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": "a.OAuthBearerLoginModule required clientId=i clientSecret=s;",
            },
            {"sasl.oauthbearer.token.endpoint.url"},
        ),
        (
            {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "a.PlainLoginModule required username=u password=p;",
                "sasl.client.callback.handler.class": "com.example.Mine",
            },
            {"sasl.client.callback.handler.class"},
        ),
    ],
)
def test_login_mistakes(given: dict[str, str], name: set[str]) -> None:
    assert {one.property for one in problems(worker={"security.protocol": "SASL_SSL", **given})} == name


def test_jaas() -> None:
    assert parse_jaas('a.b.C optional x="1 \\\\ 2" y=z;') == ("C", {"x": "1 \\ 2", "y": "z"})
    # As a variable of Connect's images has it, which write it into a .properties file.
    assert parse_jaas(r"a.b.C required x=\"1 2\" y=\"\\\"q\\\\\";") == ("C", {"x": "1 2", "y": '"q\\'})


def test_stores_become_pem_in_memory() -> None:
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(STORES / "trust.jks"),
        "ssl.truststore.password": "trustpass",
        "ssl.keystore.location": str(STORES / "client.jks"),
        "ssl.keystore.password": "storepass",
        "ssl.key.password": "keypass",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ssl.enabled.protocols": "TLSv1.3",
    }
    properties = kafka(given)
    assert properties.producer["ssl.ca.pem"].count("BEGIN CERTIFICATE") == 2
    assert properties.consumer["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY")
    assert properties.admin["ssl.endpoint.identification.algorithm"] == "none"
    assert properties.producer["ssl.cipher.suites"] == "ECDHE-RSA-AES128-GCM-SHA256"
    start(properties)
    assert problem(worker={**given, "ssl.truststore.password": "wrong"}).property == "ssl.truststore.password"
    assert problem(worker={**given, "ssl.key.password": "wrong"}).property == "ssl.keystore.password"
    assert problem(worker={**given, "ssl.keystore.location": "/none.jks"}).property == "ssl.keystore.location"


def test_pem_texts() -> None:
    chain, trusted = (STORES / "client-chain.pem").read_text(), (STORES / "trusted.pem").read_text()
    properties = kafka(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": trusted,
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": (STORES / "client-key.pem").read_text(),
            "ssl.key.password": "keypass",
        }
    )
    start(properties)


def test_certificates_without_tls_are_mentioned() -> None:
    notices = loaded(worker={"ssl.truststore.location": "/nowhere"}).notices
    assert "has no TLS" in notices[0]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_valid_here_is_valid_for_librdkafka(seed: int) -> None:
    rng = random.Random(seed)
    numbers = ["0", "1", "5", "99", "1000", "16384", "1048576", "60000000", "2147483647", "9223372036854775807", "-1"]
    words = ["true", "false", "none", "gzip", "rebootstrap", "all", "default", "https", ""]
    given = {}
    for role, name in rng.sample(sorted(CLIENT_PROPERTIES), 6):
        declared = CLIENT_PROPERTIES[role, name]
        if name not in ("bootstrap.servers", "security.protocol"):
            chosen = numbers if declared.low is not None or declared.kind.label in ("int", "long") else words
            given[f"{role}.{name}"] = rng.choice(chosen)
    wrong = {one.property for one in problems(worker=given)}
    start(kafka({name: text for name, text in given.items() if name not in wrong}))


_CLASS = "org.apache.kafka.connect.connector.policy.{}ConnectorClientConfigOverridePolicy"


@pytest.mark.parametrize("spelled", ["{}", _CLASS])
@pytest.mark.parametrize(("policy", "refused"), [("All", ""), ("None", "lp"), ("Principal", "l")])
def test_a_connector_sets_what_the_workers_policy_lets_it(policy: str, refused: str, spelled: str) -> None:
    login = {"l": "producer.override.linger.ms", "p": "consumer.override.security.protocol"}
    worker = {"connector.client.config.override.policy": spelled.format(policy)}
    found = problems({login["l"]: 30, login["p"]: "PLAINTEXT"}, worker)
    assert sorted(one.property for one in found) == sorted(login[each] for each in refused)
    for one in found:
        assert f"The '{policy}' policy does not allow '{one.property.rpartition('override.')[2]}'" in one.problem
    given = loaded(worker={**worker, "producer.linger.ms": 30})
    assert given.kafka.producer["linger.ms"] == "30", "the worker's own are no matter of it"
    assert not [each for each in given.notices if "override.policy" in each]


def test_a_policy_of_somebodys_own_is_told_to_refuse_nothing() -> None:
    given = loaded(
        {"producer.override.linger.ms": 30}, {"connector.client.config.override.policy": "com.shop.OnlyLinger"}
    )
    assert given.kafka.producer["linger.ms"] == "30"
    (said,) = [each for each in given.warnings if "override.policy" in each]
    assert "com.shop.OnlyLinger is a class of Java's that is not known here" in said
