"""``InsertHeader``, ``DropHeaders`` and ``HeaderFrom``: headers from a literal or from fields, and fewer of them."""

from __future__ import annotations

from smt.connect.declared import Declared
from smt.connect.literals import parse_literal
from smt.connect.options import WITH_DEFAULTS, Option, Values, not_empty, one_of
from smt.connect.sides import Apply, Side, with_headers
from smt.connect.structs import (
    Plans,
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
from smt.record import Header, Record, Schema
from smt.schemas import bare


def build_insert(values: Values, side: Side) -> Apply:
    schema, value = parse_literal(values["value.literal"])
    header = Header(values["header"], value, schema)
    return lambda record: with_headers(record, [*record.headers, header])


def build_drop(values: Values, side: Side) -> Apply:
    dropped = frozenset(values["headers"])
    return lambda record: with_headers(record, [header for header in record.headers if header[0] not in dropped])


def build_from(values: Values, side: Side) -> Apply:
    pairs = tuple(zip(values["fields"], values["headers"], strict=True))
    moves, names = values["operation"] == "move", frozenset(values["fields"])
    with_default = values[WITH_DEFAULTS.name]
    purpose = f"HeaderFrom ({values['operation']})"
    moved = Plans(
        lambda schema: struct_like(schema, (field for field in fields_of(schema) if field["field"] not in names))
    )

    def of_struct(record: Record, schema: Schema, value: object) -> Record:
        row = require_struct(schema, value, purpose)
        headers = list(record.headers)
        for name, header in pairs:
            field = field_named(schema, name)
            if field is None:
                raise SmtRecordError(f"there is no field {name!r} to take the header {header!r} from")
            headers.append(Header(header, checked(field, read(row, field, with_default)), bare(field)))
        if not moves:
            return with_headers(record, headers)
        made = moved.of(schema)
        rest = {field["field"]: checked(field, read(row, field, with_default)) for field in fields_in(made, row)}
        return with_headers(side.put(record, made, rest), headers)

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if schema is not None:
            return of_struct(record, schema, value)
        row = require_map(value, purpose)
        headers = [*record.headers, *(Header(header, row.get(name), None) for name, header in pairs)]
        if moves:
            row = {name: part for name, part in row.items() if name not in names}
        return with_headers(side.put(record, None, row), headers)

    return apply


def _check_pairs(values: Values) -> tuple[OptionProblem, ...]:
    if len(values["fields"]) == len(values["headers"]):
        return ()
    text = "'fields' config must have the same number of elements as 'headers' config."
    return (OptionProblem("headers", text, None, ",".join(values["headers"])),)


INSERT_HEADER = Declared(
    "InsertHeader",
    "Adds a header to each record.",
    (
        Option("header", "text", "Name of the header."),
        Option(
            "value.literal", "text", "Its value: a number, `true`, a date, `[1, 2]`, `{a: 1}`, anything else as a text."
        ),
    ),
    build_insert,
)
DROP_HEADERS = Declared(
    "DropHeaders",
    "Removes headers.",
    (Option("headers", "list", "Names of the headers to remove.", check=not_empty),),
    build_drop,
)
HEADER_FROM = Declared(
    "HeaderFrom",
    "Moves or copies fields to headers.",
    (
        Option("fields", "list", "Names of the fields.", check=not_empty),
        Option("headers", "list", "Names of the headers, in the same order.", check=not_empty),
        Option("operation", "text", "`move` or `copy`.", check=one_of("move", "copy")),
        WITH_DEFAULTS,
    ),
    build_from,
    sided=True,
    check=_check_pairs,
)
