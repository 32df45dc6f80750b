"""Arcs of the ring that a sweep goes over where some of it was refused: around that, and in parts.

In: a `TableState`, arcs of one of its sweeps. Out: other arcs; which groups were swept and which were not.

ScyllaDB refuses a look at many tokens as a whole where too few of those are there that hold one of them. So what was
refused is asked for in parts, down to single groups; what is refused by itself is left out of the next sweeps, and read
by itself until it was answered. An arc reaches from one stream's token to another's: the pieces of the ring beyond them
belong to neighbours, which may be the ones that are refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from connector.topology.groups import GroupState
from connector.topology.streams import MAX_TOKEN, MIN_TOKEN, token_of
from connector.topology.table_state import TableState

Arc = tuple[int, int]
Piece = tuple[int, int, GroupState]


def around_refused(plan: TableState) -> tuple[Arc, ...]:
    """All that is ours, but for the groups that are to be read by themselves."""
    return tuple(map(_hull, _runs(plan, (MIN_TOKEN, MAX_TOKEN))))


def parts(plan: TableState, arc: Arc) -> tuple[Arc, ...]:
    """What to ask for in place of an arc that was refused; nothing, if it cannot be divided."""
    runs = _runs(plan, arc)
    if len(runs) == 1 and (half := len(runs[0]) // 2):
        runs = [runs[0][:half], runs[0][half:]]
    return tuple(divided for run in runs if (divided := _hull(run)) != arc)


def outside(plan: TableState, slots: Iterable[int], arcs: Sequence[Arc]) -> list[GroupState]:
    """Those that have a stream in none of the arcs."""
    ordered = sorted(arcs)
    firsts = [first for first, _ in ordered]

    def inside(token: int) -> bool:
        at = bisect_right(firsts, token) - 1
        return at >= 0 and token <= ordered[at][1]

    return [
        state
        for slot in slots
        for state in plan.lineage.groups(slot)
        if not all(inside(token_of(stream)) for stream in state.group.streams)
    ]


def _hull(run: Sequence[Piece]) -> Arc:
    return run[0][0], run[-1][1]


def _runs(plan: TableState, arc: Arc) -> list[list[Piece]]:
    """The pieces of an arc that lie side by side, with neither another worker's nor a refused one between them."""
    first, last = arc
    slots = plan.readable_slots()
    runs: list[list[Piece]] = []
    apart = True
    for piece in _pieces(plan):
        low, high, state = piece
        if high < first or low > last:
            continue
        # Streams of one vnode may lie in two arcs, with nothing of others between them.
        piece = max(low, first), min(high, last), state
        if state.slot not in slots or state in plan.refused:
            apart = True
        elif apart:
            runs.append([piece])
            apart = False
        else:
            runs[-1].append(piece)
    return runs


def _pieces(plan: TableState) -> Sequence[Piece]:
    """Where the streams of all open groups lie, whoever's. A vnode across the ring's end has two pieces."""
    if plan.pieces is None:
        tokens = sorted(
            ((token_of(stream), state) for state in plan.lineage.open for stream in state.group.streams),
            key=lambda each: each[0],
        )
        pieces: list[Piece] = []
        for token, state in tokens:
            if pieces and pieces[-1][2] is state:
                pieces[-1] = (pieces[-1][0], token, state)
            else:
                pieces.append((token, token, state))
        plan.pieces = pieces
    return plan.pieces
