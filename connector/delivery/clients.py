"""Kafka clients, built in one place from translated properties.

In: librdkafka properties per kind of client. Out: producers, consumers and admin clients that log to one logger,
remember the last connection error for `status`, and never wait for ever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

log = logging.getLogger("connector.kafka")

# A commit flushes and waits for no linger, so that lingering costs no latency; without it librdkafka's thread wakes up
# for every handful of records and takes ten times as much of the processor.
LINGER_MS = 50

# A broker that is away makes every client say so many times a second: one line per kind and half minute is enough.
SAME_KIND_SECONDS = 30.0

Properties = Mapping[str, Any]
DeliveryCallback = Callable[[KafkaError, Message], None]

CALL_SECONDS = 10.0

READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


class QuietLog:
    """librdkafka's log lines, each kind of them (``FAIL``, ``GETPID``, …) once in a while."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def log(self, level: int, text: str, *arguments: object) -> None:
        """Called by confluent-kafka in place of a logger, within poll and flush."""
        kind = str(arguments[0]) if arguments else text
        now = time.monotonic()
        known = self._said.get(kind)
        if known is None or now - known >= SAME_KIND_SECONDS:
            self._said[kind] = now
            # What librdkafka calls an error it goes on to mend by itself: none of it is one for our users.
            log.log(min(level, logging.WARNING), text, *arguments)
        else:
            log.debug(text, *arguments)


_QUIET = QuietLog()


class ConnectionHealth:
    """The newest connection error of any client of this process, cleared when a call succeeds again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: str | None = None
        self._outages = 0

    def failed(self, error: KafkaError) -> None:
        with self._lock:
            self._error = f"{error.name()}: {error.str()}"
            if error.code() == KafkaError._ALL_BROKERS_DOWN:
                self._outages += 1

    @property
    def outages(self) -> int:
        """How often a client of this process lost all of its brokers."""
        with self._lock:
            return self._outages

    def succeeded(self) -> None:
        with self._lock:
            self._error = None

    @property
    def error(self) -> str | None:
        with self._lock:
            return self._error


@dataclass(frozen=True, slots=True)
class KafkaClients:
    """How to reach Kafka. ``producer``, ``consumer`` and ``admin`` add to (and override) ``common``."""

    common: Properties
    producer_properties: Properties = field(default_factory=dict)
    consumer_properties: Properties = field(default_factory=dict)
    admin_properties: Properties = field(default_factory=dict)
    health: ConnectionHealth = field(default_factory=ConnectionHealth)

    @property
    def address(self) -> str:
        """Where Kafka is, as it was configured."""
        return str(self.common.get("bootstrap.servers", "Kafka"))

    def producer(self, on_delivery: DeliveryCallback | None = None, **own: Any) -> Producer:
        properties = self._merged(self.producer_properties, own)
        if on_delivery is not None:
            properties["on_delivery"] = on_delivery
        properties.setdefault("linger.ms", LINGER_MS)
        return Producer(properties)

    def consumer(self, group: str, isolation: str, **own: Any) -> Consumer:
        """A consumer that commits nothing by itself and reports the end of each partition."""
        fixed = {
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        return Consumer(self._merged(self.consumer_properties, fixed | own))

    def admin(self) -> AdminClient:
        return AdminClient(self._merged(self.admin_properties, {}))

    def _merged(self, kind: Properties, own: Properties) -> dict[str, Any]:
        merged = {**self.common, **kind, **{name.replace("_", "."): value for name, value in own.items()}}
        merged.setdefault("error_cb", self.health.failed)
        merged.setdefault("logger", _QUIET)
        return merged


def high_watermarks(clients: KafkaClients, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """The offsets behind everything that was written, committed or not."""
    # The client must outlive its futures, or they never complete.
    admin = clients.admin()
    found = end_offsets(admin, [(topic, partition) for partition in partitions])
    return {partition: offset for (_, partition), offset in found.items()}


def end_offsets(
    admin: AdminClient, places: Iterable[tuple[str, int]], isolation: str = READ_UNCOMMITTED
) -> dict[tuple[str, int], int]:
    """High watermarks, or (read_committed) last stable offsets, by topic and partition.

    Asked through the admin client: a read_committed consumer answers both questions with the last stable offset.
    """
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in places}
    if not wanted:
        return {}
    level = IsolationLevel.READ_COMMITTED if isolation == READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
    futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=CALL_SECONDS)
    return {
        (where.topic, where.partition): int(future.result(timeout=CALL_SECONDS).offset)
        for where, future in futures.items()
    }
