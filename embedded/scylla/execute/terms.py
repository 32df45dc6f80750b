"""Terms → compiled terms: callables that give the serialised value, checked for the column they are for.

In: a term's tree and its receiver (a column's name and type). Out: a `Bound`; constants are evaluated once,
here. Bind markers note in the scope what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from connector.values import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    encode_vint,
    fixed_size,
)
from embedded.scylla.cql.tree import (
    CallTerm,
    Constant,
    HintTerm,
    ListTerm,
    MapTerm,
    Marker,
    Null,
    SetTerm,
    Term,
    TupleTerm,
    UserTerm,
)
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.functions import Function, candidates, from_json_function
from embedded.scylla.execute.literals import constant_bytes
from embedded.scylla.execute.run import Bound, Fixed, Run
from embedded.scylla.execute.types import assignable, resolve_type
from embedded.scylla.execute.validation import Check, checker, in_list_checker, pack_cells, pack_collection
from embedded.scylla.results import UNSET, BoundValue, ColumnSpec
from embedded.scylla.schema import Table


class Scope:
    """What a statement's terms are compiled in: its table, the user types, and the bind markers met so far."""

    def __init__(
        self,
        keyspace: str,
        table: Table | None,
        user_types: Mapping[str, UserType],
        markers: tuple[str | None, ...] = (),
    ) -> None:
        self.keyspace = keyspace
        self.table = table
        self.user_types = user_types
        self.markers = markers
        self.variables: dict[int, ColumnSpec] = {}
        # What each marker is for, in the order of the statement: a marker with a name may be for several columns.
        self.targets: list[tuple[str, int]] = []
        # Lists that are only compared with may hold nulls.
        self.nulls_in_lists = False

    def spec(self, name: str, type_: CqlType) -> ColumnSpec:
        return ColumnSpec(self.keyspace, self.table.name if self.table else "", name, type_)

    def bind(self, marker: Marker, name: str, type_: CqlType) -> None:
        self.targets.append((name, marker.index))
        before = self.variables.get(marker.index)
        if before is not None and before.type != type_:
            raise InvalidRequest(
                f"variable :{marker.name} has type {before.type.cql()} which doesn't match {type_.cql()}"
            )
        self.variables[marker.index] = self.spec(marker.name or name, type_)


def compile_term(term: Term, name: str, type_: CqlType, scope: Scope) -> Bound:
    """The compiled term for a receiver of this name and type."""
    if isinstance(term, Marker):
        scope.bind(term, name, type_)
        return bound_marker(term.index, name, checker(type_))
    if isinstance(term, Constant):
        return Fixed(_constant(term, name, type_))
    if isinstance(term, Null):
        return Fixed(None)
    if isinstance(term, ListTerm):
        return _sequence(term, name, type_, scope)
    if isinstance(term, SetTerm):
        return _set(term, name, type_, scope)
    if isinstance(term, MapTerm):
        return _map(term, name, type_, scope)
    if isinstance(term, UserTerm):
        return _user(term, name, type_, scope)
    if isinstance(term, TupleTerm):
        return _tuple(term, name, type_, scope)
    if isinstance(term, HintTerm):
        hinted = resolve_type(term.type, scope.keyspace, scope.user_types)
        if not assignable(type_, hinted):
            raise InvalidRequest(f"Cannot assign value {hinted.cql()} to {name} of type {type_.cql()}")
        return compile_term(term.term, name, hinted, scope)
    return _call(term, name, type_, scope)


def element_name(column: str) -> str:
    """What ScyllaDB calls an element of an IN's list in parentheses."""
    return f"value(in({column}))"


def compile_in_list(value: Term, name: str, element: CqlType, scope: Scope) -> Bound:
    """The values of an IN given as one: `name` is the list's, its elements may be null."""
    if isinstance(value, Marker):
        scope.bind(value, name, ListType(element, True))
        return bound_marker(value.index, name, in_list_checker(element))
    return compile_term(value, name, ListType(element, True), scope)


