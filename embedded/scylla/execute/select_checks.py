"""The clauses of a SELECT that ScyllaDB takes in some forms only: DISTINCT, ORDER BY, LIMIT, GROUP BY.

In: a statement's tree, what it selects, its compiled WHERE clause. Out: what a clause means, or ScyllaDB's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from connector.values import native
from embedded.scylla.cql.tree import AnyRelation, InList, Relation, Select, Term, TokenRelation, TupleRelation
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.paging import NO_LIMIT
from embedded.scylla.execute.restrictions import Restrictions
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.selectors import Selection
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column, Table


def check_statics(statement: Select, selections: list[Selection], table: Table, restrictions: Restrictions) -> None:
    if not statement.selected or not restrictions.clustering:
        return
    kinds = {column.kind for selection in selections for column in selection.columns}
    if "static" in kinds and kinds <= {"static", "partition_key"}:
        raise InvalidRequest("Cannot restrict clustering columns when selecting only static columns")


def check_distinct(
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


def reads_backwards(statement: Select, table: Table, restrictions: Restrictions) -> bool:
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


def compile_limit(term: Term | None, what: str, scope: Scope) -> Callable[[Run], int]:
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


def group_columns(names: tuple[str, ...], table: Table, restrictions: Restrictions) -> tuple[Column, ...]:
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
