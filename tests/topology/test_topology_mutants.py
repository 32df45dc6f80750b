"""Rules whose absence takes another function to tell: each is taken out, and a test by hand fails.

All others are in `tests/simulation/stream_mutants.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from connector.topology import Mark, Observed, View, claims, commits, looks
from connector.topology.groups import GroupState
from connector.topology.ledger import Ledger, start_of
from connector.topology.table_reader import TableReader
from tests.topology import test_topology_followers as followers
from tests.topology import test_topology_looks as looking
from tests.topology import test_topology_offsets as offsets
from tests.topology import test_topology_planner as planning
from tests.topology import test_topology_recreated as recreated

_observe = TableReader.observe
_stage_mark = commits._stage_mark


def _without_poll(self: TableReader, now: int) -> int | None:
    return now - self.confidence_ms


def _without_margin(self: TableReader, now: int) -> int | None:
    return None if self.polled_at is None else min(now - self.confidence_ms, self.polled_at)


def _with_any_poll(self: TableReader, now: int) -> int | None:
    return None if self.polled_at is None else min(now - self.confidence_ms, self.polled_at - self.confidence_ms // 4)


def _stale_counts(self: TableReader, view: View, polled_at: int) -> Observed:
    seen = _observe(self, view, polled_at)
    if seen is Observed.STALE:
        self.polled_at = polled_at
    return seen


def _any_view_suffices(self: TableReader, slot: int) -> bool:
    return self.lineage.newest is not None and self.mark_of(slot) is not None


def _start_by_the_clock(self: TableReader, now: int) -> int | None:
    return now - self.lookback_ms if self.lookback_ms > 0 else self.lineage.oldest_listed


def _never_announce(self: TableReader, state: GroupState) -> None:
    return None


def _all_unknown_positions_go(plan: TableReader, slot: int, held: Ledger, staged: Any, idle_ms: int) -> None:
    _stage_mark(plan, slot, held, staged, idle_ms)
    done = {stream for _, state, stream, _ in staged.positions if state is None}
    staged.positions += [(slot, None, stream, None) for stream in plan.orphans.get(slot, set()) - done]


def _first_stream_speaks(self: TableReader, source: GroupState, at: int) -> bool:
    found = self.book.ledger(source.slot, self.table)
    if found is None:
        return False
    start = start_of(found, source.group.streams[0], source.opened, source.close, source.opened_known)
    return start is not None and start.read_to >= at


def _claim_is_not_needed(self: TableReader, slot: int) -> bool:
    return slot in self.book.own and self.knows_enough(slot)


def _far_behind_holds(plan: TableReader, states: list[GroupState], old: Mark) -> int:
    return max(old.read_to, min((state.read_to for state in states if not state.drained), default=old.read_to))


def _restored_positions_are_bare(self: TableReader, state: GroupState) -> None:
    _place(self, state)
    state.delivered = {}


_place = TableReader._place


def _any_time_will_do(plan: TableReader, read: Any, now: int) -> Any:
    plan.polled_at, before = now, plan.polled_at
    try:
        return _hold(plan, read, now)
    finally:
        plan.polled_at = before


_hold = looks.hold


def _others_are_level(plan: TableReader, heirs: Iterable[GroupState], limit: int) -> int:
    return _delivered_by(plan, [heir for heir in heirs if heir.slot in plan.active], limit)


_delivered_by = looks._delivered_by


def _any_sets_follow(self: TableReader, log: str, listed: Iterable[int]) -> bool:
    self.log = log
    return True


def _marks_of_any_log_count(self: TableReader, mark: Mark) -> Mark:
    return mark


# What needs too rare a history for random runs is driven by hand.
BY_HAND: dict[str, tuple[Any, str, Any, Callable[[], None]]] = {
    "reads past the last poll": (
        TableReader, "limit", _without_poll, planning.test_nothing_is_read_behind_the_start_of_the_last_poll,
    ),
    "no margin for nodes that learn late": (
        TableReader, "limit", _without_margin, planning.test_nothing_is_read_behind_the_start_of_the_last_poll,
    ),
    "a poll from the future counts": (
        TableReader, "limit", _with_any_poll,
        planning.test_a_poll_timed_by_a_clock_that_stepped_back_vouches_for_nothing,
    ),
    "a stale answer counts as a poll": (
        TableReader, "observe", _stale_counts, planning.test_an_answer_of_a_node_that_lags_is_no_poll,
    ),
    "an older view than the predecessor's suffices": (
        TableReader, "knows_enough", _any_view_suffices,
        offsets.test_a_worker_with_an_older_view_reads_nothing_and_says_so,
    ),
    "heirs of other workers may be behind a look": (
        looks, "_delivered_by", _others_are_level,
        looking.test_a_look_goes_as_far_as_heirs_of_other_workers_have_committed,
    ),
    "a set that nobody here knows may have an heir": (
        looks, "hold", _any_time_will_do,
        looking.test_heirs_of_other_workers_are_searched_for_anything_later_and_only_just_after_a_poll,
    ),
    "the home slot does not look at other marks": (
        claims, "table_start", _start_by_the_clock, offsets.test_a_table_that_was_started_before_keeps_its_start,
    ),
    "the home slot does not wait for other slots": (
        claims, "table_start", _start_by_the_clock, offsets.test_the_home_slot_waits_until_all_slots_are_known,
    ),
    "nobody is told of a passed change": (
        TableReader, "_announce", _never_announce, offsets.test_a_change_that_others_wait_for_is_told_at_once,
    ),
    "positions of unknown streams are dropped": (
        commits, "_stage_mark", _all_unknown_positions_go,
        offsets.test_positions_of_streams_that_only_the_predecessor_knew_are_kept,
    ),
    "one stream speaks for its group": (
        TableReader, "committed_to", _first_stream_speaks, followers.test_a_torn_group_is_drained_with_its_last_stream,
    ),
    "a failed group holds the mark": (
        commits, "_next_mark", _far_behind_holds, offsets.test_positions_go_in_front_of_marks,
    ),
    "restored positions give way to lower marks": (
        TableReader, "_place", _restored_positions_are_bare,
        offsets.test_a_restored_position_beyond_the_mark_is_not_undone_by_a_mark_below_it,
    ),
    "sets of a table that was created again follow whatever was known": (
        TableReader, "identify", _any_sets_follow,
        recreated.test_streams_of_a_table_that_was_created_again_are_read_from_their_beginning,
    ),
    "marks of another table count": (
        TableReader, "as_ours", _marks_of_any_log_count,
        recreated.test_whoever_starts_later_is_not_held_up_by_sets_of_the_old_table,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_the_tests_by_hand_find_what_the_rule_prevents(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, attribute, replacement, test = BY_HAND[name]
    test()
    monkeypatch.setattr(target, attribute, replacement)
    with pytest.raises(AssertionError):
        test()


def test_a_slot_that_is_not_caught_up_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    from connector.topology.book import SlotBook

    real = SlotBook.follow
    monkeypatch.setattr(SlotBook, "follow", lambda self, records, caught_up: real(self, records, range(self.slots)))
    with pytest.raises(AssertionError):
        followers.test_a_slot_is_not_believed_before_its_end_was_reached()
