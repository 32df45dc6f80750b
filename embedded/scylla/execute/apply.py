"""Carrying out writes: single statements, batches and conditional ones.

In: compiled plans with their values. Out: merged mutations, passed through the CDC room and applied; for
conditional requests the row (or rows) that say whether they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from connector.values import native
from embedded.scylla.catalog import Catalog, StoreReader
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.attributes import refuse_far_future
from embedded.scylla.execute.rows import NO_CELLS, RowAt, column_getter
from embedded.scylla.execute.run import Run, Ticker
from embedded.scylla.execute.writeplan import WritePlan
from embedded.scylla.merge import merge_mutations
from embedded.scylla.mutation import FULL_SLICE, Bound, ClusteringKey, PartitionMutation, Slice, SortKey
from embedded.scylla.results import BoundValue, ColumnSpec, RequestContext, Result, Row, Rows, Void
from embedded.scylla.schema import CDC_PARTITIONER, Column, Table, partition_key_values
from embedded.scylla.store import LiveCells

Step = tuple[WritePlan, Sequence[BoundValue]]
_BOOLEAN = native("boolean")
_VOID = Void()


@dataclass(frozen=True, slots=True)
class Found:
    """What a conditional statement's row was before. `row` None: nothing there."""

    row: RowAt | None
    exists: bool


class Writer:
    """Applies writes to the catalog's stores."""

    def __init__(self, catalog: Catalog, ticker: Ticker) -> None:
        self._catalog = catalog
        self._ticker = ticker
        self._reader = StoreReader(catalog.stores, catalog.clock)

    def _commit(self, mutations: list[PartitionMutation], context: RequestContext) -> None:
        catalog = self._catalog
        written = [mutation for mutation in mutations if not mutation.empty]
        if not written:
            return
        stores = catalog.stores
        for mutation in catalog.cdc.augment(written, context, self._reader):
            stores[mutation.table.id].apply(mutation)

    def write(self, plan: WritePlan, values: Sequence[BoundValue], context: RequestContext) -> Result:
        """One statement."""
        run = Run(values, context, self._catalog.clock, self._ticker)
        if plan.conditions is not None:
            return self._conditional([(plan, values)], run, batch=False, one_text=True)
        plan.prepare(run, None)
        if plan.timestamped:
            refuse_far_future(run.timestamp, self._catalog.clock.now_us())
        self._commit(plan.build(run, self._reader), context)
        return _VOID

    def batch(self, steps: Sequence[Step], context: RequestContext, timestamp: int | None, *, one_text: bool) -> Result:
        """Several statements as one write. All without a timestamp of their own get the same one. `one_text`: they are
        a BATCH in CQL, not one that the protocol's message puts together."""
        if timestamp is not None and any(plan.timestamped for plan, _ in steps):
            raise InvalidRequest("Timestamp must be set either on BATCH or individual statements")
        if any(plan.conditions is not None for plan, _ in steps):
            if timestamp is not None:
                raise InvalidRequest("Cannot provide custom timestamp for conditional BATCH")
            run = Run((), context, self._catalog.clock, self._ticker)
            return self._conditional(steps, run, batch=True, one_text=one_text)
        if timestamp is not None:
            refuse_far_future(timestamp, self._catalog.clock.now_us())
        if context.default_timestamp is None:
            context = replace(context, default_timestamp=self._ticker.micros())
        run = Run((), context, self._catalog.clock, self._ticker)
        mutations: list[PartitionMutation] = []
        for plan, values in steps:
            run.next_statement(values, counting_on=one_text)
            plan.prepare(run, timestamp)
            mutations += plan.build(run, self._reader)
        self._commit(merge_mutations([mutation for mutation in mutations if not mutation.empty]), context)
        return _VOID

    # ---- conditional -------------------------------------------------------------------------------------------

    def _conditional(self, steps: Sequence[Step], run: Run, batch: bool, one_text: bool) -> Result:
        for plan, _ in steps:
            if plan.conditions is not None and plan.timestamped:
                raise InvalidRequest("Cannot provide custom timestamp for conditional updates")
        table = steps[0][0].table
        if table.partitioner == CDC_PARTITIONER and self._catalog.keyspace(table.keyspace).uses_tablets:
            raise InvalidRequest(f"LWT is not supported on CDC log tables: {table.full_name}")
        keys: set[bytes] = set()
        addressed: list[ClusteringKey | None] = []
        for plan, values in steps:
            if plan.table.id != table.id:
                raise InvalidRequest("BATCH with conditions cannot span multiple tables")
            run.values = values
            keys.update(plan.keys(run))
            addressed.append(_first_row(plan, run))
        if len(keys) != 1:
            raise InvalidRequest("BATCH with conditions cannot span multiple partitions")
        key = keys.pop()
        self._catalog.begin_transaction(table)
        before = self._read(steps, run, table, key)
        found = [before.find(plan, row) for (plan, _), row in zip(steps, addressed)]
        absent = RowAt(partition_key_values(table, key), (), NO_CELLS, NO_CELLS)
        applied = True
        for (plan, values), old in zip(steps, found):
            if plan.conditions is not None:
                run.values = values
                if not plan.conditions.hold(run, old.row if old.exists else None, absent):
                    applied = False
                    break
        if applied:
            self._apply(steps, run, one_text)
        columns = _shown_columns(steps, table, batch)
        return _answer(table, columns, applied, [old.row for old in found])

    def _apply(self, steps: Sequence[Step], run: Run, one_text: bool) -> None:
        timestamp = self._ticker.micros()
        mutations: list[PartitionMutation] = []
        for plan, values in steps:
            run.next_statement(values, counting_on=one_text)
            plan.prepare(run, None)
            run.timestamp = timestamp
            mutations += plan.build(run, self._reader)
        self._commit(merge_mutations([each for each in mutations if not each.empty]), run.context)

    def _read(self, steps: Sequence[Step], run: Run, table: Table, key: bytes) -> _Before:
        """Reads the rows that conditions (and list operations) look at."""
        view = self._catalog.store(table).partition(key, run.now_s)
        pk = partition_key_values(table, key)
        if view is None:
            return _Before(table, pk, NO_CELLS, {}, False)
        static = view.static()
        rows: dict[SortKey, RowAt] = {}
        slices: list[Slice] = []
        for plan, values in steps:
            conditions = plan.conditions
            if conditions is None and not plan.reads:
                continue
            if conditions is not None and conditions.static_only and not plan.reads:
                continue
            run.values = values
            slices += _read_slices(plan, run)
        limit = 0
        if not slices:
            slices, limit = [FULL_SLICE], 1
        for each in slices:
            for row in view.rows([each]):
                place = table.sort_key(row.key)
                rows[place] = RowAt(pk, row.key, static, row.cells, row.marker)
                if limit:
                    break
        return _Before(table, pk, static, rows, bool(rows) or bool(static))


