"""Values of the primary key as texts, for record headers.

In: values of records. Out: text. Ours is readable for every type; the strict one is Java's
``String.valueOf``, which for blobs tells only how many bytes there are, and for dates and times depends on
the JVM's time zone (UTC here).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from connector.formats.json_converter import to_json
from connector.values import (
    CqlType,
    Float32,
    NativeType,
    days_as_julian,
    gregorian_date,
    java_date,
    java_double,
    java_float,
)

_WEEKDAYS: Final = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY_MS: Final = 86_400_000


def header_text(type_: CqlType, strict: bool) -> Callable[[Any], str]:
    """A callable that writes values (not None) of a column of this type."""
    if isinstance(type_, NativeType):
        if type_.name == "timestamp":
            return java_timestamp if strict else iso_timestamp
        if type_.name == "date":
            return java_day if strict else iso_date
        if type_.name == "blob":
            return _java_buffer if strict else lambda value: b64encode(value).decode()
    return java_text if strict else _text


def iso_date(days: int) -> str:
    """``2024-06-10``."""
    year, month, day = gregorian_date(days)
    return f"{_year(year)}-{month:02}-{day:02}"


def iso_timestamp(milliseconds: int) -> str:
    """``2024-06-10T12:34:56.789Z``."""
    days, rest = divmod(milliseconds, _DAY_MS)
    return f"{iso_date(days)}T{_clock(rest)}.{rest % 1000:03}Z"


def java_timestamp(milliseconds: int) -> str:
    """``java.util.Date.toString`` in UTC: ``Mon Jun 10 12:34:56 UTC 2024``."""
    days, rest = divmod(milliseconds, _DAY_MS)
    return _java_date_text(days, rest)


def java_text(value: Any) -> str:
    """``String.valueOf`` of a Connect value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Float32):
        return java_float(value)
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, bytes):
        return _java_buffer(value)
    if isinstance(value, list):
        return "[" + ", ".join(java_text(element) for element in value) + "]"
    if isinstance(value, dict):
        shown = (f"{name}={java_text(field)}" for name, field in value.items() if field is not None)
        return "Struct{" + ",".join(shown) + "}"
    return str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value).decode().strip('"')


def _year(year: int) -> str:
    return f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"


def _clock(milliseconds: int) -> str:
    seconds = milliseconds // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _java_date_text(days: int, milliseconds: int) -> str:
    year, month, day = java_date(days)
    of_era = year if year > 0 else 1 - year  # Java's text leaves out which era
    return f"{_WEEKDAYS[days % 7]} {_MONTHS[month - 1]} {day:02} {_clock(milliseconds)} UTC {of_era}"


def java_day(days: int) -> str:
    """``java.util.Date.toString`` of what the Java connector makes of a ``date``.

    >>> java_day(19884), java_day(-141428)
    ('Mon Jun 10 00:00:00 UTC 2024', 'Sun Oct 24 00:00:00 UTC 1582')
    """
    return _java_date_text(days_as_julian(days), 0)


def _java_buffer(value: bytes) -> str:
    return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
