"""Filling a log with generated rows, much faster than any client could write them.

Comes in: a table with CDC, a `PreloadSpec`, the log's store. Goes out: log rows as the server itself would
have written them for those inserts, updates and deletes, images included where the table asks for them; if
wanted, the base table's rows too; and a summary of what the log now holds.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from embedded.scylla.cdc.augment import Logged
from embedded.scylla.cdc.changes import INSERT, POST_IMAGE, PRE_IMAGE, UPDATE
from embedded.scylla.cdc.log_rows import number_cell, time_uuid
from embedded.scylla.cdc.plan import NULL_CELL, TRUE_CELL, ColumnPlan, LogPlan, cell, operation_cell
from embedded.scylla.logstore import LogStore
from embedded.scylla.preload_rows import POOL, GeneratedWrite, RowSource
from embedded.scylla.schema import partition_key_bytes

#: Rows are handed to the store in portions of about this many…
_PORTION = 20_000
#: … and after about this many somebody else may have the processor.
_BREATH = 1_000
#: Most key cells that are kept, because partitions share them.
_REMEMBERED_KEYS = 50_000
_POOL_MASK = POOL - 1
Waiting = defaultdict[bytes, tuple[list[bytes], "array[int]"]]
"""Rows by stream, with their expiries, that the store does not have yet."""
StreamAt = Callable[[int, int], bytes]
"""Token and time (µs) → stream, without any check against the clock."""


@dataclass(slots=True)
class Preloaded:
    """What a preload wrote: log rows, by operation and by stream, and the first and last time (µs)."""

    rows: int = 0
    batches: int = 0
    operations: Counter[int] = field(default_factory=Counter)
    streams: Counter[bytes] = field(default_factory=Counter)
    first_us: int = 0
    last_us: int = 0


class _Cells:
    """The cells of one column in log rows, for every value of its pool."""

    def __init__(self, column: ColumnPlan, pool: list[bytes | None]) -> None:
        self.value_at, self.deleted_at = column.value_at, column.deleted_at
        many = column.kind != "atom"
        # A written collection replaces the old one; a user type is never null in a row that touches it.
        null = column.collection({}) if column.kind == "user" else NULL_CELL
        self.written = [
            (null, TRUE_CELL) if raw is None else (cell(raw), TRUE_CELL if many else NULL_CELL) for raw in pool
        ]
        self.before = [(NULL_CELL, TRUE_CELL) if raw is None else (cell(raw), NULL_CELL) for raw in pool]
        self.after = [(null, NULL_CELL) if raw is None else (cell(raw), NULL_CELL) for raw in pool]


class Preloader:
    """One preload. `stream_at` picks the stream of each batch."""

    def __init__(self, logged: Logged, source: RowSource, stream_at: StreamAt) -> None:
        self._plan: LogPlan = logged.plan
        self._source = source
        self._stream_at = stream_at
        self._columns = [_Cells(column, pool) for column, pool in zip(self._plan.regular, source.pools)]
        self._many = any(column.kind != "atom" for column in self._plan.regular)
        self._random = random.Random(source.spec.seed)
        self._partitions: dict[int, tuple[int, list[bytes]]] = {}
        self._clustering: dict[int, list[bytes]] = {}
        #: Row of the base table → the change that wrote its present values and whether it has a row marker.
        self.live: dict[tuple[int, int], tuple[int, bool]] = {}
        self._keeps_state = self._plan.options.images

    def fill(self, store: LogStore, *, keep_state: bool = False) -> Preloaded:
        """Write everything into the log's store at once."""
        done = Preloaded()
        for _ in self.filling(store, done, keep_state=keep_state):
            pass
        return done

    def filling(self, store: LogStore, done: Preloaded, *, keep_state: bool = False) -> Iterator[None]:
        """Write everything into the log's store, with short pauses in which others may do something; `done` is
        filled in too. `keep_state` fills `live`, from which base rows can be made."""
        self._keeps_state = self._keeps_state or keep_state
        waiting: Waiting = defaultdict(lambda: ([], array("q")))
        spec = self._source.spec
        if spec.batch_rows == 1 and not spec.mixed and not self._keeps_state:
            portions = self._single_inserts(done, waiting)
        else:
            portions = self._batches(done, waiting)
        for generated in portions:
            if generated - done.rows >= _PORTION:
                self._store(waiting, store, done)
            yield
        self._store(waiting, store, done)
        done.first_us, done.last_us = spec.time_of(0), spec.time_of(spec.batches - 1)
        done.batches = spec.batches

    @staticmethod
    def _store(waiting: Waiting, store: LogStore, done: Preloaded) -> None:
        for stream, (bodies, expiries) in waiting.items():
            store.extend(stream, bodies, expiries)
            done.streams[stream] += len(bodies)
            done.rows += len(bodies)
        waiting.clear()

    def _single_inserts(self, done: Preloaded, waiting: Waiting) -> Iterator[int]:
        """The commonest preload, without what it does not need. Yields now and then how many rows there are."""
        spec, plan, source = self._source.spec, self._plan, self._source
        ttl, getrandbits, rows = plan.options.ttl, self._random.getrandbits, spec.rows
        stream_place, time_place = plan.stream_at, plan.time_at
        start, span = spec.start_us, spec.span_us
        columns = [
            (column.value_at, column.deleted_at, column.written, stride)
            for column, stride in zip(self._columns if plan.full_delta else (), source.strides)
        ]
        rest = {plan.number_at: number_cell(0), plan.end_at: TRUE_CELL, plan.operation_at: _OPERATIONS[INSERT]}
        for number, (partition, row_number) in enumerate(source.places()):
            micros = start + number * span // rows
            token, key = self._partition(partition)
            stream = self._stream_at(token, micros)
            row = key.copy()
            row[stream_place] = cell(stream)
            row[time_place] = cell(time_uuid(micros, getrandbits(62)))
            for place, raw in rest.items():
                row[place] = raw
            for place, raw in zip(plan.clustering_at, self._clustering_cells(row_number)):
                row[place] = raw
            for value_at, deleted_at, written, stride in columns:
                row[value_at], row[deleted_at] = written[number * stride & _POOL_MASK]
            bodies, expiries = waiting[stream]
            bodies.append(b"".join(row))
            expiries.append(micros // 1_000_000 + ttl if ttl else 0)
            if not number % _BREATH:
                yield number + 1
        done.operations[INSERT] = rows

    def _batches(self, done: Preloaded, waiting: Waiting) -> Iterator[int]:
        """Any preload, batch by batch. Yields now and then how many rows there are."""
        spec, plan = self._source.spec, self._plan
        ttl = plan.options.ttl
        stream_at, place_at, time_at, number_at = plan.stream_at, plan.end_at, plan.time_at, plan.number_at
        count = breath = 0
        for batch, writes in self._grouped():
            micros = spec.time_of(batch)
            token, key = self._partition(writes[0].partition)
            stream = self._stream_at(token, micros)
            rows = self._rows(writes, key, done.operations)
            stream_cell, time_cell = cell(stream), cell(time_uuid(micros, self._random.getrandbits(62)))
            rows[-1][place_at] = TRUE_CELL
            bodies, expiries = waiting[stream]
            for number, row in enumerate(rows):
                row[stream_at], row[time_at], row[number_at] = stream_cell, time_cell, number_cell(number)
                bodies.append(b"".join(row))
                expiries.append(micros // 1_000_000 + ttl if ttl else 0)
            count += len(rows)
            if count >= breath:
                yield count
                breath = count + _BREATH

    def _grouped(self) -> Iterator[tuple[int, list[GeneratedWrite]]]:
        if self._source.spec.batch_rows == 1:
            for write in self._source.writes():
                yield write.batch, [write]
            return
        for batch, writes in groupby(self._source.writes(), key=lambda write: write.batch):
            yield batch, self._ordered(list(writes))

    def _ordered(self, writes: list[GeneratedWrite]) -> list[GeneratedWrite]:
        """As the server lists the rows of one batch: in clustering order, but by kind where it must split."""
        writes.sort(key=self._place)
        upserts = [write.operation in (INSERT, UPDATE) for write in writes]
        delete_after_upsert = True in upserts and False in upserts[upserts.index(True) :]
        if delete_after_upsert or (self._many and any(write.operation == INSERT for write in writes)):
            kinds = {INSERT: 0, UPDATE: 1}
            writes.sort(key=lambda write: kinds.get(write.operation, 2))
        return writes

    def _place(self, write: GeneratedWrite) -> tuple[Any, ...]:
        return self._plan.base.sort_key(self._source.clustering_key(write.row))

    def _partition(self, number: int) -> tuple[int, list[bytes]]:
        """Token of a partition, and the row that holds its key."""
        known = self._partitions.get(number)
        if known is None:
            values = self._source.partition_key(number)
            row = self._plan.empty_row.copy()
            for place, raw in zip(self._plan.partition_key_at, values):
                row[place] = cell(raw)
            known = self._plan.base.token_of(partition_key_bytes(values)), row
            if len(self._partitions) < _REMEMBERED_KEYS:
                self._partitions[number] = known
        return known

    def _rows(self, writes: list[GeneratedWrite], key: list[bytes], counts: Counter[int]) -> list[list[bytes]]:
        options = self._plan.options
        rows: list[list[bytes]] = []
        in_order = sorted(writes, key=self._place) if len(writes) > 1 and options.images else writes
        if options.preimage != "false":
            rows += [row for write in in_order if (row := self._pre_image(write, key)) is not None]
            counts[PRE_IMAGE] += len(rows)
        for write in writes:
            rows.append(self._delta(write, key))
            counts[write.operation] += 1
            if self._keeps_state:
                self._remember(write)
        if options.postimage:
            for write in in_order:
                if write.operation in (INSERT, UPDATE):
                    rows.append(self._image(write, key, POST_IMAGE, write.number))
                    counts[POST_IMAGE] += 1
        return rows

    def _row(self, write: GeneratedWrite, key: list[bytes], operation: int) -> list[bytes]:
        plan = self._plan
        row = key.copy()
        row[plan.operation_at] = _OPERATIONS[operation]
        for place, raw in zip(plan.clustering_at, self._clustering_cells(write.row)):
            row[place] = raw
        return row

    def _clustering_cells(self, number: int) -> list[bytes]:
        cells = self._clustering.get(number)
        if cells is None:
            cells = [cell(raw) for raw in self._source.clustering_key(number)]
            if len(self._clustering) < _REMEMBERED_KEYS:
                self._clustering[number] = cells
        return cells

    def _delta(self, write: GeneratedWrite, key: list[bytes]) -> list[bytes]:
        row = self._row(write, key, write.operation)
        if self._plan.full_delta and write.operation in (INSERT, UPDATE):
            for at, column in zip(self._source.picks(write.number), self._columns):
                row[column.value_at], row[column.deleted_at] = column.written[at]
        return row

    def _pre_image(self, write: GeneratedWrite, key: list[bytes]) -> list[bytes] | None:
        before = self.live.get((write.partition, write.row))
        return None if before is None else self._image(write, key, PRE_IMAGE, before[0])

    def _image(self, write: GeneratedWrite, key: list[bytes], operation: int, number: int) -> list[bytes]:
        row = self._row(write, key, operation)
        for at, column in zip(self._source.picks(number), self._columns):
            shown = column.before if operation == PRE_IMAGE else column.after
            row[column.value_at], row[column.deleted_at] = shown[at]
        return row

    def _remember(self, write: GeneratedWrite) -> None:
        place = write.partition, write.row
        if write.operation not in (INSERT, UPDATE):
            self.live.pop(place, None)
            return
        before = self.live.get(place)
        marked = write.operation == INSERT or (before is not None and before[1])
        if marked or any(raw is not None for raw in self._source.values(write.number)):
            self.live[place] = (write.number, marked)
        else:
            self.live.pop(place, None)


_OPERATIONS = {code: operation_cell(code) for code in range(10)}
