"""What a worker believes of what others have delivered: what it follows of their slots, since it last began anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connector.topology import Mark, MarkKey, Position, PositionKey, mark_entry, position_entry, visible_to
from connector.worker import unclaimed
from connector.worker.silent_slots import SILENT_SECONDS, SilentSlots
from connector.worker.status import Snapshots
from connector.worker.unclaimed import LOOK_SECONDS, Unclaimed
from connector.worker.worker import Worker
from tests.topology.single import TABLE, WHOLE, Single, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
LEFT, RIGHT = stream(48, 2), stream(64, 2)


def test_what_was_followed_counts_for_nothing_after_a_new_beginning() -> None:
    """The end of a stream that is no more is not told again to who begins: it is unknown, and not as it was."""
    before, after = tablets(1_000, A, B, C, D), tablets(1_500, A, LEFT, RIGHT, C, D)
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_900, 1_500, 1_000, "x"))
    low = position_entry(0, PositionKey(TABLE, B), Position(1_100))
    single = Single(before, after, now=2_000, own=[], claim=False, records=[mark, low])
    (parent,) = [state for state in single.plan.states() if state.group.streams == (B,)]
    gone = [position_entry(0, PositionKey(TABLE, B), None)]
    follower = SimpleNamespace(
        poll=lambda but: [gone.pop()] if gone else [],
        caught_up=frozenset({0}),
        beginnings=0,
        last_error=None,
        fell_back=False,
    )
    worker = SimpleNamespace(
        follower=follower,
        _beginnings=0,
        _followed=frozenset(),
        _slots=single.planner,
        _following=SimpleNamespace(is_now=lambda error: None),
        silent_slots=SilentSlots(),
    )
    Worker._follow(worker)  # type: ignore[arg-type]
    assert single.plan.reached(parent, 1_500)
    follower.beginnings, follower.caught_up = 1, frozenset()
    Worker._follow(worker)  # type: ignore[arg-type]
    assert not single.plan.reached(parent, 1_500)


class _Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_slot_is_silent_when_nothing_came_in_it_for_longer_than_an_owner_says_nothing() -> None:
    clock = _Clock()
    silent = SilentSlots(clock)
    assert silent.besides(()) == frozenset(), "of what is not followed nothing is said"
    silent.heard({0, 1, 2})
    clock.now += SILENT_SECONDS - 1
    silent.heard({1})
    assert silent.besides(()) == frozenset()
    clock.now += 2
    assert silent.besides({2}) == {0}, "one is heard of, one is ours"


def _snapshots(owned: frozenset[int], silent: frozenset[int] = frozenset()) -> Snapshots:
    membership = SimpleNamespace(owned=owned, settled=True)
    besides = SimpleNamespace(besides=lambda ours: silent - ours)
    worker: Any = SimpleNamespace(membership=membership, silent_slots=besides, tables={})
    about: Any = None
    return Snapshots(worker, about)


def _lag(single: Single, owned: frozenset[int], silent: frozenset[int], now: int) -> int | None:
    return _snapshots(owned, silent)._lag(single.plan, visible_to(single.plan), now)


def test_the_lag_counts_slots_that_came_to_us_and_are_not_read_yet_and_those_that_nobody_moves() -> None:
    """Their former owner told how late they are, and does not any more."""
    low = position_entry(0, PositionKey(TABLE, B), Position(1_100))
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_900, 1_000, 1_000, "x"))
    single = Single(tablets(1_000, A, B, C, D), now=2_000, own=[], claim=False, records=[mark, low])
    slot, none = frozenset({0}), frozenset[int]()
    assert _lag(single, none, none, 2_000) is None, "somebody else tells of it"
    assert _lag(single, slot, none, 2_000) == 900, "it is ours, and still to be restored"
    assert _lag(single, none, slot, 2_000) == 900, "nobody tells of it"
    single.planner.restore(0, [mark, low])
    assert _lag(single, slot, none, 2_000) == 900, "its claim is not committed"


def test_a_table_is_not_late_for_a_worker_whose_slots_have_none_of_its_streams() -> None:
    """A table with few tablets has streams in few slots, which come and go as others do."""
    both = Single(tablets(1_000, WHOLE), now=2_000, slots=2)
    (with_streams,) = [slot for slot in (0, 1) if both.plan.lineage.groups(slot)]
    rest = frozenset({1 - with_streams})
    restoring, left = (
        Single(tablets(1_000, WHOLE), now=9_000, slots=2, own=rest, claim=claim) for claim in (False, True)
    )
    snapshots = _snapshots(rest)
    assert snapshots._lag(both.plan, visible_to(both.plan), 2_000) == 1_000
    assert snapshots._lag(restoring.plan, None, 9_000) == 8_000, "of what is not restored yet nothing is known"
    assert left.plan.newest is not None and visible_to(left.plan) is None
    assert snapshots._lag(left.plan, None, 9_000) is None


def test_a_table_stands_where_whoever_has_the_slot_does_not_read_it() -> None:
    """The slot itself is not silent: its owner writes the marks of the tables that he knows."""
    marks = [mark_entry(MarkKey(TABLE, slot, 3), Mark(1_900 + slot, 1_000, 1_000, "x")) for slot in (0, 1)]
    single, clock = Single(tablets(1_000, A, B, C, D), now=2_000, slots=3, own=[], claim=False, records=marks), _Clock()
    seen = Unclaimed(clock)
    assert single.plan.home in (0, 1), "of its home it is known where it begins"

    def stands(*owned: int) -> int | None:
        clock.now += LOOK_SECONDS
        return seen.stands(single.plan, owned)

    assert stands() is None, "nobody has had time to write"
    clock.now += SILENT_SECONDS - LOOK_SECONDS
    assert stands() == 1_000, "in the last slot it was never begun"
    assert stands(2) == 1_900 and stands(0, 2) == 1_901, "ours are told elsewhere"
    moved = [mark_entry(MarkKey(TABLE, slot, 3), Mark(2_500, 1_000, 1_000, "x")) for slot in (0, 1, 2)]
    single.planner.follow(moved, [0, 1, 2])
    assert stands() is None, "all of them are written"
    clock.now += SILENT_SECONDS
    assert stands() == 2_500


def test_the_lag_counts_where_nobody_reads_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = [mark_entry(MarkKey(TABLE, slot, 2), Mark(1_900 - 700 * slot, 1_000, 1_000, "x")) for slot in (0, 1)]
    single = Single(tablets(1_000, A, B, C, D), now=2_000, slots=2, own=[0], records=marks)
    ours = _lag(single, frozenset({0}), frozenset(), 2_000)
    assert ours is not None and ours < 800, "whoever has the other slot tells of that"
    monkeypatch.setattr(unclaimed, "SILENT_SECONDS", 0.0)
    assert _lag(single, frozenset({0}), frozenset(), 2_000) == 800
    assert _lag(single, frozenset({0, 1}), frozenset(), 2_000) == 800, "it is ours, and not claimed yet"
