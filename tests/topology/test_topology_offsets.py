"""Marks, positions, claims: what a commit says, where streams start by it, and in which order it is said."""

from __future__ import annotations

import json

import pytest

from connector.errors import FatalDeliveryError
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.timeuuid import lowest_uuid
from connector.topology import (
    Mark,
    MarkKey,
    Position,
    PositionKey,
    Reason,
    check_entry,
    mark_entry,
    noted_slots,
    parse_key,
    parse_mark,
    parse_position,
    position_entry,
    slot_of,
    token_of,
    told_apart,
)
from connector.topology.ledger import Ledger, SlotLedger, start_of
from connector.topology.slots import home_slot
from tests.topology.single import CONFIDENCE, TABLE, Single, row, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)
LEFT, RIGHT = stream(48, 2), stream(64, 2)


def text(entry: OffsetsEntry) -> tuple[str, str | None]:
    compact = (",", ":")
    value = None if entry.value is None else json.dumps(dict(entry.value), separators=compact)
    return json.dumps(dict(entry.key), separators=compact), value


def said(entries: tuple[OffsetsEntry, ...]) -> list[tuple[str, object]]:
    """Entries in short: ('mark', read_to) or (stream's place, position or None)."""
    short: list[tuple[str, object]] = []
    for entry in entries:
        key = parse_key(entry.key)
        if isinstance(key, MarkKey):
            assert entry.value is not None
            short.append(("mark", entry.value["read_to"]))
        elif isinstance(key, PositionKey):
            short.append((key.stream.hex()[:2], None if entry.value is None else parse_position(entry.value)))
    return short


# -- spelling ------------------------------------------------------------------------------------------------------


def test_entries_are_spelled_like_this() -> None:
    key = MarkKey(TableName("ks", "t"), 3, 25)
    assert text(mark_entry(key, Mark(5, 4, 1, "cdc-1"))) == (
        '{"keyspace_name":"ks","table_name":"t","slot":3,"slots":25}',
        '{"read_to":5,"stream_set":4,"start":1,"owner":"cdc-1","rechecked":4}',
    )
    assert text(mark_entry(key, None))[1] is None
    position = PositionKey(TableName("ks", "t"), B)
    assert text(position_entry(3, position, Position(7, lowest_uuid(0)))) == (
        '{"keyspace_name":"ks","table_name":"t","stream_id":"' + B.hex() + '"}',
        '{"read_to":7,"after":"13814000-1dd2-11b2-8080-808080808080"}',
    )
    assert text(position_entry(3, position, Position(7)))[1] == '{"read_to":7}'
    assert text(position_entry(3, position, None))[1] is None


def test_entries_are_read_back() -> None:
    for value in (Position(7), Position(7, row(9, 4))):
        entry = position_entry(3, PositionKey(TABLE, B), value)
        assert entry.value is not None
        assert (parse_key(entry.key), parse_position(entry.value)) == (PositionKey(TABLE, B), value)
    for mark in (Mark(5, 4, 1, "cdc-1"), Mark(5, 4, 1, "cdc-1", began=9)):
        entry = mark_entry(MarkKey(TABLE, 3, 25), mark)
        assert entry.value is not None
        assert (parse_key(entry.key), parse_mark(entry.value)) == (MarkKey(TABLE, 3, 25), mark)
    assert parse_key({"something": "newer"}) is None


