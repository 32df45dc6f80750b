"""Connect schemas as dicts: looking up fields and building the schemas of flattened rows.

In: schemas in the form of ``JsonConverter``. Out: new schemas; those given are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from smt.record import Schema


def field_schema(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a struct's field."""
    if schema is None:
        return None
    return next((field for field in schema.get("fields", ()) if field.get("field") == name), None)


def is_envelope(schema: Schema) -> bool:
    """Debezium's own test, the one that every consumer uses."""
    name = schema.get("name")
    return isinstance(name, str) and name.endswith(".Envelope")


def is_cell(schema: Schema, *, any_name: bool = False) -> bool:
    """A column of the legacy format: a struct named ``….Cell`` whose one field is ``value``."""
    fields = schema.get("fields")
    if schema.get("type") != "struct" or not fields or len(fields) != 1 or fields[0].get("field") != "value":
        return False
    name = schema.get("name")
    return any_name or (isinstance(name, str) and name.endswith(".Cell"))


def cell_names(row: Schema | None, *, any_name: bool = False) -> frozenset[str]:
    """The columns of a row that are cells."""
    if row is None:
        return frozenset()
    return frozenset(field["field"] for field in row.get("fields", ()) if is_cell(field, any_name=any_name))


def unwrapped(field: Schema) -> Schema:
    """A cell's schema without the cell."""
    inner = {name: part for name, part in field["fields"][0].items() if name != "field"}
    return {**inner, "field": field["field"]}


def bare(schema: Schema) -> Schema:
    """A field's schema by itself."""
    return {part: value for part, value in schema.items() if part != "field"}


def named(schema: Schema, name: str) -> Schema:
    """A schema as an optional field of that name, without its default, as Connect copies the basics of a schema."""
    basics = {part: value for part, value in schema.items() if part not in ("field", "default", "optional")}
    return {**_ordered(basics, optional=True), "field": name}


def _ordered(basics: Schema, *, optional: bool) -> Schema:
    """``optional`` where the converter writes it: after the type and what belongs to it."""
    head = ("type", "items", "keys", "values", "fields")
    return {
        **{part: basics[part] for part in head if part in basics},
        "optional": optional,
        **{part: value for part, value in basics.items() if part not in head},
    }


def with_fields(row: Schema, fields: Iterable[Schema]) -> Schema:
    """A row's schema with other fields: name, version, doc and parameters are kept, as Connect copies them."""
    kept: Schema = {part: row[part] for part in ("name", "version", "doc", "parameters") if part in row}
    return {"type": "struct", "fields": list(fields), "optional": False, **kept}


STRING: Schema = {"type": "string", "optional": True}
