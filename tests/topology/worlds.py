"""Random worlds for the tests of this room: histories of stream sets, rows in their streams, nodes that lag.

A seed goes in, a `World` comes out. Its own rules are the server's (which stream a row lands in, what a node lists at a
time), written down independently of the code under test.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass, field

from connector.table_name import TableName
from connector.timeuuid import lowest_uuid, time_key
from connector.topology import StreamSet, Sweep, View, tablet_set, token_of, vnode_set
from tests.topology.ring import PLACES, make_stream, token_at

EPOCH = 1_000_000
GRACE = 15
"""A node that knows a set later than this is not waited for."""


@dataclass(frozen=True, slots=True)
class Row:
    number: int
    key: int
    stream: bytes
    ms: int
    time: bytes
    order: int
    visible_at: int
    ended: int | None = None
    """When its stream had ended, if it came after that."""


@dataclass
class World:
    """``known_at`` says from when on a set is in the tables of a node that does not lag."""

    table: TableName
    sets: list[StreamSet]
    known_at: list[int]
    rows: list[Row]
    lags: list[int]
    confidence: int
    ordered: bool
    end: int
    forgotten_before: int = 0
    by_stream: dict[bytes, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            self.by_stream.setdefault(row.stream, []).append(row)
        for rows in self.by_stream.values():
            rows.sort(key=lambda row: row.order)

    def timestamps(self, node: int, now: int) -> list[int]:
        """What a node lists: a prefix of the history, by its lag, from the newest set that ttl made the oldest."""
        lag = self.lags[node]
        known = [s.timestamp for s, at in zip(self.sets, self.known_at) if at + lag <= now or s is self.sets[0]]
        kept = [at for at in known if at >= self.forgotten_before]
        return kept or known[-1:]

    def view(self, timestamps: list[int], wanted: tuple[int, ...]) -> View:
        by_time = {s.timestamp: s for s in self.sets}
        return View(tuple(timestamps), {at: by_time[at] for at in wanted})

    def query(self, streams: tuple[bytes, ...], read_to: int, after: bytes | None, limit: int, now: int) -> list[Row]:
        """What a read of the log returns: one stream after the other, each by time."""
        found: list[Row] = []
        for stream in streams:
            for row in self.by_stream.get(stream, ()):
                behind = row.ms >= read_to if after is None else row.order > time_key(after)
                if behind and row.ms < limit and row.visible_at <= now:
                    found.append(row)
        return found

    def first_rows(self, sweep: Sweep, now: int) -> dict[bytes, int]:
        """What a sweep of the log returns: where the first row is of each stream in its part of the ring."""
        found: dict[bytes, int] = {}
        for stream, rows in self.by_stream.items():
            if any(first <= token_of(stream) <= last for first, last in sweep.arcs):
                between = [row.ms for row in rows if sweep.lower <= row.ms < sweep.upper and row.visible_at <= now]
                if between:
                    found[stream] = min(between)
        return found


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

    def stream(self, place: int) -> bytes:
        ends = sorted(self.cuts)
        return self.cuts[ends[bisect_left(ends, place)]]


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

    def stream(self, place: int) -> bytes:
        ends = sorted(self.cuts)
        i = bisect_left(ends, place)
        streams = self.cuts[ends[i % len(ends)]]
        return streams[place * 7 % len(streams)]


def make_world(seed: int, rows: int = 80, changes: int = 5) -> World:
    """``ordered`` worlds keep within the promise of order: where ranges grow, nodes know a set almost in time."""
    rng = random.Random(seed)
    kind: _Tablets | _Vnodes = _Vnodes(rng) if rng.random() < 0.3 else _Tablets(rng)
    confidence = 12
    # Growing ranges: nodes lag by less than the quarter of the confidence window that the planner allows for.
    grow = rng.random() < 0.5
    strict = grow or rng.random() < 0.2
    lags = [rng.randint(0, 2) if strict else rng.choice([0, rng.randint(0, 90)]) for _ in range(rng.randint(1, 3))]
    sets: list[StreamSet] = []
    known: list[int] = []
    streams: list[list[bytes]] = []
    at = EPOCH
    for number in range(rng.randint(1, changes) + 1):
        if number:
            at += rng.choice([1, 2, rng.randint(1, 25), rng.randint(1, 60)])
            kind.change(grow)
        sets.append(kind.stream_set(at))
        known.append(at - rng.choice([0, 0, rng.randint(0, 30)]))
        streams.append([kind.stream(place) for place in range(PLACES + 1)])
    # A node's list is a prefix of the history: a set cannot be known before the one in front of it.
    for i in range(1, len(known)):
        known[i] = max(known[i], known[i - 1])
    end = at + rng.randint(5, 60)
    keys = rng.sample(range(1, PLACES + 1), rng.randint(2, 20))
    keys += [place for place in (1, PLACES) if place not in keys]
    stamps = [s.timestamp for s in sets]
    written: list[Row] = []
    stale = strict and rng.random() < 0.7
    for number in range(rng.randint(rows // 4, rows)):
        ms = rng.choice([rng.randrange(EPOCH, end), rng.choice(stamps) + rng.choice([-1, 0, 0, 1, 3])])
        ms = max(EPOCH, min(ms, end))
        force = max(i for i, stamp in enumerate(stamps) if stamp <= ms)
        key = rng.choice(keys)
        raw = bytearray(lowest_uuid(ms))
        ticks = int.from_bytes(raw[:4], "big") + rng.randrange(0, 3)
        raw[:4] = (ticks & 0xFFFFFFFF).to_bytes(4, "big")
        raw[8:] = rng.getrandbits(64).to_bytes(8, "big")
        time = bytes(raw)
        delay = rng.choice([0, 0, rng.randint(0, confidence - 3)])
        stream, ended = streams[force][key], None
        if stale and force and rng.random() < 0.3 and ms < stamps[force] + GRACE:
            # A node that does not know the newest set yet.
            left = streams[force - 1][key]
            if left not in streams[force]:
                stream, ended = left, stamps[force]
        written.append(Row(number, key, stream, ms, time, time_key(time), ms + delay, ended))
    return World(
        table=TableName("ks", f"t{seed % 7}"),
        sets=sets,
        known_at=known,
        rows=written,
        lags=lags,
        confidence=confidence,
        ordered=True,
        end=end,
    )
