"""What was killed long ago is not listed for ever."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from connector.delivery import READ_COMMITTED, StoredRecord, ensure_topics, read_topic
from connector.worker import departed as leaving
from connector.worker.departed import KEPT_SECONDS, Departed, departed
from connector.worker.settings import kafka_clients, status_spec
from connector.worker.status_topic import words_producer
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.servers.patience import until

NOW = 10**12
LONG = NOW - round(KEPT_SECONDS * 1000) - 1


def record(name: str, who: dict[str, Any], value: Any, offset: int = 0) -> StoredRecord:
    text = None if value is None else json.dumps(value).encode()
    return StoredRecord(0, json.dumps([name, who]).encode(), text, NOW, offset)


@pytest.mark.parametrize(
    ("name", "who", "value", "gone"),
    [
        ("shop", {"worker": "w"}, {"time_ms": LONG}, True),
        ("shop", {"worker": "w"}, {"time_ms": LONG + 1}, False),
        ("shop", {"worker": "w"}, {"time_ms": LONG, "server_time_ms": NOW}, False),
        ("shop", {"worker": "w"}, {"time_ms": NOW, "server_time_ms": 0}, False),
        ("other", {"worker": "w"}, {"time_ms": LONG}, False),
        ("", {"group": "g", "process": "p"}, {"at_ms": LONG}, True),
        ("", {"group": "g", "process": "p"}, {"at_ms": NOW}, False),
        ("", {"group": "others", "process": "p"}, {"at_ms": LONG}, False),
        ("shop", {"worker": 5}, {"time_ms": LONG}, False),
        ("shop", {"worker": "w"}, None, False),
        ("shop", {"worker": "w"}, {}, False),
        ("shop", {"worker": "w"}, {"time_ms": "x"}, False),
        ("shop", {"worker": "w"}, 5, False),
        ("shop", {}, {"time_ms": LONG}, False),
    ],
)
def test_what_was_said_long_ago_by_every_clock_is_taken_out(name: str, who: Any, value: Any, gone: bool) -> None:
    found = record(name, who, value)
    assert [*departed([found], {"shop"}, "g", NOW)] == ([found] if gone else [])
    again = record(name, who, {"time_ms": NOW, "at_ms": NOW}, 1)
    assert [*departed([found, again], {"shop"}, "g", NOW)] == [], "it is there again"


@pytest.mark.kafka
def test_it_is_taken_out_of_the_topic_where_it_stands(
    kafka: EmbeddedKafka, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"bootstrap.servers": kafka.bootstrap_servers, "status.storage.topic": unique("s")}
    worker = loaded(worker={**given, "status.storage.replication.factor": "1", "group.id": "g"})
    clients, topic, name = kafka_clients(worker), worker.worker.status.name, worker.connector.name
    ensure_topics(clients.admin(), [status_spec(worker)])
    long, new = {"time_ms": 1, "at_ms": 1}, {"time_ms": 2**41, "at_ms": 2**41}
    said = [
        *((0, record("", {"group": "g", "process": who}, word)) for who, word in (("old", long), ("new", new))),
        *((2, record(name, {"worker": who}, word)) for who, word in (("old", long), ("new", new))),
    ]
    producer = words_producer(clients)
    for partition, each in said:
        assert each.key is not None
        producer.produce_to(topic, partition, each.key, each.value)
    producer.flush(float("inf"))
    producer.close()

    def left() -> set[bytes | None]:
        records = read_topic(clients, topic, worker.worker.status.partitions, "g", READ_COMMITTED)
        newest = {(each.partition, each.key): each.value for each in records}
        return {key for (_, key), value in newest.items() if value is not None}

    def looking() -> bool:
        return any(thread.name == "departed" for thread in threading.enumerate())

    assert left() == {each.key for _, each in said}
    Departed(clients, worker).tick({name})
    assert not looking(), "not when a process starts"
    monkeypatch.setattr(leaving, "FIRST_LOOK_SECONDS", (0.0, 0.0))
    looks = Departed(clients, worker)
    looks.tick({name})
    until(lambda: left() == {each.key for _, each in said[1::2]}, what="that the old ones are no more")
    until(lambda: not looking(), what="the end of the look")
    looks.tick({name})
    assert not looking(), "the whole topic is not read again soon"


def test_of_a_connector_that_was_deleted_nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, alive, process = (
        record("shop", {"worker": "killed"}, {"time_ms": NOW - 21_000}),
        record("shop", {"worker": "alive"}, {"time_ms": NOW - 3_000}),
        record("", {"group": "g", "process": "p"}, {"at_ms": NOW - 21_000}),
    )
    assert [*departed([killed, alive, process], {"shop"}, None, NOW, leaving.SILENT_SECONDS)] == [killed]
    looked = list[tuple[Any, ...]]()
    # The look that each process begins with comes at a time that is drawn.
    monkeypatch.setattr(leaving, "FIRST_LOOK_SECONDS", (3600.0, 3600.0))
    looks, now = Departed(kafka_clients(loaded()), loaded()), time.monotonic()
    monkeypatch.setattr(looks, "forget", lambda *what: looked.append(what))
    monkeypatch.setattr(leaving, "aside", lambda call, name: call())
    monkeypatch.setattr(leaving, "time", SimpleNamespace(monotonic=lambda: now))
    for _ in range(2):
        looks.tick({"till"}, {"shop", "again"})
    now += leaving.DELETED_SECONDS
    looks.tick({"till", "again"}, {"shop"})
    assert looked == [(frozenset({"shop"}), None, leaving.SILENT_SECONDS)], "the other one is there again"
    now += leaving.DELETED_SECONDS - 1
    looks.tick({"till"})
    assert len(looked) == 1, "once"
