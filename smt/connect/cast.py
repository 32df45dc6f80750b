"""``Cast``: fields, or the whole key or value, become numbers, booleans or texts of another type."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from smt.connect.declared import Declared
from smt.connect.java_dates import java_date_text
from smt.connect.numbers import (
    BITS,
    decimal_of,
    java_text,
    parse_float,
    parse_integer,
    to_float32,
    to_float64,
    to_integer,
)
from smt.connect.options import WITH_DEFAULTS, Option, Values
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    DATE,
    TIME,
    TIMESTAMP,
    Plans,
    checked,
    fields_in,
    fields_of,
    read,
    rebuilt,
    require_map,
    require_struct,
    simple,
    struct_like,
)
from smt.errors import SmtRecordError
from smt.record import Record, Schema
from smt.schemas import bare

#: The types by Java's names, and as JsonConverter writes them.
_TYPES: Final = {name: name for name in (*BITS, "boolean", "string")} | {"float32": "float", "float64": "double"}
_INPUTS: Final = frozenset((*_TYPES.values(), "bytes"))
_DAY_MS: Final = 86_400_000
_WHOLE_VALUE: Final = ""


def casts_of(mappings: list[str]) -> dict[str, str]:
    """The types by field; the whole value's is that of the empty name."""
    found: dict[str, str] = {}
    if not mappings:
        raise ValueError("Must specify at least one field to cast.")
    for mapping in mappings:
        field, colon, name = mapping.rstrip(":").partition(":")
        name = name.strip() if colon else field.strip()
        if ":" in name:
            raise ValueError(f"Invalid cast: {mapping} (field:type, or a type for the whole value)")
        type_ = _TYPES.get(name.lower())
        if type_ is None:
            raise ValueError(f"Cast transformation does not support casting to {name}: one of {', '.join(_TYPES)}")
        found[field.strip() if colon else _WHOLE_VALUE] = type_
    if _WHOLE_VALUE in found and len(mappings) > 1:
        raise ValueError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in "
            "their spec"
        )
    return found


def _check(mappings: list[str]) -> None:
    casts_of(mappings)


def build(values: Values, side: Side) -> Apply:
    casts = casts_of(values["spec"])
    whole = casts.get(_WHOLE_VALUE)
    with_default = values[WITH_DEFAULTS.name]
    schemas = Plans(lambda schema: _cast_schema(schema, casts, whole))

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if value is None:
            return record
        if schema is None:
            if whole is not None:
                return side.put(record, None, cast(None, value, whole))
            row = dict(require_map(value, "Cast"))
            for name, type_ in casts.items():
                row[name] = cast(None, row.get(name), type_)
            return side.put(record, None, row)
        made = schemas.of(schema)
        if whole is not None:
            return side.put(record, made, cast(schema, value, whole))
        struct = require_struct(schema, value, "Cast")
        row = {}
        for field in fields_in(schema, struct):
            name = field["field"]
            found = read(struct, field, with_default)
            row[name] = checked(field, cast(field, found, casts[name]) if name in casts else found)
        return side.put(record, made, row)

    return apply


def _cast_schema(schema: Schema, casts: dict[str, str], whole: str | None) -> Schema:
    default = schema.get("default")
    optional = bool(schema.get("optional"))
    if whole is not None:
        return rebuilt(schema, whole, optional=optional, default=cast(schema, default, whole))
    fields = []
    for field in fields_of(schema):
        type_ = casts.get(field["field"])
        if type_ is not None:
            default_of_field = cast(field, field.get("default"), type_)
            made = simple(type_, optional=bool(field.get("optional")), default=default_of_field)
            field = {**made, "field": field["field"]}
        fields.append(field)
    if schema.get("type") != "struct":
        raise SmtRecordError(f"Cast of fields needs a struct, and this is of the type {schema.get('type')}")
    return struct_like(schema, fields, optional=optional, default=default)


def cast(schema: Schema | None, value: Any, type_: str) -> Any:
    """A value of another type; its own is that of the schema, or what it is in Python."""
    if value is None:
        return None
    own = schema["type"] if schema is not None else _type_of(value)
    if own not in _INPUTS:
        raise SmtRecordError(f"Cast does not take a value of the type {own}")
    try:
        if type_ == "string":
            return _text(bare(schema) if schema is not None else None, value)
        decimal = decimal_of(schema, value)
        return _number(value if decimal is None else decimal, type_, own)
    except ValueError as error:
        raise SmtRecordError(f"Cast to {type_}: {error}") from None


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((int, "int64"), (float, "double"), (str, "string"), (bytes, "bytes"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "map"


def _number(value: Any, type_: str, own: str) -> Any:
    if (isinstance(value, str) and own == "bytes") or isinstance(value, bytes):
        raise ValueError("bytes can be cast to string only")
    if type_ == "boolean":
        return value.lower() == "true" if isinstance(value, str) else to_integer(value, "int64") != 0
    if type_ in BITS:
        return parse_integer(value, type_) if isinstance(value, str) else to_integer(value, type_)
    number = parse_float(value) if isinstance(value, str) else value
    return to_float32(number) if type_ == "float" else to_float64(number)


def _text(schema: Schema | None, value: Any) -> str:
    name = schema.get("name") if schema is not None else None
    if name in (DATE, TIME, TIMESTAMP) and isinstance(value, int):
        return java_date_text(value * _DAY_MS if name == DATE else value)
    decimal = decimal_of(schema, value)
    if decimal is not None:
        return java_text(decimal)
    return b64encode(value).decode() if isinstance(value, bytes) else java_text(value, schema)


CAST = Declared(
    "Cast",
    "Casts fields, or the whole key or value, to another type.",
    (
        Option(
            "spec",
            "list",
            "`field:type,field:type`, or one type for the whole key or value: "
            + ", ".join(f"`{name}`" for name in _TYPES)
            + ".",
            check=_check,
        ),
        WITH_DEFAULTS,
    ),
    build,
    sided=True,
)
