"""What other workers may conclude from any prefix of what was committed, and which old sets nobody needs any more."""

from __future__ import annotations

from connector.table_name import TableName
from connector.topology import (
    Mark,
    MarkKey,
    Position,
    PositionKey,
    mark_entry,
    position_entry,
    slot_of,
    token_of,
    vnode_set,
)
from connector.topology.slots import home_slot
from tests.topology.ring import make_stream
from tests.topology.single import CONFIDENCE, TABLE, Single, row, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)
LEFT, RIGHT = stream(48, 2), stream(64, 2)


def test_a_slot_is_not_believed_before_its_end_was_reached() -> None:
    """A compacted partition may hold a mark whose position, below it, only comes later."""
    slots, after = 2, tablets(1_500, A, LEFT, RIGHT, C, D)
    where = {one: slot_of(TABLE, token_of(one), slots) for one in (B, LEFT, RIGHT)}
    mine = 1 - where[B]
    assert mine in (where[LEFT], where[RIGHT], home_slot(TABLE, slots), 1 - home_slot(TABLE, slots))
    single = Single(FOUR, now=2_000, slots=slots, own=[mine])
    theirs = where[B]
    mark = mark_entry(MarkKey(TABLE, theirs, slots), Mark(1_900, 1_500, 1_000, "other"))
    low = position_entry(theirs, PositionKey(TABLE, B), Position(1_100))
    fresh = Single(FOUR, after, now=2_000, slots=slots, own=[], claim=False, records=single.topic)
    fresh.planner.book._caught_up.discard(theirs)
    (parent,) = [state for state in fresh.plan.states() if state.group.streams == (B,)]
    fresh.planner.follow([mark], [])
    assert not fresh.plan.reached(parent, 1_500)
    # Nor when something new is known of another slot.
    fresh.planner.follow([], [mine])
    assert not fresh.plan.reached(parent, 1_500)
    fresh.planner.follow([low], [theirs])
    assert not fresh.plan.reached(parent, 1_500)
    fresh.planner.follow([position_entry(theirs, PositionKey(TABLE, B), None)], [theirs])
    assert fresh.plan.reached(parent, 1_500)


def test_of_a_slot_that_goes_away_nothing_is_known_until_it_is_followed() -> None:
    """What its owner committed was not followed meanwhile."""
    single = Single(FOUR, now=2_000, records=[mark_entry(MarkKey(TABLE, 0, 1), Mark(1_400, 1_000, 1_000, "x"))])
    (b,) = [state for state in single.plan.states() if state.group.streams == (B,)]
    single.planner.follow(single.topic[:1], [0])
    single.read_all()
    single.commit(move_marks=True)
    single.planner.release([0])
    assert single.plan.committed_up_to(b) == -1 and not single.planner.book.all_known
    single.planner.follow(single.topic[1:], [0])
    assert single.plan.committed_up_to(b) == 1_960 and single.planner.book.all_known


def test_what_was_followed_late_counts_for_nothing_until_it_is_followed_again() -> None:
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_900, 1_500, 1_000, "x"))
    after = tablets(1_500, A, LEFT, RIGHT, C, D)
    low = position_entry(0, PositionKey(TABLE, B), Position(1_100))
    follower = Single(FOUR, after, now=2_000, own=[], claim=False, records=[mark, low])
    (parent,) = [state for state in follower.plan.states() if state.group.streams == (B,)]
    follower.planner.follow([position_entry(0, PositionKey(TABLE, B), None)], [0])
    assert follower.plan.reached(parent, 1_500)
    follower.planner.follow_anew()
    assert not follower.plan.reached(parent, 1_500)
    follower.planner.follow([mark, low], [])
    assert not follower.plan.reached(parent, 1_500)
    follower.planner.follow([], [0])
    assert not follower.plan.reached(parent, 1_500)
    follower.planner.follow([position_entry(0, PositionKey(TABLE, B), None)], [0])
    assert follower.plan.reached(parent, 1_500)


