"""Looks beyond the ends of closed streams: when, how far, by whom, and what is known of them after a restart."""

from __future__ import annotations

from connector.offsets_entry import OffsetsEntry
from connector.topology import Mark, MarkKey, Position, Read, beyond, mark_entry, parse_mark
from tests.topology.single import CONFIDENCE, GRACE, TABLE, Single, row, stream, tablets

A, B = stream(64), stream(128)
LEFT, RIGHT = stream(96, 2), stream(128, 2)
TWO, SPLIT = tablets(1_000, A, B), tablets(1_500, A, LEFT, RIGHT)
DUE = 1_500 + CONFIDENCE + GRACE
LAST = 1_500 + CONFIDENCE + 4 * GRACE


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


def test_a_closed_stream_is_looked_at_when_no_node_should_be_behind_any_more_and_once_more_later() -> None:
    single = ended()
    assert not look(single, DUE - 1)
    (read,) = look(single, DUE)
    assert (read.streams, read.read_to, read.limit, read.late) == ((B,), 1_500, 1_500 + GRACE, True)
    assert single.planner.finish_look(read, False, single.now)
    assert not look(single, LAST - 1)
    (last,) = look(single, LAST)
    assert (last.read_to, last.limit) == (1_500, 1_500 + 4 * GRACE)
    assert single.planner.finish_look(last, False, single.now)
    assert not look(single, LAST + 10_000)
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
    (last,) = look(second, max(LAST, second.now))
    second.planner.finish_look(last, False, second.now)
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
    held = single.planner.hold(read, single.now)
    assert held is not None and held.within_ms is None
    assert {heir.streams for heir in held.relatives} == {(LEFT,), (RIGHT,)}
    assert all(heir.upto == DUE - CONFIDENCE for heir in held.relatives)
    assert not single.planner.is_current(under_way) and not single.reads()
    single.planner.finish_look(read, True, single.now)
    assert set(single.reads()) == {LEFT, RIGHT}


def apart() -> tuple[Single, Single]:
    """Two workers; the first has B's slot and the home slot, the second the others, of an heir of B among them."""
    both = Single(TWO, SPLIT, now=2_000, slots=8)
    (slot,) = {state.slot for state in both.plan.states() if state.group.streams == (B,)}
    own = {slot, single_home()}
    assert {state.slot for state in both.plan.states() if state.group.streams in ((LEFT,), (RIGHT,))} - own
    first = Single(TWO, SPLIT, now=2_000, slots=8, own=own, records=both.topic)
    return first, Single(TWO, SPLIT, now=2_000, slots=8, own=set(range(8)) - own, records=both.topic)


def moved(first: Single, second: Single, now: int) -> None:
    """The second worker hears of the first, reads and commits, and the first one hears of that."""
    known = len(first.topic), len(second.topic)
    first.commit(move_marks=True)
    second.planner.follow(first.topic[known[0] :], range(8))
    second.to(now)
    second.read_all()
    second.commit(move_marks=True)
    second.commit()
    first.planner.follow(second.topic[known[1] :], range(8))


def test_a_look_goes_as_far_as_heirs_of_other_workers_have_committed() -> None:
    first, second = apart()
    first.read_all()
    assert not look(first, 3_000), "the other worker has not committed anything of the heirs"
    moved(first, second, 2_900)
    (read,) = look(first, 3_000)
    assert (read.streams, read.limit) == ((B,), 2_900 - CONFIDENCE)


def test_heirs_of_other_workers_are_searched_for_anything_later_and_only_just_after_a_poll() -> None:
    first, second = apart()
    first.read_all()
    moved(first, second, 2_900)
    (read,) = look(first, 3_000)
    assert first.planner.hold(read, 3_000 + CONFIDENCE // 2 + 1) is None
    held = first.planner.hold(read, 3_000 + CONFIDENCE // 2)
    assert held is not None and held.within_ms == CONFIDENCE // 4
    assert None in {heir.upto for heir in held.relatives}


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


def test_what_only_the_writer_of_a_mark_knew_the_end_of_is_looked_at() -> None:
    """He read on to 1650, but none of B beyond its end. The next one, who was told of the end behind that, took 1650
    for what B was read to, and passed over what had come late before it."""
    first = ended()
    first.to(1_650 + CONFIDENCE)
    first.read_all()
    first.commit(move_marks=True)
    second = Single(TWO, now=first.now, records=first.topic)
    assert not second.reads(), "it does not know the set of the mark"
    second.poll(SPLIT)
    (read,) = look(second, max(DUE, 1_650 + GRACE + CONFIDENCE))
    assert (read.streams, read.read_to) == ((B,), 1_500)
