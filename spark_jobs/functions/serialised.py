"""Bytes of landed values that SQL cannot make: their CQL serialisation, and bytes that sort like the comparator.

In: a ``CqlType`` and values as Spark hands them to Python (text for decimals and addresses, rows for structs).
Out: the tie key (serialisation) and the order key, both compared as unsigned bytes. Used while decoding, never later.
"""

from __future__ import annotations

import ipaddress
import re
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, assert_never

from connector.timeuuid import time_key
from connector.values import (
    ByNative,
    CqlType,
    Duration,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    decimal_of,
    encoder,
    whole_number,
)
from spark_jobs.model import fields_of

Plain = Callable[[Any], Any]
ToBytes = Callable[[Any], bytes]

_DURATION = re.compile(r"([0-9]+)(mo|ms|us|µs|ns|y|w|d|h|m|s)")
_DURATIONS = re.compile(rf"-?(?:{_DURATION.pattern})*")
_MONTHS = {"y": 12, "mo": 1}
_DAYS = {"w": 7, "d": 1}
_NANOS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "µs": 1_000,
    "ns": 1,
}


def duration_of(text: str) -> Duration:
    """A duration from its text in the records (``-1mo2d``); the empty text is the zero duration.

    >>> duration_of("1y2mo3d4h")
    Duration(months=14, days=3, nanoseconds=14400000000000)
    """
    if not _DURATIONS.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration")
    sign = -1 if text.startswith("-") else 1
    months = days = nanos = 0
    for number, unit in _DURATION.findall(text):
        if unit in _MONTHS:
            months += int(number) * _MONTHS[unit]
        elif unit in _DAYS:
            days += int(number) * _DAYS[unit]
        else:
            nanos += int(number) * _NANOS[unit]
    return Duration(sign * months, sign * days, sign * nanos)


@lru_cache(maxsize=1024)
def plain_value(type_: CqlType) -> Plain:
    """A callable from a stored value to the Python value that ``connector.values`` works with."""
    if isinstance(type_, NativeType):
        return _NATIVE_PLAIN[type_.name]
    if isinstance(type_, ListType | SetType | VectorType):
        element = _inside(type_.element)
        return lambda items: [element(item) for item in items]
    if isinstance(type_, MapType):
        key, value = _inside(type_.key), _inside(type_.value)
        return lambda items: [(key(item[0]), value(item[1])) for item in items]
    if isinstance(type_, TupleType | UserType):
        fields = [plain_value(kind) for _, kind in fields_of(type_)]
        return lambda row: [_optional(field, part) for field, part in zip(fields, row)]
    assert_never(type_)


def _inside(type_: CqlType) -> Plain:
    """Of a part of a collection, which is never null: full images say null for a user type without any value."""
    plain = plain_value(type_)
    if not isinstance(type_, UserType):
        return plain
    nothing = [None] * len(type_.fields)
    return lambda value: nothing if value is None else plain(value)


def _same(value: Any) -> Any:
    return value


def _optional(convert: Plain, value: Any) -> Any:
    return None if value is None else convert(value)


_NATIVE_PLAIN: ByNative[Plain] = {
    "ascii": _same,
    "bigint": _same,
    "blob": bytes,
    "boolean": _same,
    "counter": _same,
    "date": _same,
    "decimal": Decimal,
    "double": _same,
    "duration": duration_of,
    "float": _same,
    "inet": ipaddress.ip_address,
    "int": _same,
    "smallint": _same,
    "text": _same,
    "time": _same,
    "timestamp": _same,
    "timeuuid": uuid.UUID,
    "tinyint": _same,
    "uuid": uuid.UUID,
    "varint": whole_number,
}


def tie_bytes(type_: CqlType) -> Callable[[Any], bytes | None]:
    """The serialisation of a stored value; null stays null, and is the answer where the text is none of the type."""
    plain, encode = plain_value(type_), encoder(type_)
    return _or_none(lambda value: encode(plain(value)))