def test_a_torn_group_is_drained_with_its_last_stream() -> None:
    group = tuple(sorted(make_stream(100, number, 0) for number in (1, 2, 3)))
    generation, after = vnode_set(1_000, {100: group}), vnode_set(1_500, {100: [make_stream(100, 9, 0)]})
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(1_200, 1_000, 1_000, "x"))
    first = position_entry(0, PositionKey(TABLE, group[0]), Position(1_500))
    follower = Single(generation, after, now=2_000, own=[], claim=False, records=[mark, first])
    old = next((state for state in follower.plan.states() if state.group.streams == group), None)
    assert old is not None
    assert not follower.plan.reached(old, 1_500)
    others = [position_entry(0, PositionKey(TABLE, one), Position(1_500)) for one in group[1:]]
    follower.planner.follow(others[:1], [0])
    assert not follower.plan.reached(old, 1_500)
    follower.planner.follow(others[1:], [0])
    assert follower.plan.reached(old, 1_500)


def test_every_prefix_of_a_commit_is_conservative() -> None:
    """Torn anywhere, no follower may think that more was delivered than was."""
    single = Single(FOUR, now=40_000)
    single.poll(tablets(2_000, A, LEFT, RIGHT, C, D))
    reads = single.reads()
    single.planner.advance(reads[C], C, row(39_000, 1))
    for one in (A, C, D):
        single.planner.finish(reads[one])
    before = len(single.topic)
    true = {state.group.streams[0]: state.read_to for state in single.plan.states()}
    single.commit(move_marks=True)
    for end in range(before, len(single.topic) + 1):
        follower = Single(
            FOUR, tablets(2_000, A, LEFT, RIGHT, C, D), now=40_000, own=[], claim=False, records=single.topic[:end]
        )
        for state in follower.plan.states():
            first = state.group.streams[0]
            assert not follower.plan.committed_to(state, true[first] + 1), (end, first)


def test_old_generations_are_not_fetched_again() -> None:
    listed = [1_000 * n for n in range(1, 9)]
    single = Single(FOUR, now=9_000, claim=False)
    assert single.plan.wanted([*listed, 500], 9_000) == tuple(listed[1:])
    mark = mark_entry(MarkKey(TABLE, 0, 1), Mark(6_100, 6_000, 1_000, "x"))
    behind = position_entry(0, PositionKey(TABLE, B), Position(4_500))
    fresh = Single(now=9_000, claim=False, records=[mark, behind])
    assert fresh.plan.wanted(listed, 9_000) == (4_000, 5_000, 6_000, 7_000, 8_000)
    late = Single(now=9_000, claim=False, records=[mark_entry(MarkKey(TABLE, 0, 1), Mark(8_100, 3_000, 1_000, "x"))])
    assert late.plan.wanted(listed, 9_000) == (3_000, 4_000, 5_000, 6_000, 7_000, 8_000)
    unknown = Single(now=9_000, claim=False, own=[])
    unknown.planner.book._caught_up.clear()
    assert unknown.plan.wanted(listed, 9_000) == tuple(listed)


def test_a_lookback_leaves_out_sets_from_long_before() -> None:
    day = 86_400_000
    listed = [day * n for n in range(1, 9)]
    single = Single(now=8 * day + 5_000, claim=False, lookback_ms=1_000)
    assert single.plan.wanted(listed, 8 * day + 5_000) == (7 * day, 8 * day)


def test_foreign_and_removed_tables_do_not_matter() -> None:
    other = TableName("ks", "removed")
    records = [
        mark_entry(MarkKey(other, 0, 1), Mark(5, 5, 5, "x")),
        position_entry(0, PositionKey(other, B), Position(5)),
    ]
    single = Single(FOUR, now=2_000, records=records)
    single.read_all()
    assert single.at(A) == 2_000 - CONFIDENCE
