"""With `topic.creation.enable=false` a missing data topic is waited for; one that is compacted is warned about."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from connector.delivery import KafkaClients, Membership, OutgoingRecord, TransactionalProducer, transaction_refusal
from connector.delivery.topic_facts import TopicFacts, TopicSpec, partitions_of, topic_partitions
from connector.delivery.topics import (
    END_BYTES,
    STATE_BYTES,
    check_topics,
    ensure_topics,
    look_at_topic,
    seen_topics,
)
from connector.errors import ConfigurationError, FatalDeliveryError, TransactionAborted
from connector.worker.kafka_checks import lacking_rights
from embedded import ports
from embedded.kafka import EmbeddedKafka, Member
from tests.config.files import loaded
from tests.delivery.conftest import Noted
from tests.servers.patience import until

pytestmark = pytest.mark.kafka


def test_missing_topics_are_named_and_not_created(kafka: Any, unique: Callable[[str], str]) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    forbidden, allowed = TopicSpec(unique("data"), create=False, keeps_all=True), TopicSpec(unique("offsets"))
    with pytest.raises(ConfigurationError, match=r"topic\.creation\.enable"):
        ensure_topics(admin, [forbidden, allowed])
    assert [problem.value for problem in check_topics(admin, [forbidden, allowed]).problems] == [forbidden.name]
    waited = replace(forbidden, essential=False)
    assert [problem.value for problem in check_topics(admin, [waited, allowed]).awaited] == [forbidden.name]
    assert isinstance(why := look_at_topic(admin, waited), str) and "does not exist" in why
    assert forbidden.name not in topic_partitions(admin)
    ensure_topics(admin, [TopicSpec(forbidden.name), allowed])
    assert forbidden.name in ensure_topics(admin, [forbidden, allowed])
    assert isinstance(look_at_topic(admin, waited), TopicFacts)
    assert not check_topics(admin, [forbidden, allowed]).warnings


def test_a_compacted_data_topic_is_warned_about(kafka: Any, unique: Callable[[str], str]) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    there = TopicSpec(unique("data"), config={"cleanup.policy": "compact,delete"}, keeps_all=True)
    storage = TopicSpec(unique("offsets"), compacted=True)
    assert [there.name in warning for warning in check_topics(admin, [there, storage]).warnings] == [True]
    ensure_topics(admin, [there, storage])
    [warning] = check_topics(admin, [replace(there, config={}), storage]).warnings
    assert f"topic {there.name} is compacted" in warning and "cleanup.policy=delete" in warning


def test_topics_that_brokers_stamp_are_warned_about(kafka: Any, unique: Callable[[str], str]) -> None:
    """What a crash of a broker leaves open in them cannot be told from what was committed."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    stamped, plain = {"message.timestamp.type": "LogAppendTime"}, {"message.timestamp.type": "CreateTime"}
    data, offsets, others = (TopicSpec(unique(name), config=stamped) for name in ("data", "offsets", "others"))
    ensure_topics(admin, [data, offsets, others])
    asked = [replace(data, config={}, keeps_all=True), replace(offsets, config=plain), replace(others, config={})]
    first, second = check_topics(admin, asked).warnings
    assert f"topic {data.name} has message.timestamp.type=LogAppendTime" in first
    assert f"topic {offsets.name} has message.timestamp.type=LogAppendTime" in second


def test_topics_whose_records_may_be_too_small_are_warned_about(kafka: Any, unique: Callable[[str], str]) -> None:
    """Where the end of a transaction does not fit, it never ends: Kafka's coordinator does not try again."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})

    def limited(name: str, limit: int, compacted: bool | None = None) -> TopicSpec:
        config = {"max.message.bytes": str(limit)}
        if compacted:
            config["cleanup.policy"] = "compact"
        return TopicSpec(unique(name), config=config, compacted=compacted)

    none, data = limited("none", END_BYTES - 1), limited("data", END_BYTES)
    state, enough = limited("state", STATE_BYTES - 1, True), limited("enough", STATE_BYTES, True)
    asked = [none, data, state, enough]
    ensure_topics(admin, asked)
    first, second = check_topics(admin, asked).warnings
    assert f"topic {none.name} has max.message.bytes={END_BYTES - 1}: it takes no record" in first
    assert "raised and then the broker that coordinates the transaction is restarted" in first
    assert f"topic {state.name} has max.message.bytes={STATE_BYTES - 1}, and what is kept in it may be larger" in second
    seen = seen_topics(admin, asked)
    assert [seen[spec.name].warnings for spec in asked] == [(first,), (), (second,), ()]
    assert not any(each.misfit for each in seen.values())


def test_what_brokers_have_against_a_topic_is_found_without_creating_any(
    kafka: Any, unique: Callable[[str], str]
) -> None:
    """Or a configuration would be called valid, and refused when it is run."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    good, replicas, config, waits = (unique(name) for name in ("good", "replicas", "config", "waits"))
    specs = [
        TopicSpec(good, 1, 1),
        TopicSpec(replicas, 1, 3),
        TopicSpec(config, 1, 1, {"retention.ms": "soon"}),
        TopicSpec(waits, 1, 3, essential=False),
    ]
    found = check_topics(admin, specs)
    assert [problem.value for problem in found.problems] == [replicas, config]
    assert [problem.value for problem in found.awaited] == [waits]
    assert "INVALID_REPLICATION_FACTOR" in found.problems[0].problem
    assert found.problems[0].suggestion == "lower its replication factor, or start more brokers"
    assert not {good, replicas, config, waits} & topic_partitions(admin).keys()
    with pytest.raises(ConfigurationError) as caught:
        ensure_topics(admin, specs[:3])
    assert list(caught.value.problems) == found.problems, "as when they are created"


