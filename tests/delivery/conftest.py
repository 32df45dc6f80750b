"""One offsets topic and one data topic per test, and members of a group over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from connector import native
from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED, KafkaClients
from connector.delivery.membership import Membership
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import ensure_topics
from connector.delivery.transaction import Delivery, DeliverySettings
from connector.offsets_entry import OffsetsEntry
from tests.servers.patience import until

SLOTS = 3


@dataclass
class Noted:
    """Notes what a member is told."""

    events: list[tuple[str, frozenset[int]]]

    def gained(self, slots: frozenset[int]) -> None:
        self.events.append(("gained", slots))

    def revoked(self, slots: frozenset[int]) -> None:
        self.events.append(("revoked", slots))

    def lost(self, slots: frozenset[int]) -> None:
        self.events.append(("lost", slots))


@dataclass
class World:
    """A broker with the topics of one connector."""

    bootstrap: str
    group: str
    offsets: str
    data: str
    membership: list[Membership] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def clients(self) -> KafkaClients:
        # Asked of its module each time: on a simulated broker somebody else is there, before it looks for librdkafka.
        return KafkaClients({"bootstrap.servers": self.bootstrap}, bulk=native.bulk_client)

    def named(self, name: str) -> str:
        """A worker that no other test has, whichever process runs it: its transactional id is the broker's."""
        return f"{self.group}-{name}"

    @property
    def worker(self) -> str:
        return self.named("w")

    def member(
        self, name: str, wait: Callable[[], object] = lambda: None, **settings: object
    ) -> tuple[Membership, list[tuple[str, frozenset[int]]]]:
        """A member that has its slots; ``wait`` lets others take part in the rebalance meanwhile."""
        events: list[tuple[str, frozenset[int]]] = []
        membership = Membership(
            self.clients,
            self.offsets,
            self.group,
            name,
            slots=SLOTS,
            **({"session_timeout_ms": 45_000} | settings),  # type: ignore[arg-type]
        )
        membership.join(Noted(events))
        self.membership.append(membership)
        until(lambda: membership.owned, step=lambda: (membership.poll(0.1), wait()))
        return membership, events

    def delivery(
        self, membership: Membership, name: str, positions: Callable[[], None] = lambda: None, **settings: object
    ) -> Delivery:
        delivery = Delivery(
            self.clients,
            DeliverySettings("c", self.offsets, name, **settings),  # type: ignore[arg-type]
            membership,
            topics=lambda: [self.data],
            group=self.group,
            positions=positions,
        )
        delivery.start()
        self.deliveries.append(delivery)
        return delivery

    def read(self, topic: str, isolation: str = READ_COMMITTED) -> list[tuple[bytes | None, bytes | None]]:
        """Everything in a topic, to the end of each partition."""
        return [(message.key(), message.value()) for message in self.messages(topic, isolation)]

    def messages(self, topic: str, isolation: str = READ_COMMITTED, least: int = 0) -> list[Message]:
        """As `read`; ``least``: so many there are to be at least, before it is the end."""
        consumer = self.clients.consumer("reader", isolation, fetch_wait_max_ms=20)
        found: list[Message] = []
        ended: set[int] = set()
        try:
            partitions = consumer.list_topics(topic, 60).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])

            def poll() -> None:
                message = consumer.poll(0.1)
                if message is None:
                    return
                error = message.error()
                if error is None:
                    ended.discard(message.partition())
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    # A broker that is lost is an error as well, and no end.
                    ended.add(message.partition())

            def missing() -> str:
                return f"{least} records: {len(found)} in {topic}, {len(ended)} of {len(partitions)} partitions ended"

            until(lambda: len(ended) == len(partitions) and len(found) >= least, what=missing, step=poll)
            return found
        finally:
            consumer.close()


def mark(slot: int, owner: str, read_to: int = 1) -> OffsetsEntry:
    key = {"keyspace_name": "ks", "table_name": "t", "slot": slot, "slots": SLOTS}
    return OffsetsEntry(slot, key, {"read_to": read_to, "stream_set": 0, "start": 0, "owner": owner})


def make_world(bootstrap: str, unique: Callable[[str], str]) -> World:
    world = World(bootstrap, unique("group"), unique("offsets"), unique("data"))
    ensure_topics(
        world.clients.admin(),
        [TopicSpec(world.offsets, SLOTS, 1, compacted=True), TopicSpec(world.data, 2, 1)],
    )
    return world


def close(world: World) -> None:
    for delivery in world.deliveries:
        delivery.close()
    for membership in world.membership:
        membership.close()


@pytest.fixture
def world(kafka: object, unique: Callable[[str], str]) -> Iterator[World]:
    built = make_world(kafka.bootstrap_servers, unique)  # type: ignore[attr-defined]
    yield built
    close(built)


__all__ = ["READ_UNCOMMITTED", "SLOTS", "World", "close", "make_world", "mark", "until"]
