"""``InsertField``: topic, partition, offset or time of the record, or a text, as fields of the key or value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from smt.connect.declared import Declared
from smt.connect.options import WITH_DEFAULTS, Option, Values
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    TIMESTAMP,
    Plans,
    as_field,
    checked,
    fields_in,
    fields_of,
    read,
    require_map,
    require_struct,
    simple,
    struct_like,
)
from smt.errors import OptionProblem, SmtRecordError
from smt.record import Place, Record, Schema

_NOWHERE: Final = Place()


class _Inserted(NamedTuple):
    """A field to insert; ``value`` gives None for what the record does not have."""

    name: str
    schema: Schema
    value: Callable[[Record], Any]


def _offset(record: Record) -> int:
    offset = (record.place or _NOWHERE).offset
    if offset is None:
        raise SmtRecordError("offset.field: only a record that was read from Kafka has an offset")
    return offset


#: By option: type, logical type, and where the content is.
_SOURCES: Final[dict[str, tuple[str, str | None, Callable[[Record], Any]]]] = {
    "topic.field": ("string", None, lambda record: record.topic),
    "partition.field": ("int32", None, lambda record: (record.place or _NOWHERE).partition),
    "offset.field": ("int64", None, _offset),
    "timestamp.field": ("int64", TIMESTAMP, lambda record: (record.place or _NOWHERE).timestamp),
}


def _inserted(values: Values) -> tuple[_Inserted, ...]:
    found = []
    text = values["static.value"]
    sources = {**_SOURCES, "static.field": ("string", None, lambda record: text)}
    for option, (type_, logical, value) in sources.items():
        given = values[option]
        if given is not None:
            name = given[:-1] if given.endswith(("?", "!")) else given
            found.append(_Inserted(name, simple(type_, optional=not given.endswith("!"), name=logical), value))
    return tuple(found)


def build(values: Values, side: Side) -> Apply:
    inserted, with_default = _inserted(values), values[WITH_DEFAULTS.name]
    schemas = Plans(
        lambda schema: struct_like(
            schema, [*fields_of(schema), *(as_field(each.schema, each.name) for each in inserted)]
        )
    )

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if value is None:
            return record
        made = None
        if schema is None:
            row = dict(require_map(value, "InsertField"))
        else:
            struct = require_struct(schema, value, "InsertField")
            made = schemas.of(schema)
            row = {
                field["field"]: checked(field, read(struct, field, with_default)) for field in fields_in(schema, struct)
            }
        for each in inserted:
            content = each.value(record)
            if content is not None:
                row[each.name] = content
            elif schema is not None:
                row[each.name] = checked(as_field(each.schema, each.name), None)
        return side.put(record, made, row)

    return apply


def _check(values: Values) -> tuple[OptionProblem, ...]:
    if not any(values[option] is not None for option in (*_SOURCES, "static.field")):
        return (OptionProblem("topic.field", "No field insertion configured"),)
    if values["static.field"] is not None and values["static.value"] is None:
        text = f"No value specified for static field: {values['static.field']}"
        return (OptionProblem("static.value", text),)
    return ()


_SUFFIX: Final = "`name!` makes it required, `name?` or `name` optional."

INSERT_FIELD = Declared(
    "InsertField",
    "Adds fields with what the record says of itself, or with a fixed text.",
    (
        Option("topic.field", "text", f"Field for the topic. {_SUFFIX}", default=None),
        Option("partition.field", "text", f"Field for the partition, where it is known. {_SUFFIX}", default=None),
        Option(
            "offset.field",
            "text",
            f"Field for the offset: for consumers, not in the connector. {_SUFFIX}",
            default=None,
        ),
        Option("timestamp.field", "text", f"Field for the record's time, where it has one. {_SUFFIX}", default=None),
        Option("static.field", "text", f"Field for a fixed text. {_SUFFIX}", default=None),
        Option("static.value", "text", "The fixed text.", default=None),
        WITH_DEFAULTS,
    ),
    build,
    sided=True,
    check=_check,
)
