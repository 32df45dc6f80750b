"""Fields inside of user type values that no known version of the type has: a parser with a schema passes over them.

In: a ``Layout``. Out: a SQL condition over a record's text, and the session function that it calls. Tables without user
types need neither. The text is read a second time, by Python, so only such tables pay for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, assert_never

from connector.values import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType
from spark_jobs.model import Layout, fields_of

Look = Callable[[Any], bool]
Columns = tuple[tuple[str, str, CqlType], ...]


def unknown_inside(layout: Layout, text: str) -> str | None:
    """A condition for records with such a field, by SQL of their text; None where there can be none."""
    columns = looked_at(layout)
    return f"{function_name(columns)}({text})" if columns else None


def looked_at(layout: Layout) -> Columns:
    """Names, roles and types of the columns that hold user types."""
    role = "image" if layout.images else None
    found = ((column.name, role or stored.role, column.type) for column, stored in layout.recorded)
    return tuple(each for each in found if _look(each[2]) is not None)


def function_name(columns: Columns) -> str:
    return f"scylla_cdc_unknown_{hashlib.sha256(repr(columns).encode()).hexdigest()[:16]}"


def has_unknown(columns: Columns) -> Callable[[Any], bool]:
    """Whether a record's text has a field that its column's type lacks; what is no record's text has none."""
    looks = {name: _cell(role, kind) for name, role, kind in columns}

    def found(text: Any) -> bool:
        try:
            record = json.loads(text)
            envelope = record["payload"] if "payload" in record and "source" not in record else record
            after = envelope.get("after") or {}
            return any(look(after[name]) for name, look in looks.items() if after.get(name) is not None)
        except Exception:
            # Too deep, no JSON, another shape: the parser of records tells it by its own means.
            return False

    return found


def _cell(role: str, type_: CqlType) -> Look:
    inner = _look(type_)
    assert inner is not None
    if role == "image":
        return inner
    if role == "cell":
        return lambda cell: cell["value"] is not None and inner(cell["value"])
    if role == "fields":
        assert isinstance(type_, UserType)
        parts = {name: _look(kind) for name, kind in type_.fields}
        return lambda cell: _fields(parts, _elements(cell) or {}, lambda part: part["value"])
    assert isinstance(type_, ListType | SetType | MapType)
    key = _look(type_.key if isinstance(type_, MapType) else type_.element) if not isinstance(type_, ListType) else None
    value = (
        _look(type_.value if isinstance(type_, MapType) else type_.element) if not isinstance(type_, SetType) else None
    )
    return lambda cell: _entries(key, value, _elements(cell) or ())


def _elements(cell: Any) -> Any:
    return cell["value"] and cell["value"]["elements"]


def _look(type_: CqlType) -> Look | None:
    """What looks into a value of the type; None where no user type is in it."""
    if isinstance(type_, ListType | SetType | VectorType):
        inner = _look(type_.element)
        return None if inner is None else lambda items: any(item is not None and inner(item) for item in items)
    if isinstance(type_, MapType):
        key, value = _look(type_.key), _look(type_.value)
        return None if key is None and value is None else lambda items: _entries(key, value, items)
    if isinstance(type_, TupleType | UserType):
        parts = {name: _look(kind) for name, kind in fields_of(type_)}
        if isinstance(type_, TupleType) and not any(parts.values()):
            return None
        return lambda row: _fields(parts, row, lambda part: part)
    if isinstance(type_, NativeType):
        return None
    assert_never(type_)


def _entries(key: Look | None, value: Look | None, entries: Iterable[Any]) -> bool:
    return any(
        (key is not None and key(entry["key"]))
        or (value is not None and entry["value"] is not None and value(entry["value"]))
        for entry in entries
    )


def _fields(parts: dict[str, Look | None], row: Any, inside: Callable[[Any], Any]) -> bool:
    if row.keys() - parts.keys():
        return True
    for name, part in row.items():
        look = parts[name]
        if look is not None and part is not None and (value := inside(part)) is not None and look(value):
            return True
    return False
