"""Single fields: ``ExtractField``, ``HoistField``, ``InsertField``, ``ValueToKey`` and ``SetSchemaMetadata``."""

from __future__ import annotations

from typing import Any

from smt.connect.declared import Declared
from smt.connect.field_path import SYNTAX, schema_at, steps, value_in_map, value_in_struct
from smt.connect.options import WITH_DEFAULTS, Option, Values, not_empty
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    Plans,
    as_field,
    checked,
    field_named,
    fields_in,
    fields_of,
    read,
    require_map,
    require_struct,
    struct_like,
)
from smt.errors import OptionProblem, SmtRecordError
from smt.record import Record, Schema
from smt.schemas import bare


def build_extract(values: Values, side: Side) -> Apply:
    path = steps(values["field"], values[SYNTAX.name])
    with_default = values[WITH_DEFAULTS.name]

    def found_in(schema: Schema) -> Schema:
        found = schema_at(path, schema)
        if found is None:
            raise SmtRecordError(f"Unknown field: {values['field']}")
        return bare(found)

    schemas = Plans(found_in)

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if schema is None:
            found = None if value is None else value_in_map(path, require_map(value, "ExtractField"))
            return side.put(record, None, found)
        made = schemas.of(schema)
        row = None if value is None else require_struct(schema, value, "ExtractField")
        found = None if row is None else value_in_struct(path, schema, row, with_default)
        if found is None and not made.get("optional") and made.get("default") is None:
            raise SmtRecordError(f"the required field {values['field']!r} is null")
        return side.put(record, made, found)

    return apply


def _check_path(values: Values) -> tuple[OptionProblem, ...]:
    try:
        steps(values["field"], values[SYNTAX.name])
    except ValueError as error:
        return (OptionProblem("field", str(error), None, values["field"]),)
    return ()


def build_hoist(values: Values, side: Side) -> Apply:
    name = values["field"]
    schemas: Plans[Schema] = Plans(
        lambda schema: {"type": "struct", "fields": [as_field(schema, name)], "optional": False}
    )

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if schema is None:
            return side.put(record, None, {name: value})
        return side.put(record, schemas.of(schema), {name: checked(schema, value)})

    return apply


def build_value_to_key(values: Values, side: Side) -> Apply:
    names = values["fields"]
    with_default = values[WITH_DEFAULTS.name]

    def key_of(schema: Schema) -> Schema:
        fields = []
        for name in names:
            field = field_named(schema, name)
            if field is None:
                raise SmtRecordError(f"Field does not exist: {name}")
            fields.append(field)
        return struct_like({"type": "struct", "fields": []}, fields)

    schemas = Plans(key_of)

    def apply(record: Record) -> Record:
        schema, value = record.value_schema, record.value
        if schema is None:
            row = require_map(value, "ValueToKey")
            key, key_schema = {name: row.get(name) for name in names}, None
        else:
            row = require_struct(schema, value, "ValueToKey")
            key_schema = schemas.of(schema)
            key = {field["field"]: checked(field, read(row, field, with_default)) for field in fields_of(key_schema)}
        return Record(record.topic, key, record.value, record.headers, key_schema, record.value_schema, record.place)

    return apply


def build_metadata(values: Values, side: Side) -> Apply:
    name, version = values["schema.name"], values["schema.version"]
    with_default = values[WITH_DEFAULTS.name]

    def renamed(schema: Schema) -> Schema:
        fields_of(schema)  # as in Java, only structs
        known: dict[str, Any] = {part: schema[part] for part in schema if part not in ("field", "name", "version")}
        head: dict[str, Any] = {
            part: known.pop(part) for part in ("type", "items", "keys", "values", "fields", "optional") if part in known
        }
        if (found := name if name is not None else schema.get("name")) is not None:
            head["name"] = found
        if (number := version if version is not None else schema.get("version")) is not None:
            head["version"] = number
        return head | known

    schemas = Plans(renamed)

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if schema is None:
            if value is None:
                return record
            raise SmtRecordError("SetSchemaMetadata needs a schema, and the record has none")
        made = schemas.of(schema)
        if isinstance(value, dict):
            fields = fields_in(schema, value)
            value = {field["field"]: checked(field, read(value, field, with_default)) for field in fields}
        return side.put(record, made, value)

    return apply


def _check_metadata(values: Values) -> tuple[OptionProblem, ...]:
    if values["schema.name"] is None and values["schema.version"] is None:
        return (OptionProblem("schema.name", "Neither schema name nor version configured"),)
    return ()


EXTRACT_FIELD = Declared(
    "ExtractField",
    "Replaces the key or value by one of its fields.",
    (Option("field", "text", "Name of the field."), SYNTAX, WITH_DEFAULTS),
    build_extract,
    sided=True,
    check=_check_path,
)
HOIST_FIELD = Declared(
    "HoistField",
    "Wraps the key or value in a struct with one field.",
    (Option("field", "text", "Name of the field."),),
    build_hoist,
    sided=True,
)
VALUE_TO_KEY = Declared(
    "ValueToKey",
    "Makes the key of fields of the value.",
    (Option("fields", "list", "Names of the fields.", check=not_empty), WITH_DEFAULTS),
    build_value_to_key,
)
SET_SCHEMA_METADATA = Declared(
    "SetSchemaMetadata",
    "Sets the name or the version of the schema.",
    (
        Option("schema.name", "text", "Name of the schema.", default=None),
        Option("schema.version", "int", "Version of the schema.", default=None),
        WITH_DEFAULTS,
    ),
    build_metadata,
    sided=True,
    check=_check_metadata,
)
