"""Names that are not declared here: misspelt ones are errors, all others are said and ignored, as in Connect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
    notices = loaded(environ={"CONNECT_LOG4J_ROOT_LOGLEVEL": "INFO", "CONNECT_REPLICATION_FACTOR": "3"}).notices
    assert sum("no property of that name, ignored" in notice for notice in notices) == 2
    (found,) = problems(environ={"CONNECT_GROUP_IDD": "g"})
    assert found.suggestion == "did you mean CONNECT_GROUP_ID?"


def test_what_is_unknown_is_a_warning_unless_it_is_to_be_ignored() -> None:
    given = {"zookeeper.connect": "z:2181", "some.thing": "else", "skip.messages.without.change": "true"}
    found = loaded(given, environ={"CONNECT_LOG4J_ROOT_LOGLEVEL": "INFO"})
    assert found.warnings <= set(found.notices)
    assert len(found.warnings) == 2
    assert all("some.thing" in line or "LOG4J" in line for line in found.warnings)
    assert not loaded(given | {"config.unknown": "ignore"}).warnings
