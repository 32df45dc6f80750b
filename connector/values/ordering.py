"""ScyllaDB's order of values: a sortable key for a raw cell of a type.

In: a ``CqlType``. Out: a callable from raw cell to key; keys of one type compare as the server's comparator
orders the cells, and are equal exactly where it sees no difference. Zero-length cells sort first. The
direction of a clustering column is not applied. Malformed cells raise ``ValueError``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, assert_never

from connector.timeuuid import time_key
from connector.values.binary import decoder, split_cells, split_fields, split_vector
from connector.values.scalars import malformed
from connector.values.types import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)

OrderKey = Callable[[bytes], Any]

_EMPTY: Final = ()


@lru_cache(maxsize=4096)
def order_key(type_: CqlType) -> OrderKey:
    """A callable that makes the sort key of a raw cell of the type.

    >>> from connector.values.types import native
    >>> sorted([b"\\x00\\x00\\x00\\x01", b"\\xff\\xff\\xff\\xff"], key=order_key(native("int")))
    [b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x00\\x01']
    """
    if isinstance(type_, NativeType):
        return _native_key(type_)
    if isinstance(type_, ListType | SetType):
        return _cells_key([order_key(type_.element)])
    if isinstance(type_, MapType):
        return _cells_key([order_key(type_.key), order_key(type_.value)])
    if isinstance(type_, TupleType):
        return _fields_key(type_.cql(), [order_key(element) for element in type_.elements])
    if isinstance(type_, UserType):
        return _fields_key(type_.cql(), [order_key(field) for _, field in type_.fields])
    if isinstance(type_, VectorType):
        return _vector_key(type_)
    assert_never(type_)


def _native_key(type_: NativeType) -> OrderKey:
    match type_.name:
        case "text" | "ascii" | "blob" | "inet" | "date" | "boolean" | "duration":
            return bytes
        case "tinyint" | "smallint" | "int" | "bigint" | "counter" | "timestamp" | "time" | "varint" | "decimal":
            return _number_key(type_)
        case "timeuuid":
            return timeuuid_key
        case "uuid":
            return uuid_key
        case "float":
            return _floating_key("float", ">f")
        case "double":
            return _floating_key("double", ">d")
        case _:
            assert_never(type_.name)


def _number_key(type_: NativeType) -> OrderKey:
    decode = decoder(type_)

    def key(raw: bytes) -> Any:
        # Decimals compare by value whatever their scale, and exactly: comparison ignores the context's
        # precision.
        return (decode(raw),) if raw else _EMPTY

    return key


def _floating_key(name: str, layout: str) -> OrderKey:
    unpack = struct.Struct(layout).unpack

    def key(raw: bytes) -> Any:
        if not raw:
            return _EMPTY
        try:
            (value,) = unpack(raw)
        except struct.error:
            raise malformed(name, raw) from None
        if value != value:
            return (1,)  # every NaN is the same value, above infinity
        return (0, value, 0 if raw[0] & 0x80 else 1)  # −0.0 sorts below 0.0

    return key


def timeuuid_key(raw: bytes) -> Any:
    """Time first, then the low eight bytes compared as signed bytes."""
    if len(raw) != 16:
        if not raw:
            return -1
        raise malformed("timeuuid", raw)
    return time_key(raw)


def uuid_key(raw: bytes) -> Any:
    """Version first; version 1 by time, then by unsigned bytes; the others by unsigned bytes."""
    if len(raw) != 16:
        if not raw:
            return _EMPTY
        raise malformed("uuid", raw)
    version = raw[6] >> 4
    if version == 1:
        return (1, raw[6:8] + raw[4:6] + raw[:4], raw)
    return (version, b"", raw)


def _cells_key(keys: list[OrderKey]) -> OrderKey:
    """Element by element, a prefix before what it begins; for maps key, value, key, value…"""
    width = len(keys)

    def key(raw: bytes) -> Any:
        if not raw:
            return _EMPTY
        cells = split_cells(raw, width)
        return tuple(_nullable(cell, keys[at % width]) for at, cell in enumerate(cells))

    return key


def _fields_key(spelled: str, keys: list[OrderKey]) -> OrderKey:
    count = len(keys)

    def key(raw: bytes) -> Any:
        # Fields that are not there compare as null ones do, so that no bytes at all are a tuple of nulls.
        fields = split_fields(raw, count, spelled)
        return tuple(_nullable(field, field_key) for field, field_key in zip(fields, keys, strict=True))

    return key


def _vector_key(type_: VectorType) -> OrderKey:
    element_key = order_key(type_.element)

    def key(raw: bytes) -> Any:
        return tuple(element_key(element) for element in split_vector(raw, type_)) if raw else _EMPTY

    return key


def _nullable(cell: bytes | None, key: OrderKey) -> Any:
    return _EMPTY if cell is None else (key(cell),)
