"""Looks beyond the ends of closed streams: when, how far, by whom, and what is known of them after a restart."""

from __future__ import annotations

from connector.offsets_entry import OffsetsEntry
from connector.topology import Mark, MarkKey, Position, Read, beyond, mark_entry, parse_mark
from tests.topology.single import CONFIDENCE, GRACE, TABLE, Single, row, stream, tablets

A, B = stream(64), stream(128)
LEFT, RIGHT = stream(96, 2), stream(128, 2)
TWO, SPLIT = tablets(1_000, A, B), tablets(1_500, A, LEFT, RIGHT)
DUE = 1_500 + CONFIDENCE + GRACE


def ended(*more: OffsetsEntry) -> Single:
    """B was split at 1500 and is drained; nothing else happened."""
    single = Single(TWO, now=1_600 - CONFIDENCE, records=more)
    single.poll(SPLIT)
    single.read_all()
    return single


def look(single: Single, at: int) -> list[Read]:
    single.to(at)
    single.read_all()
    single.plan.look_at = 0
    return single.planner.looks(at, 10)


def test_a_closed_stream_is_looked_at_once_when_no_node_should_be_behind_any_more() -> None:
    single = ended()
    assert not look(single, DUE - 1)
    (read,) = look(single, DUE)
    assert (read.streams, read.read_to, read.limit, read.late) == ((B,), 1_500, 1_500 + GRACE, True)
    assert single.planner.finish_look(read, False, single.now)
    assert not look(single, DUE + 10_000)
    single.commit(move_marks=True)
    assert not any(B in state.group.streams for state in single.plan.states())


def test_what_was_found_is_noted_and_another_look_follows() -> None:
    single = ended()
    (read,) = look(single, DUE)
    single.planner.advance(read, B, row(1_501, 7))
    assert beyond(read.state, B, row(1_501, 8)) and not beyond(read.state, B, row(1_501, 7))
    single.planner.finish_look(read, True, single.now)
    single.commit(move_marks=True)
    assert not look(single, single.now + GRACE - 1)
    second = Single(TWO, SPLIT, now=single.now, records=single.topic)
    (again,) = look(second, single.now + GRACE)
    assert again.state.late == {B: Position(1_500, row(1_501, 7))}
    second.planner.finish_look(again, False, second.now)
    second.commit(move_marks=True)
    third = Single(TWO, SPLIT, now=second.now, records=second.topic)
    assert not look(third, second.now + 10_000)
    assert second.topic[-2].value is None, "its position is of no use any more"


def test_a_look_is_owed_by_whoever_comes_next() -> None:
    single = ended()
    single.commit(move_marks=True)
    second = Single(TWO, SPLIT, now=single.now, records=single.topic)
    assert [read.streams for read in look(second, DUE)] == [(B,)]


def test_an_abort_takes_a_look_back() -> None:
    single = ended()
    (read,) = look(single, DUE)
    single.planner.advance(read, B, row(1_501))
    single.planner.finish_look(read, True, single.now)
    single.planner.aborted()
    single.read_all()
    single.plan.look_at = 0
    (again,) = look(single, single.now + GRACE)
    assert beyond(again.state, B, row(1_501))


def test_heirs_stand_still_while_a_look_delivers() -> None:
    single = ended()
    (read,) = look(single, DUE)
    single.to(single.now + 50)
    under_way = single.reads()[LEFT]
    heirs = single.planner.hold(read)
    assert heirs is not None and {heir.streams for heir in heirs} == {(LEFT,), (RIGHT,)}
    assert all(heir.upto == DUE - CONFIDENCE for heir in heirs)
    assert not single.planner.is_current(under_way) and not single.reads()
    single.planner.finish_look(read, True, single.now)
    assert set(single.reads()) == {LEFT, RIGHT}


def test_nobody_can_tell_what_other_workers_deliver() -> None:
    both = Single(TWO, SPLIT, now=2_000, slots=8)
    (slot,) = {state.slot for state in both.plan.states() if state.group.streams == (B,)}
    elsewhere = {state.slot for state in both.plan.states() if state.group.streams in ((LEFT,), (RIGHT,))} - {slot}
    assert elsewhere
    single = Single(TWO, SPLIT, now=2_000, slots=8, own={slot, single_home()}, records=both.topic)
    single.read_all()
    (read,) = look(single, 3_000)
    assert single.planner.hold(read) is None


def single_home() -> int:
    return Single(slots=8, claim=False).plan.home


def test_marks_of_older_versions_owe_nothing_for_what_they_had_read() -> None:
    assert parse_mark({"read_to": 1_700, "stream_set": 1_500, "start": 1_000, "owner": "x"}).rechecked == 1_500
    entry = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_700, 1_500, 1_000, "x"))
    value = {name: at for name, at in (entry.value or {}).items() if name != "rechecked"}
    single = Single(TWO, SPLIT, now=1_800, records=[OffsetsEntry(0, entry.key, value)])
    assert not look(single, 3_000)


def test_what_was_read_before_the_end_was_known_is_not_read_again() -> None:
    """A node hid the split: B was read past its end, and what came late is delivered."""
    single = Single(TWO, now=1_700)
    for read in single.reads().values():
        if B in read.streams:
            single.planner.advance(read, B, row(1_600))
        single.planner.finish(read)
    single.poll(SPLIT)
    single.read_all()
    (read,) = look(single, 1_800)
    assert not beyond(read.state, B, row(1_600)) and not beyond(read.state, B, row(1_659))
    assert beyond(read.state, B, row(1_660))
    single.planner.interrupt(read)
    single.commit(move_marks=True)
    second = Single(TWO, SPLIT, now=single.now, records=single.topic)
    (again,) = look(second, 1_900)
    assert not beyond(again.state, B, row(1_659)) and beyond(again.state, B, row(1_660))
