"""Random values of CQL types, as the bytes of the wire: the edges of each type often, anything else in between.

In: a random source and a type. Out: raw bytes, the same for the same source.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from connector.values import CqlType, Duration, ListType, MapType, NativeType, SetType, TupleType, UserType, encode

_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TEXTS: Final = ("", "a", "A", "0", " ", "'", '"', "\\", "{}", "null", "é", "zażółć", "漢字", "😀", "\u2028", "a\nb\tc")
_DECIMALS: Final = [
    "0",
    "0.00",
    "0E-8",
    "1",
    "-1",
    "1E+3",
    "1E+20",
    "1E-9",
    "-0.000001",
    "12345.67",
    "99999999999999999999.999",
]
_LETTERS: Final = "abcdef ßÄЖ漢"
# Times and nodes at which a comparison of signed bytes, of unsigned bytes and of the time come apart.
_TIME_UUIDS: Final = tuple(
    uuid.UUID(f"{time}-{node}")
    for time in ("2aaa0000-8bb3-11ee", "aaaa0000-8bb2-11ee", "aaaa0001-8bb2-11ee", "aaaa0000-8cb2-11ee")
    for node in ("8000-000000000000", "8000-00000000007f", "8000-000000000080", "b086-cf318caa186d")
)
_MONTHS, _DAYS, _NANOSECONDS = (0, 1, 14), (0, 2, 400), (0, 1, 1001, 3_661_000_000_001)

Make = Callable[[random.Random], Any]


def random_cell(source: random.Random, type_: CqlType, *, key: bool = False) -> bytes:
    """A value; as part of a key it is never empty, which servers refuse in some places and not in others."""
    while True:
        raw = encode(type_, _value(source, type_))
        if raw or not key:
            return raw


def _value(source: random.Random, type_: CqlType) -> Any:
    if isinstance(type_, NativeType):
        return _NATIVE[type_.name](source)
    if isinstance(type_, ListType):
        return [_value(source, type_.element) for _ in range(source.choice((0, 1, 1, 2, 2, 3)))]
    if isinstance(type_, SetType):
        return _distinct(source, type_.element)
    if isinstance(type_, MapType):
        return [(key, _value(source, type_.value)) for key in _distinct(source, type_.key)]
    if isinstance(type_, TupleType):
        return tuple(_field(source, element) for element in type_.elements)
    if isinstance(type_, UserType):
        return tuple(_field(source, field) for _, field in type_.fields)
    raise ValueError(f"no random values of the type {type_.cql()}")


def _field(source: random.Random, type_: CqlType) -> Any:
    return None if source.random() < 0.1 else _value(source, type_)


def _distinct(source: random.Random, type_: CqlType) -> list[Any]:
    """In no order: to bring elements into theirs is the server's."""
    found: dict[bytes, Any] = {}
    for _ in range(source.choice((0, 1, 1, 2, 2, 3))):
        value = _value(source, type_)
        found[encode(type_, value)] = value
    return list(found.values())


def _integer(bits: int) -> Make:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1

    def make(source: random.Random) -> int:
        return source.choice((0, 1, -1, least, most)) if source.random() < 0.4 else source.randint(least, most)

    return make


def _text(source: random.Random) -> str:
    kind = source.random()
    if kind < 0.7:
        return source.choice(_TEXTS)
    if kind < 0.85:
        return "x" * source.randint(1, 300)
    return "".join(source.choice(_LETTERS) for _ in range(source.randint(1, 20)))


def _ascii(source: random.Random) -> str:
    return source.choice(("", "a", " ", "~", "'", "ab" * source.randint(1, 30)))


def _blob(source: random.Random) -> bytes:
    return source.choice((b"", b"\x00", b"\xff", source.randbytes(source.randint(1, 40))))


def _among(edges: tuple[Any, ...], otherwise: Make) -> Make:
    def make(source: random.Random) -> Any:
        return source.choice(edges) if source.random() < 0.6 else otherwise(source)

    return make


def _decimal(source: random.Random) -> Decimal:
    digits = source.randint(-(10**12), 10**12)
    return Decimal(digits).scaleb(-source.randint(0, 6))


def _uuid(source: random.Random) -> uuid.UUID:
    return uuid.UUID(bytes=source.randbytes(16), version=4)


def _time_uuid(source: random.Random) -> uuid.UUID:
    low = source.choice((0x8000_000000000000, 0x8000_00000000007F, 0x8000_000000000080, source.getrandbits(64)))
    time = 0x1EE_8BB2_AAAA0000 + source.randrange(1 << 50)
    head = (time & 0xFFFFFFFF) << 32 | (time >> 32 & 0xFFFF) << 16 | 0x1000 | time >> 48 & 0xFFF
    return uuid.UUID(int=head << 64 | low & 0x3FFF_FFFFFFFFFFFF | 1 << 63)


def _inet(source: random.Random) -> IPv4Address | IPv6Address:
    return IPv4Address(source.getrandbits(32)) if source.random() < 0.5 else IPv6Address(source.getrandbits(128))


def _duration(source: random.Random) -> Duration:
    sign = source.choice((1, -1))
    return Duration(sign * source.choice(_MONTHS), sign * source.choice(_DAYS), sign * source.choice(_NANOSECONDS))


_NATIVE: Final[dict[str, Make]] = {
    **{name: _integer(bits) for name, bits in _INTEGERS.items()},
    "text": _text,
    "ascii": _ascii,
    "blob": _blob,
    "boolean": lambda source: source.random() < 0.5,
    "float": _among((0.0, -0.0, 1.5, -2.25, 3.4e38, 1e-45), lambda source: source.randint(-(10**7), 10**7) / 16),
    "double": _among((0.0, 0.1, 1.5, 123456789.125, 1e16, 1e308, -5e-324), lambda source: source.uniform(-1e9, 1e9)),
    "varint": _among(
        (0, -1, 1 << 63, -(1 << 63) - 1, 10**30, -(10**40)), lambda source: source.randint(-(10**24), 10**24)
    ),
    "decimal": _among(tuple(map(Decimal, _DECIMALS)), _decimal),
    "uuid": _uuid,
    "timeuuid": _among(_TIME_UUIDS, _time_uuid),
    "inet": _among(
        (
            *map(IPv4Address, ("0.0.0.0", "127.0.0.1", "255.255.255.255")),
            *map(IPv6Address, ("::1", "2001:db8::1", "fe80::ff:0:1")),
        ),
        _inet,
    ),
    "timestamp": _among(
        (0, 1, -1, -12_219_292_799_000, 4_102_444_800_000, 1_718_022_896_789),
        lambda source: source.randrange(2_000_000_000_000),
    ),
    "date": _among((0, 1, -1, 19_884, -141_427), lambda source: source.randint(-100_000, 100_000)),
    "time": _among((0, 1, 86_399_999_999_999), lambda source: source.randrange(86_400_000_000_000)),
    "duration": _duration,
}