@pytest.mark.parametrize(
    "broken",
    [
        lambda: parse_key({"keyspace_name": "ks", "table_name": "t", "stream_id": "xy"}),
        lambda: parse_key({"table_name": "t", "slot": 1, "slots": 2}),
        lambda: parse_mark({"read_to": 1}),
        lambda: parse_position({"after": None}),
        lambda: parse_position({"read_to": 1, "after": "no uuid"}),
        lambda: parse_position({"read_to": 1, "after": 5}),
        lambda: parse_position({"read_to": float("inf")}),
        lambda: parse_position({"read_to": 10**30}),
        lambda: parse_position({"read_to": "1"}),
        lambda: parse_mark({"read_to": 1, "stream_set": 1, "start": 1, "owner": ["x"]}),
        lambda: parse_mark({"read_to": 1, "stream_set": 1, "start": 1, "owner": "\ud800"}),
        lambda: parse_mark({"read_to": 1, "stream_set": 1, "start": 1, "owner": "x" * 5000}),
        lambda: parse_key({"keyspace_name": 1, "table_name": "t", "slot": 0, "slots": 2}),
        lambda: parse_key({"keyspace_name": "ks", "table_name": "t", "slot": 2, "slots": 2}),
        lambda: parse_key({"keyspace_name": "ks", "table_name": "t", "slot": 0, "slots": 10**12}),
    ],
)
def test_what_cannot_be_read_is_named(broken: object) -> None:
    with pytest.raises(FatalDeliveryError, match="cannot be read"):
        broken()  # type: ignore[operator]


def test_where_it_was_read_is_named() -> None:
    key = mark_entry(MarkKey(TABLE, 3, 25), None).key
    for entry in (OffsetsEntry(3, key, {}, "positions", 17), OffsetsEntry(3, {"slots": "x"}, {}, "positions", 17)):
        with pytest.raises(FatalDeliveryError, match=r"topic positions, partition 3, offset 17: a .* cannot be read"):
            check_entry(entry)


def test_the_number_of_slots_comes_from_living_marks() -> None:
    mark = Mark(5, 4, 1, "cdc-1")
    old, new = MarkKey(TABLE, 3, 25), MarkKey(TABLE, 3, 8)
    assert noted_slots([]) is None
    assert noted_slots([mark_entry(old, mark), position_entry(0, PositionKey(TABLE, B), None)]) == 25
    assert noted_slots([mark_entry(old, mark), mark_entry(old, None), mark_entry(new, mark)]) == 8
    with pytest.raises(FatalDeliveryError, match="8, 25"):
        noted_slots([mark_entry(old, mark), mark_entry(new, mark)])


# -- starts --------------------------------------------------------------------------------------------------------


def ledger(mark: Mark | None, **positions: Position) -> Ledger:
    made = Ledger()
    made.mark = mark
    made.positions = {name.encode(): position for name, position in positions.items()}
    return made


def test_where_a_stream_starts() -> None:
    mark = Mark(read_to=500, stream_set=300, start=100, owner="x")
    known = ledger(mark, s=Position(450), far=Position(900), inside=Position(400, row(400)))
    assert start_of(ledger(None, s=Position(450)), b"s", 200, None) is None
    assert start_of(known, b"s", 200, None) == Position(450)
    assert start_of(known, b"inside", 200, None) == Position(400, row(400))
    assert start_of(known, b"silent", 200, None) == Position(500)
    # Opened after the mark's set: its writer did not know it, the mark says nothing about it.
    assert start_of(known, b"new", 400, None) == Position(400)
    assert start_of(known, b"new", 50, None) == Position(500)
    assert start_of(ledger(Mark(500, 20, 100, "x")), b"new", 50, None) == Position(100)
    # Never behind the close: that is how a drained stream is recognised.
    assert start_of(known, b"silent", 200, 480) == Position(480)
    assert start_of(known, b"far", 200, 480) == Position(480)
    assert start_of(known, b"s", 200, 480) == Position(450)
    assert start_of(known, b"new", 400, 420) == Position(400)
    # Kept open in a set of which only the listing is known, with the mark below it: the mark is believed.
    assert start_of(known, b"old", 700, None, opened_known=False) == Position(500)


# -- claims --------------------------------------------------------------------------------------------------------


def test_nothing_is_read_before_the_claim_is_committed() -> None:
    single = Single(FOUR, now=2_000, claim=False)
    assert not single.reads()
    assert [held.reason for held in single.planner.waiting(2_000)] == [Reason.NOT_CLAIMED]
    assert single.planner.commit_due(2_000)
    commit = single.planner.commit_entries(2_000)
    assert text(commit.entries[0])[1] == (
        '{"read_to":1000,"stream_set":1000,"start":1000,"owner":"me","rechecked":1000,"began":2000}'
    )
    assert commit.slots == {0}
    assert not single.reads()
    single.planner.committed()
    assert set(single.reads()) == {A, B, C, D}


