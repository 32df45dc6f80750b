"""Sweeps that are refused in parts: what got through counts, and the next ones go around the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from connector.topology import Read, vnode_set
from connector.topology.arcs import Arc
from connector.topology.planner import Planner
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN, RING, token_of
from tests.topology.ring import make_stream, token_at
from tests.topology.single import CONFIDENCE, TABLE, Single, stream, tablets

EVERY = 100
PAUSE = 200
STREAMS = [stream(place) for place in range(8, 129, 8)]

Answers = Callable[[Arc], bool]


def refusing(*refused: bytes) -> Answers:
    """Whoever asks for the token of one of them is refused."""
    tokens = [token_of(each) for each in refused]
    return lambda arc: not any(arc[0] <= token <= arc[1] for token in tokens)


def sweep(one: Single, answers: Answers, pause_ms: int = PAUSE) -> tuple[list[Arc], list[Arc]]:
    """As `Sweeping` does: the arcs that were asked for, and those of them that were answered."""
    asked: list[Arc] = []
    through: list[Arc] = []
    for begun in one.planner.sweeps(one.now, EVERY):
        left = list(begun.arcs)
        while left:
            arc = left.pop()
            asked.append(arc)
            if answers(arc):
                through.append(arc)
            else:
                left += one.planner.parts(begun, arc)
        assert one.planner.swept(begun, {}, 1, None if len(asked) == len(begun.arcs) else through, pause_ms)
    return asked, through


def read_but(one: Single, *refused: bytes) -> None:
    """All that may be read is, but for reads of some streams, which are refused."""
    wanted: list[Read] = []
    while reads := one.reads():
        for first, read in reads.items():
            if first in refused:
                wanted.append(read)
            else:
                one.planner.finish(read)
    for read in wanted:
        one.planner.interrupt(read)


def stand(one: Single) -> dict[bytes, int]:
    return {each: one.at(each) for each in STREAMS}


def test_what_is_refused_alone_is_found_and_stays_where_it_was_and_the_rest_moves_on() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    gone = STREAMS[5]
    asked, _ = sweep(one, refusing(gone))
    assert len(asked) <= 2 * 4 + 1, "halves of halves"
    assert {each for each, at in stand(one).items() if at == 9_000} == {gone}
    assert set(one.reads()) == {gone}


def test_sweeps_go_around_what_is_refused_until_a_read_of_it_was_answered_and_some_time_has_passed() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    gone = STREAMS[5], STREAMS[11]
    sweep(one, refusing(*gone))
    for now in (10_100, 10_500, 10_900):
        one.to(now)
        read_but(one, *gone)
        asked, through = sweep(one, refusing(*gone))
        assert asked == through and len(asked) == 3, "nobody is asked for what he refuses"
        assert {one.at(each) for each in gone} == {9_000}
    one.to(11_300)
    read_but(one, gone[1])
    one.to(11_400)
    asked, through = sweep(one, refusing(gone[1]))
    assert asked == through and len(asked) == 2, "it is answered again"
    assert one.at(gone[0]) == 11_400 - CONFIDENCE


def test_who_was_answered_too_soon_is_not_yet_swept_again() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    sweep(one, refusing(STREAMS[5]))
    for now, arcs in ((10_100, 2), (10_200, 2), (10_300, 1)):
        one.read_all()
        one.to(now)
        asked, _ = sweep(one, refusing())
        assert len(asked) == arcs, now


def test_where_all_is_refused_nothing_moves() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    sweep(one, lambda arc: False)
    assert set(stand(one).values()) == {9_000}
    assert set(one.reads()) == set(STREAMS)


def test_a_healthy_ring_is_one_question() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    asked, _ = sweep(one, refusing())
    assert asked == list(RING)


def test_who_has_rows_leaves_no_gap() -> None:
    """Only those that are refused do."""
    one = Single(tablets(9_000, *STREAMS), now=10_000)
    sweep(one, refusing(STREAMS[2]))
    one.to(10_100)
    (begun,) = one.planner.sweeps(one.now, EVERY)
    one.planner.swept(begun, {STREAMS[9]: 10_050})
    one.to(10_200)
    asked, _ = sweep(one, refusing(STREAMS[2]))
    assert len(asked) == 2


def test_what_is_refused_of_other_workers_is_not_asked_for() -> None:
    """They have what lies between."""
    one = Single(tablets(9_000, *STREAMS), now=10_000, slots=4, own=(0, 2))
    ours = [state.group.streams[0] for state in one.plan.states() if state.slot in (0, 2)]
    theirs = [each for each in STREAMS if each not in ours]
    assert ours and theirs
    before = {each: one.at(each) for each in ours}
    for _ in range(2):
        asked, through = sweep(one, refusing(*theirs))
        assert len(through) == 2 and len(asked) <= 4
        assert all(one.at(each) > before[each] for each in ours)
        assert not one.plan.refused
        one.to(one.now + 500)


def test_a_vnode_across_the_rings_end_has_two_pieces() -> None:
    """If one of them is refused, it has not been swept."""
    across = tuple(sorted([make_stream(MIN_TOKEN + 5, 1), make_stream(MAX_TOKEN - 5, 1)], key=token_of))
    inner = tuple(make_stream(token_at(place), 1) for place in (40, 44))
    other = tuple(make_stream(token_at(place), 1) for place in (80, 84))
    ends = {token_at(20): list(across), token_at(50): list(inner), token_at(90): list(other)}
    for refused in across:
        one = Single(vnode_set(9_000, ends), now=10_000)
        _, through = sweep(one, refusing(refused))
        assert not any(arc[0] <= token_of(refused) <= arc[1] for arc in through)
        assert [one.at(each) for each in (*across, *inner, *other)] == [9_000] * 2 + [9_960] * 4
        one.to(10_100)
        asked, through = sweep(one, refusing(refused))
        assert asked == through == [(token_of(inner[0]), token_of(other[1]))]


def test_a_vnode_whose_streams_lie_in_two_arcs_is_asked_for_in_both() -> None:
    """The ring is cut where our tokens are farthest apart, which may be within a vnode."""
    apart, near = [make_stream(token_at(place), 1) for place in (70, 125)], make_stream(token_at(25), 1)
    theirs = make_stream(token_at(40), 1)
    ends = {token_at(30): [near], token_at(50): [theirs], token_at(127): apart}
    for own in (
        (0,),
        (1,),
        (2,),
        (3,),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (2, 3),
        (0, 1, 2),
        (0, 1, 3),
        (0, 2, 3),
    ):
        one = Single(vnode_set(9_000, ends), now=10_000, slots=4, own=own)
        slots = {state.group.range_end: state.slot for state in one.plan.states()}
        if slots[token_at(127)] in own and slots[token_at(30)] in own and slots[token_at(50)] not in own:
            break
    asked, through = sweep(one, refusing(theirs))
    assert len(asked) > len(through)
    assert all(any(first <= token_of(each) <= last for first, last in through) for each in (*apart, near))
    assert [one.at(each) for each in (*apart, near)] == [9_960] * 3


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_refused_nobody_moves_whose_tokens_were_not_answered(seed: int) -> None:
    """And everybody does who is not refused himself, as soon as he was read by himself."""
    draw = random.Random(seed)
    own = draw.choice([range(4), (0, 2), (2,)])
    one = Single(tablets(9_000, *STREAMS), now=10_000, slots=4, own=own)
    mine = [each.group.streams[0] for each in one.plan.states() if each.slot in own]
    gone: Sequence[bytes] = draw.sample(STREAMS, draw.choice([0, 1, 3, 8]))
    for _ in range(12):
        if draw.random() < 0.3:
            gone = draw.sample(STREAMS, draw.choice([0, 1, 3, 8]))
        before = {each: one.at(each) for each in mine}
        sweeps = one.planner.sweeps(one.now, EVERY)
        for begun in sweeps:
            answers, left, through = refusing(*gone), list(begun.arcs), []
            while left:
                arc = left.pop()
                if answers(arc) and draw.random() < 0.9:
                    through.append(arc)
                elif draw.random() < 0.9:
                    left += one.planner.parts(begun, arc)
            one.planner.swept(begun, {}, 1, through, PAUSE)
            moved = {each for each in mine if one.at(each) != before[each]}
            assert all(any(first <= token_of(each) <= last for first, last in through) for each in moved)
            assert not moved & {*gone}
        if draw.random() < 0.2:
            one.planner.aborted()
        read_but(one, *gone)
        one.to(one.now + draw.choice([100, 300, 1_000]))
    for _ in range(3):
        read_but(one)
        one.to(one.now + 1_000)
        sweep(one, refusing())
    assert {one.at(each) for each in mine} == {one.now - CONFIDENCE}
    assert not one.plan.refused and one.plan.awake == 0


def test_who_lost_its_slots_forgets_what_was_refused_there() -> None:
    one = Single(tablets(9_000, *STREAMS), now=10_000, slots=2)
    sweep(one, lambda arc: False)
    planner: Planner = one.planner
    planner.release([0])
    assert {state.slot for state in planner.tables[TABLE].refused} == {1}
    one.to(10_100)
    one.answer_of(tablets(9_000, *STREAMS))
