"""Running a SELECT: from the rows that it walks over to one page of its answer.

In: a `Reading`, what all ways of running share. Out: a function of an execution, for each way: row by row, sorted,
aggregated, or by the store's own short cut for a few partitions read by their first clustering column.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from connector.values import native
from embedded.scylla.cql.tree import Select
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.json_values import json_text, shown_name
from embedded.scylla.execute.paging import NO_LIMIT, Position, pack_position, unpack_position
from embedded.scylla.execute.rows import Get, RowAt
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.scan import Found, Scan, rows
from embedded.scylla.execute.selectors import Folder, Selection, compile_column
from embedded.scylla.results import ColumnSpec, Row, Rows
from embedded.scylla.schema import Column, Table
from embedded.scylla.store import PageRequest, TableStore

_TEXT = native("text")
# A page that has become that long ends, however many rows were asked for.
_PAGE_BYTES = 1 << 20
Stores = Callable[[Table], TableStore]


@dataclass(frozen=True, slots=True)
class Reading:
    """What all ways of running share. `shape` turns a row into its JSON; `sorted`: ORDER BY merges partitions."""

    scan: Scan
    selections: list[Selection]
    columns: tuple[ColumnSpec, ...]
    limit: Callable[[Run], int]
    per_partition: Callable[[Run], int]
    stores: Stores
    shape: Callable[[Row], Row] | None
    sorted: bool

    @property
    def shown(self) -> tuple[ColumnSpec, ...]:
        if self.shape is None:
            return self.columns
        first = self.columns[0]
        return (ColumnSpec(first.keyspace, first.table, "[json]", _TEXT),)

    @property
    def computes(self) -> bool:
        """Whether anything but columns, each once, is selected; JSON is a function of them."""
        names = {selection.column.name for selection in self.selections if selection.column is not None}
        return len(names) != len(self.selections) or self.shape is not None

    def row_maker(self, run: Run) -> Callable[[RowAt], Row]:
        getters: list[Get] = [selection.begin(run) for selection in self.selections]
        shape = self.shape
        if shape is not None:
            return lambda row: shape([get(shown) for shown in (row.computed(),) for get in getters])
        if self.computes:
            return lambda row: [get(shown) for shown in (row.computed(),) for get in getters]
        return lambda row: [get(row) for get in getters]


def json_shaper(columns: tuple[ColumnSpec, ...]) -> Callable[[Row], Row]:
    names = [json.dumps(shown_name(column.name), ensure_ascii=False) for column in columns]

    def shape(row: Row) -> Row:
        parts = [f"{name}: {json_text(raw, column.type)}" for name, raw, column in zip(names, row, columns)]
        return [("{" + ", ".join(parts) + "}").encode()]

    return shape


def paged_rows(reading: Reading) -> Callable[[Run], Rows]:
    scan = reading.scan

    def execute(run: Run) -> Rows:
        context = run.context
        position = unpack_position(context.paging_state) if context.paging_state else None
        limit, per_partition = reading.limit(run), reading.per_partition(run)
        if reading.sorted:
            return _merged(reading, run, limit, per_partition)
        remaining = position.remaining if position is not None else limit
        page = context.page_size if context.page_size and context.page_size > 0 else NO_LIMIT
        store = reading.stores(scan.table)
        found = rows(scan, store, run, position, per_partition)
        make = reading.row_maker(run)
        out: list[Row] = []
        last: Found | None = None
        counted = position.in_partition if position is not None else per_partition
        size = 0
        for key, row in found:
            if remaining == 0:
                return Rows(reading.shown, out)
            if page != NO_LIMIT and (len(out) == page or size > _PAGE_BYTES):
                assert last is not None
                state = Position(last[0], last[1].ck or None, remaining, counted)
                return Rows(reading.shown, out, paging_state=pack_position(state))
            if per_partition != NO_LIMIT:
                fresh = last[0] != key if last is not None else position is None or position.key != key
                counted = (per_partition if fresh else counted) - 1
            made = make(row)
            size += sum([len(cell) for cell in made if cell is not None])
            out.append(made)
            last = (key, row)
            if remaining != NO_LIMIT:
                remaining -= 1
                if remaining == 0:
                    break
        return Rows(reading.shown, out)

    return execute


def _merged(reading: Reading, run: Run, limit: int, per_partition: int) -> Rows:
    """Several partitions in one clustering order, which cannot be paged."""
    if run.context.page_size and run.context.page_size > 0:
        raise InvalidRequest(
            "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either "
            "remove the ORDER BY or the IN and sort client side, or disable paging for this query"
        )
    scan = reading.scan
    key = scan.table.sort_key
    found = [row for _, row in rows(scan, reading.stores(scan.table), run, None, per_partition)]
    if reading.computes:
        found = [row.computed() for row in found]
    with_key = sorted((row for row in found if row.ck), key=lambda row: key(row.ck), reverse=scan.reverse)
    # A row of statics only counts as the least.
    bare = [row for row in found if not row.ck]
    ascending = (scan.table.clustering[0].order != "desc") is not scan.reverse
    ordered = bare + with_key if ascending else with_key + bare
    make = reading.row_maker(run)
    return Rows(reading.shown, [make(row) for row in (ordered if limit == NO_LIMIT else ordered[:limit])])


def aggregated_rows(reading: Reading, group: tuple[Column, ...], grouped: bool) -> Callable[[Run], Rows]:
    scan = reading.scan
    keys = [compile_column(column) for column in group]

    def execute(run: Run) -> Rows:
        limit, per_partition = reading.limit(run), reading.per_partition(run)
        found = rows(scan, reading.stores(scan.table), run, None, NO_LIMIT)
        getters = [key.begin(run) for key in keys]
        out: list[Row] = []
        present: list[Folder] | None = None
        current: object = None
        partition: bytes | None = None
        groups = 0
        for key, row in found:
            place = [get(row) for get in getters]
            if key != partition:
                partition, groups = key, 0
            elif groups == per_partition and place != current:
                continue
            if present is None or place != current:
                groups += 1
                if present is not None:
                    out.append(_result(reading, present))
                    if len(out) == limit:
                        return Rows(reading.shown, out)
                present = [selection.folder(run) for selection in reading.selections]
                current = place
            shown = row.computed()
            for folder in present:
                folder.add(shown)
        if present is None and not grouped:
            present = [selection.folder(run) for selection in reading.selections]
        if present is not None:
            out.append(_result(reading, present))
        return Rows(reading.shown, out)

    return execute


def _result(reading: Reading, folders: list[Folder]) -> Row:
    row: Row = [folder.result() for folder in folders]
    return row if reading.shape is None else reading.shape(row)


def fast_or_paged_rows(reading: Reading, statement: Select, table: Table) -> Callable[[Run], Rows]:
    """Asks the store for its short cut where the statement has the shape for it."""
    slow = paged_rows(reading)
    restrictions = reading.scan.restrictions
    wanted = tuple(selection.column.name for selection in reading.selections if selection.column is not None)
    only_columns = len(wanted) == len(reading.selections) and not statement.json
    in_order = not statement.order and not statement.distinct and statement.per_partition_limit is None
    whole_rows = restrictions.key_values is not None and not restrictions.filters_used
    first_column = bool(table.clustering) and restrictions.only_first_column
    if not (only_columns and in_order and whole_rows and first_column):
        return slow

    def execute(run: Run) -> Rows:
        context = run.context
        position = unpack_position(context.paging_state) if context.paging_state else None
        if position is not None and position.opaque is None:
            return slow(run)
        remaining = position.remaining if position is not None else reading.limit(run)
        page = context.page_size if context.page_size and context.page_size > 0 else (1 << 31)
        lower, upper = restrictions.first_column_edges(run)
        answer = reading.stores(table).fast_page(
            PageRequest(
                tuple(restrictions.partition_keys(run)),
                wanted,
                *lower,
                *upper,
                page if remaining == NO_LIMIT else min(page, remaining),
                position.opaque if position is not None else None,
                run.now_s,
            )
        )
        if answer is None:
            return slow(run)
        if remaining != NO_LIMIT:
            remaining -= answer.row_count
        state = None
        if answer.position is not None and remaining != 0:
            state = pack_position(Position(b"", None, remaining, NO_LIMIT, answer.position))
        return Rows(reading.columns, body=answer.body, count=answer.row_count, paging_state=state)

    return execute