def test_an_aborted_claim_is_made_again() -> None:
    single = Single(FOUR, now=2_000, claim=False)
    single.planner.commit_entries(2_000)
    single.planner.aborted()
    assert not single.reads()
    assert single.planner.commit_due(2_000)


def test_only_the_home_slot_decides_where_a_table_starts() -> None:
    home = home_slot(TABLE, 4)
    others = [slot for slot in range(4) if slot != home]
    elsewhere = Single(FOUR, now=2_000, slots=4, own=others, claim=False, lookback_ms=500)
    assert not elsewhere.planner.commit_due(2_000)
    assert {held.reason for held in elsewhere.planner.waiting(2_000)} == {Reason.HOME_SLOT}
    at_home = Single(FOUR, now=2_001, slots=4, own=[home], claim=False, lookback_ms=500)
    claim = at_home.commit()
    assert [entry.value for entry in claim.entries] == [
        {"read_to": 1_501, "stream_set": 1_000, "start": 1_501, "owner": "me", "rechecked": 1_501, "began": 2_001}
    ]
    elsewhere.planner.follow(claim.entries, [home])
    values = [entry.value or {} for entry in elsewhere.commit().entries]
    assert [(value["start"], value["began"]) for value in values] == [(1_501, 2_001)] * 3


def test_a_table_that_was_started_before_keeps_its_start() -> None:
    """The home slot's mark is gone, another slot still has one: no second beginning by today's clock."""
    home = home_slot(TABLE, 4)
    other = (home + 1) % 4
    left = [mark_entry(MarkKey(TABLE, other, 4), Mark(1_700, 1_000, 1_200, "gone"))]
    single = Single(FOUR, now=2_000, slots=4, own=[home], claim=False, records=left, lookback_ms=100)
    assert [entry.value and entry.value["start"] for entry in single.commit().entries] == [1_200]


def test_the_home_slot_waits_until_all_slots_are_known() -> None:
    home = home_slot(TABLE, 2)
    single = Single(FOUR, now=2_000, slots=2, own=[home], claim=False)
    single.planner.restore(home, [])
    assert single.planner.commit_due(2_000)
    fresh = Single(now=2_000, slots=2, own=[], claim=False)
    fresh.planner.book._caught_up.clear()
    fresh.planner.restore(home, [])
    fresh.poll(FOUR)
    assert not fresh.planner.commit_due(2_000)
    fresh.planner.follow([], [1 - home])
    assert fresh.planner.commit_due(2_000)


def test_a_claim_repeats_what_was_restored_under_a_new_owner() -> None:
    first = Single(FOUR, now=2_000, owner="one")
    first.read_all()
    first.commit(move_marks=True)
    second = Single(FOUR, now=2_100, owner="two", records=first.topic, claim=False)
    assert [entry.value for entry in second.commit().entries] == [
        {"read_to": 1_960, "stream_set": 1_000, "start": 1_000, "owner": "two", "rechecked": 1_000, "began": 2_000}
    ]


def test_a_mark_tells_when_its_table_was_started_until_all_from_before_then_is_delivered() -> None:
    single = Single(FOUR, now=2_000)
    began = []
    for now in (2_000 + CONFIDENCE - 1, 2_000 + CONFIDENCE):
        single.to(now)
        single.read_all()
        (mark,) = single.commit(move_marks=True).entries
        assert mark.value is not None
        began.append(mark.value.get("began"))
    assert began == [2_000, None]


def test_a_worker_with_an_older_view_reads_nothing_and_says_so() -> None:
    """Were it to move the mark, the streams that it does not know would later start there, their rows lost."""
    first = Single(FOUR, now=2_000)
    first.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    first.read_all()
    first.commit(move_marks=True)
    second = Single(FOUR, now=2_100, owner="two", records=first.topic)
    assert not second.reads()
    assert [held.reason for held in second.planner.waiting(2_100)] == [Reason.OLDER_VIEW]
    assert not second.commit(move_marks=True).entries
    second.poll(tablets(1_500, A, LEFT, RIGHT, C, D))
    assert set(second.reads()) == {A, LEFT, RIGHT, C, D}


