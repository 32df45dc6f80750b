"""Where a table goes on that the Java connector has read: nothing that it owes is left out, and nothing is called
unread that it has read."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from connector.changes import CdcOptions, TableDescription
from connector.source import DescribedTable, Expired, expired
from connector.source.descriptions import LogTable
from connector.table_name import TableName
from connector.timeuuid import lowest_uuid
from connector.topology import Position, StreamSet, tablet_set, vnode_set
from connector.topology.ledger import SlotLedger, start_of
from connector.topology.slots import slot_of
from connector.worker.java_offsets import position_entries
from connector.worker.java_tasks import FIRST_TABLET_TASK, JavaOffset, Resumed, resumed, sets_wanted
from tests.topology.ring import PLACES, make_stream, token_at

TABLE = TableName("ks", "t")
SLOTS = 6
VNODES = 8
#: When generations began, and the time.
FIRST, SECOND, THIRD, NOW = 1_000_000, 2_000_000, 3_000_000, 3_900_000


def generation(at: int) -> StreamSet:
    """Of vnodes, each with two streams that no other generation has."""
    ends = [token_at(PLACES // VNODES * (number + 1)) for number in range(VNODES)]
    return vnode_set(
        at, {end: [make_stream(end - shard, at, index) for shard in range(2)] for index, end in enumerate(ends)}
    )


def of_vnode(stream_set: StreamSet, index: int) -> tuple[bytes, ...]:
    return stream_set.groups[index].streams


def all_streams(stream_set: StreamSet) -> set[bytes]:
    return {stream for group in stream_set.groups for stream in group.streams}


def read_to(at: int, window_start: int, vnodes: Iterable[int] = range(VNODES)) -> list[JavaOffset]:
    """Java's offsets of some vnodes of a generation, between two windows."""
    return [JavaOffset(TABLE, at, vnode, window_start, window_start + 999) for vnode in vnodes]


def taken(offsets: list[JavaOffset], *sets: StreamSet, visible_from: int = 0, lookback_ms: int = 0) -> Resumed:
    by_time = {each.timestamp: each for each in sets}
    wanted = sets_wanted(offsets, sorted(by_time), visible_from)
    if not wanted:
        return Resumed(0)
    return resumed(offsets, sorted(by_time), {at: by_time[at] for at in wanted}, lookback_ms)


def where(found: Resumed, streams: Iterable[bytes]) -> set[Position]:
    return {found.places[stream] for stream in streams}


# -- one generation ----------------------------------------------------------------------------------------------------


def test_a_vnode_without_an_offset_begins_with_its_generation_and_holds_no_other_back() -> None:
    first = generation(FIRST)
    found = taken(read_to(FIRST, NOW, set(range(VNODES)) - {3, 5}), first)
    missed = {*of_vnode(first, 3), *of_vnode(first, 5)}
    assert found.unread == missed
    assert where(found, missed) == {Position(FIRST)}
    assert where(found, all_streams(first) - missed) == {Position(NOW)} and found.earliest == NOW
    starts, marks = started(found)
    assert {starts[stream] for stream in missed} == {FIRST}
    assert {starts[stream] for stream in all_streams(first) - missed} == {NOW}
    assert marks == {NOW}


def test_a_table_that_looks_back_at_its_beginning_does_so_for_a_vnode_without_an_offset() -> None:
    """Java's would begin it at its next start so long ago, and leave out what lies between."""
    first, second = generation(FIRST), generation(SECOND)
    some = read_to(FIRST, FIRST + 70_000, range(1, VNODES))
    assert where(taken(some, first, lookback_ms=20_000), of_vnode(first, 0)) == {Position(FIRST + 50_000)}
    assert where(taken(some, first, lookback_ms=80_000), of_vnode(first, 0)) == {Position(FIRST)}
    # The table had begun long before: all of a later generation is its own.
    later = [*read_to(FIRST, SECOND + 1), *read_to(SECOND, NOW, range(1, VNODES))]
    found = taken(later, first, second, lookback_ms=20_000)
    assert where(found, of_vnode(second, 0)) == {Position(SECOND)}


# -- one generation after the other ------------------------------------------------------------------------------------


