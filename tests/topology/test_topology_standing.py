"""Where a table stands, as `status` and lag ask."""

from __future__ import annotations

import connector.topology as topology
from connector.topology import (
    Mark,
    MarkKey,
    Position,
    PositionKey,
    committed_in,
    mark_entry,
    position_entry,
    visible_to,
)
from tests.topology.single import CONFIDENCE, TABLE, Single, row, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)
CHILD = stream(64, 2)


def test_a_table_stands_where_its_slowest_stream_stands() -> None:
    single = Single(FOUR, now=2_000)
    assert visible_to(single.plan) == 1_000
    reads = single.reads()
    for one in (A, C, D):
        single.planner.finish(reads[one])
    single.planner.advance(reads[B], B, row(1_500))
    assert visible_to(single.plan) == 1_000, "the row is not committed"
    single.commit()
    assert visible_to(single.plan) == 1_500
    single.planner.finish(reads[B])
    assert visible_to(single.plan) == 2_000 - CONFIDENCE, "silence needs no commit"


def test_a_closed_stream_counts_until_its_last_rows_are_committed() -> None:
    single = Single(tablets(1_000, B, D), now=2_000)
    single.poll(tablets(1_500, CHILD, D))
    reads = single.reads()
    single.planner.finish(reads[D])
    single.planner.advance(reads[B], B, row(1_400))
    single.planner.finish(reads[B])
    assert visible_to(single.plan) == 1_000
    single.commit()
    assert visible_to(single.plan) == 1_500
    for read in single.reads().values():
        single.planner.advance(read, read.streams[0], row(1_600))
        single.planner.finish(read)
    assert visible_to(single.plan) == 1_500
    single.planner.aborted()
    assert visible_to(single.plan) == 1_500


def test_what_is_exported_exists() -> None:
    assert [name for name in topology.__all__ if not hasattr(topology, name)] == []
    assert sorted(topology.__all__) == sorted(set(topology.__all__))


def test_a_slot_that_is_not_read_here_stands_where_its_slowest_stream_is_committed() -> None:
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_900, 1_000, 1_000, "x"))
    low = position_entry(0, PositionKey(TABLE, B), Position(1_100))
    single = Single(FOUR, now=2_000, own=[], claim=False)
    assert committed_in(single.plan, 0) is None, "nothing is known of it"
    single.planner.follow([mark, low], {0})
    assert committed_in(single.plan, 0) == 1_100
    single.planner.follow([position_entry(0, PositionKey(TABLE, B), None)], {0})
    assert committed_in(single.plan, 0) == 1_900


def test_a_slot_is_late_with_what_it_still_has() -> None:
    ended = position_entry(0, PositionKey(TABLE, B), Position(1_200))
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_500, 1_200, 1_000, "x"))
    single = Single(FOUR, now=2_000, own=[], claim=False)
    single.poll(tablets(1_200, CHILD, C, D))
    single.planner.follow([mark, ended], {0})
    assert {state.close for state in single.plan.states()} == {None, 1_200}
    assert committed_in(single.plan, 0) == 1_500, "a stream that has ended is late with nothing"
    single.plan.lineage.by_slot[0].clear()
    assert committed_in(single.plan, 0) is None
