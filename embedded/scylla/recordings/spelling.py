"""How recordings spell CQL values, so that they can be written as JSON and compared.

In: raw cells with their types. Out: numbers, booleans and texts as JSON has them, bytes as `0x…`, dates as days since
1970, times in ns, timestamps in ms, durations as [months, days, ns], everything else as Python's `repr`.
"""

from __future__ import annotations

import json
from typing import Any

from connector.values import CqlType, Duration, ListType, MapType, SetType, TupleType, UserType, VectorType, decode


def spelled(type_: CqlType, raw: bytes | None) -> Any:
    """A raw cell as recordings have it; None for null."""
    return None if raw is None else _spelled(type_, decode(type_, raw))


def _spelled(type_: CqlType, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Duration):
        return list(value)
    if isinstance(type_, ListType | SetType | VectorType):
        return [_spelled(type_.element, element) for element in value]
    if isinstance(type_, MapType):
        return [[_spelled(type_.key, key), _spelled(type_.value, element)] for key, element in value]
    if isinstance(type_, TupleType):
        return [_spelled(each, element) for each, element in zip(type_.elements, value, strict=True)]
    if isinstance(type_, UserType):
        return {repr(name): _spelled(each, element) for (name, each), element in zip(type_.fields, value, strict=True)}
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    # Floats too: JSON has no NaN, and no two ways to read "0.1".
    return repr(value)


def partition_part(type_: CqlType, raw: bytes | None) -> str:
    """One column of a partition key as seeded recordings have it: `repr`, also of texts and numbers."""
    return repr(None if raw is None else decode(type_, raw))


def plain(value: Any) -> Any:
    """A value that the driver decoded, as recordings have those in answers."""
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


def plain_with_lists(value: Any) -> Any:
    """The same as histories have it: lists stay lists."""
    return [plain_with_lists(each) for each in value] if isinstance(value, list) else plain(value)


def canonical(value: Any) -> str:
    """One text for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)
