"""Sweeps: many silent groups move on together, and whoever has rows is read by itself."""

from __future__ import annotations

from itertools import pairwise

import pytest

from connector.table_name import TableName
from connector.topology import Planner, TableState, View, commits
from connector.topology.ledger import Ledger
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN, RING, arcs_of, token_of
from connector.topology.turns import TOGETHER
from tests.topology.single import CONFIDENCE, Single, row, stream, tablets

EVERY = 100
PLACES = (16, 32, 48, 64, 80, 96, 112, 128)
STREAMS = [stream(place) for place in PLACES]


def silent() -> Single:
    """All groups were swept once and nothing was found."""
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.reads() == {}
    assert one.planner.swept(sweep, {})
    return one


def test_silent_groups_move_on_together_and_are_not_read() -> None:
    one = silent()
    assert {one.at(each) for each in STREAMS} == {10_000 - CONFIDENCE}
    one.to(10_500)
    assert one.reads() == {}
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert (sweep.lower, sweep.limit, sweep.upper) == (9_960, 10_460, 10_501)
    assert one.planner.swept(sweep, {})
    assert {one.at(each) for each in STREAMS} == {10_460}
    assert one.plan.awake == 0
    (mark,) = one.commit(move_marks=True).entries
    assert mark.value is not None and mark.value["read_to"] == 10_460


def test_a_group_with_a_row_is_read_from_where_it_stood() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {STREAMS[2]: 10_100})
    reads = one.reads()
    assert set(reads) == {STREAMS[2]}
    assert (reads[STREAMS[2]].read_to, reads[STREAMS[2]].limit) == (9_960, 10_460)


def test_a_group_with_a_young_row_is_read_when_it_is_old_enough() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {STREAMS[2]: 10_490}, narrowest=1)
    one.to(10_490 + CONFIDENCE)
    assert one.reads() == {}
    one.to(10_491 + CONFIDENCE)
    (read,) = one.reads().values()
    assert (read.streams, read.read_to, read.limit) == ((STREAMS[2],), 9_960, 10_491)


def test_a_group_is_read_on_until_it_is_beyond_all_that_the_sweep_may_have_passed_over() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.planner.swept(sweep, {STREAMS[2]: 10_300})
    (read,) = one.reads().values()
    one.planner.advance(read, STREAMS[2], row(10_300))
    one.planner.finish(read)
    for now, awake in ((10_540, 1), (10_600, 0)):
        one.to(now)
        one.read_all()
        one.commit(move_marks=True)
        one.commit(move_marks=True)
        (sweep,) = one.planner.sweeps(one.now, 1)
        one.planner.swept(sweep, {})
        assert one.plan.awake == awake


def test_what_is_not_committed_keeps_its_group_awake() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    reads = one.reads()
    one.planner.advance(reads[STREAMS[0]], STREAMS[0], row(9_500))
    for read in reads.values():
        one.planner.finish(read)
    one.to(10_100)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {})
    assert one.plan.awake == 1
    one.planner.aborted()
    assert one.at(STREAMS[0]) == 9_000
    assert one.at(STREAMS[1]) == 10_100 - CONFIDENCE, "silence is not taken back"
    assert set(one.reads()) == {STREAMS[0]}


def test_who_has_a_position_of_its_own_does_not_fall_silent() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    reads = one.reads()
    one.planner.advance(reads[STREAMS[0]], STREAMS[0], row(9_500))
    for read in reads.values():
        one.planner.finish(read)
    one.commit()
    for now, awake in ((10_100, 1), (10_200, 0)):
        one.to(now)
        (sweep,) = one.planner.sweeps(one.now, 1)
        assert one.planner.swept(sweep, {})
        assert one.plan.awake == awake
        one.commit(move_marks=True)
        one.commit(move_marks=True)


def test_a_sweep_of_other_groups_than_there_are_now_is_void() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.poll(tablets(10_450, *STREAMS[:3], stream(56), *STREAMS[3:]))
    assert not one.planner.is_sweeping(sweep)
    assert not one.planner.swept(sweep, {})
    assert {one.at(each) for each in STREAMS} == {10_000 - CONFIDENCE}