def bound_marker(index: int, name: str, check: Check) -> Bound:
    """The value that a client binds, checked."""

    def bound(run: Run) -> BoundValue:
        raw = run.values[index]
        if raw is None or raw is UNSET:
            return raw
        try:
            return check(raw)  # type: ignore[arg-type]
        except ValueError as error:
            raise InvalidRequest(f"Exception while binding column {name}: marshaling error: {error}") from None

    return bound


def _constant(constant: Constant, name: str, type_: CqlType) -> bytes:
    try:
        raw = constant_bytes(constant, type_.name) if isinstance(type_, NativeType) else None
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    if raw is None:
        kind = constant.kind.upper()
        raise InvalidRequest(f'Invalid {kind} constant ({constant.text}) for "{name}" of type {type_.cql()}')
    return raw


Combine = Callable[[list[bytes | None]], bytes]


_NO_NULLS: Final = "null is not supported inside collections"


def _combined(parts: list[Bound], combine: Combine, nulls: bool = False, null_error: str = _NO_NULLS) -> Bound:
    """A value made of others. `nulls`: null is allowed among them."""

    def values(run: Run | None) -> bytes:
        cells: list[bytes | None] = []
        for part in parts:
            raw = part(cast(Run, run))
            if raw is UNSET:
                raise InvalidRequest("unset value is not supported inside collections")
            if raw is None and not nulls:
                raise InvalidRequest(null_error)
            cells.append(cast("bytes | None", raw))
        return combine(cells)

    return Fixed(values(None)) if all(isinstance(part, Fixed) for part in parts) else values


def _checked(check: Check, per_entry: int) -> Combine:
    """Packs a collection's elements and brings them into order; too long for a constant is found here too."""
    return lambda cells: check(pack_collection(cast("list[bytes]", cells), per_entry))


def _sequence(term: ListTerm, name: str, type_: CqlType, scope: Scope) -> Bound:
    if isinstance(type_, VectorType):
        if len(term.items) != type_.dimensions:
            raise InvalidRequest(
                f"Invalid vector literal for {name}: expected {type_.dimensions} elements, got {len(term.items)}"
            )
        parts = [compile_term(item, f"value({name})", type_.element, scope) for item in term.items]
        return _combined(parts, _vector_packer(type_))
    if not isinstance(type_, ListType):
        raise InvalidRequest(f"Invalid list type literal for {name} of type {type_.cql()}")
    parts = [compile_term(item, f"value({name})", type_.element, scope) for item in term.items]
    if scope.nulls_in_lists:
        return _combined(parts, lambda cells: pack_collection(cast("list[bytes]", cells)), nulls=True)
    return _combined(parts, _checked(checker(type_), 1), null_error="Cannot store NULL in list or set")


def _vector_packer(type_: VectorType) -> Combine:
    if fixed_size(type_.element) is not None:
        return lambda cells: b"".join(cell or b"" for cell in cells)
    return lambda cells: b"".join(encode_vint(len(cell or b"")) + (cell or b"") for cell in cells)


def _set(term: SetTerm, name: str, type_: CqlType, scope: Scope) -> Bound:
    if isinstance(type_, MapType) and not term.items:
        return Fixed(pack_collection([]))

    if not isinstance(type_, SetType):
        raise InvalidRequest(f"Invalid set type literal for {name} of type {type_.cql()}")
    parts = [compile_term(item, f"value({name})", type_.element, scope) for item in term.items]
    return _combined(parts, _checked(checker(type_), 1))


def _map(term: MapTerm, name: str, type_: CqlType, scope: Scope) -> Bound:
    if not isinstance(type_, MapType):
        raise InvalidRequest(f"Invalid map type literal for {name} of type {type_.cql()}")
    parts: list[Bound] = []
    for key, value in term.pairs:
        parts.append(compile_term(key, f"key({name})", type_.key, scope))
        parts.append(compile_term(value, f"value({name})", type_.value, scope))
    return _combined(parts, _checked(checker(type_), 2))


