"""JSON ↔ serialised values, as `INSERT … JSON`, `SELECT JSON`, `toJson` and `fromJson` spell them.

In: JSON text or parsed JSON with a type, or a serialised value with its type. Out: bytes, or text. Numbers,
booleans and nested values may also be given as strings; object keys always are.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, cast

from connector.values import (
    CqlType,
    Duration,
    MapType,
    NativeType,
    TupleType,
    UserType,
    VectorType,
    decode,
    encode,
    split_cells,
    split_fields,
    split_vector,
)
from embedded.scylla.cql.tree import Constant, ConstantKind
from embedded.scylla.errors import FunctionFailure, InvalidRequest
from embedded.scylla.execute.literals import constant_bytes, show_date
from embedded.scylla.execute.validation import checker, pack_cells, pack_collection

_QUOTED: Final = frozenset(
    ("ascii", "text", "blob", "inet", "uuid", "timeuuid", "timestamp", "date", "time", "duration")
)
#: A number is a timestamp, but none of the others that are written as strings.
_WHOLE: Final = frozenset(("tinyint", "smallint", "int", "bigint", "varint"))
_ALWAYS_QUOTED: Final = _QUOTED - {"timestamp"}


class _Number(str):
    """A JSON number, as it was written."""


def parse_json(text: str) -> Any:
    """Parsed JSON, with numbers as `_Number`."""
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=lambda word: _Number(word))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"Could not decode JSON string as a map: {error}. (String was: {text})") from None


def bytes_from_json_text(text: str, type_: CqlType) -> bytes | None:
    """What `fromJson` makes of a text; one that is no JSON is the function's failure, not the statement's."""
    try:
        value = parse_json(text)
    except InvalidRequest as error:
        message = f"execution of fromJson failed: Failed parsing fromJson parameter: {error}"
        raise FunctionFailure(message, "system", "fromJson", (type_.cql(),)) from None
    try:
        return bytes_from_json(value, type_)
    except InvalidRequest as error:
        message = f"execution of fromjson failed: Failed execution of function system.fromjson: {error}"
        raise FunctionFailure(message, "system", "fromjson", ("text",)) from None


def bytes_from_json(value: Any, type_: CqlType) -> bytes | None:
    """The serialised value; null is None."""
    if value is None:
        return None
    try:
        return _from_json(value, type_)
    except (ValueError, ArithmeticError) as error:
        raise InvalidRequest(f"Error decoding JSON value for type {type_.cql()}: {error}") from None


def _from_json(value: Any, type_: CqlType) -> bytes:
    if isinstance(type_, NativeType):
        return _native_from_json(value, type_)
    if isinstance(value, str) and not isinstance(value, _Number):
        value = parse_json(value)
    if isinstance(type_, MapType):
        return checker(type_)(pack_collection(_map_parts(value, type_), 2))
    if isinstance(type_, UserType):
        return _user_from_json(value, type_)
    if not isinstance(value, list):
        raise ValueError(f"expected a list, but got: {_shown(value)}")
    if isinstance(type_, TupleType):
        if len(value) > len(type_.elements):
            raise ValueError(f"tuple has {len(type_.elements)} elements, but got {len(value)}")
        return pack_cells(bytes_from_json(part, kind) for part, kind in zip(value, type_.elements))
    element = type_.element
    parts = []
    for part in value:
        raw = bytes_from_json(part, element)
        if raw is None:
            raise ValueError("Invalid null element in list")
        parts.append(raw)
    if isinstance(type_, VectorType):
        return encode(type_, [decode(element, part) for part in parts])
    return checker(type_)(pack_collection(parts))


def _map_parts(value: Any, type_: MapType) -> list[bytes]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a map, but got: {_shown(value)}")
    parts = []
    for key, item in value.items():
        name, raw = bytes_from_json(key, type_.key), bytes_from_json(item, type_.value)
        if name is None or raw is None:
            raise ValueError("Invalid null value in map")
        parts += [name, raw]
    return parts


def _user_from_json(value: Any, type_: UserType) -> bytes:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a map, but got: {_shown(value)}")
    given = {column_name(name): item for name, item in value.items()}
    unknown = [name for name in given if name not in dict(type_.fields)]
    if unknown:
        raise ValueError(f"Extraneous field definition for value of type {type_.name}: {unknown[0]}")
    return pack_cells([bytes_from_json(given.get(name), kind) for name, kind in type_.fields])


def column_name(key: str) -> str:
    """A JSON object's key as a name: quotes keep its case."""
    return key[1:-1].replace('""', '"') if len(key) > 1 and key[0] == key[-1] == '"' else key.lower()


def _shown(value: Any) -> str:
    return json.dumps(value)[:80]


def _without_exponent(text: str) -> str:
    """A whole number that is written with an exponent, without it."""
    number = Decimal(text) if "e" in text.lower() else None
    # Nothing that large is a number of any type; it must not be spelled out.
    if number is None or not -1 < number.adjusted() < 400 or number != number.to_integral_value():
        return str(text)
    return str(int(number))


