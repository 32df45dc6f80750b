"""What the demo's consumers of committed records find in Kafka.

In: a broker. Out: `Delivered`: each table's records in their order, the changes' places in the log and latencies, one
key's records, the dead letters.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from connector.errors import EmbeddedError
from embedded.demo.fold import Event
from embedded.demo.schema import ORDERS, TABLES
from embedded.demo.service import DEAD_LETTERS, PREFIX
from embedded.demo.workload import STORY_KEY

Place = tuple[str, str, int]
"""Of a row in the log: stream, time, number."""

_RECORDED = (1, 2, 3, 4, 5, 6)


@dataclass
class Delivered:
    places: Counter[Place] = field(default_factory=Counter)
    latencies_ms: list[int] = field(default_factory=list)
    story: list[dict[str, Any]] = field(default_factory=list)
    dead_letters: list[dict[str, str]] = field(default_factory=list)
    events: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    deletes: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))


def read_delivered(servers: str) -> Delivered:
    """All records of the demo's topics, as a consumer with `isolation.level=read_committed` sees them."""
    found = Delivered()
    rows = {f"{PREFIX}.{table.name}": table for table in TABLES}
    deletes = {f"{name}.range-deletes": table for name, table in rows.items()}
    for message in _messages(servers, {*rows, *deletes, DEAD_LETTERS}):
        if message.topic() == DEAD_LETTERS:
            headers = {name: (value or b"").decode() for name, value in message.headers() or []}
            found.dead_letters.append(headers)
        elif message.value() is not None:
            key, value = json.loads(message.key()), json.loads(message.value())
            at = value["source"]["ts_us"]
            if (table := deletes.get(message.topic())) is not None:
                found.deletes[table.name].append(Event(at, tuple(key[name] for name in table.partition), value))
            else:
                table = rows[message.topic()]
                found.events[table.name].append(Event(at, tuple(key.get(name) for name in table.key), value))
            if value.get("op") != "r":
                _take(found, message, value)
            if message.topic() == f"{PREFIX}.{ORDERS.name}" and found.events[ORDERS.name][-1].key == STORY_KEY:
                found.story.append(value)
    return found


def _take(found: Delivered, message: Message, value: dict[str, Any]) -> None:
    source = value["source"]
    found.places[source["stream_id"], source["time"], source["batch_seq_no"]] += 1
    found.latencies_ms.append(message.timestamp()[1] - source["ts_us"] // 1000)


def _messages(servers: str, topics: set[str]) -> Iterator[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "demo-check",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        known = consumer.list_topics(timeout=20).topics
        wanted = [TopicPartition(name, number, 0) for name in topics & set(known) for number in known[name].partitions]
        consumer.assign(wanted)
        ended: set[tuple[str, int]] = set()
        deadline = time.monotonic() + 60
        while len(ended) < len(wanted):
            if time.monotonic() > deadline:
                raise EmbeddedError("the demo's topics could not be read to their ends within 60 s")
            for message in consumer.consume(2000, 0.2):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add((message.topic(), message.partition()))
    finally:
        consumer.close()


def log_places(session: Any) -> Counter[Place]:
    """Where the logs have a row that must become a record; of a range delete that is the row of its start."""
    found: Counter[Place] = Counter()
    for table in TABLES:
        rows = session.execute(
            f'SELECT "cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation" FROM {table.log}'
        )
        found.update((stream.hex(), str(time), number) for stream, time, number, kind in rows if kind in _RECORDED)
    return found