def order_bytes(type_: CqlType) -> Callable[[Any], bytes | None]:
    """Bytes that sort as ScyllaDB's comparator sorts the stored values; null stays null."""
    plain, ordered = plain_value(type_), _ordered(type_)
    return _or_none(lambda value: ordered(plain(value)))


def _or_none(made: Callable[[Any], bytes]) -> Callable[[Any], bytes | None]:
    """One record that says nonsense must not end the job: it becomes a dead letter."""

    def checked(value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return made(value)
        except Exception:
            return None

    return checked


@lru_cache(maxsize=1024)
def _ordered(type_: CqlType) -> ToBytes:
    if isinstance(type_, NativeType):
        return _NATIVE_ORDER[type_.name]
    if isinstance(type_, ListType | SetType | VectorType):
        element = _ordered(type_.element)
        return lambda items: b"".join(b"\x01" + element(item) for item in items) + b"\x00"
    if isinstance(type_, MapType):
        key, value = _ordered(type_.key), _ordered(type_.value)
        return lambda items: b"".join(b"\x01" + key(k) + value(v) for k, v in items) + b"\x00"
    if isinstance(type_, TupleType | UserType):
        fields = [_ordered(kind) for _, kind in fields_of(type_)]
        return lambda parts: _ordered_fields(fields, parts)
    assert_never(type_)


def _ordered_fields(fields: Sequence[ToBytes], parts: Sequence[Any]) -> bytes:
    """Nulls at the end are left out: a value is the same one after its type has got another field."""
    count = max((at + 1 for at, part in enumerate(parts) if part is not None), default=0)
    said = (b"\x01" if part is None else b"\x02" + field(part) for field, part in zip(fields, parts[:count]))
    return b"".join(said) + b"\x00"


def _closed(raw: bytes) -> bytes:
    """Bytes of any length with an end mark that sorts before every continuation."""
    return raw.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def _integer(value: int) -> bytes:
    return struct.pack(">Q", value + (1 << 63))


def _number(value: Decimal | int) -> bytes:
    """Sign, then the exponent of the leading digit, then the digits: equal numbers give equal bytes."""
    sign, digits, exponent = (value if isinstance(value, Decimal) else decimal_of(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return b"\x01"
    assert isinstance(exponent, int)
    body = _integer(exponent + len(text)) + text.rstrip("0").encode() + b"\x00"
    return b"\x00" + bytes(255 - byte for byte in body) if sign else b"\x02" + body


def _floating(layout: str) -> ToBytes:
    def ordered(value: float) -> bytes:
        raw = struct.pack(layout, value)
        if raw[0] & 0x80:
            return bytes(255 - byte for byte in raw)
        return bytes((raw[0] | 0x80,)) + raw[1:]

    return ordered


def _timeuuid(value: uuid.UUID) -> bytes:
    return time_key(value.bytes).to_bytes(16, "big")


def _uuid(value: uuid.UUID) -> bytes:
    version = value.bytes[6] >> 4
    if version == 1:
        return bytes((version,)) + struct.pack(">Q", value.time) + value.bytes[8:]
    return bytes((version,)) + value.bytes


_NATIVE_ORDER: ByNative[ToBytes] = {
    "ascii": lambda value: _closed(value.encode()),
    "bigint": _integer,
    "blob": _closed,
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "counter": _integer,
    "date": _integer,
    "decimal": _number,
    "double": _floating(">d"),
    "duration": lambda value: _closed(encoder(NativeType("duration"))(value)),
    "float": _floating(">f"),
    "inet": lambda value: _closed(value.packed),
    "int": _integer,
    "smallint": _integer,
    "text": lambda value: _closed(value.encode()),
    "time": _integer,
    "timestamp": _integer,
    "timeuuid": _timeuuid,
    "tinyint": _integer,
    "uuid": _uuid,
    "varint": _number,
}
