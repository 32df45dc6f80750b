"""Topics that the worker creates for itself stay small, whatever else is asked of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connector.config import Configuration
from connector.delivery import KafkaClients, TopicSpec, ensure_topics
from connector.worker.settings import OFFSETS_CONFIG, identity, offsets_spec
from tests.config.files import loaded


@pytest.mark.kafka
def test_a_broker_takes_the_settings_of_the_offsets_topic(kafka: object, unique: Callable[[str], str]) -> None:
    clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers})  # type: ignore[attr-defined]
    name = unique("offsets")
    assert ensure_topics(clients.admin(), [TopicSpec(name, 1, 1, OFFSETS_CONFIG, compacted=True)])[name].compacted


@pytest.mark.parametrize(
    ("given", "lags"),
    [
        ({}, ("60000", "1200000")),
        ({"segment.bytes": "1048576"}, ("60000", "1200000")),
        ({"min.compaction.lag.ms": "7200000"}, ("7200000", None)),
        ({"max.compaction.lag.ms": "1000"}, (None, "1000")),
    ],
)
def test_what_is_given_comes_first_and_meets_no_bound_of_ours(
    given: dict[str, str], lags: tuple[str | None, str | None]
) -> None:
    made = offsets_spec(loaded({}, {f"offset.storage.{name}": value for name, value in given.items()})).config
    assert (made.get("min.compaction.lag.ms"), made.get("max.compaction.lag.ms")) == lags
    assert {name: made[name] for name in given} == given
    assert made["segment.bytes"] == given.get("segment.bytes", "4194304")


@pytest.mark.parametrize(
    ("name", "group", "shown"),
    [
        ("orders %", "workers", "workers-orders %"),
        ("größe", "workers", "workers-gr%C3%B6%C3%9Fe"),
        ("größe%", "a b", "a b-gr%C3%B6%C3%9Fe%25"),
        ("orders", "группа", "%D0%B3%D1%80%D1%83%D0%BF%D0%BF%D0%B0-orders"),
    ],
)
def test_kafka_knows_groups_and_members_by_names_of_printable_ascii(name: str, group: str, shown: str) -> None:
    configuration = loaded({"name": name}, {"group.id": group, "group.instance.id": "köln"})
    assert configuration.group == shown == Configuration.group_of(group, name)
    assert configuration.connector.name == name and configuration.worker.group_id == group
    who = identity(configuration, 1)
    assert who.client_id.isascii() and who.client_id.startswith(f"{configuration.client_name}-")
    assert who.instance_id == "k%C3%B6ln-1"
    assert name != "orders %" or configuration.client_name == name, "what is ASCII stays"
