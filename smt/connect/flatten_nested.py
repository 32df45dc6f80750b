"""``Flatten``: nested structs become fields of one, their names joined by a delimiter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smt.connect.declared import Declared
from smt.connect.options import Option, Values
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    Plans,
    as_field,
    checked,
    fields_in,
    fields_of,
    read,
    rebuilt,
    require_map,
    require_struct,
    struct_like,
)
from smt.errors import SmtRecordError
from smt.record import Record, Schema


def build(values: Values, side: Side) -> Apply:
    delimiter = values["delimiter"]

    def flat_schema(schema: Schema) -> Schema:
        default = schema.get("default")
        return struct_like(schema, _flat_fields(schema, "", delimiter, bool(schema.get("optional")), default))

    schemas = Plans(flat_schema)

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if value is None:
            return record
        if schema is None:
            row: dict[str, Any] = {}
            _flatten_map(require_map(value, "Flatten"), "", delimiter, row)
            return side.put(record, None, row)
        struct = require_struct(schema, value, "Flatten")
        made = schemas.of(schema)
        found = dict(_flat_values(schema, struct, "", delimiter))
        # What a null struct would have held is null; what was left out stays out.
        whole = len(struct) >= len(fields_of(schema))
        row = {}
        for field in fields_of(made):
            name = field["field"]
            if name in found:
                row[name] = checked(field, found[name])
            elif whole:
                row[name] = None
        return side.put(record, made, row)

    return apply


def _joined(prefix: str, name: str, delimiter: str) -> str:
    return f"{prefix}{delimiter}{name}" if prefix else name


def _flat_fields(
    schema: Schema, prefix: str, delimiter: str, optional: bool, above: Mapping[str, Any] | None
) -> Iterator[Schema]:
    """``optional``: a struct around is optional; ``above``: its default."""
    for field in fields_of(schema):
        name = _joined(prefix, field["field"], delimiter)
        may_miss = optional or bool(field.get("optional"))
        default = field.get("default")
        if default is None and above is not None:
            default = read(above, field, True)
        if field["type"] == "struct":
            yield from _flat_fields(field, name, delimiter, may_miss, default)
        elif field["type"] == "map":
            raise SmtRecordError(f"Flatten does not take maps in records with schemas (field {name})")
        else:
            yield as_field(rebuilt(field, field["type"], optional=may_miss, default=default), name)


def _flat_values(schema: Schema, row: Mapping[str, Any], prefix: str, delimiter: str) -> Iterator[tuple[str, Any]]:
    for field in fields_in(schema, row):
        name = _joined(prefix, field["field"], delimiter)
        found = read(row, field, True)
        if field["type"] != "struct":
            yield name, found
        elif found is not None:
            yield from _flat_values(field, found, name, delimiter)


def _flatten_map(row: Mapping[str, Any], prefix: str, delimiter: str, flat: dict[str, Any]) -> None:
    for key, value in row.items():
        name = _joined(prefix, key, delimiter)
        if isinstance(value, dict):
            _flatten_map(value, name, delimiter, flat)
        else:
            flat[name] = value


FLATTEN_NESTED = Declared(
    "Flatten",
    "Turns nested structs into fields of one struct; lists stay as they are.",
    (Option("delimiter", "text", "What stands between the names.", default="."),),
    build,
    sided=True,
)
