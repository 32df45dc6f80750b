"""Kafka clients, built in one place from translated properties.

In: librdkafka properties per kind of client. Out: producers, consumers and admin clients that log to one logger,
remember the last connection error for `status`, and never wait for ever.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from connector.delivery.client_log import QUIET, Heard, HeedfulLog
from connector.delivery.connection_health import ConnectionHealth
from connector.delivery.records import BulkClient
from connector.errors import RetriableDeliveryError

# A commit flushes and waits for no linger, so that lingering costs no latency; without it librdkafka's thread wakes up
# for every handful of records and takes ten times as much of the processor.
LINGER_MS = 50


Properties = Mapping[str, Any]
DeliveryCallback = Callable[[KafkaError, Message], None]

CALL_SECONDS = 10.0


# librdkafka 2.x aborts the whole process (`eonce->refcnt > 0`) where a question to a group's coordinator runs out of
# the time that the library gives it, as after an outage. It is given more than anybody waits; its client goes before.
COORDINATOR_SECONDS = 600.0

#: Of consumers whose configuration names no other. With a short queue the client fetches while we wait, and we read
#: while it waits: each message is memory that its thread takes and ours gives back, and both at once spend as long
#: again on the allocator's lock. It also bounds memory; the client must then ask again soon.
_SHORT_QUEUE: Final = {
    "queued.max.messages.kbytes": 1_024,
    "queued.min.messages": 2_000,
    "fetch.queue.backoff.ms": 1,
}
READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


def no_bulk_client() -> None:
    """Where nobody reads in bulk: records come one by one."""


@dataclass(slots=True)
class KafkaClients:
    """How to reach Kafka. ``producer``, ``consumer`` and ``admin`` add to (and override) ``common``, until `renew`."""

    common: Properties
    producer_properties: Properties = field(default_factory=dict)
    consumer_properties: Properties = field(default_factory=dict)
    admin_properties: Properties = field(default_factory=dict)
    #: Who reads in bulk, past the binding.
    bulk: Callable[[], BulkClient | None] = no_bulk_client
    health: ConnectionHealth = field(default_factory=ConnectionHealth)
    #: How often that has changed: see `LastingLogin`.
    renewals: int = 0
    _admins: weakref.WeakSet[AdminClient] = field(default_factory=weakref.WeakSet, repr=False, compare=False)

    @property
    def address(self) -> str:
        """Where Kafka is, as it was configured."""
        for properties in (self.common, self.admin_properties, self.producer_properties, self.consumer_properties):
            if "bootstrap.servers" in properties:
                return str(properties["bootstrap.servers"])
        return "an unknown address"

    def renew(self, other: KafkaClients) -> None:
        """Clients that are made from now on log in as ``other`` says."""
        self.common = other.common
        self.producer_properties = other.producer_properties
        self.consumer_properties = other.consumer_properties
        self.admin_properties = other.admin_properties
        self.renewals += 1  # behind them: who has noted it before has none of theirs, and looks again

    def explained(self, error: str) -> str:
        """Which Kafka an error is about, and what its connections say: an error of a call names neither."""
        for admin in list(self._admins):
            with contextlib.suppress(KafkaException):
                admin.poll(0)  # what it has to say is said in here
        cause = self.health.error
        return f"Kafka at {self.address}: {error}" if cause is None else f"Kafka at {self.address}: {cause} ({error})"

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Around what may find Kafka away: its error says where Kafka should be, and why it is not reached."""
        try:
            yield
        except RetriableDeliveryError as error:
            text = str(error)
            raise RetriableDeliveryError(text if "Kafka at " in text else self.explained(text)) from None

    def producer(
        self,
        on_delivery: DeliveryCallback | None = None,
        lasting: bool = False,
        heard: Heard | None = None,
        **own: Any,
    ) -> Producer:
        """``lasting``: its losing all brokers counts as an outage. ``heard``: who is told what its log says."""
        properties = self._merged(self.producer_properties, own)
        if lasting:
            properties["error_cb"] = self.health.lost
        if heard is not None:
            properties["logger"] = HeedfulLog(heard, properties)
            properties |= HeedfulLog.told(properties)
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
        return Consumer(_SHORT_QUEUE | self._merged(self.consumer_properties, fixed | own))

    def consumer_property(self, name: str) -> Any:
        """What is configured of consumers; None: nothing is."""
        return self._configured(self.consumer_properties).get(name)

    def admin(self) -> AdminClient:
        return self._admin(self.admin_properties)

    def writers_admin(self) -> AdminClient:
        """With the login of those who write, which may be another one (`producer.override.sasl.…`): of their rights."""
        return self._admin(self.producer_properties)

    def members_admin(self) -> AdminClient:
        """As `writers_admin`, of those who read, and are members of the group."""
        return self._admin(self.consumer_properties)

    def _admin(self, properties: Properties) -> AdminClient:
        admin = AdminClient(self._merged(properties, {}))
        self._admins.add(admin)
        return admin

    def _configured(self, kind: Properties) -> dict[str, Any]:
        return {**self.common, **kind}

    def _merged(self, kind: Properties, own: Properties) -> dict[str, Any]:
        merged = self._configured(kind) | {name.replace("_", "."): value for name, value in own.items()}
        merged.setdefault("error_cb", self.health.failed)
        merged.setdefault("throttle_cb", self.health.throttling.heard)
        merged.setdefault("logger", QUIET)
        return merged


class LastingLogin:
    """Of whoever keeps a client: whether its `KafkaClients` log in with something else since that was made."""

    def __init__(self, clients: KafkaClients) -> None:
        self._clients, self._noted = clients, clients.renewals

    @property
    def is_another(self) -> bool:
        return self._noted != self._clients.renewals

    def note(self) -> None:
        """Before another client is made: what changes meanwhile is seen by the next look."""
        self._noted = self._clients.renewals
