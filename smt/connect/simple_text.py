"""Values as ``SimpleHeaderConverter`` writes them: Connect's ``Values.convertToString``.

In: a value with its schema, or without. Out: a text; texts inside of lists and structs are quoted.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from smt.connect.java_dates import java_date_text
from smt.connect.numbers import decimal_of, java_text
from smt.connect.structs import DATE, TIME, TIMESTAMP, fields_of, read
from smt.record import Schema

_DAY_MS: Final = 86_400_000


def simple_text(schema: Schema | None, value: Any) -> str | None:
    """The text of a header's value; None for null."""
    return None if value is None else _text(schema, value, False)


def _text(schema: Schema | None, value: Any, inside: bool) -> str:
    if value is None:
        return "null"
    kind, name = (schema.get("type"), schema.get("name")) if schema is not None else (None, None)
    if kind == "struct" and schema is not None:
        members = [
            f"{_quoted(field['field'])}:{_text(field, read(value, field, True), True)}" for field in fields_of(schema)
        ]
        return "{" + ",".join(members) + "}"
    if name in (DATE, TIME, TIMESTAMP) and isinstance(value, int):
        return java_date_text(value * _DAY_MS if name == DATE else value)
    decimal = decimal_of(schema, value)
    if decimal is not None:
        return java_text(decimal)
    if isinstance(value, dict) or kind == "map":
        pairs = value.items() if isinstance(value, dict) else value
        keys, values = (schema.get("keys"), schema.get("values")) if schema is not None else (None, None)
        return "{" + ",".join(f"{_text(keys, key, True)}:{_text(values, each, True)}" for key, each in pairs) + "}"
    if isinstance(value, list | tuple):
        items = schema.get("items") if schema is not None else None
        return "[" + ",".join(_text(items, item, True) for item in value) + "]"
    if isinstance(value, bytes):
        value = b64encode(value).decode()
    if isinstance(value, str):
        return _quoted(value) if inside else value
    return java_text(value, schema)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
