"""Both sides of a comparison in one form: raw cells of ``SELECT *``, and rows of a landed view.

In: a column's CQL type. Out: SQL that takes a landed column apart into what Python can hold exactly (no dates, no
maps), and functions from either side to plain values that compare bit by bit, in the order in which elements are shown.
"""

from __future__ import annotations

import ipaddress
import re
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from connector.values.binary import decode
from connector.values.types import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType

_PART = re.compile(r"(\d+)(mo|ms|us|ns|y|d|h|m|s)")
_UNITS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _fields(type_: TupleType | UserType) -> list[tuple[str, CqlType]]:
    if isinstance(type_, UserType):
        return list(type_.fields)
    return [(f"field_{index}", kind) for index, kind in enumerate(type_.elements)]


def _holds_map(type_: CqlType) -> bool:
    if isinstance(type_, MapType):
        return True
    if isinstance(type_, ListType | SetType | VectorType):
        return _holds_map(type_.element)
    return isinstance(type_, TupleType | UserType) and any(_holds_map(kind) for _, kind in _fields(type_))


def taken_apart(type_: CqlType, sql: str, depth: int = 0) -> str:
    """A landed value as arrays, structs and numbers."""
    if isinstance(type_, NativeType):
        if type_.name == "date":
            return f"unix_date({sql})"
        return f"unix_millis({sql})" if type_.name == "timestamp" else sql
    name = f"i{depth}"
    if isinstance(type_, ListType | SetType | VectorType):
        return f"transform({sql}, {name} -> {taken_apart(type_.element, name, depth + 1)})"
    if isinstance(type_, MapType):
        entries = sql if _holds_map(type_.key) else f"map_entries({sql})"
        key = taken_apart(type_.key, f"{name}.key", depth + 1)
        value = taken_apart(type_.value, f"{name}.value", depth + 1)
        return f"transform({entries}, {name} -> struct({key} AS a, {value} AS b))"
    assert isinstance(type_, TupleType | UserType)
    parts = [
        f"{taken_apart(kind, f'{sql}.{_quoted(part)}', depth + 1)} AS f{index}"
        for index, (part, kind) in enumerate(_fields(type_))
    ]
    return f"CASE WHEN {sql} IS NOT NULL THEN struct({', '.join(parts)}) END"


def by_comparator(type_: CqlType, value: Any) -> Any:
    """A plain value without what the server's comparator does not see: decimals lose their trailing zeros."""
    if value is None:
        return None
    if isinstance(type_, NativeType):
        if type_.name != "decimal":
            return value
        sign, digits, exponent = value
        text = "".join(map(str, digits)).lstrip("0")
        kept = text.rstrip("0")
        return (sign, kept, exponent + len(text) - len(kept)) if text else (0, "", 0)
    if isinstance(type_, ListType | SetType | VectorType):
        return tuple(by_comparator(type_.element, item) for item in value)
    if isinstance(type_, MapType):
        return tuple((by_comparator(type_.key, key), by_comparator(type_.value, item)) for key, item in value)
    assert isinstance(type_, TupleType | UserType)
    return tuple(by_comparator(kind, part) for (_, kind), part in zip(_fields(type_), value, strict=True))


def as_image(type_: CqlType, value: Any) -> Any:
    """A plain value as full images can say it: a user type without any value is null, wherever it stands."""
    if value is None or isinstance(type_, NativeType):
        return value
    if isinstance(type_, ListType | SetType | VectorType):
        return tuple(as_image(type_.element, item) for item in value)
    if isinstance(type_, MapType):
        return tuple((as_image(type_.key, key), as_image(type_.value, item)) for key, item in value)
    assert isinstance(type_, TupleType | UserType)
    parts = tuple(as_image(kind, part) for (_, kind), part in zip(_fields(type_), value, strict=True))
    if isinstance(type_, UserType) and all(part in (None, ()) for part in parts):
        return None
    return parts


def _shown_keys(type_: CqlType, value: Any) -> Any:
    """Of a collection that is not frozen, keys and members as the comparator sees them."""
    if value is None or type_.frozen:
        return value
    if isinstance(type_, SetType):
        return by_comparator(type_, value)
    if isinstance(type_, MapType):
        return tuple((by_comparator(type_.key, key), item) for key, item in value)
    return value


