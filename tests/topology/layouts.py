"""Random layouts of streams for the tests of this room: how the sets of a table follow each other.

A seed goes in, `StreamSet`s come out, made by the server's rules and independently of the code under test.
"""

from __future__ import annotations

import random

from connector.topology import StreamSet, tablet_set, vnode_set
from tests.topology.ring import PLACES, make_stream, token_at

EPOCH = 1_000_000


class _Tablets:
    """Streams of a table with tablets: ``cuts`` maps the end of each range to its stream."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        ends = {PLACES, *rng.sample(range(1, PLACES), rng.randint(1, 5))}
        self.cuts = {end: self.fresh(end) for end in ends}

    def fresh(self, end: int) -> bytes:
        return make_stream(token_at(end), self.rng.getrandbits(38))

    def change(self, grow: bool) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 2)):
            ends = sorted(self.cuts)
            i = rng.randrange(len(ends))
            low, end = (ends[i - 1] if i else 0), ends[i]
            kind = rng.random()
            if kind < 0.3 and end - low > 2:  # a split: the parent goes, two children come
                middle = rng.randrange(low + 1, end)
                self.cuts[middle], self.cuts[end] = self.fresh(middle), self.fresh(end)
            elif kind < 0.5 and i + 1 < len(ends):  # a merge of two neighbours
                del self.cuts[end]
                self.cuts[ends[i + 1]] = self.fresh(ends[i + 1])
            elif kind < 0.65 and end - low > 2:  # opened inside a stream that stays, and shrinks
                middle = rng.randrange(low + 1, end)
                self.cuts[middle] = self.fresh(middle)
            elif kind < 0.8 and grow and i + 1 < len(ends):  # closed without a successor: the neighbour grows
                del self.cuts[end]
            elif kind < 0.9 and grow and i + 1 < len(ends) and end - low > 2:  # moved to the left: both at once
                del self.cuts[end]
                middle = rng.randrange(low + 1, end)
                self.cuts[middle] = self.fresh(middle)
            else:  # all streams anew, as today's servers do
                self.cuts = {end: self.fresh(end) for end in ends}

    def stream_set(self, at: int) -> StreamSet:
        return tablet_set(at, self.cuts.values())


class _Vnodes:
    """Generations: ``cuts`` maps the end of each vnode to its streams, one per shard. The ring's end is no cut."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.cuts: dict[int, list[bytes]] = {}
        self.fill(rng.sample(range(1, PLACES), rng.randint(1, 5)))

    def fill(self, ends: list[int]) -> None:
        rng = self.rng
        self.cuts = {
            end: [make_stream(token_at(end), rng.getrandbits(38), index) for _ in range(rng.randint(1, 3))]
            for index, end in enumerate(sorted(ends))
        }

    def change(self, grow: bool) -> None:
        rng = self.rng
        ends = set(self.cuts)
        kind = rng.random()
        if kind < 0.6:  # a node joins
            ends |= set(rng.sample(range(1, PLACES), rng.randint(1, 3)))
        elif kind < 0.8 and len(ends) > 1:  # nodes left before
            ends -= set(rng.sample(sorted(ends), rng.randint(1, len(ends) - 1)))
        self.fill(sorted(ends))

    def stream_set(self, at: int) -> StreamSet:
        return vnode_set(at, {token_at(end): streams for end, streams in self.cuts.items()})


def make_sets(seed: int, changes: int = 5) -> list[StreamSet]:
    rng = random.Random(seed)
    kind: _Tablets | _Vnodes = _Vnodes(rng) if rng.random() < 0.3 else _Tablets(rng)
    grow = rng.random() < 0.5
    at, sets = EPOCH, [kind.stream_set(EPOCH)]
    for _ in range(rng.randint(1, changes)):
        at += rng.choice([1, 2, rng.randint(1, 25), rng.randint(1, 60)])
        kind.change(grow)
        sets.append(kind.stream_set(at))
    return sets
