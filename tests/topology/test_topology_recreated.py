"""A table that is dropped and created again has other streams under the same name."""

from __future__ import annotations

import json
import uuid

from connector.timeuuid import time_uuid
from connector.topology import Mark, MarkKey, Observed, mark_entry, parse_mark
from tests.topology.single import TABLE, WHOLE, Single, row, stream, tablets

OLD, LEFT, RIGHT = stream(128, 2), stream(64, 3), stream(128, 3)
NEW = stream(128, 4)
HALVES = (stream(64, 5), stream(128, 5))


def ahead(**options: object) -> Single:
    """A worker that knows of a split that is still to come, at 9,000."""
    single = Single(now=2_000, **options)  # type: ignore[arg-type]
    assert single.planner.identify(TABLE, "old", [1_000, 9_000])
    single.poll(tablets(1_000, OLD), tablets(9_000, LEFT, RIGHT))
    single.commit()
    single.commit()
    return single


def created_again(single: Single, *at: int, log: str = "new") -> None:
    assert not single.planner.identify(TABLE, log, at)
    assert single.planner.plan(single.now, 10) == [], "nothing is read while it is not known whose sets these are"
    single.commit()
    single.plan = single.planner.tables[TABLE]  # type: ignore[assignment]
    single.sets.clear()
    assert single.planner.identify(TABLE, log, at)


def test_streams_of_a_table_that_was_created_again_are_read_from_their_beginning() -> None:
    single = ahead()
    single.read_all()
    single.commit(move_marks=True)
    single.to(5_000)
    single.now = 5_100
    created_again(single, 5_000)
    assert single.poll(tablets(5_000, NEW)) is Observed.FRESH
    single.commit()
    [read] = single.reads().values()
    assert (read.streams, read.read_to) == ((NEW,), 1_960), "as far as the old one was read"
    single.planner.finish(read)
    single.commit(move_marks=True)
    # What it was split into later counts from its own time on.
    single.now = 8_000
    assert single.planner.identify(TABLE, "new", [5_000, 7_000])
    assert single.poll(tablets(7_000, *HALVES)) is Observed.FRESH
    single.read_all()
    single.commit(move_marks=True)
    assert {single.at(each) for each in HALVES} == {7_960}
    key, value = single.topic[-1].key, single.topic[-1].value
    assert (key["slots"], value and value["log"], value and value["stream_set"]) == (1, "new", 7_000)


def test_whoever_starts_later_is_not_held_up_by_sets_of_the_old_table() -> None:
    first = ahead()
    first.read_all()
    first.commit(move_marks=True)
    assert [entry.value and entry.value["stream_set"] for entry in first.topic[-1:]] == [9_000]
    second = Single(now=5_100, owner="two", records=first.topic, claim=False)
    assert second.planner.identify(TABLE, "new", [5_000])
    second.poll(tablets(5_000, NEW))
    second.commit()
    assert set(second.reads()) == {NEW}
    second.read_all()
    assert [entry.value and entry.value["log"] for entry in second.commit(move_marks=True).entries] == ["new"]
    # Nor is somebody who still has the old one: he waits, and says so.
    third = Single(now=5_100, owner="three", records=first.topic, claim=False)
    assert third.planner.identify(TABLE, "old", [1_000])
    third.poll(tablets(1_000, OLD))
    third.commit()
    assert not third.reads()


def test_a_new_table_whose_sets_are_all_newer_follows_the_old_one() -> None:
    """Its streams wait until the old ones are delivered, as after a split."""
    single = Single(now=2_000)
    assert single.planner.identify(TABLE, "old", [1_000])
    single.poll(tablets(1_000, WHOLE))
    single.commit()
    single.commit()
    single.now = 5_100
    assert single.planner.identify(TABLE, "new", [5_000])
    assert single.answer_of(tablets(5_000, NEW)) is Observed.FRESH
    [read] = single.reads().values()
    assert (read.streams, read.limit) == ((WHOLE,), 5_000)
    single.planner.finish(read)
    single.read_all()
    assert single.at(NEW) == 5_060


def test_what_was_delivered_of_the_old_table_is_committed_before_the_new_one_is_read() -> None:
    single = ahead()
    [read] = single.reads().values()
    assert single.planner.advance(read, OLD, row(1_500))
    assert not single.planner.identify(TABLE, "new", [1_700])
    assert single.planner.is_current(read), "what is read already may still be handed on"
    assert any("stream_id" in entry.key for entry in single.commit().entries)
    assert not single.planner.is_current(read)


def test_vnodes_follow_tablets() -> None:
    """The cluster's generations are older than the table was."""
    single = ahead()
    single.read_all()
    single.commit(move_marks=True)
    single.now = 5_100
    assert not single.planner.identify(TABLE, "cluster", [500])
    single.commit()
    single.plan = single.planner.tables[TABLE]  # type: ignore[assignment]
    single.sets.clear()
    assert single.planner.identify(TABLE, "cluster", [500])
    assert single.poll(tablets(500, NEW)) is Observed.FRESH
    single.commit()
    [read] = single.reads().values()
    assert (read.streams, read.read_to) == ((NEW,), 1_960)


def test_marks_say_whose_sets_they_know_where_tables_have_their_own() -> None:
    written = mark_entry(MarkKey(TABLE, 0, 1), Mark(5, 4, 1, "x", log="id"))
    assert json.loads(json.dumps(written.value))["log"] == "id"
    assert parse_mark(written.value or {}) == Mark(5, 4, 1, "x", log="id")
    assert "log" not in (mark_entry(MarkKey(TABLE, 0, 1), Mark(5, 4, 1, "x")).value or {})


def test_looks_beyond_ends_are_owed_anew() -> None:
    single = ahead()
    single.read_all()
    single.commit(move_marks=True)
    mark = single.plan.mark_of(0)
    assert mark is not None and mark.rechecked == 8_999
    single.now = 5_100
    created_again(single, 5_000)
    single.poll(tablets(5_000, NEW))
    single.commit()
    mark = single.plan.mark_of(0)
    assert mark is not None and mark.rechecked < 5_000


def test_the_log_of_a_former_table_is_told_by_its_time() -> None:
    older, newer = (str(uuid.UUID(bytes=time_uuid(ms * 10_000, 1 << 63))) for ms in (1_000, 5_000))
    single = Single(now=2_000)
    assert single.planner.identify(TABLE, newer, [1_000])
    assert single.planner.is_former(TABLE, older)
    assert not single.planner.is_former(TABLE, newer)
    assert not single.planner.is_former(TABLE, "an id that tells no time")
    single.poll(tablets(1_000, OLD))
    single.commit()
    single.commit()
    second = Single(now=2_000, records=single.topic)
    assert second.planner.is_former(TABLE, older), "as marks tell"
    assert not second.planner.is_former(TABLE, newer)