def from_landed(type_: CqlType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(type_, NativeType):
        return _native_landed(type_.name, value)
    if isinstance(type_, ListType | SetType | VectorType):
        return tuple(from_landed(type_.element, item) for item in value)
    if isinstance(type_, MapType):
        return tuple((from_landed(type_.key, pair[0]), from_landed(type_.value, pair[1])) for pair in value)
    assert isinstance(type_, TupleType | UserType)
    return tuple(from_landed(kind, part) for (_, kind), part in zip(_fields(type_), value, strict=True))


def _native_landed(name: str, value: Any) -> Any:
    if name in ("decimal", "varint"):
        return Decimal(value).as_tuple()
    if name in ("uuid", "timeuuid"):
        return uuid.UUID(value)
    if name == "inet":
        return ipaddress.ip_address(value)
    if name == "blob":
        return bytes(value)
    if name in ("double", "float"):
        return _bits(name, value)
    if name == "duration":
        sign = -1 if value.startswith("-") else 1
        found = [(int(number), unit) for number, unit in _PART.findall(value)]
        months = sum(number * (12 if unit == "y" else 1) for number, unit in found if unit in ("y", "mo"))
        days = sum(number for number, unit in found if unit == "d")
        return (sign * months, sign * days, sign * sum(number * _UNITS.get(unit, 0) for number, unit in found))
    return value


def _bits(name: str, value: float) -> Any:
    return "NaN" if value != value else struct.pack(">d" if name == "double" else ">f", value)


def from_source(type_: CqlType, raw: bytes | None) -> Any:
    """A raw cell of the server; empty cells of other types than text are outside of what records can say."""
    return None if raw is None else _decoded(type_, decode(type_, raw))


def _decoded(type_: CqlType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(type_, NativeType):
        if type_.name in ("decimal", "varint"):
            return Decimal(value).as_tuple()
        if type_.name in ("double", "float"):
            return _bits(type_.name, value)
        return tuple(value) if type_.name == "duration" else value
    if isinstance(type_, ListType | SetType | VectorType):
        return tuple(_decoded(type_.element, item) for item in value)
    if isinstance(type_, MapType):
        return tuple((_decoded(type_.key, key), _decoded(type_.value, item)) for key, item in value)
    assert isinstance(type_, TupleType | UserType)
    return tuple(_decoded(kind, part) for (_, kind), part in zip(_fields(type_), value, strict=True))


Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]


def _by_key(
    rows: Iterable[Row], columns: Mapping[str, CqlType], partition: Sequence[str], clustering: Sequence[str]
) -> Rows:
    found: Rows = {}
    for row in rows:
        values = {name: _shown_keys(columns[name], value) for name, value in row.items()}
        values.update({name: by_comparator(columns[name], row[name]) for name in clustering})
        key = tuple(values[name] for name in (*partition, *clustering))
        assert key not in found, f"{key} is shown twice"
        found[key] = values
    return found


def landed_rows(
    session: SparkSession,
    table: str,
    columns: Mapping[str, CqlType],
    partition: Sequence[str],
    clustering: Sequence[str],
) -> Rows:
    """The view's rows by key; a key that stands twice is an error."""
    texts = [f"{taken_apart(kind, _quoted(name))} AS c{index}" for index, (name, kind) in enumerate(columns.items())]
    keyspace, _, name = table.partition(".")
    taken = session.sql(f"SELECT {', '.join(texts)} FROM {_quoted(keyspace)}.{_quoted(name)}").collect()
    rows = [
        {name: from_landed(kind, value) for (name, kind), value in zip(columns.items(), row, strict=True)}
        for row in taken
    ]
    return _by_key(rows, columns, partition, clustering)


def source_rows(page: Any, columns: Mapping[str, CqlType], partition: Sequence[str], clustering: Sequence[str]) -> Rows:
    """The rows of a raw page by key."""
    assert set(page.columns) == set(columns), (page.columns, list(columns))
    rows = [{name: from_source(columns[name], cell) for name, cell in zip(page.columns, row)} for row in page.rows]
    return _by_key(rows, columns, partition, clustering)


def differences(source: Rows, landed: Rows, images: Mapping[str, CqlType] | None = None) -> list[str]:
    """What differs, one line each; ``images`` gives the columns' types where the records were full images."""
    if images is not None:
        for rows in (source, landed):
            for row in rows.values():
                row.update({name: as_image(images[name], value) for name, value in row.items()})
    found: list[str] = []
    for key in source.keys() | landed.keys():
        left, right = source.get(key), landed.get(key)
        if left is None or right is None:
            found.append(f"{key}: source {left}, landed {right}")
            continue
        found += [
            f"{key} {name}: source {left[name]!r}, landed {right[name]!r}" for name in left if left[name] != right[name]
        ]
    return found