def _first_row(plan: WritePlan, run: Run) -> ClusteringKey | None:
    """The row by which a statement's old row is found: the first it addresses; None if it addresses none."""
    if plan.rows is not None:
        keys = plan.rows(run)
        if not keys:
            raise InvalidRequest("Empty clustering range")
        return keys[0]
    if plan.slices is not None:
        slices = plan.slices(run)
        return slices[0].start.prefix or None if slices else None
    return None


def _read_slices(plan: WritePlan, run: Run) -> list[Slice]:
    if plan.rows is not None:
        return [Slice(Bound(key, True), Bound(key, True)) if key else FULL_SLICE for key in plan.rows(run)]
    return plan.slices(run) if plan.slices is not None else [FULL_SLICE]


class _Before:
    """The partition before a conditional request, as far as it was read."""

    def __init__(
        self, table: Table, pk: tuple[bytes, ...], static: LiveCells, rows: dict[SortKey, RowAt], present: bool
    ) -> None:
        self._table = table
        self._rows = rows
        self._has_static = bool(static)
        # Without static columns there is no row to fall back on.
        self._static_row = RowAt(pk, (), static, NO_CELLS) if present and table.static else None

    def find(self, plan: WritePlan, key: ClusteringKey | None) -> Found:
        conditions = plan.conditions
        by_presence = conditions is not None and (conditions.exists or conditions.not_exists)
        row = None
        if key is not None:
            row = self._rows.get(self._table.sort_key(key)) if len(key) == len(self._table.clustering) else None
        if key is None or (row is None and key and not by_presence):
            row = self._static_row
        exists = row is not None
        if conditions is not None and by_presence and conditions.static_only:
            exists = self._has_static
        return Found(row, exists)


def _shown_columns(steps: Sequence[Step], table: Table, batch: bool) -> list[Column]:
    names = {column.name for plan, _ in steps if plan.conditions for column in plan.conditions.columns}
    if batch:
        names |= {column.name for column in table.primary_key}
    return [column for column in table.ordered_columns if column.name in names]


def answer_columns(plan: WritePlan) -> tuple[ColumnSpec, ...] | None:
    """The result columns of a conditional statement; None if it is not conditional."""
    if plan.conditions is None:
        return None
    return _specs(plan.table, _shown_columns([(plan, ())], plan.table, False))


def _specs(table: Table, columns: list[Column]) -> tuple[ColumnSpec, ...]:
    applied = ColumnSpec(table.keyspace, table.name, "[applied]", _BOOLEAN)
    return (
        applied,
        *(ColumnSpec(table.keyspace, table.name, column.name, column.type) for column in columns),
    )


def _answer(table: Table, columns: list[Column], applied: bool, rows: list[RowAt | None]) -> Rows:
    """One row per statement: the old row whether or not the request was applied, as ScyllaDB gives it."""
    getters = [column_getter(column) for column in columns]
    flag = b"\x01" if applied else b"\x00"
    shown: list[Row] = [[flag, *(None if row is None else get(row) for get in getters)] for row in rows]
    return Rows(_specs(table, columns), shown)
