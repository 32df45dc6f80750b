"""What SELECT computes of a row: columns, functions of them, elements and fields, write times.

In: selectors and their table. Out: `Selection`s with a name and type; per execution each gives a function of
rows, or folds all rows into one value when it contains an aggregate.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from connector.values import CqlType, ListType, MapType, SetType, UserType, native, order_key, split_cells, split_fields
from embedded.scylla.cql.tree import (
    CallSelector,
    CastSelector,
    ColumnSelector,
    Constant,
    ElementSelector,
    FieldSelector,
    Selected,
    Selector,
    Term,
)
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.aggregates import AGGREGATES, Accumulator, aggregate_type
from embedded.scylla.execute.casts import cast_function
from embedded.scylla.execute.filters import field_place
from embedded.scylla.execute.functions import Function, candidates
from embedded.scylla.execute.json_values import json_text
from embedded.scylla.execute.rows import Get, RowAt, cell_getter, column_getter
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.execute.types import assignable, resolve_type
from embedded.scylla.mutation import Cell
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column

_INT: Final = struct.Struct(">i").pack
_LONG: Final = struct.Struct(">q").pack


class Folder(Protocol):
    """Takes all rows of a group and gives one value."""

    def add(self, row: RowAt) -> None: ...

    def result(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """A compiled selector. `column` is set for a plain column; `columns` are all it looks at."""

    name: str
    type: CqlType
    begin: Callable[[Run], Get]
    columns: tuple[Column, ...] = ()
    column: Column | None = None
    fold: Callable[[Run], Folder] | None = None

    def folder(self, run: Run) -> Folder:
        return self.fold(run) if self.fold is not None else _First(self.begin(run))


class _First:
    """The value of a group's first row, for what is selected beside aggregates."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._value: bytes | None = None
        self._seen = False

    def add(self, row: RowAt) -> None:
        if not self._seen:
            self._seen = True
            self._value = self._get(row)

    def result(self) -> bytes | None:
        return self._value


class _Aggregate:
    """An aggregate of a value of each row; `get` is None for `count(*)`."""

    def __init__(self, accumulator: Accumulator, get: Get | None) -> None:
        self._accumulator = accumulator
        self._get = get

    def add(self, row: RowAt) -> None:
        if self._get is None:
            self._accumulator.add(b"")
        else:
            raw = self._get(row)
            if raw is not None:
                self._accumulator.add(raw)

    def result(self) -> bytes | None:
        return self._accumulator.result()


class _Applied:
    """A scalar function of folded arguments."""

    def __init__(self, compute: Callable[[list[bytes | None]], bytes | None], inner: list[Folder]) -> None:
        self._compute = compute
        self._inner = inner

    def add(self, row: RowAt) -> None:
        for folder in self._inner:
            folder.add(row)

    def result(self) -> bytes | None:
        return self._compute([folder.result() for folder in self._inner])


def compile_column(column: Column) -> Selection:
    get = column_getter(column)
    return Selection(column.name, column.type, lambda run: get, (column,), column)


def compile_selected(selected: Selected, scope: Scope) -> tuple[Selection, str]:
    """The selection and the name of its column in the result."""
    selection = compile_selector(selected.selector, scope)
    return selection, selected.alias or selection.name


def compile_selector(selector: Selector, scope: Scope) -> Selection:
    if isinstance(selector, ColumnSelector):
        return compile_column(_column(selector.name, scope))
    if isinstance(selector, CallSelector):
        return _call(selector, scope)
    if isinstance(selector, CastSelector):
        inner = compile_selector(selector.inner, scope)
        target = resolve_type(selector.type, scope.keyspace, scope.user_types)
        if inner.type == target:
            return inner
        convert = cast_function(inner.type, target)
        name = f"cast({inner.name} as {target.cql()})"
        return _applied(name, target, [inner], lambda run, cells: None if cells[0] is None else convert(cells[0]))
    inner = compile_selector(selector.inner, scope)
    if isinstance(selector, FieldSelector):
        return _field(inner, selector.field)
    return _element(inner, selector.key, scope)


def _column(name: str, scope: Scope) -> Column:
    assert scope.table is not None
    column = scope.table.by_name.get(name)
    if column is None:
        raise InvalidRequest(f"Unrecognized name {name}")
    return column


