"""Where a table stands, as `status`, lag and the warnings about expiry ask."""

from __future__ import annotations

import connector.topology as topology
from connector.topology import Position, nothing_left, older_than, visible_to
from tests.topology.single import CONFIDENCE, Single, row, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)
CHILD, GRANDCHILD = stream(64, 2), stream(64, 3)


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


def test_streams_whose_rows_may_have_expired_are_named() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    for one in (A, C):
        single.planner.finish(reads[one])
    single.planner.advance(reads[B], B, row(1_500))
    assert dict(older_than(single.plan, 1_600)) == {B: Position(1_500, row(1_500)), D: Position(1_000)}
    assert dict(older_than(single.plan, 1_200)) == {D: Position(1_000)}
    assert not dict(older_than(single.plan, 1_000))


def test_nothing_is_left_when_all_has_failed_or_waits_for_what_has() -> None:
    single = Single(tablets(1_000, B, D), now=2_000)
    single.poll(tablets(1_500, CHILD, D), tablets(1_600, GRANDCHILD, D))
    reads = single.reads()
    single.planner.fail(reads[B], "broken")
    assert not nothing_left(single.plan)
    single.planner.fail(reads[D], "broken too")
    assert nothing_left(single.plan)
    other = Single(FOUR, now=2_000)
    assert not nothing_left(other.plan)
    other.plan.fail_table("refused")
    assert nothing_left(other.plan)


def test_what_is_exported_exists() -> None:
    assert [name for name in topology.__all__ if not hasattr(topology, name)] == []
    assert sorted(topology.__all__) == sorted(set(topology.__all__))