def test_what_is_not_due_is_looked_at_again_after_a_new_set_another_pace_and_a_clock_that_steps_back() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.planner.swept(sweep, {})
    later = one.now + EVERY

    def looks(now: int, every: int) -> bool:
        before = one.plan.sweep_due
        one.planner.sweeps(now, every)
        return one.plan.sweep_due != before

    assert not looks(one.now + 1, EVERY) and not looks(one.now + 2, EVERY)
    assert looks(one.now - 1, EVERY)
    assert not looks(one.now - 1, EVERY)
    assert looks(one.now, 1)
    one.to(later)
    assert looks(later, EVERY)
    assert not looks(later, EVERY)
    one.poll(tablets(10_450, *STREAMS[:3], stream(56), *STREAMS[3:]))
    assert looks(later, EVERY)


def test_a_stream_that_ends_is_read_to_its_end_and_its_heirs_wait() -> None:
    one = silent()
    split = [stream(8, 2), stream(16, 2)]
    one.to(10_500)
    one.poll(tablets(10_300, *split, *STREAMS[1:]))
    reads = one.reads()
    assert set(reads) == {STREAMS[0]}
    assert (reads[STREAMS[0]].read_to, reads[STREAMS[0]].limit) == (9_960, 10_300)
    one.planner.finish(reads[STREAMS[0]])
    assert set(one.reads()) == set(split)


def test_a_sweep_that_breaks_off_lets_all_be_read() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.planner.unswept(sweep)
    assert one.plan.awake == len(STREAMS)
    reads = one.reads()
    assert set(reads) == set(STREAMS)
    assert {read.read_to for read in reads.values()} == {9_960}


def test_a_released_slot_is_swept_no_more() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.planner.release([0])
    assert not one.planner.swept(sweep, {})
    assert one.planner.sweeps(one.now + EVERY, EVERY) == []
    one.planner.restore(0, one.topic)
    one.commit()
    assert {read.read_to for read in one.reads().values()} == {9_000}, "as committed"


def test_where_most_groups_have_rows_nobody_is_swept() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.planner.swept(sweep, dict.fromkeys(STREAMS, 10_490))
    assert one.plan.awake == len(STREAMS)
    assert one.planner.sweeps(one.now + EVERY, EVERY) == []


def test_who_waits_for_others_does_not_fall_silent() -> None:
    one = silent()
    split = [stream(8, 2), stream(16, 2)]
    one.to(10_500)
    one.poll(tablets(10_300, *split, *STREAMS[1:]))
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {})
    assert [one.at(each) for each in (STREAMS[0], *split)] == [9_960, 10_300, 10_300]
    one.read_all()
    one.commit(move_marks=True)
    one.to(10_600)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {})
    assert [one.at(each) for each in split] == [10_460, 10_460], "they are being read"


def test_silence_behind_what_is_taken_back_is_taken_back() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    first, second = stream(16, 2), stream(16, 3)
    one.poll(tablets(9_500, first, *STREAMS[1:]), tablets(9_700, second, *STREAMS[1:]))
    old = one.reads()[STREAMS[0]]
    one.planner.advance(old, STREAMS[0], row(9_400))
    one.planner.finish(old)
    one.planner.finish(one.reads()[first])
    assert second in one.reads()
    one.planner.aborted()
    reads = one.reads()
    assert STREAMS[0] in reads and second not in reads


def test_the_mark_never_passes_the_silent() -> None:
    one = silent()
    one.to(10_500)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    one.planner.swept(sweep, {STREAMS[2]: 10_300})
    one.to(11_000)
    one.read_all()
    (mark,) = one.commit(move_marks=True).entries
    assert one.at(STREAMS[2]) == 10_960
    assert mark.value is not None and mark.value["read_to"] == 10_460