# -- commits -------------------------------------------------------------------------------------------------------


def test_silence_needs_one_mark_and_no_positions() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    assert said(single.commit().entries) == []
    assert said(single.commit(move_marks=True).entries) == [("mark", 1_960)]
    assert said(single.commit(move_marks=True).entries) == []


def test_a_mark_that_would_only_say_that_time_has_passed_is_written_rarely() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    assert said(single.commit(move_marks=True, idle_ms=960).entries) == [("mark", 1_960)]
    single.to(6_000)
    single.read_all()
    assert said(single.commit(move_marks=True, idle_ms=4_001).entries) == []
    assert said(single.commit(move_marks=True, idle_ms=4_000).entries) == [("mark", 5_960)]
    # What is said of a stream is said at once, and so is that it needs to be said no longer.
    single.to(7_000)
    reads = single.reads()
    single.planner.advance(reads[B], B, row(6_234, 5))
    for read in reads.values():
        single.planner.finish(read)
    assert said(single.commit(move_marks=True, idle_ms=60_000).entries) == [("mark", 6_960)]
    single.to(8_000)
    reads = single.reads()
    single.planner.advance(reads[B], B, row(7_234, 5))
    assert said(single.commit().entries) == [(B.hex()[:2], Position(7_234, row(7_234, 5)))]
    for read in reads.values():
        single.planner.finish(read)
    single.commit()
    single.to(9_000)
    single.read_all()
    assert said(single.commit(move_marks=True, idle_ms=60_000).entries) == [(B.hex()[:2], None), ("mark", 8_960)]
    # An orderly end says everything.
    single.to(10_000)
    single.read_all()
    assert said(single.commit(move_marks=True, idle_ms=60_000).entries) == []
    assert said(single.commit(move_marks=True).entries) == [("mark", 9_960)]


def test_a_mark_that_knows_a_newer_set_is_written_at_once() -> None:
    single = Single(FOUR, now=2_000)
    single.read_all()
    single.commit(move_marks=True)
    single.to(3_000)
    single.poll(tablets(2_500, A, LEFT, RIGHT, C, D))
    single.read_all()
    assert ("mark", 2_960) in said(single.commit(move_marks=True, idle_ms=60_000).entries)


def test_a_stream_that_delivered_gets_a_position_until_the_mark_has_passed_it() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    single.planner.advance(reads[B], B, row(1_234, 5))
    commit = single.commit()
    assert said(commit.entries) == [("00" if B[0] == 0 else B.hex()[:2], Position(1_234, row(1_234, 5)))]
    assert commit.slots == {0}
    for read in reads.values():
        single.planner.finish(read)
    single.to(3_000)
    (b,) = [read for read in single.reads().values() if read.streams == (B,)]
    assert b.read_to == 1_960
    assert said(single.commit(move_marks=True).entries) == [(B.hex()[:2], None), ("mark", 1_960)]


def test_positions_go_in_front_of_marks() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    for one in (A, C, D):
        single.planner.finish(reads[one])
    single.planner.fail(reads[B], "broken")
    # B is FAILED: the mark passes it, and only a position in front of the mark keeps its rows.
    assert said(single.commit(move_marks=True).entries) == [(B.hex()[:2], Position(1_000)), ("mark", 1_960)]


def test_a_stream_that_is_far_behind_does_not_hold_the_mark() -> None:
    single = Single(FOUR, now=40_000)
    reads = single.reads()
    for one in (A, C, D):
        single.planner.finish(reads[one])
    assert said(single.commit(move_marks=True).entries) == [(B.hex()[:2], Position(1_000)), ("mark", 39_960)]
    single.planner.finish(reads[B])
    assert said(single.commit(move_marks=True).entries) == [(B.hex()[:2], None)]


