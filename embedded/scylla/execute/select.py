"""SELECT as a plan: compiled once, run per execution into a page of rows.

In: a statement's tree, its table and its store. Out: a `SelectPlan`. Reads of a few partitions by their first
clustering column go to the store's own short cut, if it has one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from connector.values import native
from embedded.scylla.cql.tree import AnyRelation, InList, Relation, Select, Term, TokenRelation, TupleRelation
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.attributes import compile_timeout
from embedded.scylla.execute.json_values import json_text, shown_name
from embedded.scylla.execute.paging import NO_LIMIT, Position, pack_position, unpack_position
from embedded.scylla.execute.restrictions import Restrictions
from embedded.scylla.execute.rows import Get, RowAt
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.scan import Found, Scan, rows
from embedded.scylla.execute.selectors import Folder, Selection, compile_column, compile_selected
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.results import UNSET, ColumnSpec, RequestContext, Row, Rows
from embedded.scylla.schema import Column, Table
from embedded.scylla.store import PageRequest, TableStore

_TEXT = native("text")
# A page that has become that long ends, however many rows were asked for.
_PAGE_BYTES = 1 << 20
_SHOULD_ALLOW_FILTERING = "This query should use ALLOW FILTERING and will be rejected in future versions."
Stores = Callable[[Table], TableStore]
Span = tuple[int, int]
Require = Callable[[Table, Callable[[], Iterable[Span]], RequestContext], None]


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """A compiled SELECT."""

    table: Table
    columns: tuple[ColumnSpec, ...]
    restrictions: Restrictions
    execute: Callable[[Run], Rows]


def compile_select(statement: Select, table: Table, scope: Scope, stores: Stores) -> SelectPlan:
    if statement.selected:
        chosen = [compile_selected(selected, scope) for selected in statement.selected]
    else:
        chosen = [(compile_column(column), column.name) for column in table.ordered_columns]
    selections = [selection for selection, _ in chosen]
    restrictions = Restrictions(table, statement.where, scope, statement.allow_filtering, select=True)
    _check_statics(statement, selections, table, restrictions)
    if statement.distinct:
        _check_distinct(selections, table, restrictions, statement.where)
    if statement.attributes.timeout is not None:
        compile_timeout(statement.attributes.timeout, scope)
    reverse = _reversed(statement, table, restrictions)
    limit = _limit(statement.limit, "LIMIT", scope)
    per_partition = _limit(statement.per_partition_limit, "PER PARTITION LIMIT", scope)
    aggregated = any(selection.fold is not None for selection in selections) or bool(statement.group_by)
    if aggregated and statement.per_partition_limit is not None and not statement.group_by:
        raise InvalidRequest("PER PARTITION LIMIT is not allowed with aggregate queries.")
    if statement.distinct and statement.per_partition_limit is not None:
        raise InvalidRequest("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries")
    columns = tuple(ColumnSpec(table.keyspace, table.name, name, selection.type) for selection, name in chosen)
    reading = _Reading(
        Scan(table, restrictions, reverse, statement.distinct),
        selections,
        columns,
        limit,
        per_partition,
        stores,
        _shaper(columns) if statement.json else None,
        bool(statement.order) and not restrictions.single_partition,
    )
    if aggregated:
        group = _group_columns(statement.group_by, table, restrictions)
        if statement.distinct and any(column.kind == "clustering" for column in group):
            raise InvalidRequest("Grouping on clustering columns is not allowed for SELECT DISTINCT queries")
        execute = _aggregated(reading, group, bool(statement.group_by))
    else:
        execute = _fast_or_paged(reading, statement, table)
    if restrictions.clustering and restrictions.key_values is None and not statement.allow_filtering:
        execute = _warned(execute)
    shown = columns
    if statement.json:
        shown = (ColumnSpec(table.keyspace, table.name, "[json]", _TEXT),)
    return SelectPlan(table, shown, restrictions, execute)


def guarded(plan: SelectPlan, require: Require) -> Callable[[Run], Rows]:
    """``require`` may refuse a page, for the tokens that it goes over; both ends of a span are included."""

    def execute(run: Run) -> Rows:
        answer = plan.execute(run)
        require(plan.table, lambda: _spans(plan, run, answer), run.context)
        return answer

    return execute


def _spans(plan: SelectPlan, run: Run, answer: Rows) -> Iterator[Span]:
    restrictions, state = plan.restrictions, run.context.paging_state
    if restrictions.key_values is not None:
        for token in map(plan.table.token_of, restrictions.partition_keys(run)):
            yield token, token
        return
    first, last = restrictions.token_range(run)
    if state:
        first = plan.table.token_of(unpack_position(state).key)
    if answer.paging_state:
        last = plan.table.token_of(unpack_position(answer.paging_state).key)
    if first <= last:
        yield first, last


# ---- what is allowed ---------------------------------------------------------------------------------------------


def _check_statics(statement: Select, selections: list[Selection], table: Table, restrictions: Restrictions) -> None:
    if not statement.selected or not restrictions.clustering:
        return
    kinds = {column.kind for selection in selections for column in selection.columns}
    if "static" in kinds and kinds <= {"static", "partition_key"}:
        raise InvalidRequest("Cannot restrict clustering columns when selecting only static columns")


def _check_distinct(
    selections: list[Selection], table: Table, restrictions: Restrictions, where: tuple[AnyRelation, ...]
) -> None:
    restricted = {name for each in where for name in ((each.column,) if isinstance(each, Relation) else each.columns)}
    if any(table.by_name[name].kind != "partition_key" for name in restricted):
        raise InvalidRequest("SELECT DISTINCT with WHERE clause only supports restriction by partition key.")
    named = [column for selection in selections for column in selection.columns]
    for column in named:
        if column.kind not in ("partition_key", "static"):
            raise InvalidRequest(
                "SELECT DISTINCT queries must only request partition key columns and/or static columns "
                f"(not {column.name})"
            )
    for column in table.partition_key:
        if restrictions.key_values is None and column not in named:
            raise InvalidRequest(
                f"SELECT DISTINCT queries must request all the partition key columns (missing {column.name})"
            )


def _reversed(statement: Select, table: Table, restrictions: Restrictions) -> bool:
    if not statement.order:
        return False
    if restrictions.key_values is None:
        raise InvalidRequest("ORDER BY is only supported when the partition key is restricted by an EQ or an IN.")
    directions: set[bool] = set()
    at = 0
    fixed = {
        name
        for relation in statement.where
        if not isinstance(relation, TokenRelation) and (relation.operator == "=" or _only_one(relation))
        for name in ((relation.column,) if isinstance(relation, Relation) else relation.columns)
    }
    for name, descending in statement.order:
        column = table.by_name.get(name)
        if column is None:
            raise InvalidRequest(f"Order by on unknown column {name}")
        if column.kind != "clustering":
            raise InvalidRequest(
                f"Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {name}"
            )
        while at < column.position and table.clustering[at].name in fixed:
            at += 1
        if column.position > at:
            raise InvalidRequest(
                f"Unsupported order by relation - column {table.clustering[at].name} doesn't have an ordering "
                "or EQ relation."
            )
        if column.position != at:
            raise InvalidRequest(
                "Order by currently only supports the ordering of columns following their declared order in "
                "the PRIMARY KEY"
            )
        at += 1
        directions.add(descending != (column.order == "desc"))
    if len(directions) > 1:
        raise InvalidRequest("Unsupported order by relation")
    return directions.pop()


def _only_one(relation: Relation | TupleRelation) -> bool:
    """An IN with one value is as good as an equation."""
    value = relation.value
    return relation.operator == "IN" and isinstance(value, InList) and len(value.items) == 1


def _limit(term: Term | None, what: str, scope: Scope) -> Callable[[Run], int]:
    if term is None:
        return lambda run: NO_LIMIT
    name = "[limit]" if what == "LIMIT" else "[per_partition_limit]"
    compiled = compile_term(term, name, native("int"), scope)

    def limit(run: Run) -> int:
        raw = compiled(run)
        if raw is UNSET:
            return NO_LIMIT
        if raw is None:
            raise InvalidRequest("Invalid null value of limit")
        value = int.from_bytes(cast(bytes, raw), "big", signed=True)
        if value <= 0:
            raise InvalidRequest(f"{what} must be strictly positive")
        return value

    return limit


def _group_columns(names: tuple[str, ...], table: Table, restrictions: Restrictions) -> tuple[Column, ...]:
    key = table.primary_key
    at = 0
    grouped = []
    equal = {column.name for column in table.clustering[: restrictions.fixed_columns]}
    if restrictions.single_partition:
        equal.update(column.name for column in table.partition_key)
    for name in names:
        column = table.by_name.get(name)
        if column is None:
            raise InvalidRequest(f"Group by unknown column {name}")
        if column not in key:
            raise InvalidRequest(f"Group by non-primary-key column {name}")
        while at < len(key) and key[at] is not column and key[at].name in equal:
            at += 1
        if at >= len(key) or key[at] is not column:
            raise InvalidRequest(f"Group by column {name} is out of order")
        at += 1
        grouped.append(column)
    return tuple(grouped)


def _warned(execute: Callable[[Run], Rows]) -> Callable[[Run], Rows]:
    """Slices of all partitions are served with a warning (ScyllaDB's `strict_allow_filtering: warn`)."""
    return lambda run: replace(execute(run), warnings=(_SHOULD_ALLOW_FILTERING,))


# ---- running -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reading:
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


def _shaper(columns: tuple[ColumnSpec, ...]) -> Callable[[Row], Row]:
    names = [json.dumps(shown_name(column.name), ensure_ascii=False) for column in columns]

    def shape(row: Row) -> Row:
        parts = [f"{name}: {json_text(raw, column.type)}" for name, raw, column in zip(names, row, columns)]
        return [("{" + ", ".join(parts) + "}").encode()]

    return shape


def _paged(reading: _Reading) -> Callable[[Run], Rows]:
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


def _merged(reading: _Reading, run: Run, limit: int, per_partition: int) -> Rows:
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


def _aggregated(reading: _Reading, group: tuple[Column, ...], grouped: bool) -> Callable[[Run], Rows]:
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


def _result(reading: _Reading, folders: list[Folder]) -> Row:
    row: Row = [folder.result() for folder in folders]
    return row if reading.shape is None else reading.shape(row)


def _fast_or_paged(reading: _Reading, statement: Select, table: Table) -> Callable[[Run], Rows]:
    """Asks the store for its short cut where the statement has the shape for it."""
    slow = _paged(reading)
    restrictions = reading.scan.restrictions
    names = [selection.column.name for selection in reading.selections if selection.column is not None]
    if (
        len(names) != len(reading.selections)
        or restrictions.key_values is None
        or statement.order
        or statement.distinct
        or statement.json
        or statement.per_partition_limit is not None
        or restrictions.filters_used
        or not table.clustering
        or not restrictions.only_first_column
    ):
        return slow
    wanted = tuple(names)

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
