"""Snapshots: each token's rows are placed once, by who delivers the changes of its keys, whatever becomes of groups."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from connector.timeuuid import TICKS_PER_MS, time_uuid, uuid_text
from connector.topology import (
    MAX_TOKEN,
    MIN_TOKEN,
    Inside,
    MarkKey,
    Opening,
    ProgressKey,
    SnapshotKey,
    Wish,
    parse_key,
    snapshot_over,
    snapshot_passed_over,
)
from connector.topology.commits import Commit
from connector.topology.snapshots import KEPT_MS, joined, known, running
from tests.topology.single import GRACE, WHOLE, Single, row, stream, tablets

LEFT, RIGHT = stream(64, 2), stream(128, 2)
ONE, TWO = tablets(5_000, WHOLE), tablets(11_000, LEFT, RIGHT)
MIDDLE = 0


def started(*sets: object, slots: int = 1) -> Single:
    """A table of which nothing is placed, read up to the limit."""
    one = Single(*(sets or (ONE,)), slots=slots, lookback_ms=100, initial_snapshot=True)  # type: ignore[arg-type]
    one.read_all()
    return one


def openings(one: Single) -> list[Opening]:
    return one.planner.openings(one.now)


def opening(one: Single, of: bytes = WHOLE) -> Opening:
    return next(each for each in openings(one) if of in each.state.group.streams)


def kinds(commit: Commit) -> list[str]:
    return [type(parse_key(entry.key)).__name__ for entry in commit.entries]


def restarted(one: Single) -> Single:
    """Another worker, that has all slots."""
    new = Single(now=one.now, slots=one.planner.book.slots, records=one.topic, claim=False, owner="other")
    new.poll(*one.sets.values())
    new.commit()
    new.read_all()
    return new


def test_a_table_that_is_started_gets_a_snapshot_in_the_transaction_of_its_start() -> None:
    one = started(slots=3)
    begun = [entry for entry in one.topic if isinstance(parse_key(entry.key), SnapshotKey)]
    assert [entry.slot for entry in begun] == [one.plan.home]
    assert begun[0].value == {"kind": "initial", "began": 10_000, "ended": None}
    first_mark = next(entry for entry in one.topic if isinstance(parse_key(entry.key), MarkKey))
    assert first_mark.slot == one.plan.home


def test_a_table_that_was_started_before_gets_none() -> None:
    one = Single(ONE, lookback_ms=100)
    again = Single(ONE, lookback_ms=100, records=one.topic, owner="other", initial_snapshot=True)
    assert not openings(again)
    assert snapshot_over(again.plan)
    assert not snapshot_over(Single(ONE, claim=False).plan)
    assert not openings(Single(ONE, lookback_ms=100))


def test_groups_have_the_ring_among_them() -> None:
    one = started(tablets(5_000, stream(32), stream(64), stream(96), stream(128)), slots=3)
    spans = sorted(span for each in openings(one) for span in each.left)
    assert len(spans) == 4
    assert (spans[0][0], spans[-1][1]) == (MIN_TOKEN, MAX_TOKEN)
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_rows_are_placed_only_where_the_whole_group_stands() -> None:
    one = started()
    mine = opening(one)
    assert one.planner.stands(mine) == one.at(WHOLE)
    one.to(10_100)
    (read,) = one.reads().values()
    assert one.planner.stands(mine) == one.at(WHOLE)
    one.planner.advance(read, WHOLE, row(10_050))
    assert one.planner.stands(mine) is None
    one.planner.finish(read)
    assert one.planner.stands(mine) == read.limit
    one.to(10_200)
    (read,) = one.reads().values()
    one.planner.fail(read, "a row that cannot be read")
    assert one.planner.stands(mine) is None


def test_progress_is_one_entry_of_an_interval_in_front_of_marks() -> None:
    one = started()
    mine = opening(one)
    for upto in (-5, -4):
        one.planner.placed(mine, (MIN_TOKEN, upto))
    one.to(10_100)
    (read,) = one.reads().values()
    one.planner.advance(read, WHOLE, row(10_050))
    one.planner.finish(read)
    assert kinds(one.commit(move_marks=True)) == ["ProgressKey", "MarkKey"]
    one.planner.placed(mine, (MIN_TOKEN, 7))
    commit = one.commit()
    assert [parse_key(entry.key) for entry in commit.entries] == [ProgressKey(one.plan.table, "10000", MIN_TOKEN)]
    assert commit.entries[0].value == {"upto": 7}
    assert mine.left == [(7, MAX_TOKEN)]


def test_what_is_taken_back_is_open_again() -> None:
    one = started()
    mine = opening(one)
    one.planner.placed(mine, (MIN_TOKEN, -5))
    one.commit()
    one.planner.placed(mine, (MIN_TOKEN, 100))
    one.planner.commit_entries(one.now)
    one.planner.aborted()
    assert not one.planner.is_open(mine)
    assert one.planner.stands(mine) is None
    assert opening(one).left == [(-5, MAX_TOKEN)]


def test_who_takes_over_goes_on_where_the_committed_progress_ends() -> None:
    one = started()
    mine = opening(one)
    one.planner.placed(mine, (MIN_TOKEN, 100))
    parts = [Inside((b"k",), (b"\x01", None), part, table_id) for part, table_id in ((2, None), (1, "a"), (2, "a"))]
    for part in parts:
        one.planner.placed(mine, (100, 100), part)
        one.commit(move_marks=True)
    # What names none is of one that was there when the snapshot began, if that can be told.
    before, after = (uuid_text(time_uuid(ms * TICKS_PER_MS, 0x8000000000000000)) for ms in (9_999, 10_001))
    assert [mine.start(100, each) for each in ("b", before, after)] == [parts[0], parts[0], None]
    one.planner.placed(mine, (MIN_TOKEN, 200))
    there = opening(restarted(one))
    assert there.left == [(100, MAX_TOKEN)]
    # Of a table that is told by none, and so perhaps another one, no more than its own is known.
    assert there.start(100, "a") == parts[2]
    one.planner.aborted()
    again = opening(one)
    one.planner.release([0])
    assert not one.planner.is_open(again) and not openings(one)
    assert not one.planner.is_open(mine)


def test_after_a_split_nothing_is_placed_by_the_old_group_and_the_rest_by_the_new_ones() -> None:
    one = started()
    mine = opening(one)
    one.planner.placed(mine, (MIN_TOKEN, MIDDLE - 10))
    one.commit()
    one.poll(TWO)
    assert not one.planner.is_open(mine)
    assert not openings(one)
    one.to(11_100)
    one.read_all()
    one.look_all()
    # Delivered, but not committed yet: an abort would take the old group back.
    assert not openings(one)
    one.commit(move_marks=True)
    one.read_all()
    assert opening(one, LEFT).left == [(MIDDLE - 10, MIDDLE)]
    assert opening(one, RIGHT).left == [(MIDDLE, MAX_TOKEN)]


def test_rows_wait_for_changes_that_came_late_into_what_has_ended() -> None:
    """They would stand behind rows that show them."""
    one = started()
    one.poll(TWO)
    one.to(11_100)
    one.read_all()
    one.commit(move_marks=True)
    one.read_all()
    assert not openings(one)
    one.look_all()
    assert len(openings(one)) == 2


def test_what_came_late_into_another_workers_stream_is_known_to_be_delivered() -> None:
    """Until its mark says so."""
    one = started(tablets(5_000, WHOLE), slots=8)
    one.commit(move_marks=True)
    two = tablets(11_000, LEFT, RIGHT)
    one.poll(two)
    other = Single(ONE, two, now=one.now, slots=8, own=_slots_but(one, WHOLE), records=one.topic, owner="other")
    one.planner.release(_slots_but(one, WHOLE))
    for each in (one, other):
        each.to(11_100)
        each.read_all()
    _told(one, other)
    other.read_all()
    other.to(11_100 + 10 * GRACE)
    other.read_all()
    _told(one, other)
    assert not openings(other)
    one.look_all()
    one.look_all()
    assert not openings(other)
    _told(one, other)
    other.to(one.now)
    other.read_all()
    assert opening(other, LEFT).left == [(MIN_TOKEN, MIDDLE)]


def _slots_but(one: Single, of: bytes) -> list[int]:
    """Of all groups but one."""
    ended = next(state.slot for state in one.plan.states() if of in state.group.streams)
    return [slot for slot in range(8) if slot != ended]


def _told(one: Single, other: Single) -> None:
    """Each sees what the other has committed."""
    for worker, who in ((one, other), (other, one)):
        who.planner.follow(worker.commit(move_marks=True).entries, range(8))


def test_a_group_begins_only_where_its_set_has_begun() -> None:
    """Below, a part of its range is delivered by others, who may be further."""
    one = started(tablets(5_000, LEFT, RIGHT), slots=3)
    one.commit(move_marks=True)
    one.poll(tablets(11_000, RIGHT))
    one.to(11_100)
    reads = one.reads()
    one.planner.finish(reads[LEFT])
    one.commit(move_marks=True)
    assert one.at(RIGHT) < 11_000
    assert not openings(one)
    one.planner.finish(reads[RIGHT])
    one.read_all()
    one.commit(move_marks=True)
    one.look_all()
    one.read_all()
    assert opening(one, RIGHT).left == [(MIN_TOKEN, MAX_TOKEN)]


def test_a_group_that_only_shrinks_keeps_what_is_left_of_its_range() -> None:
    one = started()
    mine = opening(one)
    one.planner.placed(mine, (MIN_TOKEN, MIDDLE + 10))
    one.poll(tablets(11_000, stream(64, 3), WHOLE))
    assert not one.planner.is_open(mine)
    # Until then it delivers more than its part, and the other one nothing yet.
    assert not openings(one)
    one.to(11_100)
    one.read_all()
    assert {each.state.group.streams[0]: each.left for each in openings(one)} == {WHOLE: [(MIDDLE + 10, MAX_TOKEN)]}


def test_groups_that_are_far_behind_read_changes_first() -> None:
    one = started()
    one.to(30_000)
    assert not openings(one)
    one.read_all()
    assert openings(one)


def test_the_end_is_noted_when_all_tokens_are_committed_and_progress_is_removed_later() -> None:
    one = started(tablets(5_000, LEFT, RIGHT))
    for each in openings(one):
        one.planner.placed(each, (MIN_TOKEN, MAX_TOKEN))
    assert "SnapshotKey" not in kinds(one.commit(move_marks=True))
    assert not snapshot_over(one.plan)
    assert kinds(one.commit(move_marks=True)) == ["SnapshotKey"]
    assert snapshot_over(one.plan)
    assert not openings(one)
    assert not openings(restarted(one))
    one.to(10_000 + KEPT_MS + 1)
    one.read_all()
    gone = [entry for entry in one.commit(move_marks=True).entries if isinstance(parse_key(entry.key), ProgressKey)]
    assert [entry.value for entry in gone] == [None, None]
    assert not openings(one)


def test_what_another_worker_did_is_known_before_anything_is_done() -> None:
    """A slot that is not read to its end may hold progress."""
    eight = tablets(5_000, *(stream(end) for end in range(16, 129, 16)))
    one = started(eight, slots=3)
    one.commit(move_marks=True)
    other = Single(eight, slots=3, own=[one.plan.home], records=one.topic, owner="other")
    other.read_all()
    assert openings(other)
    other.planner.follow_anew()
    assert not openings(other)


@pytest.mark.parametrize("seed", range(20))
def test_every_token_is_placed_once_through_splits_merges_aborts_and_restarts(seed: int) -> None:
    every_token_once(seed)


def every_token_is_placed_once() -> None:
    """Many seeds, for mutants."""
    for seed in range(40):
        every_token_once(seed)


def every_token_once(seed: int) -> None:
    rng = random.Random(seed)
    one = started(_any_set(rng, 5_000, 0), slots=rng.choice([1, 3]))
    placed: list[tuple[int, int]] = []
    open_ones: list[tuple[int, int]] = []
    for number in range(300):
        if joined(placed) == [(MIN_TOKEN, MAX_TOKEN)]:
            break
        one.to(one.now + rng.randint(1, 60))
        draw = rng.random()
        if draw < 0.05:
            one.poll(_any_set(rng, one.now + rng.choice([-10, 0, 50]), number + 1))
        elif draw < 0.15:
            one.planner.aborted()
            open_ones = []
        elif draw < 0.2:
            one, open_ones = restarted(one), []
        elif draw < 0.3:
            one.look_all()
        elif draw < 0.7:
            one.commit(move_marks=rng.random() < 0.7)
            placed, open_ones = placed + open_ones, []
        else:
            one.read_all()
        for each in openings(one):
            if rng.random() < 0.5 and one.planner.stands(each) is not None:
                low, high = rng.choice(each.left)
                if rng.random() < 0.3 and high - low > 9:
                    low = rng.randint(low, high - 1)
                upto = high if rng.random() < 0.5 else rng.randint(low + 1, high)
                one.planner.placed(each, (low, upto))
                open_ones.append((low, upto))
    assert joined(placed) == [(MIN_TOKEN, MAX_TOKEN)]
    placed.sort()
    assert all(before[1] == after[0] for before, after in pairwise(placed)), placed


def _any_set(rng: random.Random, at: int, number: int) -> object:
    ends = sorted(rng.sample(range(8, 128, 8), rng.randint(0, 4)))
    return tablets(at, *(stream(end, number % 7 + 1) for end in (*ends, 128)))


def finished(one: Single) -> Single:
    """The snapshot that is under way is placed and over."""
    one.read_all()
    for each in openings(one):
        while each.left:
            one.planner.placed(each, (MIN_TOKEN, MAX_TOKEN))
    one.commit(move_marks=True)
    one.commit(move_marks=True)
    assert snapshot_over(one.plan)
    return one


def asked(one: Single, *wishes: Wish) -> list[tuple[str, str | None]]:
    """Which snapshots there are when the wishes are granted: kinds, and what asked for them."""
    for wish in wishes:
        one.planner.wish(one.plan.table, wish)
    one.to(one.now + 10)
    one.read_all()
    one.commit(move_marks=True)
    return [(each.kind, each.asked) for each in known(one.plan).values()]


def test_what_was_asked_for_is_done_once_whoever_hears_it() -> None:
    one = finished(started())
    one.planner.hear_from(3)
    assert asked(one, Wish(2, "start", "old")) == [("initial", None)]
    wishes = Wish(3, "start", "a", where="v < 3"), Wish(4, "start", "b")
    assert asked(one, *wishes) == [("initial", None), ("incremental", "a"), ("incremental", "b")]
    assert opening(one).where == "v < 3"
    again = restarted(one)
    again.planner.hear_from(0)
    assert len(asked(again, Wish(2, "start", "old"), *wishes)) == 3
    finished_one = opening(again)
    again.planner.placed(finished_one, (MIN_TOKEN, MAX_TOKEN))
    again.commit(move_marks=True)
    again.commit(move_marks=True)
    assert opening(again).where is None
    assert opening(again).left == [(MIN_TOKEN, MAX_TOKEN)]


def test_what_is_heard_twice_is_one_wish() -> None:
    """A worker that has lost the topic reads all of it once more, perhaps before it could commit what it had heard."""
    one = finished(started())
    one.planner.hear_from(0)
    wishes = Wish(0, "start", "a"), Wish(1, "stop", "b"), Wish(2, "start", "c"), Wish(3, "pause", "d")
    assert asked(one, *wishes, *wishes)[1:] == [("incremental", "a"), ("incremental", "c")]
    assert [(each.stopped, each.paused) for each in known(one.plan).values()][1:] == [(True, False), (False, True)]


def test_what_is_asked_while_nobody_listens_is_heard_later_behind_the_first_wish_of_all_too() -> None:
    one = finished(started())
    one.planner.hear_from(0)
    first = Wish(0, "start", "a")
    assert asked(one, first) == [("initial", None), ("incremental", "a")]
    again = restarted(one)
    again.planner.hear_from(2)
    assert asked(again, first, Wish(1, "start", "b"))[1:] == [("incremental", "a"), ("incremental", "b")]


def granted(one: Single) -> Single:
    """Three wishes of one topic."""
    one.planner.hear_from(0, "signals/a")
    assert asked(one, *(Wish(number, "start", f"a{number}") for number in range(3)))[1:] == [
        ("incremental", "a0"),
        ("incremental", "a1"),
        ("incremental", "a2"),
    ]
    return one


def test_a_topic_that_is_created_again_counts_from_its_beginning() -> None:
    """While somebody listens, also for those who begin then; and while nobody does."""
    one = granted(finished(started()))
    one.planner.hear_from(0, "signals/b")
    wishes = Wish(0, "start", "b0"), Wish(1, "start", "b1")
    assert asked(one, *wishes)[4:] == [("incremental", "b0"), ("incremental", "b1")]
    again = restarted(one)
    again.planner.hear_from(2, "signals/b")
    assert len(asked(again, *wishes)) == 6
    later = restarted(again)
    later.planner.hear_from(1, "signals/c")
    assert asked(later, Wish(0, "start", "c0"))[6:] == [("incremental", "c0")]


def test_what_the_former_topic_said_is_nobodys_wish_in_the_next_one() -> None:
    one = granted(finished(started()))
    one.planner.wish(one.plan.table, Wish(3, "start", "a3"))
    one.planner.hear_from(0, "signals/b")
    assert asked(one, Wish(0, "start", "b0"))[4:] == [("incremental", "b0")]


@pytest.mark.parametrize("topic", ["signals/copy", "others/a"])
def test_what_stands_in_a_copy_of_the_topic_or_in_one_of_another_name_is_not_done_once_more(topic: str) -> None:
    again = restarted(granted(finished(started())))
    again.planner.hear_from(3, topic)
    wishes = [Wish(number, "start", f"a{number}") for number in range(3)]
    assert asked(again, *wishes, Wish(3, "start", "new"))[4:] == [("incremental", "new")]


def test_of_which_topic_it_is_is_noted_beside_what_a_former_version_has_noted() -> None:
    one = finished(started())
    one.planner.hear_from(0)
    assert len(asked(one, Wish(0, "start", "a0"))) == 2
    again = restarted(one)
    again.planner.hear_from(1, "signals/a")
    assert len(asked(again, Wish(0, "start", "a0"))) == 2
    later = restarted(again)
    later.planner.hear_from(0, "signals/b")
    assert asked(later, Wish(0, "start", "b0"))[2:] == [("incremental", "b0")]


def test_a_wish_that_was_taken_back_with_its_transaction_is_granted_by_the_next() -> None:
    one = finished(started())
    one.planner.hear_from(0)
    one.planner.wish(one.plan.table, Wish(0, "start", "a"))
    one.planner.commit_entries(one.now, True)
    one.planner.aborted()
    assert asked(one) == [("initial", None), ("incremental", "a")]


def test_a_snapshot_that_pauses_goes_on_where_it_was_and_one_that_is_stopped_does_not() -> None:
    one = started()
    one.planner.hear_from(0)
    one.planner.placed(opening(one), (MIN_TOKEN, 5))
    asked(one, Wish(0, "pause", "p"))
    assert not openings(one)
    assert not openings(restarted(one))
    asked(one, Wish(1, "resume", "r"))
    assert opening(one).left == [(5, MAX_TOKEN)]
    asked(one, Wish(2, "stop", "s"))
    assert not openings(one)
    assert snapshot_over(one.plan)
    assert [each.stopped for each in known(one.plan).values()] == [True]
    told = [(each.name == "asked", each.after.paused, each.after.stopped) for each in one.planner.snapshot_events()]
    assert [each for each in told if not each[0]] == [
        (False, False, False), (False, True, False), (False, False, False), (False, False, True),
    ]  # fmt: skip


def test_each_start_of_the_connector_begins_one_and_the_start_of_a_worker_none() -> None:
    one = finished(started())
    for start, count in (("a", 2), ("a", 2), ("b", 3)):
        one = restarted(one)
        one.plan.snapshots.start = start
        asked(one)
        assert len(known(one.plan)) == count
        finished(one)


def test_a_table_that_was_started_without_a_snapshot_is_passed_over() -> None:
    one = Single(ONE, lookback_ms=100)
    assert not snapshot_passed_over(one.plan), "nobody wants one"
    one = restarted(one)
    one.plan.snapshots.initial = True
    assert snapshot_passed_over(one.plan) and snapshot_over(one.plan)
    one.plan.snapshots.when_needed = True
    assert not snapshot_passed_over(one.plan)
    one = started()
    assert not snapshot_passed_over(one.plan)
    one = restarted(finished(one))
    one.plan.snapshots.initial = True
    assert not snapshot_passed_over(one.plan), "it had one"


def test_changes_that_expired_unread_begin_one_whoever_finds_out() -> None:
    one = finished(started(tablets(5_000, LEFT, RIGHT), slots=3))
    slot = next(slot for slot in range(3) if slot != one.plan.home)
    one.planner.release([slot])
    other = Single(*one.sets.values(), slots=3, own=[slot], now=one.now, records=one.topic, owner="other")
    other.plan.snapshots.when_needed = one.plan.snapshots.when_needed = True
    other.to(one.now + 5)
    other.planner.need_snapshot(other.plan.table, slot, other.now)
    other.planner.commit_entries(other.now)
    other.planner.aborted()
    one.planner.follow(other.commit().entries, range(3))
    assert len(asked(one)) == 2
    assert running(one.plan) is not None
    assert len(asked(one)) == 2


def test_what_expired_unread_is_noted_once_unless_more_expires() -> None:
    one = finished(started())
    one.plan.snapshots.when_needed = True

    def noted(since: int) -> bool:
        one.to(one.now + 10)
        # The outcome of a commit is unknown: its slots are restored, and who restores them finds out again.
        for _ in range(2):
            one.planner.restore(MIDDLE, one.topic)
            one.planner.need_snapshot(one.plan.table, MIDDLE, since)
            commit = one.planner.commit_entries(one.now)
            one.planner.forget()
        one.topic += commit.entries
        one.planner.restore(MIDDLE, one.topic)
        return any(entry.key.get("snapshot") == "needed" for entry in commit.entries)

    first = one.now
    assert noted(first)
    assert not noted(first), "it is read from the same place"
    assert noted(one.now + 5)


def test_snapshots_of_long_ago_are_forgotten_but_for_the_last() -> None:
    one = finished(started())
    one.planner.hear_from(0)
    for number in range(3):
        asked(one, Wish(number, "start", str(number)))
        finished(one)
    one.to(one.now + KEPT_MS + 1)
    assert asked(one) == [("initial", None), ("incremental", "2")]
    assert asked(restarted(one)) == [("initial", None), ("incremental", "2")]
