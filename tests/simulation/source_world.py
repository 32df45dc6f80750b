"""The simulated ScyllaDB's contents, drawn from a seed: tables, their stream sets over time, the rows of their logs.

In: a seed and what kind of world is wanted. Out: a `World`: who writes what into which stream and when, written down
independently of the code under test. Times are ms since 1970; the simulation begins at `BEGIN_MS`.
"""

from __future__ import annotations

import functools
import math
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from connector.table_name import TableName
from connector.timeuuid import time_key, time_uuid
from connector.topology import StreamSet, tablet_set, vnode_set
from tests.simulation.base_rows import log_cells
from tests.simulation.base_world import Again, History, Write, Writer, token_of_pk
from tests.simulation.scheduler import EPOCH
from tests.topology.ring import PLACES, STEP, make_stream, token_at

BEGIN_MS = round(EPOCH * 1000)
KEYSPACES = {True: "tablets", False: "vnodes"}
OTHER_KEY = ("c3", "text")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a log. ``ended``: when its stream had ended, if it was written after that. ``logged``: its cells, if
    they are not what every row has; one that is not ``counted`` makes no record of its own."""

    key: tuple[int, int]
    stream: bytes
    ms: int
    time: bytes
    order: int
    number: int
    last: bool
    visible_at: int
    text: str
    ended: int | None = None
    logged: dict[str, bytes | None] | None = None
    counted: bool = True

    @property
    def identity(self) -> tuple[str, str, int]:
        return self.stream.hex(), _spelled(self.time), self.number


@functools.lru_cache(1 << 16)
def _spelled(time: bytes) -> str:
    return str(uuid.UUID(bytes=time))


@dataclass
class Table:
    """One table. ``known_at``: from when on each set is in the lists of a node that does not lag. ``columns``: when
    columns were added, by name. ``again``: of one that is dropped in between; ``clustering``: name and type of its
    clustering column, ``renamed``: when that got another name. ``gone``: from when to when it does not exist.
    ``history``: of a table with rows from before its log, whose statements are of all kinds. ``former``: the one that
    had its name before."""

    name: TableName
    tablets: bool
    sets: list[StreamSet]
    known_at: list[int]
    rows: list[Row]
    columns: dict[str, int] = field(default_factory=dict)
    again: Again | None = None
    renamed: int | None = None
    clustering: tuple[str, str] = ("ck", "int")
    gone: tuple[int, int] | None = None
    ttl: int = 86_400
    history: History | None = None
    former: Former | None = None
    by_stream: dict[bytes, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            self.by_stream.setdefault(row.stream, []).append(row)
        for rows in self.by_stream.values():
            rows.sort(key=lambda row: (row.order, row.number))

    def listed(self, lag: int, now: int) -> list[int]:
        """What a node lists: a prefix of the history."""
        return [
            one.timestamp
            for one, at in zip(self.sets, self.known_at, strict=True)
            if at + lag <= now or one is self.sets[0]
        ]

    @property
    def id(self) -> uuid.UUID:
        """Tells when it was created, as ScyllaDB's do."""
        return uuid.UUID(bytes=time_uuid(self.sets[0].timestamp * 10_000, 1 << 63))

    @property
    def all_rows(self) -> list[Row]:
        """Those of the one that had its name before included."""
        return self.rows if self.former is None else [*self.former.table.rows, *self.rows]

    @property
    def end(self) -> int:
        return max([self.sets[-1].timestamp, *(row.ms for row in self.rows)])


@dataclass(frozen=True, slots=True)
class Former:
    """A table and its log until it was ``dropped``; another one of its name was ``created``. Both in ms."""

    table: Table
    dropped: int
    created: int


@dataclass
class World:
    """``lags``: of each node, in ms. Vnode tables share their sets. ``longest_lag``: no node's view of the sets may
    ever be older, as the order of keys needs it where ranges grow or rows come after the end of their stream.
    ``deaf``: how many ms later each node hears of new columns; the first one hears of them at once."""

    tables: list[Table]
    lags: list[int]
    confidence_ms: int
    end: int
    longest_lag: int
    deaf: list[int] = field(default_factory=list)


