"""Names that are not declared here: misspelt ones are errors, all others are said and ignored, as in Connect."""

from __future__ import annotations

import difflib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from connector.config import CONNECTOR, WORKER_BY_NAME, unknown_names
from connector.secrets import scrub
from connector.suggestions import nearest
from tests.config.files import loaded, problem, problems

KNOWN: dict[str, list[str]] = json.loads((Path(__file__).parent / "known_names.json").read_text())["names"]


def said(connector: dict[str, Any] | None = None, worker: dict[str, Any] | None = None) -> str:
    return "\n".join(loaded(connector, worker).notices)


@pytest.mark.parametrize("which", KNOWN)
def test_every_name_of_connect_and_debezium_is_known(which: str) -> None:
    of_worker = which in ("connect.standalone", "connect.distributed")
    given, refused = dict.fromkeys(KNOWN[which], "7"), {"config.unknown": "error"}
    found = problems(refused, given) if of_worker else problems({**given, **refused})
    assert [one.property for one in found if one.problem == "Unknown property"] == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *[(name, "tasks.max") for name in ("task.max", "taks.max", "Tasks.Max", "tasks_max", "tasksMax", "max.tasks")],
        *[(name, "topic.prefix") for name in ("topic.prefx", "topic-prefix", "topicPrefix", "scylla.topic.prefix")],
        *[(name, "scylla.user") for name in ("scylla.username", "scylla.user.name", "scylla.usr")],
        *[(name, "scylla.table.names") for name in ("scylla.tables", "scylla.table.name", "table.names")],
        *[(name, "heartbeat.interval.ms") for name in ("heartbeat.interval", "hearbeat.interval.ms")],
        *[(name, "scylla.cluster.ip.addresses") for name in ("scylla.hosts", "scylla.cluster.ip.address")],
        ("ssl.enabled", "scylla.ssl.enabled"),
        ("scylla.query.time.window", "scylla.query.time.window.size"),
        ("scylla.ssl.truststore.location", "scylla.ssl.truststore.path"),
        ("snapshot.mdoe", "snapshot.mode"),
        ("error.tolerance", "errors.tolerance"),
        ("transform.a.type", "transforms.a.type"),
        ("topic.creaton.default.partitions", "topic.creation.default.partitions"),
        ("producer.overide.acks", "producer.override.acks"),
        ("key.convertor.schemas.enable", "key.converter.schemas.enable"),
    ],
)
def test_nearly_known_names_are_errors_with_the_suggestion(name: str, meant: str) -> None:
    found = problem({name: "1"})
    assert (found.property, found.suggestion) == (name, f"did you mean {meant}?")
    assert f"did you mean {meant}?" in said({name: "1", "config.unknown": "ignore"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bootstrap.server", "bootstrap.servers"),
        ("bootstrapServers", "bootstrap.servers"),
        ("group.idd", "group.id"),
        ("offset.storage.topc", "offset.storage.topic"),
        ("plugin.paths", "plugin.path"),
        ("security.protocl", "security.protocol"),
        ("producers.linger.ms", "producer.linger.ms"),
    ],
)
def test_nearly_known_names_of_a_worker(name: str, meant: str) -> None:
    assert problem({}, {name: "1"}).suggestion == f"did you mean {meant}?"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *[
            (name, "unknown property, ignored")
            for name in ("owner", "my.own", "scylla.address.translator", "start.from")
        ],
        *[(name, "is a property of another connector") for name in ("database.hostname", "slot.name", "s3.region")],
        *[(name, "nothing is filtered, masked") for name in ("column.mask.with.4.chars", "message.key.columns")],
        *[(name, "scylla.table.names") for name in ("table.include.list", "collection.include.list")],
        ("scylla.name", "`topic.prefix` is its name"),
        ("kafka.bootstrap.servers", "Kafka is named in the worker's file"),
        ("cleanup.policy", "topic.creation.default.cleanup.policy"),
        ("skip.messages.without.change", "every change in the log gets its record"),
        ("internal.log.position.check.enable", "internal to Debezium"),
        ("database.history.kafka.topic", "relational connectors"),
        ("offset.flush.interval.ms", "belongs in the worker's file"),
        ("offset.storage.topic", "offsets.storage.topic is the connector's own"),
        ("bootstrap.servers", "belongs in the worker's file"),
        ("sasl.mechanism", "or write producer.override.sasl.mechanism"),
        ("producer.linger.ms", "belongs in the worker's file"),
    ],
)
def test_what_connect_ignores_is_said_and_ignored(name: str, reason: str) -> None:
    assert reason in said({name: "1"})
    assert problem({name: "1", "config.unknown": "error"}).property == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("scylla.user", "belongs in the connector's file"),
        ("transforms.a.type", "belongs in the connector's file"),
        ("ssl.client.auth", "the REST API is on `--http-port`"),
        ("auto.create.topics.enable", "property of the broker"),
        ("log4j.root.loglevel", "unknown property, ignored"),
        ("zookeeper.connect", "unknown property, ignored"),
    ],
)
def test_what_connect_ignores_in_a_workers_file(name: str, reason: str) -> None:
    assert reason in said({}, {name: "1"})


