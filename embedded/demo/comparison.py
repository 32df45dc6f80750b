"""Rows of both ends in one form, to be shown side by side: what JSON can hold, with sets and maps in order.

In: rows of the CQL driver, or of Spark. Out: plain values, or such as records have; rows by their keys.
"""

from __future__ import annotations

import base64
import datetime
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

Rows = dict[tuple[Any, ...], dict[str, Any]]


def plain(value: Any) -> Any:
    """A value of the driver or of Spark as JSON can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return int(value.replace(tzinfo=datetime.UTC).timestamp() * 1000)
    if isinstance(value, (Decimal, uuid.UUID, datetime.date)):
        return str(value)
    fields = getattr(value, "_asdict", None) or getattr(value, "asDict", None)
    if fields is not None:
        return {name: plain(each) for name, each in fields().items()}
    if isinstance(value, Mapping):
        return sorted([plain(key), plain(each)] for key, each in value.items())
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return str(value)


def recorded(value: Any) -> Any:
    """A value of the driver as records in JSON have it; sets, maps and user types as dicts of what is in them."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        return round(value.replace(tzinfo=datetime.UTC).timestamp() * 1000)
    if (days := getattr(value, "days_from_epoch", None)) is not None:
        return days
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if (fields := getattr(value, "_asdict", None)) is not None:
        return {name: recorded(each) for name, each in fields().items() if each is not None}
    if isinstance(value, Mapping):
        return {key: recorded(each) for key, each in value.items()}
    return dict.fromkeys(value, True) if isinstance(value, Set) else value


def by_key(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> Rows:
    return {tuple(row[name] for name in key): dict(row) for row in rows}
