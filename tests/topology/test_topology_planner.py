"""What may be read when: one worker, driven by hand."""

from __future__ import annotations

import pytest

from connector.table_name import TableName
from connector.topology import Observed, Planner, Read, Reason, View, tablet_set, vnode_set
from tests.topology.ring import make_stream as made
from tests.topology.single import CONFIDENCE, Single, row, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)
LEFT, RIGHT = stream(48, 2), stream(64, 2)
MARGIN = CONFIDENCE // 4


def starts(reads: dict[bytes, Read]) -> dict[bytes, tuple[int, int]]:
    return {stream: (read.read_to, read.limit) for stream, read in reads.items()}


def test_a_split_is_noticed_by_nobody_else() -> None:
    """Four streams, one tablet splits: the other three keep position and cadence."""
    single = Single(FOUR)
    single.read_all()
    single.poll(tablets(10_100, A, LEFT, RIGHT, C, D))
    for now in (10_050, 10_100, 10_150, 10_200):
        single.to(now)
        got = starts(single.reads())
        limit = now - CONFIDENCE
        assert {s: got[s] for s in (A, C, D)} == dict.fromkeys((A, C, D), (single.at(A), limit))
        for read in [state.reading for state in single.plan.states() if state.reading]:
            if read.streams[0] in (A, C, D):
                single.planner.finish(read)
        if now < 10_140:
            assert LEFT not in got
    # B has not been read since: its children wait, and say for whom.
    waiting = [held for held in single.planner.waiting(single.now) if held.reason is Reason.PREDECESSOR]
    assert {held.streams for held in waiting} == {(LEFT,), (RIGHT,)}
    assert {held.waits_for for held in waiting} == {(B,)}
    assert {held.at for held in waiting} == {10_100}


def test_children_follow_as_soon_as_the_parent_is_produced() -> None:
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    reads = single.reads()
    assert starts(reads)[B] == (1_000, 1_500)
    assert LEFT not in reads
    single.planner.finish(reads[B])
    # Not committed yet, but in front of them in the same transaction.
    assert starts(single.reads()) == {LEFT: (1_500, 1_960), RIGHT: (1_500, 1_960)}


def test_an_abort_shuts_the_gate_again() -> None:
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    reads = single.reads()
    single.planner.advance(reads[B], B, row(1_400))
    single.planner.finish(reads[B])
    left = single.reads()[LEFT]
    single.planner.aborted()
    assert not single.planner.is_current(left)
    assert not single.planner.advance(left, LEFT, row(1_600))
    assert LEFT not in single.reads()
    assert single.at(B) == 1_000


def test_a_commit_that_did_not_happen_shuts_the_gate_again() -> None:
    """Its brokers said that it did, and forgot it: what is restored is older than what the gate was opened by."""
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    known = list(single.topic)
    single.read_all()
    single.commit(move_marks=True)
    single.to(2_100)
    single.read_all()
    assert not any(state.gates for state in single.plan.states()), "by what is committed they are open for good"
    for slot in single.planner.forget():
        single.planner.restore(slot, [entry for entry in known if entry.slot == slot])
    single.commit()
    reads = single.reads()
    assert B in reads and LEFT not in reads


def test_a_merge_waits_for_the_slower_parent() -> None:
    merged = stream(64, 2)
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, merged, C, D))
    reads = single.reads()
    single.planner.finish(reads[A])
    assert merged not in single.reads()
    single.planner.finish(reads[B], 1_400)
    again = single.reads()
    assert starts(again) == {B: (1_400, 1_500)}
    single.planner.finish(again[B])
    assert starts(single.reads()) == {merged: (1_500, 1_960)}


def test_a_growing_stream_stops_at_the_change() -> None:
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, C, D))
    reads = single.reads()
    assert starts(reads)[C] == (1_000, 1_500)
    single.planner.finish(reads[C])
    assert C not in single.reads()
    single.planner.finish(reads[B])
    assert starts(single.reads()) == {C: (1_500, 1_960)}


