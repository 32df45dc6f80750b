"""Kafka clients, built in one place from translated properties.

In: librdkafka properties per kind of client. Out: producers, consumers and admin clients that log to one logger,
remember the last connection error for `status`, and never wait for ever.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient

log = logging.getLogger("scylla_cdc.kafka")

Properties = Mapping[str, Any]

READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


class ConnectionHealth:
    """The newest connection error of any client of this process, cleared when a call succeeds again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: str | None = None

    def failed(self, error: KafkaError) -> None:
        with self._lock:
            self._error = f"{error.name()}: {error.str()}"

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

    def producer(self, **own: Any) -> Producer:
        return Producer(self._merged(self.producer_properties, own))

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
        merged.setdefault("logger", log)
        return merged