def _native_from_json(value: Any, type_: NativeType) -> bytes:
    name = type_.name
    if isinstance(value, bool):
        kind, text = "boolean", "true" if value else "false"
    elif isinstance(value, _Number) and name not in _ALWAYS_QUOTED:
        text = _without_exponent(value) if name in _WHOLE else str(value)
        kind = "integer" if text.lstrip("-").isdigit() else "float"
    elif isinstance(value, str) and not isinstance(value, _Number):
        kind, text = "string", value
        if name not in _QUOTED or name in ("uuid", "timeuuid", "blob", "duration"):
            kind = _kind_of_text(value, name)
            text = value.strip().lower() if kind == "boolean" else value
    else:
        raise ValueError(f"expected {name}, but got: {_shown(value)}")
    raw = constant_bytes(Constant(cast(ConstantKind, kind), text), name)
    if raw is None:
        raise ValueError(f"expected {name}, but got: {_shown(value)}")
    return raw


def _kind_of_text(text: str, name: str) -> str:
    """How a string is to be read for a type that is not written as a string in CQL."""
    if name in ("uuid", "timeuuid"):
        uuid.UUID(text)
        return "uuid"
    if name == "blob":
        if not text.startswith("0x"):
            raise ValueError("String representation of blob is missing 0x prefix")
        return "hex"
    if name == "boolean" and text.strip().lower() not in ("true", "false"):
        raise ValueError(f"expected boolean, but got: {_shown(text)}")
    if name in ("duration", "boolean"):
        return name
    return "integer" if text.lstrip("+-").isdigit() else "float"


# ---- to JSON -----------------------------------------------------------------------------------------------------


def json_text(raw: bytes | None, type_: CqlType) -> str:
    """The JSON of a serialised value."""
    if raw is None:
        return "null"
    if isinstance(type_, NativeType):
        return _native_json(raw, type_)
    if isinstance(type_, MapType):
        cells = split_cells(raw, 2)
        pairs = zip(cells[::2], cells[1::2])
        inner = ", ".join(f"{_key_text(key, type_.key)}: {json_text(item, type_.value)}" for key, item in pairs)
        return "{" + inner + "}"
    if isinstance(type_, UserType):
        fields = split_fields(raw, len(type_.fields), type_.cql())
        inner = ", ".join(
            f"{json.dumps(shown_name(name))}: {json_text(part, kind)}"
            for (name, kind), part in zip(type_.fields, fields)
        )
        return "{" + inner + "}"
    if isinstance(type_, TupleType):
        fields = split_fields(raw, len(type_.elements), type_.cql())
        return "[" + ", ".join(json_text(part, kind) for part, kind in zip(fields, type_.elements)) + "]"
    if isinstance(type_, VectorType):
        return "[" + ", ".join(json_text(part, type_.element) for part in split_vector(raw, type_)) + "]"
    element = type_.element
    return "[" + ", ".join(json_text(part, element) for part in split_cells(raw)) + "]"


def _key_text(raw: bytes | None, type_: CqlType) -> str:
    text = json_text(raw, type_)
    return text if text.startswith('"') else json.dumps(text, ensure_ascii=False)


def shown_name(name: str) -> str:
    """A name as an object key: with quotes inside when it is not in lower case."""
    return name if name == name.lower() else f'"{name}"'


def _native_json(raw: bytes, type_: NativeType) -> str:
    name = type_.name
    if name in ("text", "ascii"):
        return json.dumps(raw.decode(), ensure_ascii=False)
    if name == "blob":
        return f'"0x{raw.hex()}"'
    value = decode(type_, raw)
    if value is None:
        return "null"
    if name in ("float", "double"):
        return "null" if value != value or value in (float("inf"), float("-inf")) else float_text(value, name)
    if name == "boolean":
        return "true" if value else "false"
    if name in _QUOTED:
        return f'"{native_text(value, name)}"'
    return str(value) if not isinstance(value, Decimal) else decimal_text(value)


def float_text(value: float, name: str) -> str:
    """A float as Java writes it: shortest digits, exponent outside 1e-3…1e7."""
    text = repr(value)
    if name == "float":
        for digits in range(1, 10):
            text = f"{value:.{digits}g}"
            if struct.pack(">f", float(text)) == struct.pack(">f", value):
                break
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    sign, digits_, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits_)).rstrip("0") or "0"
    point = len(digits_) + cast(int, exponent)
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{shown}"
        whole = shown[:point].ljust(point, "0")
        return f"{minus}{whole}.{shown[point:] or '0'}"
    return f"{minus}{shown[0]}.{shown[1:] or '0'}E{point - 1}"


def decimal_text(value: Decimal) -> str:
    """A decimal with its scale, with an exponent where Java would write one."""
    return str(value)


def native_text(value: Any, name: str) -> str:
    """The text of a decoded value of one of the types that JSON quotes."""
    if name == "timestamp":
        seconds, milliseconds = divmod(value, 1000)
        days, seconds = divmod(seconds, 86_400)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{show_date(days)} {clock}.{milliseconds:03d}Z"
    if name == "date":
        return show_date(value)
    if name == "time":
        seconds, nanoseconds = divmod(value, 1_000_000_000)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{nanoseconds:09d}"
    return duration_text(value) if isinstance(value, Duration) else str(value)


def duration_text(value: Duration) -> str:
    """`1y2mo3d4h5m6s7ms8us9ns`, without the parts that are zero."""
    negative = min(value) < 0
    months, days, rest = (abs(part) for part in value)
    text = "".join(f"{count}{unit}" for count, unit in ((months // 12, "y"), (months % 12, "mo"), (days, "d")) if count)
    for size, unit in (
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
        (1, "ns"),
    ):
        count, rest = divmod(rest, size)
        if count:
            text += f"{count}{unit}"
    return ("-" if negative else "") + (text or "0s")