class _Tablets:
    """Streams of a table with tablets: ``cuts`` maps the end of each range to its stream."""

    def __init__(self, rng: random.Random, shards: int) -> None:
        self.rng = rng
        ends = {PLACES, *rng.sample(range(1, PLACES), rng.randint(1, 3))}
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
            middle = rng.randrange(low + 1, end) if end - low > 2 else None
            if kind < 0.35 and middle is not None:  # a split: the parent goes, two children come
                self.cuts[middle], self.cuts[end] = self.fresh(middle), self.fresh(end)
            elif kind < 0.6 and i + 1 < len(ends):  # a merge of two neighbours
                del self.cuts[end]
                self.cuts[ends[i + 1]] = self.fresh(ends[i + 1])
            elif kind < 0.7 and middle is not None:  # opened inside a stream that stays, and shrinks
                self.cuts[middle] = self.fresh(middle)
            elif kind < 0.85 and grow and i + 1 < len(ends):  # closed without a successor: the neighbour grows
                del self.cuts[end]
            else:  # all streams anew, as today's servers do
                self.cuts = {end: self.fresh(end) for end in ends}

    def stream_set(self, at: int) -> StreamSet:
        return tablet_set(at, self.cuts.values())

    def stream(self, place: int, _: int) -> bytes:
        return self.cuts[min(end for end in self.cuts if end >= place)]


class _Vnodes:
    """Generations: ``cuts`` maps the end of each vnode to its streams, one per shard. The ring's end is no cut."""

    def __init__(self, rng: random.Random, shards: int) -> None:
        self.rng, self.shards = rng, shards
        self.cuts: dict[int, list[bytes]] = {}
        self.fill(rng.sample(range(1, PLACES), rng.randint(1, 3)))

    def fill(self, ends: list[int]) -> None:
        self.cuts = {
            end: [
                make_stream(token_at(end) - self.rng.randrange(STEP >> 8), self.rng.getrandbits(38), index)
                for _ in range(self.shards)
            ]
            for index, end in enumerate(sorted(ends))
        }

    def change(self, grow: bool) -> None:
        ends, kind = set(self.cuts), self.rng.random()
        if kind < 0.6:  # a node joins
            ends |= set(self.rng.sample(range(1, PLACES), self.rng.randint(1, 2)))
        elif kind < 0.8 and len(ends) > 1:  # nodes left
            ends -= set(self.rng.sample(sorted(ends), self.rng.randint(1, len(ends) - 1)))
        self.fill(sorted(ends))

    def stream_set(self, at: int) -> StreamSet:
        return vnode_set(at, {token_at(end): streams for end, streams in self.cuts.items()})

    def stream(self, place: int, shard: int) -> bytes:
        streams = self.cuts[min((end for end in self.cuts if end >= place), default=min(self.cuts))]
        return streams[shard % len(streams)]


@dataclass(frozen=True)
class Kind:
    """What kind of world: each is drawn where it is None."""

    tablets: bool | None = None
    tables: int | None = None
    shards: int | None = None
    rows: int = 80
    changes: int | None = None
    seconds: float = 12.0
    # Rows that nodes write to streams that have ended, since they do not know it yet.
    late: bool | None = None
    # How long nodes may take to list a new set, in ms; None: as the rule allows.
    lag_ms: int | None = None
    keys: int = 12
    confidence_ms: int = 500
    # How often columns are added.
    alters: int | None = None
    # Whether a column is dropped and added again, and whether one of the key is renamed.
    again: bool = False
    renames: bool = False
    # Some nodes hear of that late, or not at all.
    deaf: bool = False
    # Whether a table is dropped, and there again later.
    gone: bool | None = None
    # Whether tables are dropped, and others created under their names; and whether these have another key.
    anew: bool = False
    other_key: bool = False
    # How many seconds logs keep their rows, and how old their first streams are when it begins.
    ttl: int = 86_400
    age: int = 10
    # Tables with rows from before their logs.
    old: bool = False
    # Their rows are often in doubt.
    doubt: bool = False


def make_world(seed: int, kind: Kind) -> World:
    rng = random.Random(seed)
    tables: list[Table] = []
    # Where ranges grow, or rows stand among changes, nodes must know a set within a quarter of the confidence window.
    grow = rng.random() < 0.5
    late = rng.random() < 0.3 if kind.late is None else kind.late
    strict = grow or late or rng.random() < 0.3 or kind.old
    longest = kind.confidence_ms // 5 if strict else 2_000
    lags = [
        rng.choice([0, rng.randint(0, longest)]) if kind.lag_ms is None else kind.lag_ms
        for _ in range(rng.randint(1, 3))
    ]
    deaf = [0, *(rng.choice([0, 3_000, 60_000]) for _ in range(2))] if kind.deaf else []
    lags += [lags[0]] * (len(deaf) - len(lags))
    for number in range(kind.tables or rng.choice([1, 1, 2])):
        tablets = (rng.random() < 0.6) if kind.tablets is None else kind.tablets
        like = next((table for table in tables if not table.tablets), None) if not tablets else None
        tables.append(_table(rng, kind, f"t{number}", tablets, grow, late, like))
    if kind.anew:
        later = random.Random(seed ^ 0xA4E3)
        tables = [
            _anew(later, kind, each, _table(later, kind, each.name.name, True, grow, False, None)) for each in tables
        ]
    _drop(kind, tables, random.Random(seed ^ 0xD209))
    return World(tables, lags, kind.confidence_ms, max(table.end for table in tables), longest, deaf)


