"""A start of many tables writes no more than it has to say, and nobody waits for all of it."""

from __future__ import annotations

from collections import Counter

from connector.table_name import TableName
from connector.topology import MarkKey, Planner, PositionKey, View, parse_key, tablet_set
from connector.topology.commits import Commit
from tests.topology.single import CONFIDENCE, Single, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)


def kinds(commit: Commit) -> Counter[str]:
    return Counter(type(parse_key(entry.key)).__name__ for entry in commit.entries)


def test_where_most_are_behind_none_gets_a_position() -> None:
    """All of them get there in a moment, and would need a tombstone each."""
    single = Single(FOUR, now=40_000)
    assert not single.commit(move_marks=True).entries, "nothing is read yet"
    reads = single.reads()
    single.planner.finish(reads[A])
    assert not single.commit(move_marks=True).entries
    for one in (B, C):
        single.planner.finish(reads[one])
    assert kinds(single.commit(move_marks=True)) == {"PositionKey": 1, "MarkKey": 1}
    single.planner.finish(reads[D])
    commit = single.commit(move_marks=True)
    assert [(type(parse_key(entry.key)), entry.value) for entry in commit.entries] == [(PositionKey, None)]


def test_a_group_that_is_behind_has_nothing_to_say_before_its_mark_moves() -> None:
    single = Single(FOUR, now=40_000)
    reads = single.reads()
    for one in (A, B, C):
        single.planner.finish(reads[one])
    assert not single.commit(move_marks=True, idle_ms=60_000).entries
    single.to(70_000)
    for one, read in single.reads().items():
        assert one != D, "it is read still"
        single.planner.finish(read)
    assert kinds(single.commit(move_marks=True, idle_ms=60_000)) == {"PositionKey": 1, "MarkKey": 1}


def test_beside_a_group_that_has_a_position_silence_is_told_rarely() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    single.planner.fail(reads.pop(B), "broken")
    for other in reads.values():
        single.planner.finish(other)
    assert kinds(single.commit(move_marks=True)) == {"PositionKey": 1, "MarkKey": 1}
    single.to(3_000)
    single.read_all()
    assert not single.commit(move_marks=True, idle_ms=60_000).entries
    assert kinds(single.commit(move_marks=True, idle_ms=500)) == {"MarkKey": 1}


def test_a_table_is_claimed_in_all_slots_at_once() -> None:
    single = Single(FOUR, now=2_000, slots=5, claim=False)
    (home, *others) = [parse_key(entry.key) for entry in single.commit().entries]
    assert isinstance(home, MarkKey) and home.slot == single.plan.home
    assert {key.slot for key in others if isinstance(key, MarkKey)} == {*range(5)} - {home.slot}
    starts = {entry.value["start"] for entry in single.topic if entry.value is not None}
    assert starts == {1_000} and not single.planner.commit_due(2_000)


def test_who_has_not_the_home_slot_waits_for_its_decision() -> None:
    home = Single(FOUR, slots=5, claim=False).plan.home
    single = Single(FOUR, now=2_000, slots=5, own={*range(5)} - {home}, claim=False)
    assert not single.commit().entries


def test_an_abort_takes_the_start_back_in_all_slots() -> None:
    single = Single(FOUR, now=2_000, slots=5, claim=False)
    assert len(single.planner.commit_entries(2_000).entries) == 5
    single.planner.aborted()
    assert not single.reads() and len(single.commit().entries) == 5


def test_marks_that_only_the_time_moves_do_not_all_move_at_once() -> None:
    names = [TableName("ks", f"t{number}") for number in range(90)]
    planner = Planner(names, slots=25, owner="me", confidence_ms=CONFIDENCE)
    for plan in planner.tables.values():
        plan.observe(View((1_000,), {1_000: tablet_set(1_000, [A, B, C, D])}), 100_000)
    for slot in range(25):
        planner.restore(slot, [])

    def commit(now: int, idle_ms: int = 60_000, move_marks: bool = True) -> Commit:
        for plan in planner.tables.values():
            plan.observe(View((1_000,)), now)
        while reads := planner.plan(now, 10_000):
            for read in reads:
                planner.finish(read)
        found = planner.commit_entries(now, move_marks, idle_ms)
        planner.committed()
        return found

    assert len(commit(100_000, move_marks=False).entries) == 90 * 25
    for begin in (200_000, 300_000):
        portions = [commit(begin + look * 5_000).entries for look in range(3)]
        assert [len(each) for each in portions] == [1_125, 1_125, 0]
        assert len({tuple(entry.key.values()) for each in portions for entry in each}) == 90 * 25
    # Where the log keeps its rows for a short time, no mark may be late; nor at an orderly end.
    assert len(commit(400_000, 9_000).entries) == len(commit(401_000, 0).entries) == 90 * 25