def test_a_change_that_others_wait_for_is_told_at_once() -> None:
    """Its parent is silent, its left child lives in another slot: only a position lets that one start."""
    slots = 4
    parent_slot = slot_of(TABLE, token_of(B), slots)
    child = next(
        stream(place, 2) for place in range(33, 64) if slot_of(TABLE, token_of(stream(place)), slots) != parent_slot
    )
    after = tablets(1_500, A, child, RIGHT, C, D)
    upper = Single(FOUR, now=2_000, slots=slots, own=[parent_slot], owner="upper", claim=False)
    lower = Single(FOUR, now=2_000, slots=slots, own=[s for s in range(slots) if s != parent_slot], claim=False)
    for _ in range(3):
        upper.planner.follow(lower.commit().entries, range(slots))
        lower.planner.follow(upper.commit().entries, range(slots))
    for single in (upper, lower):
        single.poll(after)
    lower.read_all()
    assert lower.at(child) == 1_500
    assert not upper.planner.commit_due(2_000)
    upper.planner.finish(upper.reads()[B])
    assert upper.planner.commit_due(2_000)
    commit = upper.planner.commit_entries(2_000)
    assert said(commit.entries) == [(B.hex()[:2], Position(1_500))]
    assert child not in lower.reads()
    upper.planner.committed()
    lower.planner.follow(commit.entries, range(slots))
    assert child in lower.reads()
    assert not upper.planner.commit_due(2_000)


def test_after_a_restart_every_stream_goes_on_where_it_stood() -> None:
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    single.planner.advance(reads[B], B, row(1_234, 5))
    single.planner.finish(reads[A], 1_400)
    single.planner.advance(reads[C], C, row(1_300, 6))
    single.planner.finish(reads[C])
    single.commit()
    again = Single(FOUR, now=2_000, records=single.topic, owner="next")
    got = {first: (read.read_to, read.after) for first, read in again.reads().items()}
    assert got == {A: (1_000, None), B: (1_234, row(1_234, 5)), C: (1_960, None), D: (1_000, None)} or got == {
        A: (1_000, None),
        B: (1_234, row(1_234, 5)),
        D: (1_000, None),
    }


def test_a_restored_position_beyond_the_mark_is_not_undone_by_a_mark_below_it() -> None:
    """The rows up to it were delivered; a mark that moves to between must not take its place."""
    single = Single(FOUR, now=2_000)
    reads = single.reads()
    single.planner.advance(reads[C], C, row(1_900, 6))
    single.planner.finish(reads[C])
    single.commit()
    again = Single(FOUR, now=2_000, records=single.topic, owner="next")
    for first, read in again.reads().items():
        again.planner.finish(read, 1_500 if first != C else None)
    commit = again.commit(move_marks=True)
    assert said(commit.entries) == [("mark", 1_500)]
    last = Single(FOUR, now=2_000, records=again.topic, owner="last")
    assert last.at(C) == 1_960


def test_positions_of_streams_that_only_the_predecessor_knew_are_kept() -> None:
    """It knew a set that is hidden from us, delivered from its streams, and never moved its mark since."""
    first = Single(FOUR, now=2_000)
    first.read_all()
    first.commit(move_marks=True)
    first.poll(tablets(1_990, A, LEFT, RIGHT, C, D))
    first.to(2_100)
    first.planner.finish(first.reads()[B])
    read = first.reads()[LEFT]
    first.planner.advance(read, LEFT, row(2_010, 3))
    first.commit()
    second = Single(FOUR, now=2_200, owner="two", records=first.topic)
    second.read_all()
    second.commit(move_marks=True)
    third = Single(FOUR, tablets(1_990, A, LEFT, RIGHT, C, D), now=2_300, owner="three", records=second.topic)
    third.planner.finish(third.reads()[B]) if B in third.reads() else None
    left = next(state for state in third.plan.states() if state.group.streams == (LEFT,))
    assert left.position(LEFT) == Position(2_010, row(2_010, 3))


def test_positions_of_forgotten_streams_are_cleaned_up() -> None:
    gone = position_entry(0, PositionKey(TABLE, stream(17, 8)), Position(900))
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_500, 1_000, 100, "x"))
    single = Single(FOUR, now=2_000, records=[mark, gone])
    single.read_all()
    assert said(single.commit(move_marks=True).entries) == [(stream(17).hex()[:2], None), ("mark", 1_960)]