def test_variables_that_are_no_properties() -> None:
    said = {
        "CONNECT_LOG4J_ROOT_LOGLEVEL": "levels of loggers are set by --debug",
        "CONNECT_REPLICATION_FACTOR": "no property of that name, ignored",
        "CONNECT_SCYLLA_PASSWORD": "belongs in the connector's file",
        "CONNECT_TRANSFORMS_A_TYPE": "belongs in the connector's file",
    }
    notices = loaded(environ=dict.fromkeys(said, "3")).notices
    for variable, text in said.items():
        assert any(f"variable {variable}: " in notice and text in notice for notice in notices)
    (found,) = problems(environ={"CONNECT_GROUP_IDD": "g"})
    assert found.suggestion == "did you mean CONNECT_GROUP_ID?"


def test_what_is_unknown_is_a_warning_unless_it_is_to_be_ignored() -> None:
    given = {"zookeeper.connect": "z:2181", "some.thing": "else", "skip.messages.without.change": "true"}
    found = loaded(given, environ={"CONNECT_LOG4J_ROOT_LOGLEVEL": "INFO"})
    assert found.warnings <= set(found.notices)
    assert len(found.warnings) == 2
    assert all("some.thing" in line or "LOG4J" in line for line in found.warnings)
    assert not loaded(given | {"config.unknown": "ignore"}).warnings


