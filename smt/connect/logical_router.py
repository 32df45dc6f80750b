"""Debezium's ``ByLogicalTableRouter``: the records of several tables in one topic, their keys kept apart.

In: its options. Out: a function from a record to the record with another topic, key and names of schemas.
"""

from __future__ import annotations

from typing import Any, Final

from connector.java_regex import java_pattern
from smt.connect.declared import Declared
from smt.connect.java_replacement import check_regex, check_replacement, replaced
from smt.connect.name_adjustment import MODES, name_adjuster
from smt.connect.options import Option, Values, not_empty
from smt.connect.sides import Apply, Side
from smt.connect.structs import as_field, checked, fields_of, read, require_struct, simple
from smt.errors import OptionProblem, SmtRecordError
from smt.record import Record, Schema
from smt.schemas import bare, is_envelope

_IMAGES: Final = ("before", "after")
_SOURCE: Final = simple("string", optional=False)


def build(values: Values, side: Side) -> Apply:
    return _Router(values).apply


class _Router:
    def __init__(self, values: Values) -> None:
        self.pattern, self.replacement = java_pattern(values["topic.regex"]), values["topic.replacement"]
        regex = (values["key.field.regex"] or "").strip()
        self.key_pattern = java_pattern(regex) if regex else None
        self.key_replacement = values["key.field.replacement"] or ""
        self.unique, self.name = values["key.enforce.uniqueness"], values["key.field.name"]
        self.adjust = name_adjuster(values["schema.name.adjustment.mode"])
        #: Schemas made so far; Java, too, makes them once for each, with the first topic that came.
        self.made: dict[int, tuple[Schema, Schema]] = {}

    def apply(self, record: Record) -> Record:
        topic = replaced(self.pattern, self.replacement, record.topic)
        if not topic:
            return record
        key, key_schema = (None, None) if record.key is None else self.key(record, topic)
        value, value_schema = record.value, record.value_schema
        if value is not None and value_schema is not None and is_envelope(value_schema):
            envelope = require_struct(value_schema, value, "ByLogicalTableRouter")
            value_schema = self.remembered(value_schema, lambda schema: self.envelope_schema(schema, topic))
            value = {field["field"]: checked(field, read(envelope, field, True)) for field in fields_of(value_schema)}
            for image in _IMAGES:
                if value.get(image) is not None:
                    value[image] = self.copied(
                        next(f for f in fields_of(value_schema) if f["field"] == image), value[image]
                    )
        return Record(topic, key, value, record.headers, key_schema, value_schema, record.place)

    @staticmethod
    def copied(schema: Schema, row: dict[str, Any]) -> dict[str, Any]:
        return {field["field"]: read(row, field, True) for field in fields_of(schema)}

    def remembered(self, schema: Schema, make: Any) -> Schema:
        found = self.made.get(id(schema))
        if found is None:
            if len(self.made) >= 256:
                self.made.clear()
            found = self.made[id(schema)] = (schema, make(schema))
        return found[1]

    def key(self, record: Record, topic: str) -> tuple[dict[str, Any], Schema | None]:
        if record.key_schema is None and isinstance(record.key, dict):
            return self.identified(record.key, record.topic), None
        schema = record.key_schema
        if schema is None:
            raise SmtRecordError("ByLogicalTableRouter needs a key that is a struct")
        row = require_struct(schema, record.key, "ByLogicalTableRouter")
        made = self.remembered(schema, lambda known: self.key_schema(known, topic))
        key = {field["field"]: checked(field, read(row, field, True)) for field in fields_of(schema)}
        return self.identified(key, record.topic), made

    def identified(self, key: dict[str, Any], topic: str) -> dict[str, Any]:
        """The key with the table that it is of."""
        if not self.unique:
            return key
        found = replaced(self.key_pattern, self.key_replacement, topic) if self.key_pattern is not None else None
        return {**key, self.name: topic if found is None else found}

    def key_schema(self, schema: Schema, topic: str) -> Schema:
        fields = [*fields_of(schema), *([as_field(_SOURCE, self.name)] if self.unique else [])]
        if sum(field["field"] == self.name for field in fields) > 1:
            raise SmtRecordError(f"the key has a field {self.name!r} already: choose another key.field.name")
        return self.renamed(schema, fields, f"{topic}.Key")

    def envelope_schema(self, schema: Schema, topic: str) -> Schema:
        before = next((field for field in fields_of(schema) if field["field"] == "before"), None)
        if before is None:
            raise SmtRecordError("the envelope has no field 'before'")
        image = self.renamed(bare(before), fields_of(before), f"{topic}.Value")
        fields = [
            as_field(image, field["field"]) if field["field"] in _IMAGES else field for field in fields_of(schema)
        ]
        return self.renamed(schema, fields, f"{topic}.Envelope")

    def renamed(self, schema: Schema, fields: list[Schema], name: str) -> Schema:
        kept: Schema = {part: schema[part] for part in ("version", "doc", "parameters") if part in schema}
        optional = bool(schema.get("optional"))
        return {"type": "struct", "fields": fields, "optional": optional, "name": self.adjust(name), **kept}


def _check(values: Values) -> tuple[OptionProblem, ...]:
    problems = []
    wrong = check_replacement(java_pattern(values["topic.regex"]), values["topic.replacement"])
    if wrong:
        problems.append(OptionProblem("topic.replacement", wrong, None, values["topic.replacement"]))
    if (values["key.field.regex"] or "").strip() and not (values["key.field.replacement"] or "").strip():
        text = "key.field.replacement must be non-empty if key.field.regex is set."
        problems.append(OptionProblem("key.field.replacement", text))
    return tuple(problems)


def _check_required_regex(text: str) -> None:
    not_empty(text)
    check_regex(text)


def _check_mode(text: str) -> None:
    if text.strip().lower() not in MODES:
        raise ValueError("Value must be one of " + ", ".join(MODES))


LOGICAL_ROUTER = Declared(
    "ByLogicalTableRouter",
    "Routes the records of several tables to one topic, with the table in their keys.",
    (
        Option("topic.regex", "text", "Java's regular expression for the whole topic.", check=_check_required_regex),
        Option(
            "topic.replacement",
            "text",
            "The new topic; `$1` and `${name}` are groups of the expression.",
            check=not_empty,
        ),
        Option("key.enforce.uniqueness", "boolean", "Whether keys get a field with their table.", default=True),
        Option("key.field.name", "text", "Name of that field.", default="__dbz__physicalTableIdentifier"),
        Option(
            "key.field.regex",
            "text",
            "Java's regular expression that finds the table in the old topic; without it, it is the topic.",
            default=None,
            check=lambda text: check_regex(text.strip()),
        ),
        Option("key.field.replacement", "text", "What the field gets, by groups of that expression.", default=None),
        Option(
            "schema.name.adjustment.mode",
            "text",
            "How names of schemas are made valid for Avro: " + ", ".join(f"`{mode}`" for mode in MODES) + ".",
            default="none",
            check=_check_mode,
        ),
        Option("logical.table.cache.size", "int", "Has no effect here.", default=16),
    ),
    build,
    package="io.debezium.transforms.",
    check=_check,
)
