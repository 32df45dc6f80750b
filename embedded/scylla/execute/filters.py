"""ALLOW FILTERING: relations that are tried on each row.

In: a relation. Out: a `Filter`, which for one execution gives a predicate over rows. Null never satisfies a
relation.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final, cast

from connector.values import (
    CqlType,
    ListType,
    MapType,
    SetType,
    TupleType,
    UserType,
    freeze,
    native,
    order_key,
    split_cells,
    split_fields,
)
from embedded.scylla.cql.tree import (
    AnyRelation,
    InList,
    Relation,
    Term,
    TokenRelation,
    TupleRelation,
    TupleTerm,
    term_text,
)
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.rows import Get, RowAt, column_getter
from embedded.scylla.execute.run import Bound, Run
from embedded.scylla.execute.terms import Scope, compile_in_list, compile_term, element_name
from embedded.scylla.execute.types import element_contains_duration
from embedded.scylla.execute.validation import pack_cells
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
    if op in ("IN", "NOT IN"):
        return _in_filter(relation, get, type_, name, scope)
    if op == "LIKE":
        return _like(relation, get, type_, name, scope)
    wanted = compile_term(cast(Term, relation.value), name, type_, scope)
    if op != "=" and element_contains_duration(type_):
        raise InvalidRequest("Slice restrictions are not supported on durations")
    order, compare = _order(type_), COMPARISONS[op]

    def begin(run: Run) -> Predicate:
        value = _value(wanted(run), name)
        if value is None:
            return nothing
        right, taken = order(value), get(run)

        def holds(row: RowAt) -> bool:
            raw = taken(row)
            return raw is not None and compare(order(raw), right)

        return holds

    return begin


def _order(type_: CqlType) -> Callable[[bytes], Any]:
    """The order of a type's values. Elements that a tuple's bytes leave out at the end are null, as in ScyllaDB."""
    order = order_key(freeze(type_))
    if not isinstance(type_, TupleType):
        return order
    width, spelled = len(type_.elements), type_.cql()
    return lambda raw: order(pack_cells(split_fields(raw, width, spelled)))


def nothing(row: RowAt) -> bool:
    """No row compares with null."""
    return False


def _value(raw: object, name: str) -> bytes | None:
    if raw is UNSET:
        raise InvalidRequest(f"Invalid unset value for column {name}")
    return cast("bytes | None", raw)


def relation_text(relation: AnyRelation) -> str:
    """The relation as CQL writes it, for errors."""
    if isinstance(relation, Relation):
        left = relation.column + (f"[{term_text(relation.key)}]" if relation.key is not None else "")
    else:
        left = ("token" if isinstance(relation, TokenRelation) else "") + f"({', '.join(relation.columns)})"
    value = relation.value
    right = f"({', '.join(map(term_text, value.items))})" if isinstance(value, InList) else term_text(value)
    return f"{left} {relation.operator} {right}"


def _like(relation: Relation, get: Callable[[Run], Get], type_: CqlType, name: str, scope: Scope) -> Filter:
    matches = like_matcher(relation, type_, name, scope)

    def begin(run: Run) -> Predicate:
        match, taken = matches(run), get(run)
        return nothing if match is None else lambda row: (raw := taken(row)) is not None and match(raw)

    return begin


def like_matcher(
    relation: Relation, type_: CqlType, name: str, scope: Scope
) -> Callable[[Run], Callable[[bytes], bool] | None]:
    """For an execution what tells whether a text is like the pattern; None if that is null."""
    if type_ not in (native("text"), native("ascii")):
        raise InvalidRequest(f"LIKE is allowed only on string types, which {name} is not")
    pattern = compile_term(cast(Term, relation.value), name, type_, scope)

    def begin(run: Run) -> Callable[[bytes], bool] | None:
        value = _value(pattern(run), name)
        if value is None:
            return None
        expression = re.compile(_expression(value.decode()), re.DOTALL)
        return lambda raw: expression.fullmatch(raw.decode()) is not None

    return begin


def _expression(pattern: str) -> str:
    """A LIKE pattern as a regular expression: `%` is any text, `_` any character, `\\` takes the next one as it is."""
    parts, escaped = [], False
    for character in pattern:
        if character == "\\" and not escaped:
            escaped = True
            continue
        wild = None if escaped else {"%": ".*", "_": "."}.get(character)
        parts.append(re.escape(character) if wild is None else wild)
        escaped = False
    return "".join(parts) + ("\\\\" if escaped else "")


def _target(relation: Relation, column: Column, scope: Scope) -> tuple[Callable[[Run], Get], CqlType, str]:
    """What the relation compares: the column, or one element of a map in it."""
    whole = column_getter(column)
    if relation.key is None and relation.field is None:
        return (lambda run: whole), column.type, column.name
    type_ = column.type
    if relation.key is not None and isinstance(type_, ListType):
        return _list_element(relation.key, column, type_, whole, scope)
    if relation.key is None or not isinstance(type_, MapType):
        raise InvalidRequest(f"Column {column.name} is not a map/set/list, cannot be subscripted")
    key = compile_term(relation.key, f"key({column.name})", type_.key, scope)
    order = order_key(type_.key)

    def begin(run: Run) -> Get:
        raw_key = _value(key(run), column.name)
        if raw_key is None:
            return lambda row: None
        wanted = order(raw_key)

        def get(row: RowAt) -> bytes | None:
            raw = whole(row)
            cells = split_cells(raw, 2) if raw else []
            for name, value in zip(cells[::2], cells[1::2]):
                if name is not None and order(name) == wanted:
                    return value
            return None

        return get

    return begin, type_.value, f"value({column.name})"


def _list_element(
    key: Term, column: Column, type_: ListType, whole: Get, scope: Scope
) -> tuple[Callable[[Run], Get], CqlType, str]:
    index = compile_term(key, f"idx({column.name})", native("int"), scope)

    def begin(run: Run) -> Get:
        place = _value(index(run), column.name)
        if place is None:
            return lambda row: None
        at = int.from_bytes(place, "big", signed=True)

        def get(row: RowAt) -> bytes | None:
            raw = whole(row)
            cells = split_cells(raw) if raw else []
            return cells[at] if 0 <= at < len(cells) else None

        return get

    return begin, type_.element, f"value({column.name})"


def _in_filter(relation: Relation, get: Callable[[Run], Get], type_: CqlType, name: str, scope: Scope) -> Filter:
    order = order_key(freeze(type_))
    candidates = in_values(relation, name, type_, scope)
    unwanted = relation.operator == "NOT IN"

    def begin(run: Run) -> Predicate:
        given = candidates(run)
        if given is None:
            return nothing
        known = [value for raw in given if (value := _value(raw, name)) is not None]
        # A null among the values might be any, so that nothing is certain not to be among them.
        if unwanted and len(known) < len(given):
            return nothing
        wanted, taken = {order(value) for value in known}, get(run)
        return lambda row: (raw := taken(row)) is not None and (order(raw) in wanted) is not unwanted

    return begin


def in_values(
    relation: Relation, name: str, type_: CqlType, scope: Scope
) -> Callable[[Run], list[bytes | None] | None]:
    """The values of an IN or NOT IN, in the order given; null stays. None if the whole list is null."""
    value = relation.value
    if isinstance(value, InList):
        items: list[Bound] = [compile_term(item, element_name(name), type_, scope) for item in value.items]
        return lambda run: [cast("bytes | None", item(run)) for item in items]
    whole = compile_in_list(value, f"{relation.operator.lower()}({name})", freeze(type_), scope)
    return lambda run: None if (raw := _value(whole(run), name)) is None else split_cells(raw)


def _contains(relation: Relation, column: Column, scope: Scope) -> Filter:
    type_, keys = column.type, relation.operator == "CONTAINS KEY"
    if isinstance(type_, MapType):
        wanted_type, width, offset = (type_.key, 2, 0) if keys else (type_.value, 2, 1)
    elif isinstance(type_, ListType | SetType) and not keys:
        wanted_type, width, offset = type_.element, 1, 0
    else:
        what = f"non-map column {column.name}" if keys else f'non-collection column "{column.name}"'
        raise InvalidRequest(f"Cannot use {relation.operator} on {what}")
    wanted = compile_term(cast(Term, relation.value), f"value({column.name})", wanted_type, scope)
    order, get = order_key(wanted_type), column_getter(column)

    def begin(run: Run) -> Predicate:
        value = _value(wanted(run), column.name)
        if value is None:
            return nothing
        right = order(value)

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
        values = [_value(part(run), column.name) for part, column in zip(parts, columns)]
        if None in values:
            return nothing
        right = tuple(order(cast(bytes, value)) for order, value in zip(orders, values))

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
