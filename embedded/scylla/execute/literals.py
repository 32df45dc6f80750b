"""Constants in CQL text → serialised bytes of the type they are for.

In: a constant and a native type. Out: bytes; None when this kind of constant cannot be of the type;
`ValueError` when it could but its text is wrong.
"""

from __future__ import annotations

import ipaddress
import math
import re
import struct
import uuid
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Final

from connector.values import Duration, encode, native
from embedded.scylla.cql.tree import Constant

_EPOCH: Final = date(1970, 1, 1)
_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64}
_TIMESTAMP: Final = re.compile(
    r"(?P<date>[+-]?\d{4,9}-\d{1,2}-\d{1,2})"
    r"(?:[ tT](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d+))?)?)?"
    r"\s*(?P<zone>[zZ]|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?\Z"
)
_DATE: Final = re.compile(r"([+-]?\d{1,10})-(\d{1,2})-(\d{1,2})\Z")
_TIME: Final = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?\Z")
_DURATION_PART: Final = re.compile(r"(\d+)(mo|ms|us|µs|μs|ns|y|w|d|h|m|s)", re.IGNORECASE)
_ISO_PART: Final = re.compile(r"(\d+)([YMWDHMS])")
_UNITS: Final = {
    "y": "years",
    "mo": "months",
    "w": "weeks",
    "d": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
_NANOSECONDS: Final = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1000,
    "ns": 1,
}


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date in the proleptic Gregorian calendar, for years far beyond `datetime`'s."""
    date(2000 + year % 400, month, day)
    cycles, within = divmod(year - 2000, 400)
    return (date(2000 + within, month, day) - _EPOCH).days + cycles * 146_097


def parse_date(text: str) -> int:
    """Days since 1970-01-01."""
    match = _DATE.match(text)
    if match is None:
        raise ValueError(f"Unable to coerce '{text}' to a formatted date (long)")
    try:
        return days_from_civil(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise ValueError(f"Unable to coerce '{text}' to a formatted date (long)") from None


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch; without a zone the time is UTC."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    match = _TIMESTAMP.match(text.strip())
    if match is None:
        raise ValueError(f"unable to parse date '{text}'")
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"unable to parse date '{text}'")
    fraction = match["fraction"] or "0"
    if len(fraction) > 3:
        raise ValueError(f"Milliseconds length exceeds expected ({len(fraction)})")
    milliseconds = int(fraction.ljust(3, "0"))
    zone = match["zone"] or "Z"
    shift = 0
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        shift = (int(digits[:2]) * 60 + int(digits[2:])) * (1 if zone[0] == "+" else -1)
    minutes = (parse_date(match["date"]) * 24 + hour) * 60 + minute - shift
    return (minutes * 60 + second) * 1000 + milliseconds


def parse_time(text: str) -> int:
    """Nanoseconds since midnight."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    match = _TIME.match(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3]) > 59:
        raise ValueError(f"Timestamp format must be hh:mm:ss[.fffffffff], got {text!r}")
    seconds = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])
    return seconds * 1_000_000_000 + int((match[4] or "0").ljust(9, "0"))


def _check_units(units: list[str]) -> None:
    """Units go from the largest to the smallest, each once."""
    for before, unit in pairwise(units):
        if unit == before:
            raise ValueError(f"Invalid duration. The {_UNITS[unit]} are specified multiple times")
        if list(_UNITS).index(unit) < list(_UNITS).index(before):
            raise ValueError(f"Invalid duration. The {_UNITS[before]} should be after {_UNITS[unit]}")


def parse_duration(text: str) -> Duration:
    """From `1y2mo3d4h`, `P1Y2M3DT4H` or `P0001-02-03T04:05:06`."""
    sign = -1 if text.startswith("-") else 1
    body = text.lstrip("-")
    months = days = nanoseconds = 0
    if body[:1] in "Pp" and "-" in body:
        years, month, rest = body[1:].split("-")
        day, clock = rest.split("T")
        hour, minute, second = clock.split(":")
        parts = [(years, "y"), (month, "mo"), (day, "d"), (hour, "h"), (minute, "m"), (second, "s")]
    elif body[:1] == "P":
        date_part, _, time_part = body[1:].partition("T")
        named = {"M": "mo", "Y": "y", "W": "w", "D": "d"}
        parts = [(number, named[unit]) for number, unit in _ISO_PART.findall(date_part)]
        parts += [(number, unit.lower()) for number, unit in _ISO_PART.findall(time_part)]
    else:
        if _DURATION_PART.sub("", body):
            raise ValueError(f"Unable to convert '{text}' to a duration")
        parts = [
            (number, unit.lower().replace("µ", "u").replace("μ", "u")) for number, unit in _DURATION_PART.findall(body)
        ]
        _check_units([unit for _, unit in parts])
    for number, unit in parts:
        count = int(number)
        if unit == "y":
            months += count * 12
        elif unit == "mo":
            months += count
        elif unit == "w":
            days += count * 7
        elif unit == "d":
            days += count
        else:
            nanoseconds += count * _NANOSECONDS[unit]
    return Duration(sign * months, sign * days, sign * nanoseconds)


def parse_float(text: str, size: int) -> float:
    """A number of 4 or 8 bytes; one too large for them is none, unless the text says infinity."""
    spelled = text.lower().replace("infinity", "inf")
    value = float(spelled)
    (kept,) = struct.unpack(">f" if size == 4 else ">d", pack_float(value, size))
    if math.isinf(kept) and "inf" not in spelled:
        raise ValueError(f"marshaling error: Invalid number format '{text}'")
    return value


def pack_float(value: float, size: int) -> bytes:
    """A float too large for four bytes becomes infinite, as in the server's narrowing."""
    if size == 8:
        return struct.pack(">d", value)
    try:
        return struct.pack(">f", value)
    except OverflowError:
        return struct.pack(">f", float("inf") if value > 0 else float("-inf"))


