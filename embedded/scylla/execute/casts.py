"""CAST(value AS type): conversions between the native types.

In: two types. Out: a function of serialised values, or `InvalidRequest` when there is no such conversion.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from connector.timeuuid import millis_of
from connector.values import CqlType, NativeType, decode, encode
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.json_values import decimal_text, float_text, native_text
from embedded.scylla.execute.literals import day_of, pack_float

Convert = Callable[[bytes], bytes | None]
_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64}
_NUMBERS: Final = frozenset((*_INTEGERS, "varint", "float", "double", "decimal"))
#: A few bytes of decimal can be a whole number that no memory holds.
_MOST_DIGITS: Final = 100_000


def cast_function(given: CqlType, target: CqlType) -> Convert:
    """The conversion; null stays null."""
    if given == target:
        return lambda raw: raw
    if isinstance(given, NativeType) and isinstance(target, NativeType):
        name = target.name
        if given.name in _NUMBERS and name in _NUMBERS and name != "counter":
            return _guarded(given, lambda value: _number(value, target))
        if name in ("text", "ascii") and given.name != "blob":
            return _guarded(given, lambda value: text_of(value, given).encode())
        if name in ("timestamp", "date") and given.name in ("timeuuid", "timestamp", "date"):
            return _guarded(given, lambda value: _time(value, given.name, name))
    raise InvalidRequest(f"{given.cql()} cannot be cast to {target.cql()}")


def _guarded(given: NativeType, convert: Callable[[Any], bytes]) -> Convert:
    def run(raw: bytes) -> bytes | None:
        value = decode(given, raw)
        return None if value is None else convert(value)

    return run


def _number(value: Any, target: NativeType) -> bytes:
    name = target.name
    if name in ("float", "double"):
        return pack_float(float(value), 4 if name == "float" else 8)
    if name == "decimal":
        return encode(target, value if isinstance(value, Decimal) else Decimal(str(value)))
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        whole = 0 if value != value else (1 << 63) - 1 if value > 0 else -(1 << 63)
    else:
        if isinstance(value, Decimal) and value.adjusted() > _MOST_DIGITS:
            raise InvalidRequest(f"a decimal of {value.adjusted() + 1} digits cannot be cast to {name}")
        whole = int(value)
    if name == "varint":
        return encode(target, whole)
    bits = _INTEGERS[name]
    # Narrowing keeps the low bits, as in C++ and Java.
    return (whole & (1 << bits) - 1).to_bytes(bits // 8, "big")


def text_of(value: Any, type_: NativeType) -> str:
    """A decoded value as text."""
    if type_.name in ("float", "double"):
        return float_text(value, type_.name)
    if type_.name == "boolean":
        return "true" if value else "false"
    text = decimal_text(value) if isinstance(value, Decimal) else native_text(value, type_.name)
    # As text a timestamp has its T, in JSON a space.
    return text.replace(" ", "T") if type_.name == "timestamp" else text


def _time(value: Any, given: str, target: str) -> bytes:
    if given == "timeuuid":
        milliseconds = millis_of(value.bytes)
    else:
        milliseconds = value * 86_400_000 if given == "date" else value
    if target == "timestamp":
        return struct.pack(">q", milliseconds)
    return (day_of(milliseconds) + (1 << 31)).to_bytes(4, "big")