def test_an_ended_generation_that_java_has_passed_is_over() -> None:
    first, second = generation(FIRST), generation(SECOND)
    found = taken([*read_to(FIRST, SECOND + 2_000), *read_to(SECOND, NOW)], first, second)
    assert (found.generation, found.places.keys(), found.unread) == (SECOND, all_streams(second), set())
    assert not told_expired(found, 500)
    # With nothing read of the next one, that is read from its beginning.
    passed = taken(read_to(FIRST, SECOND + 2_000), first, second)
    assert (passed.generation, passed.unread) == (SECOND, all_streams(second))
    assert started(passed)[0] == dict.fromkeys(all_streams(second), SECOND)


def test_an_ended_generation_of_which_anything_is_owed_comes_first() -> None:
    first, second = generation(FIRST), generation(SECOND)
    behind = [*read_to(FIRST, SECOND + 2_000, range(1, VNODES)), *read_to(FIRST, SECOND - 5_000, [0])]
    found = taken(behind, first, second)
    assert (found.generation, found.unread) == (FIRST, set())
    assert where(found, of_vnode(first, 0)) == {Position(SECOND - 5_000)}
    missing = taken(read_to(FIRST, SECOND + 2_000, range(1, VNODES)), first, second)
    assert (missing.generation, missing.unread) == (FIRST, set(of_vnode(first, 0)))
    starts, _ = started(missing, second)
    assert {starts[stream] for stream in of_vnode(first, 0)} == {FIRST}
    assert {starts[stream] for stream in all_streams(second)} == {SECOND}, "not where the first one's streams stand"


def test_a_window_across_the_end_leaves_the_next_generation_whole() -> None:
    """The last change of a task may lie behind its generation's end, and others of its streams in front of it."""
    first, second = generation(FIRST), generation(SECOND)
    low, high = sorted(of_vnode(first, 0), key=lambda each: bytes(byte ^ 0x80 for byte in each))
    inside = JavaOffset(TABLE, FIRST, 0, SECOND - 500, SECOND + 499, low, lowest_uuid(SECOND + 300))
    found = taken([*read_to(FIRST, SECOND + 2_000, range(1, VNODES)), inside], first, second)
    assert found.generation == FIRST
    assert found.places[low].read_to == SECOND + 300 and found.places[high] == Position(SECOND - 500)
    starts, _ = started(found, second)
    assert {starts[stream] for stream in all_streams(second)} == {SECOND}


def test_what_java_has_left_out_as_expired_is_over_and_what_it_may_have_missed_is_not() -> None:
    first, second = generation(FIRST), generation(SECOND)
    stood = read_to(FIRST, FIRST + 5_000, range(3))
    later = read_to(SECOND, NOW)
    assert taken([*stood, *later], first, second, visible_from=SECOND + 1).generation == SECOND
    assert taken([*stood, *later], first, second, visible_from=SECOND).generation == FIRST, "it may still be there"
    # Stopped in the first one, and for long: whether it has expired unread is to be told.
    found = taken(stood, first, second, visible_from=SECOND + 1)
    assert found.generation == FIRST and told_expired(found, 500)


def test_no_listed_generation_says_nothing() -> None:
    assert sets_wanted(read_to(FIRST, NOW), [SECOND], 0) == []
    assert sets_wanted(read_to(FIRST, NOW), [], 0) == []


def test_sets_that_nobody_needs_are_not_asked_for() -> None:
    offsets = [*read_to(FIRST, SECOND + 1), *read_to(SECOND, THIRD + 1), *read_to(THIRD, NOW)]
    assert sets_wanted(offsets, [FIRST, SECOND, THIRD], SECOND + 1) == [SECOND, THIRD]
    assert sets_wanted(read_to(FIRST, NOW), [FIRST, SECOND, THIRD], NOW) == [FIRST, SECOND]


# -- tablets -----------------------------------------------------------------------------------------------------------

WHOLE, LEFT, RIGHT = (make_stream(token_at(place), number) for place, number in ((128, 1), (64, 2), (128, 3)))
OTHER = make_stream(token_at(32), 4)


def test_a_tablet_that_stayed_goes_on_where_it_was_read_furthest() -> None:
    first, second = tablet_set(FIRST, [OTHER, WHOLE]), tablet_set(SECOND, [OTHER, LEFT, RIGHT])
    passed = JavaOffset(TABLE, FIRST, 0, SECOND + 2_000, SECOND + 2_999)
    found = taken([passed], first, second)
    assert (found.generation, found.unread) == (SECOND, {LEFT, RIGHT})
    assert found.places[OTHER] == Position(SECOND + 2_000), "what it has delivered is not delivered again"
    both = taken([passed, JavaOffset(TABLE, SECOND, 0, NOW, NOW + 999)], first, second)
    assert where(both, all_streams(second)) == {Position(NOW)} and not both.unread