def test_marks_of_a_worker_without_a_stream_move_with_the_time() -> None:
    """They would be taken for changes that nobody read until the log's TTL, and for a lag."""
    only = tablets(9_000, stream(128))
    everything = Single(only, slots=2)
    [group] = everything.plan.states()
    empty = 1 - group.slot
    single = Single(only, slots=2, own=[empty], records=everything.topic)
    before = single.plan.mark_of(empty)
    single.now += 5_000
    single.poll()
    single.commit(move_marks=True)
    after = single.plan.mark_of(empty)
    assert before is not None and after is not None
    assert after.read_to - before.read_to > 4_000


# -- entries that something else wrote over ------------------------------------------------------------------------


def broken_over(entries: list[OffsetsEntry], slot: int) -> list[OffsetsEntry]:
    """With the mark of one slot written over."""
    return [
        OffsetsEntry(entry.slot, entry.key, {"read_to": "x"}) if entry.slot == slot and "slots" in entry.key else entry
        for entry in entries
    ]


def test_a_mark_that_cannot_be_read_holds_up_its_own_slot_only() -> None:
    before = Single(FOUR, slots=4)
    home = home_slot(TABLE, 4)
    slot = next(each for each in range(4) if each != home)
    topic = broken_over(before.topic, slot)
    after = Single(FOUR, slots=4, records=topic, now=20_000)
    assert set(range(4)) - set(after.plan.active) == {slot}
    [held] = [each for each in after.planner.waiting(after.now) if each.reason is Reason.FAILED]
    assert (held.slot, held.range_end) == (slot, None) and "cannot be read" in (held.note or "")
    assert all(slot != entry.slot for entry in after.topic[len(topic) :]), "it is not written over in turn"
    assert {read.state.slot for read in after.planner.plan(after.now, 100)} <= set(range(4)) - {slot}


def test_who_follows_a_slot_with_an_entry_that_cannot_be_read_knows_nothing_of_it() -> None:
    before = Single(FOUR, slots=4)
    home = home_slot(TABLE, 4)
    fresh = [entry for entry in before.topic if entry.slot == home]
    own = [slot for slot in range(4) if slot != home]
    waiting = Single(FOUR, slots=4, own=own, records=broken_over(fresh, home))
    assert not waiting.plan.active, "nobody knows where the table starts"
    mended = [*broken_over(fresh, home), fresh[-1]]
    assert Single(FOUR, slots=4, own=own, records=mended).plan.active


def test_a_table_is_not_started_anew_while_a_mark_cannot_be_read() -> None:
    before = Single(FOUR, slots=4)
    home = home_slot(TABLE, 4)
    slot = next(each for each in range(4) if each != home)
    only = [entry for entry in before.topic if entry.slot == slot]
    assert Single(FOUR, slots=4, records=only).plan.active
    assert not Single(FOUR, slots=4, records=broken_over(only, slot)).plan.active


def test_a_position_that_cannot_be_read_is_no_position() -> None:
    ledger = SlotLedger(1)
    for entry in Single(FOUR).topic:
        ledger.take(entry)
    key = PositionKey(TABLE, A)
    entry = position_entry(0, key, Position(5_000))
    assert start_of(ledger.table(TABLE), A, 0, None) is not None
    ledger.take(OffsetsEntry(0, entry.key, {}))
    assert start_of(ledger.table(TABLE), A, 0, None) is None
    ledger.take(entry)
    assert start_of(ledger.table(TABLE), A, 0, None) == Position(5_000)


def test_a_key_that_nobody_writes_is_no_place_of_ours() -> None:
    odd = [OffsetsEntry(0, {"keyspace_name": 5, "table_name": "t", "slot": 0, "slots": 1}, {}, "positions", 3)]
    assert noted_slots(odd) is None
    assert Single(FOUR, records=odd).plan.active
    readable, [wrong] = told_apart([*odd, *Single(FOUR).topic])
    assert len(readable) == len(Single(FOUR).topic) and "topic positions, partition 0, offset 3" in wrong
