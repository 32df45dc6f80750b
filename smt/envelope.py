"""What transforms look up in a record: its key's columns, parts of its envelope, the topic a column names.

Everything here reads; nothing changes a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smt.connect.numbers import java_text
from smt.errors import OptionProblem, SmtOptionError, SmtRecordError
from smt.options import FieldReference
from smt.record import Record

Row = dict[str, Any]

#: The column that rewritten deletes, and all other rows beside them, get.
DELETED = "__deleted"
NO_KEY: dict[str, Any] = {}
#: What is lost of cells where columns come out of them, and how nothing is.
UNTOUCHED = "columns that a write did not touch become null, like those it set to null"
WHOLE_ROWS = "cdc.output.format=advanced with cdc.include.after=full writes whole rows"
REMEDY = (
    "the record has no image to take a row from, and no key either: give records keys (key.converter, kafka-key in "
    "cdc.include.primary-key.placement), or enable preimages and postimages"
)


def key_fields(record: Record) -> Mapping[str, Any]:
    """The key's columns; none when the key is no struct."""
    key = record.key
    return key if type(key) is dict else NO_KEY


def look_up(reference: FieldReference, value: Row) -> tuple[Any] | None:
    """The referenced part of a schemaless envelope, in a tuple; None where there is no such field."""
    struct = reference.struct
    if struct is None:
        return (value[reference.field],) if reference.field in value else None
    parent = value.get(struct)
    if parent is None and struct in value and reference.field not in value:
        return (None,)
    if isinstance(parent, dict) and reference.field in parent:
        return (parent[reference.field],)
    return (value[reference.field],) if reference.field in value else None


def routed(field: str, record: Record, value: Row, row: Row | None) -> str:
    """The topic that a column names: of the row, else of the image before, else of the key; blank keeps the topic."""
    for source in (row, value.get("before") if row is None else None, key_fields(record)):
        found = source.get(field) if source else None
        if isinstance(found, dict) and len(found) == 1 and "value" in found:
            found = found["value"]
        if found is not None and not isinstance(found, dict | list) and (topic := java_text(found)).strip():
            return topic
    return record.topic


def named_in_header(header: str, record: Record) -> tuple[str, ...]:
    """The field names that a header lists."""
    for name, value in record.headers:
        if name == header:
            return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()
    return ()


def taken(name: str) -> SmtRecordError:
    """A column has the name of a field that the transform adds; Java refuses such records, too."""
    other = "delete.tombstone.handling.mode other than rewrite"
    remedy = other if name == DELETED else "add.fields.prefix or field:name"
    return SmtRecordError(f"there is a column {name}, and the transform adds a field of that name: choose {remedy}")


def omit_refused(reason: str) -> SmtOptionError:
    """Why ``untouched.fields=omit`` cannot be had."""
    remedy = "untouched.fields=null, or JSON with schemas.enable=false"
    return SmtOptionError([OptionProblem("untouched.fields", f"omit is not possible: {reason}", remedy)])