def constant_bytes(constant: Constant, type_name: str) -> bytes | None:
    """The bytes of a constant as a value of the native type."""
    kind, text = constant.kind, constant.text
    if type_name in ("text", "ascii"):
        if kind != "string":
            return None
        if type_name == "ascii" and not text.isascii():
            raise ValueError("Validation failed - non-ASCII character in an ASCII string")
        return text.encode()
    if type_name in _INTEGERS:
        return encode(native(type_name), int(text)) if kind == "integer" else None
    if type_name == "varint":
        return encode(native("varint"), int(text)) if kind == "integer" else None
    if type_name == "decimal":
        if kind not in ("integer", "float"):
            return None
        try:
            return encode(native("decimal"), Decimal(text))
        except InvalidOperation:
            raise ValueError(f"unable to make BigDecimal from '{text}'") from None
    if type_name in ("float", "double"):
        size = 4 if type_name == "float" else 8
        return pack_float(parse_float(text, size), size) if kind in ("integer", "float") else None
    if type_name == "boolean":
        return (b"\x01" if text == "true" else b"\x00") if kind == "boolean" else None
    if type_name in ("uuid", "timeuuid"):
        if kind != "uuid":
            return None
        raw = uuid.UUID(text).bytes
        if type_name == "timeuuid" and raw[6] >> 4 != 1:
            raise ValueError(f"Unsupported UUID version ({raw[6] >> 4})")
        return raw
    if type_name == "blob":
        if kind != "hex":
            return None
        if len(text) % 2:
            raise ValueError("An hex string representing bytes must have an even length")
        return bytes.fromhex(text[2:])
    if type_name == "duration":
        return encode(native("duration"), parse_duration(text)) if kind == "duration" else None
    return _text_bytes(kind, text, type_name)


def _text_bytes(kind: str, text: str, type_name: str) -> bytes | None:
    """The types that are written as strings. An empty one is a value without bytes, where a type has such a value."""
    if kind == "string" and not text and type_name in ("inet", "timestamp"):
        return b""
    if type_name == "inet":
        return ipaddress.ip_address(text).packed if kind == "string" else None
    if kind not in ("string", "integer"):
        return None
    if type_name == "timestamp":
        return encode(native("timestamp"), parse_timestamp(text))
    if type_name == "date":
        if kind == "integer" or re.fullmatch(r"\d+", text):
            number = int(text)
            if not 0 <= number < 1 << 32:
                raise ValueError(f"Unable to make unsigned int (for date) from: '{text}'")
            return number.to_bytes(4, "big")
        return encode(native("date"), parse_date(text))
    if type_name == "time":
        return encode(native("time"), parse_time(text))
    return None


def day_of(milliseconds: int) -> int:
    """The day since 1970-01-01 that a timestamp falls on."""
    return milliseconds // 86_400_000


def show_date(days: int) -> str:
    """A date as CQL writes it."""
    cycles, within = divmod(days, 146_097)
    shown = _EPOCH + timedelta(days=within)
    year = shown.year + cycles * 400
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{shown.month:02d}-{shown.day:02d}"