def test_a_sweep_covers_all_streams_of_the_slots_that_are_ours() -> None:
    everything = Single(tablets(9_000, *STREAMS), slots=4)
    (sweep,) = everything.planner.sweeps(everything.now, EVERY)
    assert sweep.arcs == RING
    one = Single(tablets(9_000, *STREAMS), slots=4, own=[1], records=everything.topic)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    ours = [token_of(state.group.streams[0]) for state in one.plan.lineage.groups(1)]
    assert all(any(first <= token <= last for first, last in sweep.arcs) for token in ours)


def test_the_shortest_arc() -> None:
    half = 1 << 63
    assert arcs_of([]) == ()
    assert arcs_of([5]) == ((5, 5),)
    assert arcs_of([5, 0, 9]) == ((0, 9),)
    assert arcs_of(range(MIN_TOKEN, MAX_TOKEN, 1 << 60)) == RING
    assert arcs_of([3 - half, 4 - half, half - 2]) == ((MIN_TOKEN, 4 - half), (half - 2, MAX_TOKEN))


def test_a_mark_of_silent_groups_is_written_when_much_has_passed_or_more_is_known() -> None:
    one = silent()
    one.commit(move_marks=True)
    one.to(12_000)
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {})
    assert one.commit(move_marks=True, idle_ms=2_001).entries == ()
    (mark,) = one.commit(move_marks=True, idle_ms=2_000).entries
    assert mark.value is not None and mark.value["read_to"] == 12_000 - CONFIDENCE
    one.to(13_000)
    one.poll(tablets(12_500, *STREAMS[:-1], stream(120), stream(128, 2)))
    one.read_all()
    said = [entry.value for entry in one.commit(move_marks=True, idle_ms=60_000).entries]
    assert [value["stream_set"] for value in said if value is not None and "stream_set" in value] == [12_500]


def test_slots_that_all_sleep_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    sleeps = commits._sleeps

    def counted(plan: TableState, slot: int, ledger: Ledger | None, idle_ms: int) -> bool:
        looked.append(slot)
        return sleeps(plan, slot, ledger, idle_ms)

    monkeypatch.setattr(commits, "_sleeps", counted)
    one = silent()
    one.commit(move_marks=True)
    for now, slots in ((10_500, [0]), (11_000, []), (11_500, [])):
        one.to(now)
        looked.clear()
        assert one.commit(move_marks=True, idle_ms=60_000).entries == ()
        assert looked == slots
    (sweep,) = one.planner.sweeps(one.now, EVERY)
    assert one.planner.swept(sweep, {STREAMS[2]: 11_100})
    (read,) = one.reads().values()
    one.planner.advance(read, STREAMS[2], row(11_100))
    assert one.commit(move_marks=True, idle_ms=60_000).entries


def test_sweeps_of_many_tables_are_begun_together_and_as_often_as_ever() -> None:
    every, step, tables = 5_000, 10, [TableName("ks", f"t{number}") for number in range(60)]
    planner = Planner(tables, slots=1, owner="me", confidence_ms=CONFIDENCE)
    sets = {9_000: tablets(9_000, *STREAMS)}
    for table in tables:
        planner.observe(table, View((9_000,), sets), 10_000)
    planner.restore(0, [])
    for _ in tables[:2]:
        planner.commit_entries(10_000)
        planner.committed()
    begun: dict[int, list[TableName]] = {}
    for now in range(10_000, 10_000 + 5 * every, step):
        for table in tables:
            planner.observe(table, View((9_000,)), now)
        for sweep in planner.sweeps(now, every):
            begun.setdefault(now, []).append(sweep.table)
            planner.swept(sweep, {})
    settled = {now: swept for now, swept in begun.items() if now >= 10_000 + 2 * every}
    assert len(settled) <= 3 * TOGETHER
    for table in tables:
        at = [now for now, swept in settled.items() if table in swept]
        assert len(at) == 3
        assert all(every * (1 - 1 / TOGETHER) <= later - former <= every for former, later in pairwise(at))
