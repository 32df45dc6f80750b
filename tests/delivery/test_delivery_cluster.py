"""Several brokers: what a transaction needs of one that is killed moves to others, and nothing is lost or doubled."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient

from connector.delivery.records import OutgoingRecord
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import ensure_topics
from connector.errors import LostClaim, ProducerFenced, RetriableDeliveryError, TransactionAborted, UnknownOutcome
from embedded.kafka_cluster import EmbeddedKafkaCluster
from tests.delivery.conftest import SLOTS, World, close, mark
from tests.servers.patience import until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


def leader(cluster: EmbeddedKafkaCluster, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return int(admin.list_topics(topic, timeout=90).topics[topic].partitions[0].leader)


def test_a_broker_is_killed_in_the_middle_of_a_transaction(unique: Callable[[str], str]) -> None:
    with EmbeddedKafkaCluster(properties={"default.replication.factor": "1"}) as cluster:
        world = World(cluster.bootstrap_servers, unique("group"), unique("offsets"), unique("data"))
        specs = [TopicSpec(world.offsets, SLOTS, None, compacted=True), TopicSpec(world.data, 1, 3)]
        ensure_topics(world.clients.admin(), specs)
        offsets = world.clients.admin().list_topics(timeout=90).topics[world.offsets]
        assert {len(partition.replicas) for partition in offsets.partitions.values()} == {3}
        membership, _ = world.member("a", session_timeout_ms=30_000)
        delivery = world.delivery(membership, "a")
        delivery.add(0, [OutgoingRecord(world.data, b"0", b"0")])
        delivery.commit([mark(0, "a")])
        wanted = {str(number).encode() for number in range(1, 4)}
        left = set(wanted)

        def seen() -> list[bytes | None]:
            return [key for key, _ in world.read(world.data)]

        def once_more() -> None:
            """As a worker does it: a commit that is answered counts, and one whose outcome is unknown is looked for
            when the next producer has brought what the last one left to its end."""
            membership.poll(0.05)
            try:
                if not delivery.ready:
                    delivery.start(again=True)
                    left.difference_update(seen())
                if not left:
                    return
                delivery.add(0, [OutgoingRecord(world.data, key, key) for key in sorted(left)])
                killed.kill()
                delivery.commit([mark(0, "a")])
                left.clear()
            except (TransactionAborted, LostClaim):
                delivery.abort()
            except (UnknownOutcome, ProducerFenced):
                delivery.close()
            except RetriableDeliveryError:
                # A new leader may not be able to say yet where its partition ends: asked again in the next round.
                assert not delivery.ready

        def next_one() -> None:
            with contextlib.suppress(RetriableDeliveryError):
                delivery.start(again=True)

        killed = cluster.brokers[leader(cluster, world.data) - 1]
        until(lambda: not left, 240, step=once_more)
        # Where nobody led the partition when the others were told, only who comes next tells it of the end.
        until(lambda: wanted <= set(seen()), 60, "what is committed to be visible", step=next_one)
        assert Counter(seen()) == Counter([b"0", *wanted])
        assert not killed.running
        close(world)
