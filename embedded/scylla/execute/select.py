"""SELECT as a plan: compiled once, run per execution into a page of rows.

In: a statement's tree, its table and its store. Out: a `SelectPlan`. Which forms of its clauses are refused is
`select_checks.py`, how a page is made `select_pages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from embedded.scylla.cql.tree import Select
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.attributes import compile_timeout
from embedded.scylla.execute.paging import unpack_position
from embedded.scylla.execute.restrictions import Restrictions
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.scan import Scan
from embedded.scylla.execute.select_checks import (
    check_distinct,
    check_statics,
    compile_limit,
    group_columns,
    reads_backwards,
)
from embedded.scylla.execute.select_pages import Reading, Stores, aggregated_rows, fast_or_paged_rows, json_shaper
from embedded.scylla.execute.selectors import compile_column, compile_selected
from embedded.scylla.execute.terms import Scope
from embedded.scylla.results import ColumnSpec, RequestContext, Rows
from embedded.scylla.schema import Table

_SHOULD_ALLOW_FILTERING = "This query should use ALLOW FILTERING and will be rejected in future versions."
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
    check_statics(statement, selections, table, restrictions)
    if statement.distinct:
        check_distinct(selections, table, restrictions, statement.where)
    if statement.attributes.timeout is not None:
        compile_timeout(statement.attributes.timeout, scope)
    reverse = reads_backwards(statement, table, restrictions)
    limit = compile_limit(statement.limit, "LIMIT", scope)
    per_partition = compile_limit(statement.per_partition_limit, "PER PARTITION LIMIT", scope)
    aggregated = any(selection.fold is not None for selection in selections) or bool(statement.group_by)
    if aggregated and statement.per_partition_limit is not None and not statement.group_by:
        raise InvalidRequest("PER PARTITION LIMIT is not allowed with aggregate queries.")
    if statement.distinct and statement.per_partition_limit is not None:
        raise InvalidRequest("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries")
    columns = tuple(ColumnSpec(table.keyspace, table.name, name, selection.type) for selection, name in chosen)
    reading = Reading(
        scan=Scan(table, restrictions, reverse, statement.distinct),
        selections=selections,
        columns=columns,
        limit=limit,
        per_partition=per_partition,
        stores=stores,
        shape=json_shaper(columns) if statement.json else None,
        sorted=bool(statement.order) and not restrictions.single_partition,
    )
    if aggregated:
        group = group_columns(statement.group_by, table, restrictions)
        if statement.distinct and any(column.kind == "clustering" for column in group):
            raise InvalidRequest("Grouping on clustering columns is not allowed for SELECT DISTINCT queries")
        execute = aggregated_rows(reading, group, bool(statement.group_by))
    else:
        execute = fast_or_paged_rows(reading, statement, table)
    if restrictions.clustering and restrictions.key_values is None and not statement.allow_filtering:
        execute = _warned(execute)
    return SelectPlan(table, reading.shown, restrictions, execute)


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


def _warned(execute: Callable[[Run], Rows]) -> Callable[[Run], Rows]:
    """Slices of all partitions are served with a warning (ScyllaDB's `strict_allow_filtering: warn`)."""
    return lambda run: replace(execute(run), warnings=(_SHOULD_ALLOW_FILTERING,))
