"""``MaskField``: fields become the empty value of their type, or a replacement."""

from __future__ import annotations

from typing import Any, Final

from smt.connect.declared import Declared
from smt.connect.numbers import BITS, parse_decimal, to_float32, to_float64, to_integer
from smt.connect.options import WITH_DEFAULTS, Option, Values, not_empty
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    checked,
    fields_in,
    map_of,
    read,
    require_map,
    require_struct,
)
from smt.errors import SmtRecordError
from smt.record import Record, Schema

_EMPTY: Final[dict[str, Any]] = {"boolean": False, "string": "", "double": 0.0, **dict.fromkeys(BITS, 0)}
_TEMPORAL: Final = frozenset((DATE, TIME, TIMESTAMP))


def build(values: Values, side: Side) -> Apply:
    names, replacement = frozenset(values["fields"]), values["replacement"]
    with_default = values[WITH_DEFAULTS.name]

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if schema is None:
            row = dict(require_map(value, "MaskField"))
            for name in names:
                row[name] = masked(None, row.get(name), replacement)
            return side.put(record, None, row)
        struct = require_struct(schema, value, "MaskField")
        made = {}
        for field in fields_in(schema, struct):
            found = read(struct, field, with_default)
            if field["field"] in names:
                found = masked(field, found, replacement)
            made[field["field"]] = checked(field, found)
        return side.put(record, schema, made)

    return apply


def masked(schema: Schema | None, value: Any, replacement: str | None) -> Any:
    """What stands in the place of a value."""
    if value is None:
        return None
    kind = schema["type"] if schema is not None else _kind(value)
    name = schema.get("name") if schema is not None else None
    if replacement is not None:
        try:
            return _replaced(kind, name, replacement)
        except ValueError as error:
            raise SmtRecordError(
                f"MaskField cannot put {replacement!r} into a field of the type {kind}: {error}"
            ) from None
    if kind in _EMPTY:
        return _EMPTY[kind]
    if kind == "float":
        return to_float32(0.0)
    if kind == "bytes" and name == DECIMAL:
        return b"\0"
    if kind == "array":
        return []
    if kind == "map":
        return map_of(schema, [])
    raise SmtRecordError(f"MaskField has no empty value of the type {kind}")


def _replaced(kind: str, name: str | None, text: str) -> Any:
    if name in _TEMPORAL:
        raise ValueError("dates and times take no replacement")
    if kind == "string":
        return text
    if kind in BITS:
        return to_integer(int(parse_decimal(text)), kind)
    if kind in ("float", "double"):
        # As in Java, where it is a decimal at first: that has no negative zero.
        number = parse_decimal(text) or 0
        return to_float32(number) if kind == "float" else to_float64(number)
    raise ValueError("only numbers and texts take a replacement")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = ((int, "int64"), (float, "double"), (str, "string"), (list, "array"), (dict, "map"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "bytes")


MASK_FIELD = Declared(
    "MaskField",
    "Replaces the content of fields.",
    (
        Option("fields", "list", "Names of the fields.", check=not_empty),
        Option(
            "replacement",
            "text",
            "What numbers and texts become; without it 0, the empty text, `false`, the empty list.",
            default=None,
            check=not_empty,
        ),
        WITH_DEFAULTS,
    ),
    build,
    sided=True,
)
