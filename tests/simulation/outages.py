"""Short stories of brokers that crash between a decision and its markers, as `scenarios.py`.

A single broker that is killed then comes back as a coordinator that calls the transaction ended, and no partition of it
hears of that: seen ten times out of ten with a real one. A client that asks again is told that it has committed.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.delivery.bounded import bounded
from connector.delivery.transaction import Delivery
from connector.errors import UnknownOutcome
from tests.delivery.conftest import mark
from tests.simulation.kafka_log import Fate
from tests.simulation.scenarios import Stage, stage


def crash(on: Stage) -> None:
    """With the markers that are due in the next seconds."""
    on.broker.stop(4.0, forget_markers=True)
    on.scheduler.pass_time(5)


def refused(action: Callable[[], object]) -> bool:
    try:
        action()
    except UnknownOutcome:
        return True
    return False


def began(on: Stage) -> Delivery:
    """A worker's, whose last commit is decided and not told to any partition."""
    membership, _ = on.world.member("w")
    delivery = on.world.delivery(membership, "w")
    on.broker.transactions.marker_seconds = 3.0
    delivery.add(0, on.records("a"))
    delivery.commit([mark(0, "w")])
    return delivery


def all_or_nothing(on: Stage, delivery: Delivery, *later: str) -> None:
    """What was forgotten is taken back everywhere once a new producer is there; then delivery goes on."""
    on.broker.transactions.marker_seconds = 0.001
    delivery.start(again=True)
    assert on.keys() == [] and on.world.read(on.world.offsets) == []
    delivery.add(0, on.records("a", *later))
    delivery.commit([mark(0, "w")])
    assert on.keys() == ["a", *later]


def nothing_is_produced_behind_an_outage() -> None:
    with stage() as on:
        delivery = began(on)
        crash(on)
        assert refused(lambda: delivery.add(0, on.records("b"))), "produced behind what may be open"
        assert not delivery.is_open, "begun behind what may be open"
        all_or_nothing(on, delivery, "b")


def nothing_that_waits_is_sent_behind_an_outage() -> None:
    """Brokers that are back soon would take it, and whatever ends it ends what is open there, which is not open
    wherever the one before has written."""
    with stage() as on:
        delivery = began(on)
        # The end of the one before is known to the group, and to nobody else.
        first = on.broker.transactions.ids[delivery.settings.transactional_id]
        on.broker.groups.settle(on.world.group, first.producer, True)
        delivery.add(0, on.records("b"))
        on.scheduler.later(0.5, lambda: on.broker.stop(4.0, forget_markers=True))
        assert refused(lambda: delivery.commit([mark(1, "w")])), "committed behind what may be open"
        delivery.close()
        on.scheduler.pass_time(5)
        on.broker.transactions.marker_seconds = 0.001
        delivery.start(again=True)
        records = [record for partition in on.broker.topics[on.world.data].partitions for record in partition.records]
        # It is ended once nobody else can be about to: its position is committed.
        assert [(record.key, record.fate) for record in records if record is not None] == [(b"a", Fate.OPEN)]
        assert on.world.read(on.world.offsets)


def nothing_is_committed_behind_an_outage() -> None:
    """Also where the end of the one before was known: who crashes may have forgotten it since."""
    with stage() as on:
        delivery = began(on)
        delivery.add(0, on.records("b"))
        on.scheduler.pass_time(4)
        for later in "cd":
            delivery.add(0, on.records(later))
        crash(on)
        assert refused(lambda: delivery.commit([mark(0, "w", 2)])), "committed behind what may be open"
        on.broker.transactions.marker_seconds = 0.001
        delivery.start(again=True)
        assert on.keys() == ["a"]


def a_commit_that_an_outage_interrupts_is_an_unknown_outcome() -> None:
    """Its answer comes when the broker is back, and is a good one."""
    with stage() as on:
        membership, _ = on.world.member("w")
        delivery = on.world.delivery(membership, "w")
        on.broker.transactions.marker_seconds = 3.0
        delivery.add(0, on.records("a"))
        decide = on.broker.transactions.end

        def decided(name: str, epoch: int, commit: bool) -> int | None:
            on.broker.transactions.end = decide  # type: ignore[method-assign]
            on.broker.stop(4.0, forget_markers=True)
            return decide(name, epoch, commit)

        on.broker.transactions.end = decided  # type: ignore[method-assign]
        assert refused(lambda: delivery.commit([mark(0, "w")])), "taken for committed"
        on.scheduler.pass_time(5)
        all_or_nothing(on, delivery)


def offsets_that_stay_pending_alone_hold_up_no_restore() -> None:
    """The group's own partition is told last."""
    with stage() as on:
        dead = on.producer("dead", mark(0, "dead", 5))
        dead.commit()
        on.scheduler.pass_time(1)
        left = on.broker.transactions.ids["dead"].producer
        on.broker.groups.group(on.world.group).pending[left] = {0: "a transaction that has ended"}
        done = on.restoring()
        on.scheduler.pass_time(20)
        assert done and [entry.owner for entry in done[0][0]] == ["dead"]


def a_call_that_does_not_come_back_is_an_unknown_outcome() -> None:
    with stage() as on:
        began = on.scheduler.now
        assert refused(lambda: bounded(lambda seconds: on.scheduler.pass_time(1e6), "telling the group", 1.0, 5.0))
        assert on.scheduler.now - began < 10, "it was waited for"