def _user(term: UserTerm, name: str, type_: CqlType, scope: Scope) -> Bound:
    if not isinstance(type_, UserType):
        raise InvalidRequest(f"Invalid user type literal for {name} of type {type_.cql()}")
    given = dict(term.fields)
    for field in given:
        if field not in dict(type_.fields):
            raise InvalidRequest(f"Unknown field '{field}' in value of user defined type {type_.name}")
    parts = [
        compile_term(given.get(field, Null()), f"{name}.{field}", field_type, scope)
        for field, field_type in type_.fields
    ]
    return _combined(parts, pack_cells, nulls=True)


def _tuple(term: TupleTerm, name: str, type_: CqlType, scope: Scope) -> Bound:
    if not isinstance(type_, TupleType):
        if len(term.items) == 1:
            return compile_term(term.items[0], name, type_, scope)
        raise InvalidRequest(f"Invalid tuple type literal for {name} of type {type_.cql()}")
    if len(term.items) > len(type_.elements):
        raise InvalidRequest(
            f"Invalid tuple literal for {name}: too many elements. Type {type_.cql()} expects "
            f"{len(type_.elements)} but got {len(term.items)}"
        )
    parts = [
        compile_term(item, f"{name}[{at}]", element, scope)
        for at, (item, element) in enumerate(zip(term.items, type_.elements))
    ]
    return _combined(parts, pack_cells, nulls=True)


# ---- function calls ----------------------------------------------------------------------------------------------


def _fits(term: Term, type_: CqlType, scope: Scope) -> bool:
    """Whether a term may be an argument of this type."""
    if isinstance(term, Marker | Null):
        return True
    if isinstance(term, CallTerm):
        return any(assignable(type_, found.returns) for found in _overloads(term, scope))
    if isinstance(term, HintTerm):
        return assignable(type_, resolve_type(term.type, scope.keyspace, scope.user_types))
    if isinstance(term, Constant):
        try:
            return isinstance(type_, NativeType) and constant_bytes(term, type_.name) is not None
        except ValueError:
            return False
    return True


def _overloads(term: CallTerm, scope: Scope) -> list[Function]:
    found = candidates(term.name, scope.table)
    if not found:
        raise InvalidRequest(f"Unknown function {term.name} called")
    fitting = [
        function
        for function in found
        if len(function.arguments) == len(term.arguments)
        and all(_fits(given, wanted, scope) for given, wanted in zip(term.arguments, function.arguments))
    ]
    if not fitting:
        raise InvalidRequest(
            f"Invalid call to function {term.name}, none of its type signatures match "
            f"(known type signatures: {', '.join(str(function) for function in found)})"
        )
    return fitting


def _call(term: CallTerm, name: str, type_: CqlType, scope: Scope) -> Bound:
    if term.name in ("fromjson", "from_json"):
        if len(term.arguments) != 1:
            raise InvalidRequest(f"Invalid number of arguments in call to function {term.name}")
        function = from_json_function(type_)
    else:
        fitting = _overloads(term, scope)
        returning = [function for function in fitting if assignable(type_, function.returns)]
        if not returning:
            raise InvalidRequest(
                f"Type error: cannot assign result of function system.{fitting[0].name} "
                f"(type {fitting[0].returns.cql()}) to {name} (type {type_.cql()})"
            )
        if len(returning) > 1 and any(isinstance(argument, Marker | Null) for argument in term.arguments):
            raise InvalidRequest(
                f"Ambiguous call to function system.{returning[0].name} (can be matched by following signatures: "
                f"{', '.join(map(str, returning))}): use type casts to disambiguate"
            )
        function = returning[0]
    arguments = [
        compile_term(given, f"arg{at}({function.name})", wanted, scope)
        for at, (given, wanted) in enumerate(zip(term.arguments, function.arguments))
    ]
    evaluate = function.evaluate

    def call(run: Run) -> BoundValue:
        cells: list[bytes | None] = []
        for argument in arguments:
            raw = argument(run)
            if raw is UNSET:
                raise InvalidRequest(f"Invalid unset value for argument in call to function {function.name}")
            cells.append(cast("bytes | None", raw))
        return evaluate(run, cells)

    return call
