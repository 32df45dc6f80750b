"""Transactions whose markers a broker forgot: what such a broker leaves is made by cutting markers from its logs."""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from connector.delivery.end_offsets import end_offsets
from connector.delivery.records import OutgoingRecord, compact_json, encode_offsets_key
from connector.delivery.restore import RestoredSlot, restore
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import RetriableDeliveryError, UnknownOutcome
from connector.offsets_entry import OffsetsEntry
from embedded.kafka import EmbeddedKafka
from tests.delivery.conftest import READ_COMMITTED, READ_UNCOMMITTED, SLOTS, World, close, make_world, mark
from tests.servers.patience import until

pytestmark = pytest.mark.kafka

CONTROL = 0x20

# Of a transaction: committed, aborted. Before, it is empty, ongoing, to be committed, to be aborted.
ENDED = {4, 5}


@pytest.fixture
def crashed(own_kafka: EmbeddedKafka, unique: Callable[[str], str]) -> Iterator[tuple[World, EmbeddedKafka]]:
    """What the tests leave on their broker has names of their own."""
    world = make_world(own_kafka.bootstrap_servers, unique)
    yield world, own_kafka
    close(world)


def forget_markers(world: World, broker: EmbeddedKafka, *topics: str) -> None:
    """Crash, and lose the marker that each partition of ``topics`` ends with."""
    places = [(world.data, 0), *((world.offsets, slot) for slot in range(SLOTS))]
    admin = world.clients.admin()
    until(lambda: end_offsets(admin, places) == end_offsets(admin, places, READ_COMMITTED))
    # The coordinator, too, must know that all markers are written: it would write them again after its crash.
    until(lambda: transactions(world) <= ENDED, what="the coordinator's last word on each transaction")
    broker.kill()
    for topic in topics:
        for log in broker.data.glob(f"logs/{topic}-*/*.log"):
            raw = log.read_bytes()
            at = last = 0
            while at + 61 <= len(raw) and struct.unpack_from(">i", raw, at + 8)[0] > 0:
                last, at = at, at + 12 + struct.unpack_from(">i", raw, at + 8)[0]
            if at and struct.unpack_from(">h", raw, last + 21)[0] & CONTROL:
                log.write_bytes(raw[:last])
    broker.restart()


def position(slot: int, read_to: int) -> OffsetsEntry:
    return OffsetsEntry(
        slot, {"keyspace_name": "ks", "table_name": "t", "slot": slot, "group": 1}, {"read_to": read_to}
    )


def transactions(world: World) -> set[int]:
    """The states of this test's transactions, as the coordinator's own log has them."""
    newest = dict(world.read("__transaction_state", READ_UNCOMMITTED))
    mine = [value for key, value in newest.items() if key and world.named("").encode() in key and value is not None]
    assert mine
    # A version, the producer's id and epoch, a timeout; then the state.
    return {value[2 + 8 + 2 + 4] for value in mine}


def transaction(world: World, owner: str, key: bytes, entry: OffsetsEntry) -> TransactionalProducer:
    """Open, with a record and an entry of the offsets topic, both written."""
    producer = TransactionalProducer(world.clients, owner, transaction_timeout_ms=60_000)
    producer.start(time.monotonic() + 60)
    producer.begin()
    producer.produce_all(
        [
            OutgoingRecord(world.data, key, b"data", partition=0),
            OutgoingRecord(
                world.offsets, encode_offsets_key("c", entry.key), compact_json(entry.value), partition=entry.slot
            ),
        ]
    )
    producer.flush(time.monotonic() + 60)
    return producer


def restored(world: World) -> dict[int, RestoredSlot]:
    def once() -> dict[int, RestoredSlot] | None:
        try:
            return restore(
                world.clients,
                connector="c",
                topic=world.offsets,
                group=world.group,
                slots=range(SLOTS),
                topics=lambda: [world.data],
            )
        except RetriableDeliveryError:
            return None  # a broker that has just come back may be slow to answer: workers try again, too

    return until(once, 180, "restored slots") or {}


def test_an_abort_that_was_forgotten_is_made_up_for(crashed: tuple[World, EmbeddedKafka]) -> None:
    world, broker = crashed
    dead, alive = world.named("dead"), world.named("alive")
    left = transaction(world, dead, b"a", mark(0, dead))
    left.abort()
    left.close()
    forget_markers(world, broker, world.data, world.offsets)
    transaction(world, alive, b"b", mark(1, alive)).commit()
    assert world.read(world.data) == []
    slots = restored(world)
    assert [entry.owner for entry in slots[0].entries] == []
    assert [entry.owner for entry in slots[1].entries] == [alive]
    # A commit is known before its marker stands in the partition.
    until(lambda: world.read(world.data) == [(b"b", b"data")], what=lambda: str(world.read(world.data)))
    assert set(world.read(world.data, READ_UNCOMMITTED)) == {(b"a", b"data"), (b"b", b"data")}