def _applied(
    name: str,
    type_: CqlType,
    inner: list[Selection],
    evaluate: Callable[[Run, list[bytes | None]], bytes | None],
) -> Selection:
    """A function of other selections, of a row or (if one of them aggregates) of a group."""
    columns = tuple(column for selection in inner for column in selection.columns)

    def begin(run: Run) -> Get:
        getters = [selection.begin(run) for selection in inner]
        return lambda row: evaluate(run, [get(row) for get in getters])

    if not any(selection.fold is not None for selection in inner):
        return Selection(name, type_, begin, columns)

    def fold(run: Run) -> Folder:
        return _Applied(lambda cells: evaluate(run, cells), [each.folder(run) for each in inner])

    return Selection(name, type_, begin, columns, fold=fold)


def _field(inner: Selection, field: str) -> Selection:
    type_ = inner.type
    if not isinstance(type_, UserType):
        raise InvalidRequest(f"Invalid field selection: {inner.name} of type {type_.cql()} is not a user type")
    place = field_place(type_, field)
    if place < 0:
        raise InvalidRequest(f"{inner.name} of type {type_.cql()} has no field {field}")
    count, spelled = len(type_.fields), type_.cql()

    def take(run: Run, cells: list[bytes | None]) -> bytes | None:
        return split_fields(cells[0], count, spelled)[place] if cells[0] else None

    return _applied(f"{inner.name}.{field}", type_.fields[place][1], [inner], take)


def _element(inner: Selection, key: Term, scope: Scope) -> Selection:
    type_ = inner.type
    shown = getattr(key, "text", "?")
    if isinstance(key, Constant) and key.kind == "string":
        shown = f"'{shown}'"
    name = f"{inner.name}[{shown}]"
    if isinstance(type_, ListType):
        index = compile_term(key, f"index({inner.name})", native("int"), scope)

        def at(run: Run, cells: list[bytes | None]) -> bytes | None:
            raw = index(run)
            if not cells[0] or raw is None or raw is UNSET:
                return None
            place, parts = int.from_bytes(cast(bytes, raw), "big", signed=True), split_cells(cells[0])
            return parts[place] if 0 <= place < len(parts) else None

        return _applied(name, type_.element, [inner], at)
    if not isinstance(type_, MapType | SetType):
        raise InvalidRequest(f"Invalid element selection: {inner.name} is of type {type_.cql()}")
    element = type_.key if isinstance(type_, MapType) else type_.element
    compiled, order = compile_term(key, f"key({inner.name})", element, scope), order_key(element)
    width = 2 if isinstance(type_, MapType) else 1

    def find(run: Run, cells: list[bytes | None]) -> bytes | None:
        wanted = compiled(run)
        if not cells[0] or wanted is None or wanted is UNSET:
            return None
        place, parts = order(cast(bytes, wanted)), split_cells(cells[0], width)
        for offset in range(0, len(parts), width):
            if order(cast(bytes, parts[offset])) == place:
                return parts[offset + width - 1]
        return None

    return _applied(name, type_.value if isinstance(type_, MapType) else element, [inner], find)


# ---- functions ---------------------------------------------------------------------------------------------------


def _call(selector: CallSelector, scope: Scope) -> Selection:
    name = selector.name
    if name in ("writetime", "ttl"):
        return _metadata(selector, scope)
    if name in AGGREGATES:
        return _aggregate(selector, scope)
    if name == "count":
        raise InvalidRequest("Invalid call to function count")
    assert selector.arguments is not None
    if name in ("tojson", "to_json"):
        if len(selector.arguments) != 1:
            raise InvalidRequest(f"Invalid number of arguments in call to function system.{name}")
        shown = compile_selector(selector.arguments[0], scope)
        type_ = shown.type
        return _applied(
            f"system.{name}({shown.name})",
            native("text"),
            [shown],
            lambda run, cells: json_text(cells[0], type_).encode(),
        )
    found = candidates(name, scope.table)
    if not found:
        raise InvalidRequest(f"Unknown function {name} called")
    inner = [compile_selector(argument, scope) for argument in selector.arguments]
    _check_count(found, len(inner))
    fitting = [function for function in found if _fits(function, inner)]
    if not fitting:
        raise InvalidRequest(
            f"Invalid call to function {name}, none of its type signatures match "
            f"(known type signatures: {', '.join(str(function) for function in found)})"
        )
    function = fitting[0]
    called = f"system.{name}({', '.join(each.name for each in inner)})"
    return _applied(called, function.returns, inner, function.evaluate)