def _drop(kind: Kind, tables: list[Table], rng: random.Random) -> None:
    """One table is away for a while: its log is the same afterwards, so that nothing of it may be missing."""
    if rng.random() < 0.1 if kind.gone is None else kind.gone:
        begin = BEGIN_MS + rng.randrange(round(kind.seconds * 1000))
        rng.choice(tables).gone = (begin, begin + rng.choice([100, 3_000, 20_000]))


def _anew(rng: random.Random, kind: Kind, before: Table, drawn: Table) -> Table:
    """What was drawn, as if it had been created when the one before it was dropped, or a little later."""
    dropped = BEGIN_MS + rng.randrange(1_000, round(kind.seconds * 800))
    created = dropped + rng.choice([0, 30, 300, 2_000, 5_000])
    until = [at for at, known in enumerate(before.known_at) if known < dropped or at == 0]
    old = Table(
        before.name,
        True,
        [before.sets[at] for at in until],
        [before.known_at[at] for at in until],
        [row for row in before.rows if row.ms < dropped],
        history=None if before.history is None else before.history.between(-math.inf, dropped),
    )
    # Its streams are those that were in force then.
    first = max(at for at, one in enumerate(drawn.sets) if one.timestamp <= created)
    streams = [stream for group in drawn.sets[first].groups for stream in group.streams]
    sets = [tablet_set(created, streams), *drawn.sets[first + 1 :]]
    known = [max(created, at) for at in drawn.known_at[first:]]
    rows = [row for row in drawn.rows if row.ms >= created]
    history = None if drawn.history is None else drawn.history.between(created, math.inf)
    key = OTHER_KEY if kind.other_key else old.clustering
    former = Former(old, dropped, created)
    return Table(drawn.name, True, sets, known, rows, clustering=key, history=history, former=former)


