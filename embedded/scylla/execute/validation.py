"""Bytes that clients bind: checked against their type, and brought into the form in which the server keeps them.

In: a type. Out: a callable from bytes to bytes that raises `ValueError` for what the type does not allow.
Sets and maps come back sorted and without duplicates, as the server stores them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from connector.values import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    decode,
    order_key,
    split_cells,
    split_fields,
    split_vector,
)

Check = Callable[[bytes], bytes]
_LENGTH: Final = struct.Struct(">i").pack
_SIZES: Final = {
    "bigint": (0, 8),
    "boolean": (0, 1),
    "counter": (0, 8),
    "date": (4,),
    "double": (0, 8),
    "float": (0, 4),
    "inet": (0, 4, 16),
    "int": (0, 4),
    "smallint": (2,),
    "time": (8,),
    "timestamp": (0, 8),
    "timeuuid": (0, 16),
    "tinyint": (1,),
    "uuid": (0, 16),
}
DAY_NANOSECONDS: Final = 86_400_000_000_000


def pack_cells(cells: Iterable[bytes | None]) -> bytes:
    """Lengths and bytes one after the other, null as length −1."""
    return b"".join([b"\xff\xff\xff\xff" if cell is None else _LENGTH(len(cell)) + cell for cell in cells])


def pack_collection(cells: Sequence[bytes | None], per_entry: int = 1) -> bytes:
    """A list, set or (`per_entry` 2) map in its serialised form."""
    return _LENGTH(len(cells) // per_entry) + pack_cells(cells)


@lru_cache(maxsize=4096)
def checker(type_: CqlType) -> Check:
    """The check of one type."""
    if isinstance(type_, NativeType):
        return _native(type_)
    if isinstance(type_, ListType):
        return _list(type_)
    if isinstance(type_, SetType):
        return _set(type_)
    if isinstance(type_, MapType):
        return _map(type_)
    if isinstance(type_, TupleType):
        return _fields("tuple", [checker(element) for element in type_.elements], type_.cql())
    if isinstance(type_, UserType):
        return _fields("user-defined type", [checker(field) for _, field in type_.fields], type_.cql())
    assert isinstance(type_, VectorType)
    return _vector(type_)


def _native(type_: NativeType) -> Check:
    name = type_.name
    if name in ("text", "ascii"):
        encoding = "utf-8" if name == "text" else "ascii"

        def text(raw: bytes) -> bytes:
            try:
                raw.decode(encoding)
            except UnicodeDecodeError:
                what = "Validation failed - non-UTF8 character in a UTF8 string"
                raise ValueError(
                    what if name == "text" else "Validation failed - non-ASCII character in an ASCII string"
                ) from None
            return raw

        return text
    if name == "blob":
        return lambda raw: raw
    if name in _SIZES:
        sizes = _SIZES[name]
        if name == "timeuuid":
            return _timeuuid
        if name == "time":
            return _time

        def sized(raw: bytes) -> bytes:
            if len(raw) not in sizes:
                raise ValueError(f"Validation failed for {name} - expected {sizes[-1]} bytes (got {len(raw)})")
            return raw

        return sized
    if name == "varint":
        return lambda raw: raw

    def decodable(raw: bytes) -> bytes:
        if raw or name == "duration":
            value = decode(type_, raw)
            if value is None:
                raise ValueError(f"Validation failed for {name} - expected at least 3 bytes, got {len(raw)}")
            if name == "duration" and min(value) < 0 < max(value):
                raise ValueError("Validation failed - the months, days and nanoseconds must be all of the same sign")
        return raw

    return decodable


def _timeuuid(raw: bytes) -> bytes:
    if len(raw) == 16:
        if raw[6] >> 4 != 1:
            raise ValueError(f"Unsupported UUID version ({raw[6] >> 4})")
    elif raw:
        raise ValueError(f"Validation failed for timeuuid - got {len(raw)} bytes")
    return raw


def _time(raw: bytes) -> bytes:
    if len(raw) != 8 or not 0 <= int.from_bytes(raw, "big", signed=True) < DAY_NANOSECONDS:
        raise ValueError("Time value is out of range" if len(raw) == 8 else "Validation failed for time")
    return raw


def _elements(raw: bytes, per_entry: int = 1) -> list[bytes]:
    cells = split_cells(raw, per_entry)
    if None in cells:
        raise ValueError("null is not supported inside collections")
    return [cell for cell in cells if cell is not None]


def _list(type_: ListType) -> Check:
    element = checker(type_.element)
    return lambda raw: pack_collection([element(cell) for cell in _elements(raw)])


def in_list_checker(element: CqlType) -> Check:
    """The check of the values of an IN, among which there may be nulls."""
    check = checker(element)

    def checked(raw: bytes) -> bytes:
        cells = [None if cell is None else check(cell) for cell in split_cells(raw)]
        return pack_collection(cells)

    return checked


def _set(type_: SetType) -> Check:
    element, order = checker(type_.element), order_key(type_.element)

    def check(raw: bytes) -> bytes:
        distinct = {order(cell): cell for cell in reversed([element(cell) for cell in _elements(raw)])}
        return pack_collection([distinct[place] for place in sorted(distinct)])

    return check


def _map(type_: MapType) -> Check:
    key, value, order = checker(type_.key), checker(type_.value), order_key(type_.key)

    def check(raw: bytes) -> bytes:
        cells = _elements(raw, 2)
        given = list(zip(cells[::2], cells[1::2]))
        # Of equal keys the first one stays.
        pairs = {order(name): (key(name), value(cell)) for name, cell in reversed(given)}
        return pack_collection([cell for place in sorted(pairs) for cell in pairs[place]], 2)

    return check


def _fields(what: str, fields: list[Check], spelled: str) -> Check:
    count = len(fields)

    def check(raw: bytes) -> bytes:
        try:
            cells = split_fields(raw, count, spelled)
        except ValueError:
            raise ValueError(f"Validation failed for {what} {spelled}: too many or broken fields") from None
        reached = _field_count(raw)
        return pack_cells([None if cell is None else field(cell) for cell, field in zip(cells[:reached], fields)])

    return check


def _field_count(raw: bytes) -> int:
    count = at = 0
    while at < len(raw):
        at += 4 + max(0, int.from_bytes(raw[at : at + 4], "big", signed=True))
        count += 1
    return count


def _vector(type_: VectorType) -> Check:
    element = checker(type_.element)

    def check(raw: bytes) -> bytes:
        for cell in split_vector(raw, type_):
            element(cell)
        return raw

    return check
