"""Snapshots of tables: rows are read in chunks, held until the changes have caught up, and placed among them.

In: a planner that says which tokens lack their rows, every batch that `Reading` delivers. Out: whole rows, handed to a
consumer at a moment when everything before it is delivered and nothing behind it. Queries wait in chore threads;
everything that changes state runs in the owner thread.

A chunk is read some time in [T0, T1]. Changes that are delivered from T0 on are noted. Once its group is delivered up
to a time P ≥ T1, every change before P is either in what was read or noted: a write is visible within the confidence
window, and reading stays behind by that. So what was read, with the noted changes applied in order, is the row at P,
and goes out there. Where that cannot be computed (`Doubtful`) the partition is read again, with its own T0 and T1.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from connector.changes import Batch, Doubtful, FoldedPartition, Row, TableDescription, whole_rows
from connector.errors import PoisonRow
from connector.source.background import Background, Purpose
from connector.source.chores import Chores
from connector.source.chunks import Chunk, read_chunk, read_partitions, token_of_key
from connector.source.connection import Connection
from connector.source.limits import SnapshotPace
from connector.source.reading import Postponed
from connector.source.settings import SnapshotSettings
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.timeuuid import time_uuid
from connector.topology import GroupState, Opening, Read, SnapshotsPlan

log = logging.getLogger(__name__)

SNAPSHOTS = Purpose(
    "snapshots",
    "rows of a snapshot are not read",
    "they are not in the topic yet; changes are delivered as ever",
    holds=False,
)

# Chore threads are few, and stream sets and claims need them as well.
CHUNKS_AT_ONCE = 2

# How often groups are looked for that can begin.
OPENINGS_SECONDS = 0.5

# A partition is read again so often before what no SELECT tells is left out.
TRIES = 8

# What cannot be delivered is tried again after so long.
POISON_SECONDS = 60.0

_WHEN = 10  # ticks of a time UUID in a microsecond


class SnapshotConsumer(Protocol):
    """Whoever delivers."""

    def place(self, read: Opening, batches: Sequence[Batch]) -> int:
        """Called with whole partitions. How many of them, from the first, now count as produced; raises as
        `Consumer.deliver`."""


@dataclass(slots=True, eq=False)
class _Held:
    """A chunk. ``upto``: its last token, once it is read; ``since``: T1. ``noted``: changes since T0 of partitions that
    are being read. What came since is in ``folded``, or makes a partition one of the ``doubted``."""

    opening: Opening
    description: TableDescription
    low: int
    upto: int | None = None
    since: int = 0
    partitions: dict[Row, list[Row]] = field(default_factory=dict)
    noted: dict[Row, list[Batch]] = field(default_factory=dict)
    folded: dict[Row, FoldedPartition] = field(default_factory=dict)
    doubted: dict[Row, Doubtful] = field(default_factory=dict)
    asked_again: frozenset[Row] = frozenset()
    bytes: int = 0
    tries: int = 0
    reading: bool = True
    not_before: float = 0.0


@dataclass(slots=True)
class SnapshotCounters:
    """What `status` and metrics show, by table."""

    rows: Counter[TableName] = field(default_factory=Counter)
    chunks: Counter[TableName] = field(default_factory=Counter)
    rereads: Counter[TableName] = field(default_factory=Counter)
    left_out: Counter[TableName] = field(default_factory=Counter)


class Snapshots:
    """Of one process."""

    def __init__(
        self,
        planner: SnapshotsPlan,
        connection: Connection,
        settings: SnapshotSettings,
        chores: Chores,
        tables: Tables,
        consumer: SnapshotConsumer,
        background: Background,
    ) -> None:
        self._planner = planner
        self._connection = connection
        self._settings = settings
        self._chores = chores
        self._tables = tables
        self._consumer = consumer
        background.expect(SNAPSHOTS)
        self._background = background
        self._pace = SnapshotPace(settings.max_queries_per_second, time.monotonic())
        self._openings: list[Opening] = []
        self._openings_due = 0.0
        # In the order of tokens: they are placed in that order, so that progress is one token.
        self._held: dict[GroupState, deque[_Held]] = {}
        self._under_way = 0
        self._turn = 0
        self.counters = SnapshotCounters()

    @property
    def held_bytes(self) -> int:
        return sum(held.bytes for queue in self._held.values() for held in queue)

    def held_bytes_of(self, table: TableName) -> int:
        return sum(held.bytes for queue in self._held.values() for held in queue if held.opening.table == table)

    # -- noting ----------------------------------------------------------------------------------------------

    def delivered(self, read: Read, batches: Sequence[Batch]) -> None:
        """`Reading` has handed these on."""
        queue = self._held.get(read.state)
        if not queue:
            return
        for batch in batches:
            layout = batch.layout
            row = batch.rows[0]
            key = tuple(row[place.value or 0] for place in layout.partition_key)
            for held in queue:
                if held.upto is None or key in held.asked_again:
                    held.noted.setdefault(key, []).append(batch)
                elif key in held.partitions:
                    _follow(held, key, batch)

    # -- the owner's round -----------------------------------------------------------------------------------

    def pump(self, now_ms: int) -> None:
        """Place what can be placed, read what there is room for. Exceptions of the consumer go through, all but
        Postponed and PoisonRow."""
        now = time.monotonic()
        self._forget_void()
        if now >= self._openings_due:
            self._openings_due = now + OPENINGS_SECONDS
            self._openings = self._planner.openings(now_ms)
        for state in list(self._held):
            self._place_of(state, now)
        self._read_more(now)

    def _forget_void(self) -> None:
        for state, queue in list(self._held.items()):
            if not queue or not self._planner.is_open(queue[0].opening):
                del self._held[state]

    # -- reading ---------------------------------------------------------------------------------------------

    def _read_more(self, now: float) -> None:
        reading = self._under_way
        if not self._openings or reading >= CHUNKS_AT_ONCE:
            return
        room = self._settings.max_bytes - self.held_bytes - reading * self._settings.chunk_bytes
        for number in range(len(self._openings)):
            opening = self._openings[(self._turn + number) % len(self._openings)]
            if self._under_way >= CHUNKS_AT_ONCE or room <= 0 or not self._pace.take(now):
                return
            if self._begin(opening):
                self._turn += number + 1
                room -= self._settings.chunk_bytes
            else:
                self._pace.give_back()

    def _begin(self, opening: Opening) -> bool:
        if not self._planner.is_open(opening) or self._tables.stopped(opening.table):
            return False
        queue = self._held.get(opening.state, deque())
        if queue and queue[-1].upto is None:
            return False
        span = _next_span(opening, queue[-1].upto if queue else None)
        if span is None:
            return False
        held = _Held(opening, self._tables[opening.table].description, span[0])
        self._held.setdefault(opening.state, queue).append(held)
        settings = self._settings
        self._ask(
            held,
            partial(read_chunk, self._connection, held.description, span, settings.chunk_rows, settings.chunk_bytes),
            self._arrived,
        )
        return True

    def _ask(self, held: _Held, call: object, then: object) -> None:
        assert callable(call) and callable(then)
        self._under_way += 1
        held.reading = True

        def done(result: object, error: BaseException | None) -> None:
            self._under_way -= 1
            held.reading = False
            queue = self._held.get(held.opening.state, ())
            if held not in queue or not self._planner.is_open(held.opening):
                return
            task = self._background.task(SNAPSHOTS, held.opening.table)
            if error is not None:
                task.failed(error)
                self._pace.failed(time.monotonic())
                self._tables.ask(held.opening.table)
                self._drop_from(held)
                return
            task.worked()
            then(held, result)

        self._chores.submit(call, done)

    def _arrived(self, held: _Held, chunk: Chunk) -> None:
        self._pace.answered(chunk.seconds, chunk.pages, time.monotonic())
        held.since = self._connection.clock.now_ms()
        held.partitions, held.upto, held.bytes = chunk.partitions, chunk.upto, chunk.bytes
        self._catch_up(held)
        self.counters.chunks[held.opening.table] += 1

    def _catch_up(self, held: _Held) -> None:
        """What was delivered while partitions were read."""
        noted, held.noted = held.noted, {}
        for key, batches in noted.items():
            for batch in batches:
                if key in held.partitions:
                    _follow(held, key, batch)

    def _drop_from(self, held: _Held) -> None:
        """Read it again, and with it what comes behind it."""
        queue = self._held[held.opening.state]
        while queue and queue[-1] is not held:
            queue.pop()
        if queue:
            queue.pop()
        if not queue:
            del self._held[held.opening.state]

    # -- placing ---------------------------------------------------------------------------------------------

    def _place_of(self, state: GroupState, now: float) -> None:
        queue = self._held[state]
        while queue:
            held = queue[0]
            if held.upto is None or held.reading or now < held.not_before:
                return
            described = self._tables[held.opening.table].description
            if described is not held.description or self._tables.stopped(held.opening.table):
                # A row is never shown by a description that is older than its columns.
                self._drop_from(held)
                return
            at = self._planner.stands(held.opening)
            if at is None or at < held.since:
                return
            if not self._place(held, at, now):
                return
            queue.popleft()
        del self._held[state]

    def _place(self, held: _Held, at: int, now: float) -> bool:
        """All of it as of ``at`` ms. False: not now, or only a part."""
        if not self._settle(held, at):
            return False
        table = held.opening.table
        waiting = list(self._batches(held, at))
        while waiting:
            try:
                count = self._consumer.place(held.opening, [batch for _, batch in waiting])
            except Postponed:
                return False
            except PoisonRow as poison:
                log.error("%s: a row of the snapshot cannot be delivered: %s", table, poison)
                self._background.task(SNAPSHOTS, table).failed(poison)
                held.not_before = now + POISON_SECONDS
                return False
            for key, batch in waiting[:count]:
                self.counters.rows[table] += len(batch.rows)
                del held.partitions[key]
                held.folded.pop(key, None)
            self._planner.placed(held.opening, token_of_key(waiting[count - 1][0]))
            waiting = waiting[count:]
        assert held.upto is not None
        self._planner.placed(held.opening, held.upto)
        return True

    def _settle(self, held: _Held, at: int) -> bool:
        """Bring what changed to ``at``. False: some of it has to be read again."""
        for key, folded in list(held.folded.items()):
            try:
                held.partitions[key] = folded.rows(at * 1000)
            except Doubtful as doubt:
                held.doubted[key] = doubt
                del held.folded[key]
        if held.doubted and held.tries < TRIES:
            self._read_again(held)
            return False
        for key, why in held.doubted.items():
            self.counters.left_out[held.opening.table] += len(held.partitions[key])
            log.warning(
                "%s: a partition is left out of the snapshot, it changes all the time: %s", held.opening.table, why
            )
            held.partitions[key] = []
        held.doubted.clear()
        return True

    def _read_again(self, held: _Held) -> None:
        keys = frozenset(held.doubted)
        held.tries += 1
        held.doubted.clear()
        held.asked_again = keys
        self.counters.rereads[held.opening.table] += len(keys)
        self._ask(
            held, partial(read_partitions, self._connection, held.description, sorted(keys, key=token_of_key)),
            self._read_anew,
        )  # fmt: skip

    def _read_anew(self, held: _Held, found: dict[Row, list[Row]]) -> None:
        held.since = self._connection.clock.now_ms()
        for key in held.asked_again:
            held.partitions[key] = found.get(key, [])
        held.asked_again = frozenset()
        self._catch_up(held)

    def _batches(self, held: _Held, at: int) -> Iterator[tuple[Row, Batch]]:
        shape = whole_rows(held.description)
        stream = held.opening.state.group.streams[0]
        # The last microsecond before: all that was delivered is as old or older, all that comes is younger.
        when = time_uuid((at * 1000 - 1) * _WHEN, 0x7F7F7F7F7F7F7F7F)
        for key, rows in held.partitions.items():
            logged = list(shape.of_partition(rows))
            if logged:
                yield key, Batch(shape.layout, stream, when, logged)


def _follow(held: _Held, key: Row, batch: Batch) -> None:
    """One more change of a partition that was read."""
    folded = held.folded.get(key)
    if key in held.doubted or (folded is None and not held.partitions[key]):
        return
    if folded is None:
        folded = held.folded[key] = FoldedPartition(whole_rows(held.description), held.partitions[key])
    try:
        folded.apply(batch)
    except (Doubtful, PoisonRow) as doubt:
        del held.folded[key]
        held.doubted[key] = doubt if isinstance(doubt, Doubtful) else Doubtful(str(doubt))


def _next_span(opening: Opening, behind: int | None) -> tuple[int, int] | None:
    """The tokens to be read next."""
    for low, high in opening.left:
        if behind is None or behind < high:
            return (low if behind is None else max(low, behind)), high
    return None
