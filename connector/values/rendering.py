"""CQL values as in records: the value of the Connect type that corresponds to the CQL type.

In: a ``CqlType`` and ``RenderingRules``. Out: a callable from a raw cell to the record's value: ints,
floats, bools, str, bytes; lists for lists, sets, vectors; ``{"key", "value"}`` structs for map entries;
dicts for tuples and user types. Uuid, inet, decimal, varint and duration are text, date is days, time
nanoseconds, timestamp milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, assert_never

from connector.java_calendar import java_days
from connector.java_numbers import Float32, WideDouble, is_plain
from connector.values.big_numbers import decimal_of
from connector.values.binary import decoder, split_cells, split_fields, split_vector
from connector.values.ordering import timeuuid_key
from connector.values.scalars import NATIVE_CODECS, decode_decimal, decode_duration, decode_varint, malformed
from connector.values.types import (
    ByNative,
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    freeze,
    is_multi_cell,
    native,
)

Render = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class RenderingRules:
    """``strict``: as the Java connector has it even where it is wrong.

    ``keep_empty``: null and empty stay apart inside user types and tuples. The Java connector makes null of a user type
    with nothing in it, and an empty collection of a field that is null. ``compared``: as values are when Java compares
    them, for which a user type with nothing in it is not null yet.
    """

    strict: bool = False
    keep_empty: bool = False
    compared: bool = False


DEFAULT_RULES: Final = RenderingRules()


def renderer(type_: CqlType, rules: RenderingRules = DEFAULT_RULES) -> Render:
    """A callable that renders raw cells of values of the type (frozen, if they have parts).

    >>> renderer(native("date"))(bytes.fromhex("80004dac"))
    19884
    """
    return _renderer(freeze(type_), rules)


@lru_cache(maxsize=4096)
def column_renderer(type_: CqlType, rules: RenderingRules = DEFAULT_RULES) -> Render:
    """Like ``renderer``, for whole columns as the log has them.

    Of those that are stored cell by cell, lists come as maps from timeuuid, and empty ones are null. A post-image has
    empty ones, where the change took the last element; Java shows them as it finds them.
    """
    if not is_multi_cell(type_):
        return renderer(type_, rules)
    if isinstance(type_, ListType):
        return _list_column(type_, rules)
    render = renderer(type_, rules)
    if isinstance(type_, UserType):
        return render
    if isinstance(type_, SetType | MapType):
        return render if rules.strict else lambda raw: render(raw) or None
    assert_never(type_)


def _list_column(type_: ListType, rules: RenderingRules) -> Render:
    render = renderer(type_.element, rules)
    order = _java_uuid_key if rules.strict else timeuuid_key
    empty: list[Any] | None = [] if rules.strict else None

    def render_list(raw: bytes) -> Any:
        if not raw:
            return None
        cells = split_cells(raw, 2)
        pairs = sorted((order(key or b""), at) for at, key in enumerate(cells[::2]))
        values = cells[1::2]
        return [_nullable(values[at], render) for _, at in pairs] or empty

    return render_list


def _java_uuid_key(raw: bytes) -> tuple[int, int]:
    """``java.util.UUID.compareTo``: two signed halves, the first of which begins with the lowest bits of the time."""
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)


@lru_cache(maxsize=4096)
def _renderer(type_: CqlType, rules: RenderingRules) -> Render:
    if isinstance(type_, NativeType):
        return _native(type_, rules)
    if isinstance(type_, ListType | SetType):
        return _sequence(type_, rules)
    if isinstance(type_, MapType):
        return _map(type_, rules)
    if isinstance(type_, TupleType):
        parts = [(f"field_{at}", element) for at, element in enumerate(type_.elements)]
        return _struct(type_.cql(), parts, rules, null_if_empty=False)
    if isinstance(type_, UserType):
        return _struct(type_.cql(), list(type_.fields), rules, null_if_empty=not (rules.keep_empty or rules.compared))
    if isinstance(type_, VectorType):
        return _vector(type_, rules)
    assert_never(type_)


def _native(type_: NativeType, rules: RenderingRules) -> Render:
    if type_.name == "inet" and rules.strict:
        return render_inet_as_java
    if type_.name == "date" and rules.strict:
        decode = decoder(type_)
        return lambda raw: java_days(decode(raw)) if raw else None
    return _NATIVE[type_.name]


def render_uuid(raw: bytes) -> Any:
    if len(raw) != 16:
        if not raw:
            return None
        raise malformed("uuid", raw)
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def render_inet(raw: bytes) -> Any:
    """As ``InetAddress.getHostAddress`` writes it: all eight groups of a version 6 address, nothing left out."""
    if len(raw) == 4:
        return f"{raw[0]}.{raw[1]}.{raw[2]}.{raw[3]}"
    if len(raw) == 16:
        return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, 16, 2))
    if not raw:
        return None
    raise malformed("inet", raw)


def render_inet_as_java(raw: bytes) -> Any:
    """Java makes a version 4 address of a version 6 address that maps one."""
    if len(raw) == 16 and raw[:12] == b"\0" * 10 + b"\xff\xff":
        return render_inet(raw[12:])
    return render_inet(raw)


#: In bytes: some 2.5 million digits, half a second of a worker's only thread, and more than a record may usually have.
_LONGEST_NUMBER: Final = 2**20


def _not_too_long(kind: str, raw: bytes) -> None:
    if len(raw) > _LONGEST_NUMBER:
        raise ValueError(f"a {kind} of {len(raw)} bytes: more than {_LONGEST_NUMBER} do not become a record")


def render_varint(raw: bytes) -> Any:
    _not_too_long("varint", raw)
    value = decode_varint(raw)
    if value is None:
        return None
    return str(value) if len(raw) < 1024 else str(decimal_of(value))


def render_decimal(raw: bytes) -> Any:
    _not_too_long("decimal", raw)
    value = decode_decimal(raw)
    return None if value is None else str(value)


_DURATION_UNITS: Final = (
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
)


def render_duration(raw: bytes) -> Any:
    """As the Java driver writes it: ``-1y2mo3d4h5m6s7ms8us9ns``, units that are zero left out."""
    value = decode_duration(raw)
    if value is None:
        return None
    months, days, nanoseconds = (abs(part) for part in value)
    years, months = divmod(months, 12)
    parts = [(years, "y"), (months, "mo"), (days, "d")]
    for unit, size in _DURATION_UNITS:
        count, nanoseconds = divmod(nanoseconds, size)
        parts.append((count, unit))
    return ("-" if min(value) < 0 else "") + "".join(f"{count}{unit}" for count, unit in parts if count)


_decode_float = decoder(native("float"))
_decode_double = decoder(native("double"))


def render_float(raw: bytes) -> Any:
    value = _decode_float(raw)
    return None if value is None else Float32(value)


def render_double(raw: bytes) -> Any:
    value = _decode_double(raw)
    return value if value is None or is_plain(value) else WideDouble(value)


_NATIVE: Final[ByNative[Render]] = {
    "ascii": NATIVE_CODECS["ascii"][1],
    "bigint": NATIVE_CODECS["bigint"][1],
    "blob": NATIVE_CODECS["blob"][1],
    "boolean": NATIVE_CODECS["boolean"][1],
    "counter": NATIVE_CODECS["counter"][1],
    "date": NATIVE_CODECS["date"][1],
    "decimal": render_decimal,
    "double": render_double,
    "duration": render_duration,
    "float": render_float,
    "inet": render_inet,
    "int": NATIVE_CODECS["int"][1],
    "smallint": NATIVE_CODECS["smallint"][1],
    "text": NATIVE_CODECS["text"][1],
    "time": NATIVE_CODECS["time"][1],
    "timestamp": NATIVE_CODECS["timestamp"][1],
    "timeuuid": render_uuid,
    "tinyint": NATIVE_CODECS["tinyint"][1],
    "uuid": render_uuid,
    "varint": render_varint,
}


def _nullable(cell: bytes | None, render: Render) -> Any:
    return None if cell is None else render(cell)


def _sequence(type_: ListType | SetType, rules: RenderingRules) -> Render:
    render = _renderer(type_.element, rules)
    if isinstance(type_, SetType) and rules.strict and _may_be_one_in_java(type_.element):
        compared = _renderer(type_.element, replace(rules, compared=True))

        def render_set(raw: bytes) -> Any:
            if not raw:
                return None
            unique = {repr(_nullable(cell, compared)): cell for cell in split_cells(raw)}
            return [_nullable(cell, render) for cell in unique.values()]

        return render_set
    return lambda raw: [_nullable(cell, render) for cell in split_cells(raw)] if raw else None


def _map(type_: MapType, rules: RenderingRules) -> Render:
    render_key, render_value = _renderer(type_.key, rules), _renderer(type_.value, rules)

    def render_map(raw: bytes) -> Any:
        if not raw:
            return None
        cells = iter(split_cells(raw, 2))
        return [
            {"key": _nullable(key, render_key), "value": _nullable(value, render_value)}
            for key, value in zip(cells, cells, strict=True)
        ]

    if not (rules.strict and _may_be_one_in_java(type_.key)):
        return render_map
    compared = _renderer(type_.key, replace(rules, compared=True))

    def render_map_as_java(raw: bytes) -> Any:
        if not raw:
            return None
        cells = iter(split_cells(raw, 2))
        # Of entries with one key the first keeps its place, and the last its value.
        entries: dict[str, dict[str, Any]] = {}
        for key, value in zip(cells, cells, strict=True):
            entry = entries.setdefault(repr(_nullable(key, compared)), {"key": _nullable(key, render_key)})
            entry["value"] = _nullable(value, render_value)
        return list(entries.values())

    return render_map_as_java


def _may_be_one_in_java(type_: CqlType) -> bool:
    """Whether values that are two for CQL can be one for Java: a version 4 address and its version 6 form are, and a
    collection that is null and one that is empty, inside a tuple or user type."""
    return type_ == native("inet") or not isinstance(type_, NativeType)


def _struct(spelled: str, parts: list[tuple[str, CqlType]], rules: RenderingRules, null_if_empty: bool) -> Render:
    fields = [
        (name, _renderer(type_, rules), isinstance(type_, ListType | SetType | MapType) and not rules.keep_empty)
        for name, type_ in parts
    ]
    count = len(fields)

    def render_struct(raw: bytes) -> Any:
        if not raw:
            return None
        value: dict[str, Any] = {}
        for (name, render, never_null), cell in zip(fields, split_fields(raw, count, spelled), strict=True):
            if cell is None:
                value[name] = [] if never_null else None
            else:
                value[name] = render(cell)
        if null_if_empty and all(field is None or field == [] for field in value.values()):
            return None
        return value

    return render_struct


def _vector(type_: VectorType, rules: RenderingRules) -> Render:
    render = _renderer(type_.element, rules)
    return lambda raw: [render(element) for element in split_vector(raw, type_)] if raw else None