def test_a_stream_opened_inside_a_kept_one_waits_for_it_to_pass() -> None:
    inner = stream(40, 2)
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, inner, B, C, D))
    reads = single.reads()
    assert starts(reads)[B] == (1_000, 1_960)
    assert inner not in reads
    single.planner.finish(reads[B], 1_499)
    again = single.reads()
    assert inner not in again
    single.planner.finish(again[B], 1_500)
    assert inner in single.reads()


def test_nothing_is_read_behind_the_start_of_the_last_poll() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    single.now = 3_000
    assert starts(single.reads())[A][1] == 2_000 - MARGIN
    single.to(3_000)
    assert single.plan.limit(3_000) == 3_000 - CONFIDENCE


def test_nothing_is_read_inside_the_confidence_window() -> None:
    single = Single(FOUR, now=2_000)
    assert {read.limit for read in single.reads().values()} == {2_000 - CONFIDENCE}


def test_an_answer_of_a_node_that_lags_is_no_poll() -> None:
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    single.now = 3_000
    assert single.answer([1_000]) is Observed.STALE
    assert single.answer([]) is Observed.EMPTY
    assert single.plan.limit(3_000) == 2_000 - MARGIN
    assert single.answer([1_000, 1_500]) is Observed.FRESH
    assert single.plan.limit(3_000) == 3_000 - CONFIDENCE


def test_a_poll_timed_by_a_clock_that_stepped_back_vouches_for_nothing() -> None:
    single = Single(FOUR, now=2_000)
    single.now = 1_500
    assert single.plan.limit(1_500) is None
    assert not single.reads()
    assert [held.reason for held in single.planner.waiting(1_500)] == [Reason.NO_POLL]
    single.to(1_500)
    assert starts(single.reads())[A] == (1_000, 1_500 - CONFIDENCE)


def test_positions_survive_a_clock_that_steps_back() -> None:
    single = Single(FOUR, now=5_000)
    single.read_all()
    single.to(2_000)
    assert not single.reads()
    assert single.at(A) == 5_000 - CONFIDENCE
    single.to(5_010)
    assert starts(single.reads())[A] == (4_960, 4_970)


def test_a_change_that_is_learnt_late_is_read_from_where_it_came_into_force() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    single.commit(move_marks=True)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    # B was read past its close already: nothing is there, and it counts as drained.
    assert starts(single.reads()) == {LEFT: (1_500, 1_960), RIGHT: (1_500, 1_960)}


def test_several_pending_sets_and_one_in_the_future() -> None:
    deep = stream(40, 3)
    single = Single(FOUR, now=2_000)
    single.poll(
        tablets(1_500, A, LEFT, RIGHT, C, D),
        tablets(1_501, A, deep, LEFT, RIGHT, C, D),
        tablets(9_000, *(stream(place, 9) for place in (32, 64, 96, 128))),
    )
    seen: dict[bytes, list[tuple[int, int]]] = {}
    while reads := single.reads():
        for first, read in reads.items():
            seen.setdefault(first, []).append((read.read_to, read.limit))
            single.planner.finish(read)
    assert seen[B] == [(1_000, 1_500)]
    assert seen[LEFT] == [(1_500, 1_960)]
    assert seen[deep] == [(1_501, 1_960)]
    single.to(9_500)
    single.read_all()
    assert single.at(stream(128, 9)) == 9_500 - CONFIDENCE


def test_sets_that_ttl_cut_off_between_two_polls() -> None:
    single = Single(FOUR, now=2_000)
    single.sets.clear()
    # What was in force at 1000 and between is gone from every node; the oldest listed one follows directly.
    single.poll(tablets(50_000, A, stream(64, 5), C, D), at=50_100)
    single.now = 50_100
    reads = single.reads()
    assert starts(reads)[B] == (1_000, 50_000)
    single.planner.finish(reads[B])
    assert starts(single.reads())[stream(64, 5)][0] == 50_000


