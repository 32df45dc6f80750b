"""What was in vain is not tried again before something stirs: whatever gives a table something to do does."""

from __future__ import annotations

from connector.table_name import TableName
from connector.topology import Mark, MarkKey, mark_entry, slot_of, token_of
from connector.topology.slots import home_slot
from tests.topology.single import TABLE, Single, stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)
FOUR = tablets(1_000, A, B, C, D)


def home_of(one: bytes, slots: int) -> int:
    return slot_of(TABLE, token_of(one), slots)


def test_a_slot_that_comes_later_is_claimed_although_there_was_nothing_to_claim() -> None:
    home = home_slot(TABLE, 2)
    single = Single(FOUR, now=2_000, slots=2, own=[1 - home], claim=False)
    assert not single.planner.commit_due(2_000) and not single.planner.commit_due(2_000)
    single.planner.restore(home, [])
    assert single.planner.commit_due(2_000)


def test_a_table_whose_streams_become_known_later_is_claimed() -> None:
    single = Single(now=2_000, claim=False)
    assert not single.planner.commit_due(2_000)
    single.poll(FOUR)
    assert single.planner.commit_due(2_000)


def test_a_table_that_is_added_is_claimed_where_it_was_claimed_before() -> None:
    other = TableName("ks", "other")
    left = mark_entry(MarkKey(other, 0, 1), Mark(1_700, 1_000, 1_200, "me"))
    single = Single(FOUR, now=2_000, records=[left])
    assert not single.planner.commit_due(2_000)
    single.planner.take_table(other)
    assert single.planner.commit_due(2_000)


def test_a_change_that_only_others_wait_for_is_told_at_once() -> None:
    """After a merge nothing of the parent's own slot goes on, and nothing else happens there."""
    slots = 4
    left = next(stream(place) for place in range(33, 64) if home_of(stream(place), slots) != home_of(B, slots))
    before, after = tablets(1_000, A, left, B, C, D), tablets(1_500, A, stream(64, 2), C, D)
    slot = home_of(left, slots)
    upper = Single(before, now=2_000, slots=slots, own=[slot], owner="upper", claim=False)
    lower = Single(before, now=2_000, slots=slots, own=[other for other in range(slots) if other != slot], claim=False)
    for _ in range(3):
        upper.planner.follow(lower.commit().entries, range(slots))
        lower.planner.follow(upper.commit().entries, range(slots))
    upper.poll(after)
    reads = upper.reads()
    assert not upper.planner.commit_due(2_000)
    upper.planner.finish(reads[left])
    assert upper.planner.commit_due(2_000)
