"""Compares what `SELECT *` gives with what was landed, value by value.

In: rows of the CQL driver, and rows that Spark wrote as JSON. Out: `Difference`s. Both are brought into one form first:
what JSON can hold, with sets and maps in order.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Rows = dict[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    table: str
    key: tuple[Any, ...]
    column: str
    source: Any
    landed: Any

    def __str__(self) -> str:
        return f"{self.table} {self.key} {self.column}: source {self.source!r}, landed {self.landed!r}"


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


def by_key(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> Rows:
    return {tuple(row[name] for name in key): dict(row) for row in rows}


def differences(table: str, source: Rows, landed: Rows) -> list[Difference]:
    """Rows that only one side has, and values that are not the same."""
    found = []
    for key in sorted(source.keys() | landed.keys(), key=str):
        left, right = source.get(key), landed.get(key)
        if left is None or right is None:
            found.append(Difference(table, key, "(the row)", left, right))
            continue
        found += [
            Difference(table, key, name, left.get(name), right.get(name))
            for name in sorted(left.keys() | right.keys())
            if left.get(name) != right.get(name)
        ]
    return found