def test_a_log_that_was_dropped_and_created_again() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    single.sets.clear()
    fresh = [stream(place, 7) for place in (64, 128)]
    single.poll(tablets(3_000, *fresh), at=3_200)
    single.now = 3_200
    single.read_all()
    assert all(single.at(one) == 3_200 - CONFIDENCE for one in fresh)
    single.look_all()
    single.commit(move_marks=True)
    assert {group.streams for _, group in single.planner.finished()} == {(A,), (B,), (C,), (D,)}


def test_a_view_without_the_sets_that_were_asked_for_is_refused() -> None:
    single = Single(FOUR, now=2_000)
    with pytest.raises(ValueError, match=r"lacks the sets of \[1500\]"):
        single.plan.observe(View((1_000, 1_500), {}), 2_000)


def test_finished_groups_are_forgotten_once_the_mark_covers_them() -> None:
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    single.read_all()
    single.commit(move_marks=True)
    assert not single.planner.finished(), "a look beyond its end is owed"
    single.look_all()
    single.commit(move_marks=True)
    assert [group.streams for _, group in single.planner.finished()] == [(B,)]
    assert not any(B in state.group.streams for state in single.plan.states())


def test_the_most_behind_goes_first_and_waits_its_turn() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    for place, one in enumerate((D, B, A, C)):
        single.planner.finish(reads[one], 1_100 + place)
    order = [read.streams[0] for read in single.planner.plan(2_000, 3)]
    assert order == [D, B, A]
    assert [read.streams[0] for read in single.planner.plan(2_000, 3)] == [C]
    assert not single.planner.plan(2_000, 3)


def test_narrow_reads_are_put_off() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    single.to(2_100)
    assert not single.planner.plan(2_100, 10, narrowest=101)
    assert len(single.planner.plan(2_100, 10, narrowest=100)) == 4


def test_an_interrupted_read_goes_on_behind_its_last_batch() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    single.planner.advance(reads[A], A, row(1_234, 7))
    single.planner.interrupt(reads[A])
    again = single.reads()[A]
    assert (again.read_to, again.after, again.limit) == (1_234, row(1_234, 7), 1_960)
    single.planner.finish(again)
    assert single.at(A) == 1_960


def test_a_read_that_ends_early_never_moves_a_stream_back() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    single.planner.advance(reads[A], A, row(1_234, 7))
    single.planner.finish(reads[A], 1_100)
    again = single.reads()[A]
    assert (again.read_to, again.after) == (1_234, row(1_234, 7))


def test_a_failed_group_stops_alone_and_is_named() -> None:
    single = Single(FOUR, now=2_000)
    single.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    reads = single.reads()
    single.planner.fail(reads[B], "a row that cannot be encoded")
    single.planner.advance(reads[A], A, row(1_400))
    single.planner.finish(reads[A])
    single.planner.aborted()
    got = single.reads()
    assert set(got) == {A, C, D}
    held = {entry.streams: entry for entry in single.planner.waiting(2_000)}
    assert held[(B,)].reason is Reason.FAILED
    assert held[(LEFT,)].reason is Reason.PREDECESSOR
    assert held[(LEFT,)].note == held[(B,)].note == "a row that cannot be encoded"


def test_a_failed_table_stops_as_a_whole() -> None:
    single = Single(FOUR, now=2_000)
    single.plan.fail_table("topic authorization failed")
    assert not single.reads()
    assert [held.reason for held in single.planner.waiting(2_000)] == [Reason.FAILED]


GROUP = tuple(sorted(made(100, number, 0) for number in (1, 2, 3)))
GENERATION = vnode_set(1_000, {100: GROUP})


def test_a_vnodes_streams_share_one_read() -> None:
    single = Single(GENERATION, now=2_000)
    (read,) = single.reads().values()
    assert read.streams == GROUP


