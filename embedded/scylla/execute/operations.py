"""What INSERT, UPDATE and DELETE do to a column: from assignments and deletions to cells.

In: a column, what is assigned, and for each execution the `Run` with its timestamp and TTL. Out: `Operation`s
that write cells into a mutation. `v = null` writes a tombstone, UNSET nothing, a whole collection a tombstone
one microsecond before its cells. Adding or removing nothing leaves a collection without tombstone and cells: it changes
nothing in the table, yet ScyllaDB's log takes its column for touched, and its post-image for null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from connector.values import ListType, MapType, SetType, UserType, native, order_key, split_cells, split_fields
from embedded.scylla.cql.tree import Assignment, CallTerm, Deletion, Term, term_text
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.filters import field_place
from embedded.scylla.execute.run import Bound, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.merge import merge_column
from embedded.scylla.mutation import Cell, Cells, CollectionMutation
from embedded.scylla.results import UNSET
from embedded.scylla.schema import Column
from embedded.scylla.spelling import element_spelling, spelling

Elements = list[tuple[bytes, Cell]]
Current = Callable[[str], Elements | None]
"""A multi-cell column's present elements, for operations on lists that must be read first."""

Apply = Callable[[Run, Cells, Current], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """What happens to one column. `reads`: `Current` is asked."""

    column: Column
    apply: Apply
    reads: bool = False


def assign(column: Column, value: Bound) -> Operation:
    """`column = value`"""
    name = column.name
    if not column.multi_cell:

        def write_cell(run: Run, cells: Cells, current: Current) -> None:
            raw = value(run)
            if raw is None:
                cells[name] = Cell(run.timestamp, None)
            elif raw is not UNSET:
                cells[name] = Cell(run.timestamp, cast(bytes, raw), run.ttl, run.expiry)

        return Operation(column, write_cell)
    elements = element_writer(column)

    def write_all(run: Run, cells: Cells, current: Current) -> None:
        raw = value(run)
        if raw is not UNSET:
            written = elements(run, cast(bytes, raw)) if raw else {}
            merge_column(cells, name, CollectionMutation(run.timestamp - 1, written))

    return Operation(column, write_all)


def element_writer(column: Column) -> Callable[[Run, bytes], dict[bytes, Cell]]:
    """From a serialised collection or user type to live cells."""
    type_ = column.type
    spell = element_spelling(type_) or bytes

    def write(run: Run, raw: bytes) -> dict[bytes, Cell]:
        def live(value: bytes) -> Cell:
            return Cell(run.timestamp, value, run.ttl, run.expiry)

        if isinstance(type_, UserType):
            fields = split_fields(raw, len(type_.fields), type_.cql())
            return {at.to_bytes(2, "big"): live(part) for at, part in enumerate(fields) if part is not None}
        if isinstance(type_, MapType):
            parts = cast("list[bytes]", split_cells(raw, 2))
            return {spell(key): live(part) for key, part in zip(parts[::2], parts[1::2])}
        parts = cast("list[bytes]", split_cells(raw))
        if isinstance(type_, ListType):
            return {run.append_key(): live(part) for part in parts}
        return {spell(part): live(b"") for part in parts}

    return write


def compile_assignment(assignment: Assignment, column: Column, scope: Scope) -> Operation:
    """One entry of a SET clause."""
    if assignment.key is not None:
        return _set_element(column, assignment.key, assignment.value, scope)
    if assignment.field is not None:
        return _set_field(column, assignment.field, assignment.value, scope)
    if assignment.operator == "=":
        return assign(column, compile_term(assignment.value, column.name, column.type, scope))
    given, name = term_text(assignment.value), column.name
    if assignment.operator == "prepend":
        shown, kind = f"{name} = {given} + {name}", "list"
        if not isinstance(column.type, ListType):
            raise InvalidRequest(f"Invalid operation ({shown}) for non list column {name}")
    else:
        shown, kind = f"{name} = {name} {assignment.operator} {given}", "collection"
        if not isinstance(column.type, ListType | SetType | MapType):
            raise InvalidRequest(f"Invalid operation ({shown}) for non counter column {name}")
    if not column.multi_cell:
        raise InvalidRequest(f"Invalid operation ({shown}) for frozen {kind} column {name}")
    if assignment.operator == "prepend":
        return _prepend(column, assignment.value, scope)
    return (
        _add(column, assignment.value, scope)
        if assignment.operator == "+"
        else _remove(column, assignment.value, scope)
    )


def _add(column: Column, value: Term, scope: Scope) -> Operation:
    compiled = compile_term(value, column.name, column.type, scope)
    elements = element_writer(column)
    # Nothing added to a map or list is a write without content, which is logged in its own ways; to a set it is none.
    touches = not isinstance(column.type, SetType)

    def add(run: Run, cells: Cells, current: Current) -> None:
        raw = compiled(run)
        if not raw or raw is UNSET:
            return
        written = elements(run, cast(bytes, raw))
        if written or touches:
            merge_column(cells, column.name, CollectionMutation(None, written))

    return Operation(column, add)


def _prepend(column: Column, value: Term, scope: Scope) -> Operation:
    compiled = compile_term(value, column.name, column.type, scope)

    def prepend(run: Run, cells: Cells, current: Current) -> None:
        raw = compiled(run)
        if not raw or raw is UNSET:
            return
        parts = split_cells(cast(bytes, raw))
        # Asked for even if there is nothing to prepend: the timestamp is checked in any case.
        keys = run.prepend_keys(len(parts))
        live = {key: Cell(run.timestamp, part, run.ttl, run.expiry) for key, part in zip(keys, parts)}
        merge_column(cells, column.name, CollectionMutation(None, live))

    return Operation(column, prepend)


def _remove(column: Column, value: Term, scope: Scope) -> Operation:
    type_ = column.type
    if isinstance(type_, ListType):
        return _discard(column, type_, value, scope)
    keys = SetType(type_.key) if isinstance(type_, MapType) else type_
    compiled = compile_term(value, column.name, keys, scope)
    spell = element_spelling(keys) or bytes

    def remove(run: Run, cells: Cells, current: Current) -> None:
        raw = compiled(run)
        if raw and raw is not UNSET:
            dead = {spell(cast(bytes, part)): Cell(run.timestamp, None) for part in split_cells(cast(bytes, raw))}
            merge_column(cells, column.name, CollectionMutation(None, dead))

    return Operation(column, remove)


def _discard(column: Column, type_: ListType, value: Term, scope: Scope) -> Operation:
    """`l = l - [x]`: every element equal to one of these."""
    compiled = compile_term(value, column.name, type_, scope)
    order = order_key(type_.element)

    def discard(run: Run, cells: Cells, current: Current) -> None:
        raw = compiled(run)
        present = current(column.name)
        if not present or not raw or raw is UNSET:
            return
        unwanted = {order(part) for part in split_cells(cast(bytes, raw)) if part is not None}
        dead = {key: Cell(run.timestamp, None) for key, cell in present if order(cell.value or b"") in unwanted}
        merge_column(cells, column.name, CollectionMutation(None, dead))

    return Operation(column, discard, reads=True)


def _cell_or_tombstone(run: Run, raw: object) -> Cell:
    if raw is None:
        return Cell(run.timestamp, None)
    return Cell(run.timestamp, cast(bytes, raw), run.ttl, run.expiry)


def _element(column: Column, what: str) -> None:
    if not isinstance(column.type, ListType | SetType | MapType):
        raise InvalidRequest(f"Invalid {what} for non collection column {column.name}")
    if not column.multi_cell:
        raise InvalidRequest(f"Invalid {what} for frozen collection column {column.name}")


def _set_element(column: Column, key: Term, value: Term, scope: Scope) -> Operation:
    type_ = column.type
    shown = f"operation ({column.name}[{term_text(key)}] = {term_text(value)})"
    _element(column, shown)
    if isinstance(type_, SetType):
        raise InvalidRequest(f"Invalid {shown} for set column {column.name}")
    if isinstance(type_, ListType):
        return _set_in_list(column, type_, key, value, scope)
    assert isinstance(type_, MapType)
    at = compile_term(key, f"key({column.name})", type_.key, scope)
    compiled = compile_term(value, f"value({column.name})", type_.value, scope)
    spell = spelling(type_.key) or bytes

    def put(run: Run, cells: Cells, current: Current) -> None:
        place, raw = at(run), compiled(run)
        if place is None:
            raise InvalidRequest("Invalid null map key")
        if place is UNSET:
            raise InvalidRequest("Invalid unset map key")
        if raw is not UNSET:
            written = {spell(cast(bytes, place)): _cell_or_tombstone(run, raw)}
            merge_column(cells, column.name, CollectionMutation(None, written))

    return Operation(column, put)


def _list_index(run: Run, at: Bound, present: Elements | None, verb: str) -> bytes:
    """The key of the element at an index."""
    place = at(run)
    if place is None:
        raise InvalidRequest("Invalid null value for list index")
    if place is UNSET:
        raise InvalidRequest("Invalid unset value for list index")
    index = int.from_bytes(cast(bytes, place), "big", signed=True)
    if not present:
        raise InvalidRequest(f"Attempted to {verb} an element {'on' if verb == 'set' else 'from'} a list which is null")
    if not 0 <= index < len(present):
        raise InvalidRequest(f"List index {index} out of bound, list has size {len(present)}")
    return present[index][0]


def _set_in_list(column: Column, type_: ListType, key: Term, value: Term, scope: Scope) -> Operation:
    compiled = compile_term(value, f"value({column.name})", type_.element, scope)
    if isinstance(key, CallTerm) and key.name == "scylla_timeuuid_list_index" and len(key.arguments) == 1:
        exact = compile_term(key.arguments[0], "timeuuid", native("timeuuid"), scope)

        def put_exact(run: Run, cells: Cells, current: Current) -> None:
            place = exact(run)
            if place is None or place is UNSET:
                raise InvalidRequest("Invalid null value for list index")
            written = {cast(bytes, place): _cell_or_tombstone(run, compiled(run))}
            merge_column(cells, column.name, CollectionMutation(None, written))

        return Operation(column, put_exact)
    at = compile_term(key, f"index({column.name})", native("int"), scope)

    def put(run: Run, cells: Cells, current: Current) -> None:
        raw = compiled(run)
        if raw is UNSET:
            return
        place = _list_index(run, at, current(column.name), "set")
        merge_column(cells, column.name, CollectionMutation(None, {place: _cell_or_tombstone(run, raw)}))

    return Operation(column, put, reads=True)


def _field(column: Column, name: str) -> bytes:
    type_ = column.type
    if not isinstance(type_, UserType):
        raise InvalidRequest(f"Invalid operation ({column.name}.{name} = ...) for non-UDT column {column.name}")
    if not column.multi_cell:
        raise InvalidRequest(f"Invalid operation ({column.name}.{name} = ...) for frozen UDT column {column.name}")
    place = field_place(type_, name)
    if place < 0:
        raise InvalidRequest(f"UDT column {column.name} does not have a field named {name}")
    return place.to_bytes(2, "big")


def _set_field(column: Column, name: str, value: Term, scope: Scope) -> Operation:
    place = _field(column, name)
    assert isinstance(column.type, UserType)
    compiled = compile_term(value, f"{column.name}.{name}", dict(column.type.fields)[name], scope)

    def put(run: Run, cells: Cells, current: Current) -> None:
        raw = compiled(run)
        if raw is not UNSET:
            merge_column(cells, column.name, CollectionMutation(None, {place: _cell_or_tombstone(run, raw)}))

    return Operation(column, put)


def compile_deletion(deletion: Deletion, column: Column, scope: Scope) -> Operation:
    """One column, element or field of a DELETE."""
    name = column.name
    if deletion.field is not None:
        place = _field(column, deletion.field)

        def drop_field(run: Run, cells: Cells, current: Current) -> None:
            merge_column(cells, name, CollectionMutation(None, {place: Cell(run.timestamp, None)}))

        return Operation(column, drop_field)
    if deletion.key is not None:
        return _delete_element(column, deletion.key, scope)

    def drop(run: Run, cells: Cells, current: Current) -> None:
        if column.multi_cell:
            merge_column(cells, name, CollectionMutation(run.timestamp))
        else:
            cells[name] = Cell(run.timestamp, None)

    return Operation(column, drop)


def _delete_element(column: Column, key: Term, scope: Scope) -> Operation:
    type_, name = column.type, column.name
    _element(column, "deletion operation")
    if isinstance(type_, ListType):
        index = compile_term(key, f"index({name})", native("int"), scope)

        def drop_index(run: Run, cells: Cells, current: Current) -> None:
            if index(run) is UNSET:
                return
            place = _list_index(run, index, current(name), "delete")
            merge_column(cells, name, CollectionMutation(None, {place: Cell(run.timestamp, None)}))

        return Operation(column, drop_index, reads=True)
    element = type_.key if isinstance(type_, MapType) else cast(SetType, type_).element
    at = compile_term(key, f"key({name})", element, scope)
    spell = spelling(element) or bytes

    def drop_key(run: Run, cells: Cells, current: Current) -> None:
        place = at(run)
        if place is None or place is UNSET:
            raise InvalidRequest(f"Invalid {'null' if place is None else 'unset'} map key")
        merge_column(cells, name, CollectionMutation(None, {spell(cast(bytes, place)): Cell(run.timestamp, None)}))

    return Operation(column, drop_key)
