"""IF …: the conditions of a conditional statement, tried on the row as it is.

In: conditions and their table. Out: `CompiledConditions`, which say whether they hold and which columns the
answer shows. Unlike in WHERE, null is a value here: `v = null` holds where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from connector.values import CqlType, ListType, MapType, UserType, freeze, native, order_key, split_cells, split_fields
from embedded.scylla.cql.tree import Conditions, Relation, Term
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.filters import COMPARISONS, Predicate, field_place, in_values, like_matcher
from embedded.scylla.execute.rows import Get, RowAt, column_getter
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.execute.types import element_contains_duration
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column, Table

_EMPTY = b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class CompiledConditions:
    """`exists` and `not_exists` look at the row's presence only. `columns` are those the answer shows."""

    exists: bool
    not_exists: bool
    tests: tuple[Callable[[Run], Predicate], ...]
    columns: tuple[Column, ...]
    regular: bool
    static: bool

    @property
    def static_only(self) -> bool:
        return self.static and not self.regular

    def hold(self, run: Run, row: RowAt | None, absent: RowAt) -> bool:
        """`row` is None if it does not exist; `absent` stands for it then."""
        if self.exists:
            return row is not None
        if self.not_exists:
            return row is None
        return all(test(run)(row if row is not None else absent) for test in self.tests)


def compile_conditions(
    conditions: Conditions, table: Table, scope: Scope, addresses_row: bool
) -> CompiledConditions | None:
    """None if there is no IF. `addresses_row`: the statement names a clustering row (or the table has none)."""
    if not conditions:
        return None
    if not conditions.relations:
        everything = table.ordered_columns
        return CompiledConditions(
            conditions.exists, conditions.not_exists, (), everything, addresses_row, not addresses_row
        )
    scope.nulls_in_lists = True
    tests, shown = [], set()
    for relation in conditions.relations:
        column = table.by_name.get(relation.column)
        if column is None:
            raise InvalidRequest(f"Unknown identifier {relation.column}")
        if column.kind in ("partition_key", "clustering"):
            raise InvalidRequest(f"PRIMARY KEY column '{column.name}' cannot have IF conditions")
        shown.add(column.name)
        tests.append(_test(relation, column, scope))
    scope.nulls_in_lists = False
    columns = tuple(column for column in table.ordered_columns if column.name in shown)
    kinds = {column.kind for column in columns}
    return CompiledConditions(False, False, tuple(tests), columns, "regular" in kinds, "static" in kinds)


def _test(relation: Relation, column: Column, scope: Scope) -> Callable[[Run], Predicate]:
    get, type_, name = _operand(relation, column, scope)
    order = order_key(freeze(type_))
    # A non-frozen collection without elements and one that is null are the same.
    emptied = column.multi_cell and relation.key is None and relation.field is None

    def keyed(raw: object) -> object:
        if raw is UNSET:
            raise InvalidRequest(f"Invalid 'unset' value in condition on column {name}")
        if raw is None or (emptied and raw == _EMPTY):
            return None
        return (order(cast(bytes, raw)),)

    operator = relation.operator
    if operator in ("IN", "NOT IN"):
        candidates = in_values(relation, name, type_, scope)
        unwanted = operator == "NOT IN"

        def begin_in(run: Run) -> Predicate:
            given = candidates(run)
            if given is None:
                return lambda row: unwanted
            wanted = [keyed(raw) for raw in given]
            taken = get(run)
            return lambda row: (keyed(taken(row)) in wanted) is not unwanted

        return begin_in
    if operator == "LIKE":
        matches = like_matcher(relation, type_, name, scope)

        def begin_like(run: Run) -> Predicate:
            match, taken = matches(run), get(run)
            return lambda row: match is not None and (raw := taken(row)) is not None and match(raw)

        return begin_like
    if operator not in COMPARISONS:
        raise InvalidRequest(f"Unsupported condition operator {operator} on column {name}")
    if operator not in ("=", "!=") and element_contains_duration(type_):
        holder = "durations" if type_ == native("duration") else f"{type_.cql()}, which contains durations"
        raise InvalidRequest(f"Slice conditions are not supported on {holder}")
    wanted_term = compile_term(cast(Term, relation.value), name, type_, scope)
    compare = COMPARISONS[operator]

    def begin(run: Run) -> Predicate:
        right = keyed(wanted_term(run))
        taken = get(run)
        if operator in ("=", "!="):
            return lambda row: compare(keyed(taken(row)), right)
        if right is None:
            raise InvalidRequest(f'Invalid comparison with null for operator "{operator}"')
        return lambda row: (left := keyed(taken(row))) is not None and compare(left, right)

    return begin


def _operand(relation: Relation, column: Column, scope: Scope) -> tuple[Callable[[Run], Get], CqlType, str]:
    whole = column_getter(column)
    type_ = column.type
    if relation.field is not None:
        if not isinstance(type_, UserType):
            raise InvalidRequest(f"Invalid field access on column {column.name}, which is no user type")
        place = field_place(type_, relation.field)
        if place < 0:
            raise InvalidRequest(f"Unknown field '{relation.field}' in user type {type_.name}")
        count, spelled = len(type_.fields), type_.cql()

        def field(row: RowAt) -> bytes | None:
            raw = whole(row)
            return split_fields(raw, count, spelled)[place] if raw else None

        return (lambda run: field), type_.fields[place][1], f"{column.name}.{relation.field}"
    if relation.key is None:
        return (lambda run: whole), type_, column.name
    if isinstance(type_, ListType):
        index = compile_term(relation.key, f"index({column.name})", native("int"), scope)

        def begin_index(run: Run) -> Get:
            place = _key(index(run))
            at = -1 if place is None else int.from_bytes(place, "big", signed=True)

            def element(row: RowAt) -> bytes | None:
                raw = whole(row)
                cells = split_cells(raw) if raw else []
                return cells[at] if 0 <= at < len(cells) else None

            return element

        return begin_index, type_.element, f"value({column.name})"
    if not isinstance(type_, MapType):
        raise InvalidRequest(f"Column {column.name} of type {type_.cql()} has no elements to compare")
    key = compile_term(relation.key, f"key({column.name})", type_.key, scope)
    order = order_key(type_.key)

    def begin_key(run: Run) -> Get:
        place = _key(key(run))
        wanted = None if place is None else order(place)

        def value(row: RowAt) -> bytes | None:
            raw = whole(row)
            cells = split_cells(raw, 2) if raw else []
            for name, cell in zip(cells[::2], cells[1::2]):
                if name is not None and order(name) == wanted:
                    return cell
            return None

        return value

    return begin_key, type_.value, f"value({column.name})"


def _key(raw: object) -> bytes | None:
    """An element's key; there is no element at null."""
    if raw is UNSET:
        raise InvalidRequest("Invalid unset value for element access")
    return cast("bytes | None", raw)