def _check_count(found: list[Function], given: int) -> None:
    if len(found) == 1 and len(found[0].arguments) != given:
        raise InvalidRequest(
            f"Invalid number of arguments in call to function system.{found[0].name}: "
            f"{len(found[0].arguments)} required but {given} provided"
        )


def _fits(function: Function, given: list[Selection]) -> bool:
    return len(function.arguments) == len(given) and all(
        assignable(kind, selection.type) for kind, selection in zip(function.arguments, given)
    )


def _aggregate(selector: CallSelector, scope: Scope) -> Selection:
    name = selector.name
    if selector.arguments is None:
        make = AGGREGATES["count"]
        return Selection(
            "count",
            native("bigint"),
            lambda run: lambda row: None,
            fold=lambda run: _Aggregate(make(native("bigint")), None),
        )
    if len(selector.arguments) != 1:
        raise InvalidRequest(f"Invalid number of arguments in call to function system.{name}")
    inner = compile_selector(selector.arguments[0], scope)
    if inner.fold is not None:
        raise InvalidRequest("aggregate functions cannot be used as arguments of aggregate functions")
    type_, make = aggregate_type(name, inner.type), AGGREGATES[name]

    def fold(run: Run) -> Folder:
        return _Aggregate(make(inner.type), inner.begin(run))

    return Selection(f"system.{name}({inner.name})", type_, inner.begin, inner.columns, fold=fold)


def _metadata(selector: CallSelector, scope: Scope) -> Selection:
    """`writetime` and `ttl` of a column, an element of a map or set, or a field."""
    name = selector.name
    given = selector.arguments or ()
    if len(given) != 1:
        raise InvalidRequest(f"Invalid number of arguments in call to function {name}")
    target = given[0]
    path: Callable[[Run], bytes] | None = None
    if isinstance(target, ElementSelector | FieldSelector) and isinstance(target.inner, ColumnSelector):
        column = _column(target.inner.name, scope)
        path = _path(column, target, scope)
    elif isinstance(target, ColumnSelector):
        column = _column(target.name, scope)
        if column.multi_cell:
            raise InvalidRequest(
                f"{name.upper()} expects an atomic column, but {column.name} is a non-frozen collection"
            )
    else:
        raise InvalidRequest(f"{name} expects a column name")
    if column.kind in ("partition_key", "clustering"):
        raise InvalidRequest(f"{name.upper()} is not legal on partition key component {column.name}")
    cell_of = cell_getter(column)

    def begin(run: Run) -> Get:
        key = path(run) if path is not None else b""

        def get(row: RowAt) -> bytes | None:
            found = cell_of(row)
            if isinstance(found, list):
                found = next((cell for place, cell in found if place == key), None)
            if not isinstance(found, Cell):
                return None
            if name == "writetime":
                return _LONG(found.timestamp)
            return _INT(found.expiry - run.now_s) if found.ttl else None

        return get

    return Selection(f"{name}({column.name})", native("bigint" if name == "writetime" else "int"), begin, (column,))


def _path(column: Column, target: ElementSelector | FieldSelector, scope: Scope) -> Callable[[Run], bytes]:
    """The key of the cell that an element or field is in."""
    type_ = column.type
    if isinstance(target, FieldSelector):
        place = field_place(type_, target.field) if isinstance(type_, UserType) else -1
        if place < 0 or not column.multi_cell:
            raise InvalidRequest(f"Invalid field selection {target.field} of column {column.name}")
        return lambda run: place.to_bytes(2, "big")
    if not column.multi_cell or not isinstance(type_, MapType | SetType):
        raise InvalidRequest(f"Column {column.name} of type {type_.cql()} has no cells by key")
    element = type_.key if isinstance(type_, MapType) else type_.element
    compiled = compile_term(target.key, f"key({column.name})", element, scope)
    return lambda run: cast(bytes, compiled(run) or b"")
