"""Who waits for whom when one stream set follows another."""

from __future__ import annotations

import itertools

import pytest

from connector.errors import UnsupportedServer
from connector.topology import StreamSet, vnode_set
from connector.topology.transitions import transition
from tests.topology.layouts import make_sets
from tests.topology.ring import PLACES, make_stream, token_at
from tests.topology.single import stream, tablets

A, B, C, D = stream(32), stream(64), stream(96), stream(128)


def waits(old: StreamSet, new: StreamSet) -> dict[bytes, set[bytes]]:
    return {
        target.streams[0]: {source.streams[0] for source in sources} for target, sources in transition(old, new).waits
    }


FOUR = tablets(1, A, B, C, D)


def test_a_split_leaves_the_others_alone() -> None:
    left, right = stream(48, 2), stream(64, 2)
    new = tablets(2, A, left, right, C, D)
    change = transition(FOUR, new)
    assert [group.streams for group in change.closed] == [(B,)]
    assert [group.streams for group in change.opened] == [(left,), (right,)]
    assert [group.streams for group in change.kept] == [(A,), (C,), (D,)]
    assert waits(FOUR, new) == {left: {B}, right: {B}}


def test_a_merge_waits_for_both_parents() -> None:
    merged = stream(64, 2)
    assert waits(FOUR, tablets(2, merged, C, D)) == {merged: {A, B}}


def test_a_replacement_waits_range_by_range() -> None:
    new = [stream(place, 2) for place in (32, 64, 96, 128)]
    assert waits(FOUR, tablets(2, *new)) == {n: {o} for n, o in zip(new, (A, B, C, D))}


def test_moved_boundaries_wait_for_all_that_overlap() -> None:
    left, right = stream(80, 2), stream(128, 2)
    assert waits(FOUR, tablets(2, left, right)) == {left: {A, B, C}, right: {C, D}}


def test_a_kept_stream_that_grows_waits_for_the_closed_neighbour() -> None:
    assert waits(FOUR, tablets(2, A, C, D)) == {C: {B}}


def test_a_stream_opened_inside_a_kept_one_waits_for_it() -> None:
    inner = stream(40, 2)
    change = tablets(2, A, inner, B, C, D)
    # B shrinks to what it had: it gains nothing and does not wait.
    assert waits(FOUR, change) == {inner: {B}}
    assert not transition(FOUR, change).closed


def test_a_stream_may_grow_over_a_kept_one_that_shrinks() -> None:
    # B goes; a new stream takes most of its range and a piece of C's, which is kept.
    wide = stream(80, 2)
    assert waits(FOUR, tablets(2, A, wide, C, D)) == {wide: {B, C}}


def test_a_new_vnode_waits_for_the_one_it_was_cut_from() -> None:
    old = vnode_set(1, {0: [make_stream(0, 1, 0), make_stream(-9, 2, 0)], 100: [make_stream(100, 1, 1)]})
    new = vnode_set(2, {0: [make_stream(0, 7, 0)], 50: [make_stream(50, 7, 1)], 100: [make_stream(100, 7, 2)]})
    got = {target.range_end: {source.range_end for source in sources} for target, sources in transition(old, new).waits}
    # The vnode that ends at 0 also owns everything behind 100: the ring wraps around.
    assert got == {0: {0}, 50: {100}, 100: {100}}


def test_the_wrapping_range_is_compared_on_both_ends() -> None:
    old = vnode_set(1, {0: [make_stream(0, 1, 0)], 100: [make_stream(100, 1, 1)]})
    new = vnode_set(2, {200: [make_stream(200, 7, 0)], 300: [make_stream(300, 7, 1)]})
    got = {target.range_end: {source.range_end for source in sources} for target, sources in transition(old, new).waits}
    assert got == {200: {0, 100}, 300: {0}}


def test_an_id_in_two_shapes_is_refused() -> None:
    old = vnode_set(1, {0: [make_stream(0, 1), make_stream(0, 2)], 9: [make_stream(9, 1)]})
    new = vnode_set(2, {0: [make_stream(0, 1)], 9: [make_stream(9, 3)]})
    with pytest.raises(UnsupportedServer, match="changed its group"):
        transition(old, new)


@pytest.mark.parametrize("seed", range(150))
def test_waits_are_exactly_the_groups_that_lost_tokens_to_the_waiting_one(seed: int) -> None:
    """Against a count over every place of the ring, by the server's rule of who owns it."""
    sets = make_sets(seed)

    def owner(streams: StreamSet, place: int) -> tuple[bytes, ...]:
        token = token_at(place)
        ends = [group.range_end for group in streams.groups]
        return streams.groups[next((i for i, end in enumerate(ends) if end >= token), 0)].streams

    for old, new in itertools.pairwise(sets):
        expected: dict[tuple[bytes, ...], set[tuple[bytes, ...]]] = {}
        for place in range(1, PLACES + 1):
            was, becomes = owner(old, place), owner(new, place)
            if was != becomes:
                expected.setdefault(becomes, set()).add(was)
        got = {target.streams: {source.streams for source in sources} for target, sources in transition(old, new).waits}
        assert got == expected
