"""``ScyllaFlattenColumns``: cells in ``before`` and ``after`` become plain columns, the envelope stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smt.envelope import UNTOUCHED, WHOLE_ROWS, key_fields
from smt.options import FlattenOptions
from smt.record import Record, Schema
from smt.schemas import cell_names, is_cell, unwrapped

_IMAGES = ("before", "after")
_MOST_PLANS = 256


def build_flatten(options: FlattenOptions) -> Callable[[Record], Record | None]:
    """The transform. Java unwraps any struct whose one field is ``value``; unless ``strict``, only cells are."""
    strict = options.strict
    plans: dict[int, tuple[Schema, Schema, dict[str, frozenset[str]]]] = {}

    def apply(record: Record) -> Record | None:
        value = record.value
        if type(value) is not dict:
            return record
        schema = record.value_schema
        if schema is None:
            return _schemaless(record, value, strict)
        plan = plans.get(id(schema))
        if plan is None:
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plan = plans[id(schema)] = (schema, *flattened(schema, strict))
        _, flat_schema, cells = plan
        if not cells:
            return record
        flat = dict(value)
        for image, names in cells.items():
            row = value.get(image)
            if row is not None:
                flat[image] = {
                    name: (None if cell is None else cell["value"]) if name in names else cell
                    for name, cell in row.items()
                }
        return Record(record.topic, record.key, flat, record.headers, record.key_schema, flat_schema)

    return apply


def _schemaless(record: Record, value: dict[str, Any], strict: bool) -> Record:
    key = {} if strict else key_fields(record)
    flat = None
    for image in _IMAGES:
        row = value.get(image)
        if type(row) is dict:
            flat = flat or dict(value)
            flat[image] = {
                name: cell["value"]
                if type(cell) is dict and len(cell) == 1 and "value" in cell and name not in key
                else cell
                for name, cell in row.items()
            }
    if flat is None:
        return record
    return Record(record.topic, record.key, flat, record.headers, record.key_schema, None)


def flattened(schema: Schema, strict: bool) -> tuple[Schema, dict[str, frozenset[str]]]:
    """The flattened schema, and the cells of each image."""
    cells = {
        field["field"]: names
        for field in schema.get("fields", ())
        if field.get("field") in _IMAGES and (names := cell_names(field, any_name=strict))
    }
    if not cells:
        return schema, {}
    fields = [_flat_image(field, strict) if field["field"] in cells else field for field in schema["fields"]]
    return {**schema, "fields": fields}, cells


def _flat_image(image: Schema, strict: bool) -> Schema:
    columns = [unwrapped(column) if is_cell(column, any_name=strict) else column for column in image["fields"]]
    return {**image, "fields": columns}


def losses_of_flattening() -> tuple[str, ...]:
    """What is lost of cells, to be said once at start."""
    return (f"{UNTOUCHED} ({WHOLE_ROWS})",)
