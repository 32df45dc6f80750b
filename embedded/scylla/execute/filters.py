"""ALLOW FILTERING: relations that are tried on each row.

In: a relation. Out: a `Filter`, which for one execution gives a predicate over rows. Null never satisfies a
relation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, cast

from connector.values.binary import split_cells
from connector.values.ordering import order_key
from connector.values.types import CqlType, ListType, MapType, SetType, UserType, freeze
from embedded.scylla.cql.tree import AnyRelation, InList, Relation, Term, TokenRelation, TupleRelation, TupleTerm
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.rows import Get, RowAt, column_getter
from embedded.scylla.execute.run import Bound, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column, Table

Predicate = Callable[[RowAt], bool]
Filter = Callable[[Run], Predicate]
COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_filter(relation: AnyRelation, table: Table, scope: Scope) -> Filter:
    """The filter of one relation."""
    if isinstance(relation, TupleRelation):
        return _tuple_filter(relation, table, scope)
    if isinstance(relation, TokenRelation):
        raise InvalidRequest("token relations are not filtered")
    column = table.by_name[relation.column]
    get, type_, name = _target(relation, column, scope)
    op = relation.operator
    if op in ("CONTAINS", "CONTAINS KEY"):
        return _contains(relation, column, scope)
    if op == "IN":
        return _in_filter(relation, get, type_, name, scope)
    wanted = compile_term(cast(Term, relation.value), name, type_, scope)
    order, compare = order_key(freeze(type_)), COMPARISONS[op]

    def begin(run: Run) -> Predicate:
        right = order(_value(wanted(run), name))
        taken = get(run)

        def holds(row: RowAt) -> bool:
            raw = taken(row)
            return raw is not None and compare(order(raw), right)

        return holds

    return begin


def _value(raw: object, name: str) -> bytes:
    if raw is None:
        raise InvalidRequest(f"Invalid null value in condition for column {name}")
    if raw is UNSET:
        raise InvalidRequest(f"Invalid unset value for column {name}")
    return cast(bytes, raw)


def _target(relation: Relation, column: Column, scope: Scope) -> tuple[Callable[[Run], Get], CqlType, str]:
    """What the relation compares: the column, or one element of a map in it."""
    whole = column_getter(column)
    if relation.key is None and relation.field is None:
        return (lambda run: whole), column.type, column.name
    type_ = column.type
    if relation.key is None or not isinstance(type_, MapType):
        raise InvalidRequest(f"Column {column.name} cannot be used as a map")
    key = compile_term(relation.key, f"key({column.name})", type_.key, scope)
    order = order_key(type_.key)

    def begin(run: Run) -> Get:
        wanted = order(_value(key(run), column.name))

        def get(row: RowAt) -> bytes | None:
            raw = whole(row)
            cells = split_cells(raw, 2) if raw else []
            for name, value in zip(cells[::2], cells[1::2]):
                if name is not None and order(name) == wanted:
                    return value
            return None

        return get

    return begin, type_.value, f"value({column.name})"


def _in_filter(relation: Relation, get: Callable[[Run], Get], type_: CqlType, name: str, scope: Scope) -> Filter:
    order = order_key(freeze(type_))
    candidates = in_values(relation.value, name, type_, scope)

    def begin(run: Run) -> Predicate:
        wanted = {order(_value(raw, name)) for raw in candidates(run)}
        taken = get(run)
        return lambda row: (raw := taken(row)) is not None and order(raw) in wanted

    return begin


def in_values(value: Term | InList, name: str, type_: CqlType, scope: Scope) -> Callable[[Run], list[bytes | None]]:
    """The values of an IN, in the order given; null stays."""
    if isinstance(value, InList):
        items: list[Bound] = [compile_term(item, name, type_, scope) for item in value.items]
        return lambda run: [cast("bytes | None", item(run)) for item in items]
    whole = compile_term(value, f"in({name})", ListType(freeze(type_), True), scope)
    return lambda run: split_cells(_value(whole(run), name))


def _contains(relation: Relation, column: Column, scope: Scope) -> Filter:
    type_, keys = column.type, relation.operator == "CONTAINS KEY"
    if isinstance(type_, MapType):
        wanted_type, width, offset = (type_.key, 2, 0) if keys else (type_.value, 2, 1)
    elif isinstance(type_, ListType | SetType) and not keys:
        wanted_type, width, offset = type_.element, 1, 0
    else:
        raise InvalidRequest(f"Cannot use {relation.operator} on non-collection column {column.name}")
    wanted = compile_term(cast(Term, relation.value), f"value({column.name})", wanted_type, scope)
    order, get = order_key(wanted_type), column_getter(column)

    def begin(run: Run) -> Predicate:
        right = order(_value(wanted(run), column.name))

        def holds(row: RowAt) -> bool:
            raw = get(row)
            cells = split_cells(raw, width)[offset::width] if raw else []
            return any(cell is not None and order(cell) == right for cell in cells)

        return holds

    return begin


def _tuple_filter(relation: TupleRelation, table: Table, scope: Scope) -> Filter:
    if relation.operator not in COMPARISONS or not isinstance(relation.value, TupleTerm):
        raise InvalidRequest(f"Unsupported multi-column relation {relation.operator} with filtering")
    columns = [table.by_name[name] for name in relation.columns]
    parts = [compile_term(item, column.name, column.type, scope) for item, column in zip(relation.value.items, columns)]
    getters = [column_getter(column) for column in columns]
    orders = [order_key(column.type) for column in columns]
    compare = COMPARISONS[relation.operator]

    def begin(run: Run) -> Predicate:
        right = tuple(order(_value(part(run), column.name)) for order, part, column in zip(orders, parts, columns))

        def holds(row: RowAt) -> bool:
            raws = [get(row) for get in getters]
            if None in raws:
                return False
            return compare(tuple(order(cast(bytes, raw)) for order, raw in zip(orders, raws)), right)

        return holds

    return begin


def field_place(type_: UserType, name: str) -> int:
    """The index of a user type's field; −1 if there is none."""
    return next((at for at, (field, _) in enumerate(type_.fields) if field == name), -1)