def test_a_topic_that_may_not_be_written_is_named_where_its_transaction_fails() -> None:
    """No report tells of its records: the coordinator refuses the topic, and all that is heard is that it failed."""
    open_, controller, guarded = (ports.free_port() for _ in range(3))
    listeners = {"PLAINTEXT": open_, "SASL_PLAINTEXT": guarded, "CONTROLLER": controller}
    said = [f"{name}://{ports.HOST}:{port}" for name, port in listeners.items()]
    properties = {
        "listeners": ",".join(said),
        "advertised.listeners": ",".join(said[:2]),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_writer="s3cret-word";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "true",
    }
    login = {
        "bootstrap.servers": f"{ports.HOST}:{guarded}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "writer",
        "sasl.password": "s3cret-word",
    }
    with EmbeddedKafka(port=open_, properties=properties, member=Member(1, (controller,))) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        ensure_topics(admin, [TopicSpec("written", 1, 1), TopicSpec("seen", 1, 1)])
        for kind, name, operation in (
            (ResourceType.TOPIC, "written", AclOperation.WRITE),
            (ResourceType.TOPIC, "seen", AclOperation.READ),
            (ResourceType.TRANSACTIONAL_ID, "id", AclOperation.WRITE),
        ):
            allow = (ResourcePatternType.LITERAL, "User:writer", "*", operation, AclPermissionType.ALLOW)
            for future in admin.create_acls([AclBinding(kind, name, *allow)]).values():
                future.result(60)
        producer = TransactionalProducer(KafkaClients(login), "id", transaction_timeout_ms=60_000)
        producer.start(time.monotonic() + 60)
        producer.begin()
        with pytest.raises(TransactionAborted, match="topic seen: TOPIC_AUTHORIZATION_FAILED"):
            producer.produce_all([OutgoingRecord(topic, b"k", b"v") for topic in ("written", "seen")])
            producer.flush(time.monotonic() + 60)
        assert producer.failure is not None and producer.failure.topic == "seen"
        producer.close()
        # Lists of topics leave out what may not be seen: nobody must take it for what is not there.
        ensure_topics(admin, [TopicSpec("hidden", 1, 1)])
        seeing = KafkaClients(login).admin()
        with pytest.raises(FatalDeliveryError, match="no right to see topic hidden"):
            partitions_of(seeing, "hidden")
        assert partitions_of(seeing, "seen") == 1
        assert partitions_of(admin, "nowhere") is None and "nowhere" not in topic_partitions(admin), "nor is it made"
        what_is_refused_beside_topics(admin, login)


def what_is_refused_beside_topics(admin: AdminClient, login: dict[str, str]) -> None:
    """Found by `validate`, before a worker is refused as it begins: nobody has these rights from another connector."""
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username='{}' password='{}';"
    java = {name: text for name, text in login.items() if name not in ("sasl.username", "sasl.password")}
    java["sasl.jaas.config"] = jaas.format(login["sasl.username"], login["sasl.password"])
    configuration = loaded({"name": "shop"}, {**java, "group.id": "ours"})
    refused_meanwhile = Membership(KafkaClients(login), "written", "ours-shop", "w", slots=1)
    refused_meanwhile.join(Noted([]))
    wanted = "grant READ on the connector's consumer group"
    until(lambda: wanted in (refused_meanwhile.last_error or ""), step=lambda: refused_meanwhile.poll(0.1))
    group, ids = lacking_rights(configuration)
    assert group.property == "group.id" and "consumer group ours-shop: GROUP_AUTHORIZATION_FAILED" in group.problem
    assert "grant READ on the connector's consumer group" in group.problem
    assert ids.property == "exactly.once.support" and "grant WRITE and DESCRIBE on transactional ids" in ids.problem

    def grant(kind: ResourceType, name: str, operation: AclOperation, pattern: ResourcePatternType) -> None:
        allow = (pattern, "User:writer", "*", operation, AclPermissionType.ALLOW)
        for future in admin.create_acls([AclBinding(kind, name, *allow)]).values():
            future.result(60)

    grant(ResourceType.GROUP, "ours-shop", AclOperation.DESCRIBE, ResourcePatternType.LITERAL)
    until(lambda: "ours-shop: it may be described, not joined; grant" in lacking_rights(configuration)[0].problem)
    grant(ResourceType.TRANSACTIONAL_ID, "shop", AclOperation.WRITE, ResourcePatternType.PREFIXED)
    until(lambda: len(lacking_rights(configuration)) == 1, what="transactional ids")
    grant(ResourceType.GROUP, "ours-shop", AclOperation.READ, ResourcePatternType.LITERAL)
    until(lambda: not lacking_rights(configuration), what="nothing that is refused")
    until(lambda: refused_meanwhile.owned, what="the slots", step=lambda: refused_meanwhile.poll(0.1))
    refused_meanwhile.close()
    refused = transaction_refusal(KafkaClients(login), "id", 86_400_000)
    assert refused is not None and "INVALID_TRANSACTION_TIMEOUT" in str(refused)
    (too_long,) = lacking_rights(
        loaded({"name": "shop"}, {**java, "group.id": "ours", "transaction.timeout.ms": "86400000"})
    )
    assert too_long.property == "transaction.timeout.ms"
    assert "more than the brokers' transaction.max.timeout.ms: lower the one, or raise the other" in too_long.problem