def test_an_abort_that_was_forgotten_beside_the_claim_that_it_took_back_is_made_up_for(
    crashed: tuple[World, EmbeddedKafka],
) -> None:
    """No committed word names its worker, who was lost in his first transaction."""
    world, broker = crashed
    dead, alive = world.named("dead"), world.named("alive")
    left = transaction(world, dead, b"a", mark(0, dead))
    left.abort()
    left.close()
    forget_markers(world, broker, world.data)
    transaction(world, alive, b"b", mark(1, alive)).commit()
    assert world.read(world.data) == []
    slots = restored(world)
    assert [entry.owner for entry in slots[0].entries] == []
    until(lambda: world.read(world.data) == [(b"b", b"data")], what=lambda: str(world.read(world.data)))


def test_a_producer_that_starts_again_ends_what_it_left_itself(crashed: tuple[World, EmbeddedKafka]) -> None:
    """Its next commit would otherwise make the aborted records visible."""
    world, broker = crashed
    w = world.worker
    membership, _ = world.member(w, session_timeout_ms=10_000)
    delivery = world.delivery(membership, w)
    delivery.add(0, [OutgoingRecord(world.data, b"a", b"data", partition=0)])
    assert delivery._producer is not None
    delivery._producer.flush(time.monotonic() + 60)
    delivery.abort()
    forget_markers(world, broker, world.data)
    delivery.start(again=True)
    producer = transaction(world, w, b"b", mark(0, w))
    producer.commit()
    # A commit is known before its marker stands in the partition.
    until(lambda: world.read(world.data) == [(b"b", b"data")], what=lambda: str(world.read(world.data)))


def test_a_commit_that_was_forgotten_is_never_aborted(
    crashed: tuple[World, EmbeddedKafka], caplog: pytest.LogCaptureFixture
) -> None:
    """Its position is committed: taking its record back would lose it."""
    world, broker = crashed
    dead = world.named("dead")
    left = transaction(world, dead, b"a", mark(0, dead))
    left.commit()
    left.close()
    forget_markers(world, broker, world.data)
    with caplog.at_level(logging.WARNING):
        slots = restored(world)
    assert [entry.owner for entry in slots[0].entries] == [dead]
    assert "kafka-transactions.sh" in caplog.text
    assert world.read(world.data, READ_UNCOMMITTED) == [(b"a", b"data")]


def test_a_commit_that_was_forgotten_in_a_slot_is_made_up_for(crashed: tuple[World, EmbeddedKafka]) -> None:
    """Its records are committed: without their position they would be delivered again."""
    world, broker = crashed
    w = world.worker
    membership, _ = world.member(w, session_timeout_ms=10_000)
    delivery = world.delivery(membership, w)
    delivery.add(0, [OutgoingRecord(world.data, b"a", b"data", partition=0)])
    delivery.commit([position(0, 5), position(0, 7), mark(0, w), position(1, 9), mark(1, w)])
    membership.close()
    forget_markers(world, broker, world.offsets)
    slots = restored(world)
    assert [entry.value for entry in slots[0].entries] == [position(0, 7).value, mark(0, w).value]
    assert [entry.value for entry in slots[1].entries] == [position(1, 9).value, mark(1, w).value]
    assert world.read(world.data) == [(b"a", b"data")]


def test_a_producer_that_outlived_its_broker_goes_on_only_when_it_was_started_again(
    crashed: tuple[World, EmbeddedKafka],
) -> None:
    """Else the next end of a transaction would speak for the one that is open still, in some of its partitions."""
    world, broker = crashed
    w = world.worker
    membership, _ = world.member(w, session_timeout_ms=10_000)
    delivery = world.delivery(membership, w)
    delivery.add(0, [OutgoingRecord(world.data, b"a", b"data", partition=0)])
    delivery.commit([position(0, 5), mark(0, w)])
    forget_markers(world, broker, world.offsets)
    with pytest.raises(UnknownOutcome):
        delivery.add(0, [OutgoingRecord(world.data, b"b", b"data", partition=0)])
    delivery.start(again=True)
    until(lambda: len(world.read(world.offsets)) >= 2, what="positions that are committed again")
    assert world.read(world.data) == [(b"a", b"data")]


def test_an_abort_that_was_forgotten_in_a_slot_stays_one(crashed: tuple[World, EmbeddedKafka]) -> None:
    """Not even a later commit of the same worker says that this one was committed, too."""
    world, broker = crashed
    w = world.worker
    membership, _ = world.member(w, session_timeout_ms=10_000)
    delivery = world.delivery(membership, w)
    delivery.commit([mark(1, w)])
    delivery.add(0, [])
    delivery.add(0, delivery._records([position(0, 5), mark(0, w)]))
    assert delivery._producer is not None
    delivery._producer.flush(time.monotonic() + 60)
    delivery.abort()
    membership.close()
    forget_markers(world, broker, world.offsets)
    transaction(world, w, b"b", mark(2, w)).commit()
    slots = restored(world)
    assert [slot for slot, found in slots.items() if found.entries] == [1, 2]