def test_a_torn_group_is_read_stream_by_stream_until_it_is_level_again() -> None:
    single = Single(GENERATION, now=2_000)
    (read,) = single.reads().values()
    one, two, three = GROUP
    single.planner.advance(read, one, row(1_500, 1))
    single.planner.advance(read, two, row(1_300, 2))
    single.planner.interrupt(read)
    seen = []
    while reads := single.reads():
        (read,) = reads.values()
        seen.append((read.streams, read.read_to, read.after, read.limit))
        single.planner.finish(read)
    assert seen == [
        ((three,), 1_000, None, 1_300),
        ((three,), 1_300, None, 1_500),
        ((two,), 1_300, row(1_300, 2), 1_500),
        ((two, three), 1_500, None, 1_960),
        ((one,), 1_500, row(1_500, 1), 1_960),
    ]
    single.to(3_000)
    (read,) = single.reads().values()
    assert (read.streams, read.read_to) == (GROUP, 1_960)


def test_a_group_counts_as_delivered_when_all_of_its_streams_are() -> None:
    single = Single(GENERATION, now=2_000)
    after = made(100, 9, 0)
    single.poll(vnode_set(1_500, {100: [after]}))
    (read,) = single.reads().values()
    assert (read.streams, read.limit) == (GROUP, 1_500)
    for one in GROUP[:2]:
        single.planner.advance(read, one, row(1_499, 5))
    single.planner.interrupt(read)
    while (reads := single.reads()) and after not in reads:
        for read in reads.values():
            assert {single.at(one) for one in GROUP} != {1_500}
            single.planner.finish(read)
    assert {single.at(one) for one in GROUP} == {1_500} or not any(
        state.group.streams == GROUP for state in single.plan.states()
    )
    assert reads[after].read_to == 1_500


def test_reads_are_fair_between_tables() -> None:
    names = [TableName("ks", "one"), TableName("ks", "two")]
    planner = Planner(names, slots=1, owner="me", confidence_ms=CONFIDENCE)
    for name in names:
        planner.tables[name].observe(
            View((1_000,), {1_000: tablet_set(1_000, [stream(place) for place in range(1, 129)])}), 2_000
        )
    planner.restore(0, [])
    for _ in range(2):
        planner.commit_entries(2_000)
        planner.committed()
    reads = planner.plan(2_000, 32)
    assert {name: sum(read.table == name for read in reads) for name in names} == dict.fromkeys(names, 16)


def test_turns_are_taken_also_when_little_is_asked_for() -> None:
    names = [TableName("ks", "one"), TableName("ks", "two"), TableName("ks", "three")]
    planner = Planner(names, slots=1, owner="me", confidence_ms=CONFIDENCE)
    for name in names:
        planner.tables[name].observe(
            View((1_000,), {1_000: tablet_set(1_000, [stream(place) for place in range(1, 129)])}), 2_000
        )
    planner.restore(0, [])
    for _ in range(2):
        planner.commit_entries(2_000)
        planner.committed()
    reads = [planner.plan(2_000, 1)[0] for _ in range(9)]
    assert {name: sum(read.table == name for read in reads) for name in names} == dict.fromkeys(names, 3)


def test_nothing_is_read_beyond_the_end_that_was_asked_for_and_all_in_front_of_it_is() -> None:
    single = Single(FOUR, now=2_000, until_ms=5_000)
    single.to(5_020)
    reads = single.reads()
    assert {read.limit for read in reads.values()} == {5_020 - CONFIDENCE}
    for read in reads.values():
        single.planner.finish(read)
    single.to(20_000)
    # However little is left: nothing more is to come.
    narrow = single.planner.plan(single.now, 10, narrowest=300)
    assert starts({read.streams[0]: read for read in narrow}) == dict.fromkeys((A, B, C, D), (4_980, 5_000))
    for read in narrow:
        single.planner.finish(read)
    assert not single.reads()
    single.commit(move_marks=True)
    assert single.plan.mark_of(0).read_to == 5_000  # type: ignore[union-attr]