def test_the_spellings_of_thousands_of_unknown_names_are_not_all_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty thousand of them took 41 seconds. What is not looked at is said all the same, and its secrets are kept."""
    looked_for: list[str] = []

    def misspelt(name: str, *known: object) -> str | None:
        looked_for.append(name)
        return None

    monkeypatch.setattr(unknown_names, "misspelt", misspelt)
    names = [f"of.nobody.{number}" for number in range(3 * unknown_names.MOST_GUESSED)]
    given = {**dict.fromkeys(names, "1"), "my.last.password": "s3cr3t-one"}
    for told in (said(given), said(None, given)):
        assert names[0] in told and names[-1] in told and "my.last.password" in told
    assert len(looked_for) == 2 * unknown_names.MOST_GUESSED
    assert "s3cr3t-one" not in scrub("s3cr3t-one")
    found = [one.property for one in problems({**given, "config.unknown": "error"})]
    assert {*names, "my.last.password"} == {*found}


def test_what_is_nearest_is_what_difflib_says() -> None:
    """Most of what is not near is told by its letters alone."""
    draw, known = random.Random(5), [*CONNECTOR, *WORKER_BY_NAME, "x" * 300]
    found = 0
    for _ in range(300):
        letters = list(draw.choice(known))
        for _ in range(draw.randrange(8)):
            at = draw.randrange(len(letters) + 1)
            letters[at : at + draw.randrange(2)] = draw.choice(["", "a", "E", ".", "_", "-", "\u0130", "\u65e5", "0"])
        word, cutoff = "".join(letters), draw.choice([0.6, 0.7, 0.78, 0.86, 0.92])
        by_folded = {name.lower(): name for name in known}
        close = difflib.get_close_matches(word.lower(), by_folded, n=1, cutoff=cutoff)
        assert nearest(word, known, cutoff) == (by_folded[close[0]] if close else None), (word, cutoff)
        found += bool(close)
    assert 100 < found < 300


LEFT = {
    "transforms": "route",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "$1",
    "topic.creation.groups": "slow.ones",
    "topic.creation.slow.ones.include": "a.*",
    "topic.creation.slow.ones.partitions": "3",
}


@pytest.mark.parametrize(
    ("name", "list_name", "alias"),
    [
        ("transforms.unwrap.type", "transforms", "unwrap"),
        ("transforms.unwrap.drop.tombstones", "transforms", "unwrap"),
        ("predicates.ours.pattern", "predicates", "ours"),
        ("topic.creation.big.partitions", "topic.creation.groups", "big"),
    ],
)
def test_what_was_taken_out_of_a_list_may_stay_as_in_connect(name: str, list_name: str, alias: str) -> None:
    found = loaded({**LEFT, name: "what.ever"})
    assert [spec.alias for spec in found.connector.output.transforms] == ["route"]
    (group,) = found.connector.delivery.topic_creation.groups
    assert (group.name, group.partitions, group.config) == ("slow.ones", 3, {})
    (notice,) = (each for each in found.notices if name in each)
    assert f"has no effect, as in Kafka Connect: `{list_name}` names no '{alias}'" in notice
    assert notice in found.warnings
    strict = problem({**LEFT, name: "what.ever", "config.unknown": "error"})
    assert (strict.property, strict.suggestion) == (name, f"add {alias} to {list_name}")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("transforms.rout.negate", "transforms.route.negate"),
        ("topic.creation.defualt.partitions", "topic.creation.default.partitions"),
    ],
)
def test_a_member_of_a_list_that_is_misspelt_is_an_error(name: str, meant: str) -> None:
    assert meant in str(problem({**LEFT, name: "x"}).suggestion)
    assert not problems({**LEFT, name: "x", "config.unknown": "ignore"})


def test_whether_topics_are_created_is_the_workers_wherever_it_stands() -> None:
    found = loaded({**LEFT, "topic.creation.enable": "false"})
    (notice,) = (each for each in found.notices if "topic.creation.enable" in each)
    assert "belongs in the worker's file, and has no effect in a connector's, as in Kafka Connect" in notice
    assert found.connector.delivery.create_topics is True


def test_properties_that_no_client_of_kafka_knows_are_ignored_as_by_javas() -> None:
    worker = {"producer.schema.registry.url": "http://r:8081", "admin.foo": "x"}
    found = loaded({"producer.override.request.required.acks": "1"}, worker)
    given = {"producer.schema.registry.url", "admin.foo", "producer.override.request.required.acks"}
    for name in given:
        (notice,) = (each for each in found.notices if name in each)
        assert "unknown property, ignored, as by Java's clients" in notice and notice in found.warnings
    assert "schema.registry.url" not in found.kafka.producer
    strict = problems({"config.unknown": "error", "producer.override.request.required.acks": "1"}, worker)
    assert {each.property for each in strict} == given
    near = problem({"producer.override.batch.siz": "1"})
    assert (near.problem, near.suggestion) == (
        "The producer has no such property",
        "did you mean producer.override.batch.size?",
    )
    assert not problems({"producer.override.batch.siz": "1", "config.unknown": "ignore"})
