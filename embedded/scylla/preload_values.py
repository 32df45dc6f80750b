"""Generated values of every CQL type, from a seed: distinct ones for keys, random ones for other columns.

Comes in: a type and a number, or a random source. Goes out: values as `connector.values.binary` encodes them.
"""

from __future__ import annotations

import ipaddress
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from connector.values import CqlType, Duration, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType
from embedded.scylla.cdc.log_rows import time_uuid

_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_LETTERS = "abcdefghijklmnopqrstuvwxyz äßλ"
#: 2024-01-01, in microseconds, milliseconds and days: generated times lie behind it.
_BASE_US = 1_704_067_200_000_000
_BASE_MS = _BASE_US // 1000
_BASE_DAY = 19_723


def distinct_value(type_: CqlType, number: int) -> Any:
    """A value of the type that differs for every number (as far as the type has so many), for keys."""
    if isinstance(type_, NativeType):
        return _distinct_native(type_.name, number)
    if isinstance(type_, ListType | SetType):
        return [distinct_value(type_.element, number)]
    if isinstance(type_, MapType):
        return [(distinct_value(type_.key, number), distinct_value(type_.value, 0))]
    if isinstance(type_, TupleType):
        return tuple(distinct_value(each, number if at == 0 else 0) for at, each in enumerate(type_.elements))
    if isinstance(type_, UserType):
        return tuple(distinct_value(each, number if at == 0 else 0) for at, (_, each) in enumerate(type_.fields))
    if isinstance(type_, VectorType):
        return [distinct_value(type_.element, number if at == 0 else 0) for at in range(type_.dimensions)]
    raise ValueError(f"{type_!r} is not a CQL type")


def _whole(bits: int) -> Callable[[int], int]:
    half = 1 << (bits - 1)
    return lambda number: (number + half) % (2 * half) - half


_DISTINCT: Final[dict[str, Callable[[int], Any]]] = {
    **{name: _whole(bits) for name, bits in _WHOLE.items()},
    "text": lambda number: f"key-{number:09d}",
    "ascii": lambda number: f"key-{number:09d}",
    "blob": lambda number: number.to_bytes(8, "big"),
    "boolean": lambda number: number % 2 == 1,
    "varint": lambda number: number,
    "decimal": Decimal,
    "float": float,
    "double": float,
    "date": lambda number: _BASE_DAY + number,
    "time": lambda number: number % 86_400_000_000_000,
    "timestamp": lambda number: _BASE_MS + number,
    "inet": lambda number: ipaddress.IPv4Address((10 << 24) + number % (1 << 24)),
    "uuid": lambda number: uuid.UUID(int=number << 80 | 1 << 63, version=4),
    "timeuuid": lambda number: uuid.UUID(bytes=time_uuid(_BASE_US + number, 0)),
}


def _distinct_native(name: str, number: int) -> Any:
    make = _DISTINCT.get(name)
    if make is None:
        raise ValueError(f"a column of type {name} cannot be generated")
    return make(number)


def random_value(type_: CqlType, source: random.Random) -> Any:
    """Any value of the type; collections hold one to three elements."""
    if isinstance(type_, NativeType):
        return _random_native(type_.name, source)
    if isinstance(type_, ListType):
        return [random_value(type_.element, source) for _ in range(source.randint(1, 3))]
    if isinstance(type_, SetType):
        return _distinct_elements(type_.element, source)
    if isinstance(type_, MapType):
        return [(key, random_value(type_.value, source)) for key in _distinct_elements(type_.key, source)]
    if isinstance(type_, TupleType):
        return tuple(random_value(each, source) for each in type_.elements)
    if isinstance(type_, UserType):
        return tuple(random_value(each, source) for _, each in type_.fields)
    if isinstance(type_, VectorType):
        return [random_value(type_.element, source) for _ in range(type_.dimensions)]
    raise ValueError(f"{type_!r} is not a CQL type")


def _distinct_elements(type_: CqlType, source: random.Random) -> list[Any]:
    """Elements of a set or keys of a map; their order is the caller's to make."""
    numbers = source.sample(range(100), source.randint(1, 2 if type_ == NativeType("boolean") else 3))
    elements = [distinct_value(type_, number) for number in numbers]
    return elements if type_ != NativeType("boolean") else sorted(set(elements))


def _random_native(name: str, source: random.Random) -> Any:
    if name in _WHOLE:
        half = 1 << (_WHOLE[name] - 1)
        return source.randrange(-half, half)
    if name in ("text", "ascii"):
        letters = _LETTERS if name == "text" else _LETTERS[:27]
        return "".join(source.choices(letters, k=source.randint(4, 24)))
    if name == "blob":
        return source.randbytes(source.randint(1, 24))
    if name == "boolean":
        return source.random() < 0.5
    if name == "varint":
        return source.randrange(-(1 << 80), 1 << 80)
    if name == "decimal":
        return Decimal(source.randrange(-(10**12), 10**12)).scaleb(-source.randint(0, 6))
    if name == "float":
        return source.randrange(-(1 << 20), 1 << 20) / 64
    if name == "double":
        return source.uniform(-1e9, 1e9)
    if name == "date":
        return _BASE_DAY + source.randrange(-3650, 3650)
    if name == "time":
        return source.randrange(86_400_000_000_000)
    if name == "timestamp":
        return _BASE_MS + source.randrange(86_400_000 * 365)
    if name == "inet":
        if source.random() < 0.5:
            return ipaddress.IPv4Address(source.getrandbits(32))
        return ipaddress.IPv6Address(0x20010DB8 << 96 | source.getrandbits(64))
    if name == "uuid":
        return uuid.UUID(int=source.getrandbits(128), version=4)
    if name == "timeuuid":
        return uuid.UUID(bytes=time_uuid(_BASE_US + source.randrange(10**12), source.getrandbits(62)))
    if name == "duration":
        sign = source.choice((1, -1))
        return Duration(sign * source.randrange(24), sign * source.randrange(60), sign * source.randrange(10**12))
    raise ValueError(f"a column of type {name} cannot be generated")
