"""Structs and their schemas, with the checks that Connect's ``Struct`` and ``SchemaBuilder`` make.

In: schemas in the form of ``JsonConverter``, structs as dicts. Out: new ones; those given are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from smt.errors import SmtRecordError
from smt.record import Schema
from smt.schemas import bare

TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"

#: What copies of a schema keep, in the order in which JsonConverter writes it.
_BASICS = ("name", "version", "doc", "parameters")
_CONTENTS = ("items", "keys", "values", "fields")
#: Schemas change rarely; a memory that has grown beyond this is fed by records that each bring their own.
_MOST_PLANS = 256

Plan = TypeVar("Plan")


class Plans(Generic[Plan]):
    """What follows from a schema alone, made once for each schema."""

    def __init__(self, make: Callable[[Schema], Plan]) -> None:
        self._make = make
        # A schema is recognised by its identity; it is kept here, so an identity is never used twice.
        self._known: dict[int, tuple[Schema, Plan]] = {}

    def of(self, schema: Schema) -> Plan:
        found = self._known.get(id(schema))
        if found is None:
            if len(self._known) >= _MOST_PLANS:
                self._known.clear()
            found = self._known[id(schema)] = (schema, self._make(schema))
        return found[1]


def simple(type_: str, *, optional: bool = True, name: str | None = None, default: Any = None) -> Schema:
    """A schema without contents; logical types are of version 1."""
    made: Schema = {"type": type_, "optional": optional}
    if name is not None:
        made |= {"name": name, "version": 1}
    return made if default is None else {**made, "default": default}


def rebuilt(
    source: Schema, type_: str, *, optional: bool = False, default: Any = None, fields: list[Schema] | None = None
) -> Schema:
    """A schema of another type with the name, version, doc and parameters of ``source``."""
    made: Schema = {"type": type_}
    if fields is not None:
        made["fields"] = fields
    elif type_ == source["type"]:
        made |= {part: source[part] for part in _CONTENTS if part in source}
    made["optional"] = optional
    made |= {part: source[part] for part in _BASICS if part in source}
    if default is not None:
        made["default"] = default
    return made


def struct_like(source: Schema, fields: Iterable[Schema], *, optional: bool = False, default: Any = None) -> Schema:
    """A struct's schema with other fields; two of one name are refused, as Connect refuses them."""
    listed = list(fields)
    names = [field["field"] for field in listed]
    for name in names:
        if names.count(name) > 1:
            raise SmtRecordError(f"there would be two fields {name!r}: choose another name")
    return rebuilt(source, "struct", optional=optional, default=default, fields=listed)


def as_field(schema: Schema, name: str) -> Schema:
    return {**bare(schema), "field": name}


def fields_of(schema: Schema) -> list[Schema]:
    if schema.get("type") != "struct":
        raise SmtRecordError(f"fields are those of a struct, and this is of the type {schema.get('type')}")
    fields: list[Schema] = schema["fields"]
    return fields


def map_of(schema: Schema | None, pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any] | list[list[Any]]:
    """A map, as ``JsonConverter`` writes it: a list of pairs, unless its keys are texts. The last of equals counts."""
    if schema is None or (schema["keys"] or {}).get("type") == "string":
        return dict(pairs)
    made: list[list[Any]] = []
    for key, value in pairs:
        known = next((pair for pair in made if pair[0] == key), None)
        if known is None:
            made.append([key, value])
        else:
            known[1] = value
    return made


def fields_in(schema: Schema, row: Mapping[str, Any]) -> list[Schema]:
    """The fields that a struct holds: all of them, unless ``untouched.fields=omit`` left some out."""
    fields = fields_of(schema)
    return fields if len(row) >= len(fields) else [field for field in fields if field["field"] in row]


def field_named(schema: Schema, name: str) -> Schema | None:
    return next((field for field in fields_of(schema) if field["field"] == name), None)


def read(row: Mapping[str, Any], field: Schema, with_default: bool) -> Any:
    """The content of a field: ``Struct.get``, or ``getWithoutDefault``."""
    found = row.get(field["field"])
    return field.get("default") if found is None and with_default else found


def checked(field: Schema, value: Any) -> Any:
    """The value, for a field that takes it: Connect refuses null where a schema says that there is none."""
    if value is None and not field.get("optional"):
        raise SmtRecordError(f"null in the required field {field.get('field', '')!r}")
    return value


def require_struct(schema: Schema, value: Any, purpose: str) -> dict[str, Any]:
    if schema.get("type") != "struct" or not isinstance(value, dict):
        raise SmtRecordError(f"{purpose} needs a struct, and this is {described(schema, value)}")
    return value


def require_map(value: Any, purpose: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SmtRecordError(
            f"{purpose} needs an object where there is no schema, and this is {described(None, value)}"
        )
    return value


def described(schema: Schema | None, value: Any) -> str:
    if value is None:
        return "null (a tombstone: choose other records with a predicate)"
    return f"of the type {schema.get('type')}" if schema is not None else f"a {type(value).__name__}"
