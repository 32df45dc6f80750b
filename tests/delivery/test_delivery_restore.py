"""A slot's successor sees everything its predecessor committed, and nothing can be added behind its back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from connector.delivery.clients import READ_COMMITTED
from connector.delivery.end_offsets import high_watermarks
from connector.delivery.follow import Follower
from connector.delivery.records import compact_json, encode_offsets_key
from connector.delivery.restore import restore
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import DeliveryError, RetriableDeliveryError
from tests.delivery.conftest import SLOTS, World, mark
from tests.servers.patience import until

pytestmark = pytest.mark.kafka


def restored(world: World, *topics: str) -> dict[int, list[int]]:
    """``topics``: those of records, where what former owners left is looked for as well."""
    slots = restore(
        world.clients,
        connector="c",
        topic=world.offsets,
        group=world.group,
        slots=range(SLOTS),
        topics=lambda: topics,
    )
    return {slot: [entry.value["read_to"] for entry in found.entries if entry.value] for slot, found in slots.items()}


def dead_owner(world: World, name: str, read_to: int) -> TransactionalProducer:
    """A process that wrote a mark into slot 0 and never ended its transaction: the broker would, in ten minutes."""
    producer = TransactionalProducer(world.clients, name, transaction_timeout_ms=600_000)
    producer.start(time.monotonic() + 90)
    producer.begin()
    entry = mark(0, name, read_to)
    producer.produce_to(world.offsets, 0, encode_offsets_key("c", entry.key), compact_json(entry.value))
    producer.flush(time.monotonic() + 90)
    return producer


def test_an_empty_topic_restores_at_once(world: World) -> None:
    assert restored(world) == {0: [], 1: [], 2: []}


def test_the_newest_of_what_was_committed_is_restored_and_other_connectors_is_not(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    for read_to in (1, 2, 3):
        delivery.commit([mark(0, world.worker, read_to), mark(2, world.worker, read_to)])
    stranger = TransactionalProducer(world.clients, world.named("stranger"), 10_000)
    stranger.start(time.monotonic() + 90)
    stranger.begin()
    stranger.produce_to(world.offsets, 0, encode_offsets_key("other", {"slot": 0}), b'{"read_to":9}')
    stranger.produce_to(world.offsets, 0, b"not json", b"\xff")
    stranger.flush(time.monotonic() + 90)
    stranger.commit()
    stranger.close()
    assert restored(world) == {0: [3], 1: [], 2: [3]}


def test_a_dead_owners_open_transaction_is_ended_instead_of_awaited(world: World) -> None:
    dead = dead_owner(world, world.named("dead"), 7)
    # Only fencing explains that the end is reached before restoring loses patience.
    assert restored(world)[0] == []
    with pytest.raises(DeliveryError):
        dead.commit()
    dead.close()
    assert world.read(world.offsets, READ_COMMITTED) == []


def test_a_present_member_is_not_fenced(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.commit([mark(0, world.worker, 1)])
    assert restored(world)[0] == [1]
    delivery.commit([mark(0, world.worker, 2)])
    assert restored(world)[0] == [2]


def test_nor_while_what_stands_somewhere_makes_every_claim_a_suspect(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.commit([mark(0, world.worker, 1)])
    heir = dead_owner(world, "heir", 2)
    heir.commit()
    heir.close()
    stranger = TransactionalProducer(world.clients, world.named("stranger"), transaction_timeout_ms=60_000)
    stranger.start(time.monotonic() + 90)
    stranger.begin()
    stranger.produce_to(world.data, 0, b"k", b"v")
    stranger.flush(time.monotonic() + 90)
    assert restored(world, world.data)[0] == [2]
    delivery.commit([mark(0, world.worker, 3)])
    stranger.abort()
    stranger.close()


def test_the_high_watermark_counts_what_is_not_committed(world: World) -> None:
    dead = dead_owner(world, world.named("dead"), 7)
    assert high_watermarks(world.clients, world.offsets, range(SLOTS)) == {0: 1, 1: 0, 2: 0}
    dead.abort()
    dead.close()


def test_restoring_can_be_cancelled(world: World) -> None:
    with pytest.raises(DeliveryError, match="cancelled"):
        restore(
            world.clients,
            connector="c",
            topic=world.offsets,
            group=world.group,
            slots=range(SLOTS),
            cancelled=lambda: True,
        )


def test_a_follower_knows_a_slot_only_behind_everything_that_was_in_it(world: World) -> None:
    dead = dead_owner(world, world.named("dead"), 7)
    follower = Follower(world.clients, "c", world.offsets, world.group + "-follow", SLOTS)
    follower.start()
    seen: list[int] = []

    def step() -> None:
        seen.extend(entry.value["read_to"] for entry in follower.poll() if entry.value)

    until(lambda: follower.caught_up >= {1, 2}, step=step)
    began = time.monotonic()
    until(lambda: time.monotonic() - began > 0.6, step=step)
    assert 0 not in follower.caught_up, "an open transaction still hides what may become committed"
    dead.commit()
    until(lambda: 0 in follower.caught_up, step=step)
    assert seen == [7]
    dead.close()
    follower.close()


def test_a_follower_that_was_away_for_long_begins_anew(world: World) -> None:
    membership, _ = world.member(world.worker)
    delivery = world.delivery(membership, world.worker)
    delivery.commit([mark(0, world.worker, 1)])
    delivery.commit([mark(0, world.worker, 2), mark(1, world.worker, 2)])
    now = 0.0
    follower = Follower(world.clients, "c", world.offsets, world.group + "-follow", SLOTS, clock=lambda: now)
    follower.start()
    seen: list[tuple[int, int]] = []

    def step() -> None:
        seen.extend((entry.slot, entry.value["read_to"]) for entry in follower.poll() if entry.value)

    until(lambda: len(follower.caught_up) == SLOTS, step=step)
    # Which slot's answer comes first is the broker's business.
    assert sorted(seen) == [(0, 2), (1, 2)], "of each key the newest, once the slot was read to its end"
    now += 20
    step()
    assert len(follower.caught_up) == SLOTS
    now += 31
    assert follower.poll() == [] and not follower.caught_up & {0, 1}, "what is known may have holes"
    until(lambda: len(follower.caught_up) == SLOTS, step=step)
    assert sorted(seen) == sorted([(0, 2), (1, 2)] * 2)
    follower.start_anew()
    assert not follower.caught_up
    until(lambda: len(follower.caught_up) == SLOTS, step=step)
    follower.close()


def test_a_follower_says_what_is_lost_with_a_topic_that_is_no_more(world: World, unique: Callable[[str], str]) -> None:
    """Its partitions are nobody's then, so that nothing is restored, which would tell."""
    loss = "it was the only one"

    def lost() -> None:
        raise RetriableDeliveryError(loss)

    name = unique("gone")
    follower = Follower(world.clients, "c", name, world.group + "-follow", SLOTS, positions=lost)
    follower.start_anew()
    assert not follower.poll() and follower.last_error == loss
    follower.close()