def _table(
    rng: random.Random, kind: Kind, name: str, tablets: bool, grow: bool, late: bool, like: Table | None
) -> Table:
    shards = kind.shards or rng.choice([1, 3, 20, 64, 130])
    layout: _Tablets | _Vnodes = _Tablets(rng, shards) if tablets else _Vnodes(rng, shards)
    sets: list[StreamSet] = [] if like is None else like.sets
    known: list[int] = [] if like is None else like.known_at
    end = BEGIN_MS + round(kind.seconds * 1000)
    streams: list[Callable[[int, int], bytes]] = []
    changes = rng.randint(0, 4) if kind.changes is None else kind.changes
    # No two sets of a table are in force from the same moment on.
    times = sorted({BEGIN_MS + rng.randrange(200, round(kind.seconds * 1000)) for _ in range(changes)})
    if len(times) > 1 and rng.random() < 0.3:  # two of them between two polls
        times[-1] = times[-2] + rng.randint(1, 50)
    if like is None:
        for at in [BEGIN_MS - kind.age * 1000, *times]:
            if sets:
                layout.change(grow)
            sets.append(layout.stream_set(at))
            # A set is listed before it is in force, and a list is a prefix of the history.
            known.append(max([at - rng.choice([0, 0, rng.randint(0, 600)]), *known]))
    for one in sets:
        streams.append(_chooser(one))
    stamps = [one.timestamp for one in sets]
    if kind.old:
        number = rng.randrange(1 << 32)
        added, again = _columns(kind, number), _again(kind, number)
        history, rows = _history(rng, kind, late, sets, streams, added, again)
        table = TableName(KEYSPACES[tablets], name)
        renamed = _renamed(kind, number)
        return Table(table, tablets, sets, known, rows, added, again, renamed, ttl=kind.ttl, history=history)
    places = rng.sample(range(1, PLACES + 1), kind.keys)
    rows: list[Row] = []
    for _ in range(kind.rows):
        ms = rng.choice([rng.randrange(BEGIN_MS - 3_000, end), rng.choice(stamps) + rng.choice([-1, 0, 0, 1, 40])])
        ms = max(BEGIN_MS - 3_000, ms)
        place = rng.choice(places)
        stream, ended = _stream(rng, late, sets, streams, ms, token_at(place), place * 7)
        time = time_uuid(ms * 10_000 + rng.randrange(0, 3), rng.getrandbits(64))
        delay = rng.choice([0, 0, rng.randint(0, kind.confidence_ms * 7 // 10)])
        count = rng.choice([1, 1, 1, 3])
        for number in range(count):
            # One statement writes one partition; its rows become visible together.
            rows.append(
                Row(
                    (place, number),
                    stream,
                    ms,
                    time,
                    time_key(time),
                    number,
                    number == count - 1,
                    ms + delay,
                    f"{len(rows)}",
                    ended,
                )
            )
    number = sum(row.order for row in rows)
    return Table(
        TableName(KEYSPACES[tablets], name),
        tablets,
        sets,
        known,
        rows,
        _columns(kind, number),
        _again(kind, number),
        _renamed(kind, number),
        ttl=kind.ttl,
    )


def _stream(
    rng: random.Random,
    late: bool,
    sets: list[StreamSet],
    streams: list[Callable[[int, int], bytes]],
    ms: int,
    token: int,
    shard: int,
) -> tuple[bytes, int | None]:
    """Where a write is logged to, and when that stream had ended, if it had."""
    force = max(at for at, one in enumerate(sets) if one.timestamp <= ms)
    stream = streams[force](token, shard)
    if late and force and rng.random() < 0.3 and ms < sets[force].timestamp + 600:
        before = streams[force - 1](token, shard)
        if all(before not in group.streams for group in sets[force].groups):
            return before, sets[force].timestamp
    return stream, None


def _history(
    rng: random.Random,
    kind: Kind,
    late: bool,
    sets: list[StreamSet],
    streams: list[Callable[[int, int], bytes]],
    added: dict[str, int],
    again: Again | None,
) -> tuple[History, list[Row]]:
    """What is written to a table with rows from before, and its log."""
    lists, lives = rng.random() < 0.7 or kind.doubt, rng.random() < 0.3
    plain = not lists and not lives
    writer = Writer(rng, kind.keys, lives, lists, added, kind.doubt, plain, again)
    history = History((BEGIN_MS - 60_000) * 1000, lives, plain, again)
    for write in writer.from_before((BEGIN_MS - 3_600_000) * 1000):
        history.add(write)
    rows: list[Row] = []
    end = BEGIN_MS + round(kind.seconds * 1000)
    for _ in range(kind.rows):
        near = rng.choice(sets).timestamp + rng.choice([-1, 0, 1, 40])
        ms = max(BEGIN_MS - 3_000, rng.choice([rng.randrange(BEGIN_MS - 3_000, end), near]))
        # A client's clock may be ahead of all servers' by less than a quarter of the confidence window.
        delay, other = (
            rng.choice([0, rng.randint(0, kind.confidence_ms * 7 // 10), -rng.randint(0, kind.confidence_ms // 5)])
            for _ in range(2)
        )
        statement = writer.statement(ms * 1000 + rng.randrange(990), ms + delay)
        for write in statement:
            history.add(write)
        pk, us = statement[0].pk, statement[0].us
        stream, ended = _stream(rng, late, sets, streams, us // 1000, token_of_pk(pk), pk)
        time = time_uuid(us * 10, rng.getrandbits(64))
        cells = [(write, *each) for write in statement for each in log_cells(write)]
        for number, (write, logged, counted) in enumerate(cells):
            rows.append(
                Row(
                    (pk, _place(write)),
                    stream,
                    us // 1000,
                    time,
                    time_key(time),
                    number,
                    number == len(cells) - 1,
                    ms + (other if delay >= 0 else delay),
                    f"{len(rows)}",
                    ended,
                    logged,
                    counted,
                )
            )
    return history.ordered(), rows


def _place(write: Write) -> int:
    """In the order of what are the keys of records: deletes of several rows have their own."""
    return -2 if write.kind in ("range", "partition") else -1 if write.ck is None else write.ck


def _columns(kind: Kind, number: int) -> dict[str, int]:
    """Those that are added while it runs. With numbers of their own: worlds are otherwise the same without them."""
    rng = random.Random(number)
    alters = rng.choice([0, 0, 1, 2]) if kind.alters is None else kind.alters
    return {f"w{number}": BEGIN_MS + rng.randrange(round(kind.seconds * 1000)) for number in range(alters)}


def _again(kind: Kind, number: int) -> Again | None:
    if not kind.again:
        return None
    rng = random.Random(number ^ 0xA6A14)
    dropped = BEGIN_MS + rng.randrange(round(kind.seconds * 1000))
    # Sooner than five seconds later ScyllaDB refuses it.
    return Again(dropped, dropped + 5_000 + rng.randrange(3_000), rng.choice(["int", "text"]))


def _renamed(kind: Kind, number: int) -> int | None:
    rng = random.Random(number ^ 0x4E4A)
    return BEGIN_MS + rng.randrange(round(kind.seconds * 1000)) if kind.renames else None


def _chooser(one: StreamSet) -> Callable[[int, int], bytes]:
    """The stream that a token's partition is logged to while the set is in force."""
    groups = sorted(one.groups, key=lambda group: group.range_end)

    def choose(token: int, shard: int) -> bytes:
        group = next((group for group in groups if group.range_end >= token), groups[0])
        return group.streams[shard % len(group.streams)]

    return choose