def test_a_tablet_that_stayed_owes_what_it_owed_before() -> None:
    first, second = tablet_set(FIRST, [OTHER, WHOLE]), tablet_set(SECOND, [OTHER, LEFT, RIGHT])
    own = [
        JavaOffset(TABLE, FIRST, FIRST_TABLET_TASK, SECOND - 700, SECOND + 299, OTHER, lowest_uuid(SECOND - 600)),
        JavaOffset(TABLE, FIRST, FIRST_TABLET_TASK + 1, SECOND + 1, SECOND + 1_000),
        JavaOffset(TABLE, SECOND, FIRST_TABLET_TASK, NOW, NOW + 999),
    ]
    found = taken(own, first, second)
    assert found.generation == FIRST and found.places[OTHER].read_to == SECOND - 600


# -- what becomes of it in the offsets topic ---------------------------------------------------------------------------


def started(found: Resumed, *later: StreamSet) -> tuple[dict[bytes, int], set[int]]:
    """Where a worker starts streams, by the entries that are written; and up to where marks say that it has come."""
    ledgers = [SlotLedger(SLOTS) for _ in range(SLOTS)]
    for entry in position_entries(TABLE, found, SLOTS, "owner"):
        ledgers[entry.slot].take(entry)
    ranges, opened = dict(found.ranges), dict.fromkeys(found.places, found.generation)
    for each in later:
        of_this = {stream: group.range_end for group in each.groups for stream in group.streams}
        opened |= dict.fromkeys(of_this.keys() - opened.keys(), each.timestamp)
        ranges |= of_this
    starts: dict[bytes, int] = {}
    for stream, at in opened.items():
        start = start_of(ledgers[slot_of(TABLE, ranges[stream], SLOTS)].table(TABLE), stream, at, None)
        assert start is not None, "every slot has a mark"
        starts[stream] = start.read_to
    marks = [each.table(TABLE).mark for each in ledgers]
    return starts, {mark.read_to for mark in marks if mark is not None}


def told_expired(found: Resumed, ttl_seconds: int) -> list[Expired]:
    """What a worker warns of that begins with it."""
    description = TableDescription("ks", "t", "id", (), CdcOptions(ttl=ttl_seconds))
    table = DescribedTable(description, False, LogTable("ks", "t_scylla_cdc_log"), ())
    return expired(position_entries(TABLE, found, SLOTS, "owner"), {TABLE: table}, NOW)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[JavaOffset], int]:
    """Offsets of some tasks of some generations, and what has expired."""
    offsets: list[JavaOffset] = []
    for at in (FIRST, SECOND, THIRD):
        for vnode in range(VNODES):
            if draw(st.integers(0, 9)):
                start = draw(st.sampled_from([at, at + 500_000, at + 999_500, at + 1_000_000, at + 1_000_500]))
                offsets.append(JavaOffset(TABLE, at, vnode, start, start + 999))
    return offsets, draw(st.sampled_from([0, SECOND - 1, SECOND + 1, THIRD + 1]))


SETS = [generation(at) for at in (FIRST, SECOND, THIRD)]


@given(histories())
def test_nothing_that_java_owes_is_skipped(history: tuple[list[JavaOffset], int]) -> None:
    offsets, visible_from = history
    found = taken(offsets, *SETS, visible_from=visible_from)
    if not offsets:
        return
    starts, _ = started(found, *(each for each in SETS if each.timestamp >= found.generation))
    read = {(each.generation, each.vnode): each.window_start for each in offsets}
    for each, end in zip(SETS, (SECOND, THIRD, None), strict=True):
        for index in range(VNODES):
            reached = read.get((each.timestamp, index), each.timestamp)
            if each.timestamp >= found.generation:
                assert all(starts[stream] <= reached for stream in of_vnode(each, index))
            elif any(at == each.timestamp for at, _ in read):
                assert end is not None and (reached >= end or end < visible_from)


def test_marks_say_nothing_of_streams_that_java_has_not_read() -> None:
    """They would call others expired, and each connector that snapshots when it is needed would write its tables."""
    (first,) = SETS[:1]
    found = taken(read_to(FIRST, NOW, range(1, VNODES)), first)
    assert {gone.stream for gone in told_expired(found, 500)} == set(of_vnode(first, 0))
