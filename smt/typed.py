"""Extraction from records with schemas: one plan for each envelope schema, built once.

In: ``ExtractOptions`` and records whose values carry a Connect schema. Out: rows with the schemas that Connect's own
transforms would give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smt.envelope import DELETED, REMEDY, Row, key_fields, named_in_header, omit_refused, routed, taken
from smt.errors import SmtRecordError
from smt.options import ExtractOptions, FieldReference
from smt.record import Header, Record, Schema
from smt.schemas import STRING, bare, cell_names, field_schema, is_envelope, named, unwrapped, with_fields

#: Schemas change rarely; a cache that has grown beyond this is fed by records that each bring their own.
_MOST_PLANS = 256


class _Plan:
    """What can be known from an envelope's schema alone."""

    def __init__(self, schema: Schema, options: ExtractOptions, unset: bool) -> None:
        self.schema = schema
        self.envelope = is_envelope(schema)
        if not self.envelope:
            # Passed on as it is: its fields may be called as an envelope's and be anything.
            return
        self.added = tuple(
            (reference, found)
            for reference in options.add_fields
            if (found := reference_schema(reference, schema)) is not None
        )
        self.headers = tuple(
            (reference, bare(found))
            for reference in options.add_headers
            if (found := reference_schema(reference, schema)) is not None
        )
        #: What stands in the place of fields that are not set, by the names of those that show them.
        self.unset = {
            reference.name: default
            for reference in (*options.add_fields, *options.add_headers)
            if unset and (default := _default_of(reference, schema)) is not None
        }
        after, before = field_schema(schema, "after"), field_schema(schema, "before")
        self.after = _RowPlan(after or before, self.added, options)
        self.before = _RowPlan(before or after, self.added, options)


class _RowPlan:
    """How one image becomes a row, and that row's schema."""

    def __init__(
        self, image: Schema | None, added: tuple[tuple[FieldReference, Schema], ...], options: ExtractOptions
    ) -> None:
        self.image = image
        self.cells = cell_names(image) if options.unwrap_cells else frozenset()
        self.names = tuple(field["field"] for field in image.get("fields", ())) if image else ()
        more = [*([DELETED] if options.deletes == "rewrite" else []), *(reference.name for reference, _ in added)]
        #: A column that has the name of a field to add.
        self.taken = next((name for name in more if name in self.names), None)
        self.schema = self._schema(added, options, frozenset())
        self._dropped: dict[frozenset[str], Schema | None] = {frozenset(): self.schema}
        fields = image.get("fields", ()) if image else ()
        self.defaults = {field["field"]: field["default"] for field in fields if field.get("default") is not None}
        self._defaults_in_all = options.deletes == "rewrite" and options.null_is_default
        self._added, self._options = added, options

    def schema_without(self, dropped: frozenset[str]) -> Schema | None:
        """The row's schema after fields were dropped."""
        if dropped not in self._dropped:
            self._dropped[dropped] = self._schema(self._added, self._options, dropped)
        return self._dropped[dropped]

    def _schema(
        self, added: tuple[tuple[FieldReference, Schema], ...], options: ExtractOptions, dropped: frozenset[str]
    ) -> Schema | None:
        if self.image is None:
            return None
        rewrite = options.deletes == "rewrite"
        fields = [unwrapped(field) if field["field"] in self.cells else field for field in self.image["fields"]]
        if rewrite:
            fields.append({**STRING, "field": DELETED})
        fields += [found for _, found in added]
        return with_fields(self.image, (field for field in fields if field["field"] not in dropped))

    def optional_names(self) -> frozenset[str]:
        """The row's fields that may be left out without breaking readers of the schema."""
        return frozenset(field["field"] for field in (self.schema or {}).get("fields", ()) if field.get("optional"))

    def flatten(self, image: Row) -> Row:
        self.check_names()
        cells = self.cells
        if not cells:
            return self.with_defaults(image) if self._defaults_in_all else dict(image)
        return {
            name: (None if cell is None else cell["value"]) if name in cells else cell for name, cell in image.items()
        }

    def with_defaults(self, image: Row) -> Row:
        """Java makes such rows by transforms that put a field's default in the place of null."""
        return image | {name: default for name, default in self.defaults.items() if image.get(name) is None}

    def check_names(self) -> None:
        if self.taken is not None:
            raise taken(self.taken)

    def of_key(self, key: Mapping[str, Any]) -> Row:
        """A row of which only the key is known."""
        self.check_names()
        return {name: key.get(name) for name in self.names}


class TypedRows:
    """Applies ``ExtractOptions`` to records with schemas.

    ``unset``: a field that has its default is one that nobody has set, of which Java's transform shows null.
    """

    def __init__(self, options: ExtractOptions, schemaless_output: bool, unset: bool = False) -> None:
        self._options, self._unset = options, unset
        self._schemaless_output = schemaless_output
        # A schema is recognised by its identity; the plan holds on to it, so an identity is never used twice.
        self._plans: dict[int, _Plan] = {}

    def plan(self, schema: Schema) -> _Plan:
        found = self._plans.get(id(schema))
        if found is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            found = self._plans[id(schema)] = _Plan(schema, self._options, self._unset)
        return found

    def added_headers(self, record: Record) -> list[Header]:
        """Those that an envelope is given, whatever becomes of it."""
        if record.value_schema is None or type(record.value) is not dict:
            return []
        plan = self.plan(record.value_schema)
        return _headers_of(plan, record.value) if plan.envelope else []

    def apply(self, record: Record) -> Record | None:
        schema, value, options = record.value_schema, record.value, self._options
        assert schema is not None
        plan = self.plan(schema)
        if not plan.envelope or type(value) is not dict:
            return record
        if options.omit_untouched and not self._schemaless_output:
            raise omit_refused(f"a record of {record.topic} has a schema, and a schema names every field")
        op, after, before = value.get("op"), value.get("after"), value.get("before")
        if options.strict:
            if after is None and before is None:
                return None
            op = "u" if after is not None else "d"
        if op in ("c", "u", "r"):
            return self._upsert(record, value, after, plan)
        if op == "d":
            return self._delete(record, value, before, plan)
        return None if op in ("t", "m") else record

    def _upsert(self, record: Record, value: Row, after: Row | None, plan: _Plan) -> Record:
        rows = plan.after
        row = rows.flatten(after) if after is not None else self._of_key(record, rows)
        if self._options.omit_untouched:
            self._omit(row, after, record)
        if self._options.deletes == "rewrite":
            row[DELETED] = "false"
        return self._finish(record, value, row, plan, rows, add_first=True)

    def _omit(self, row: Row, image: Row | None, record: Record) -> None:
        key = key_fields(record)
        for name in [name for name in row if name not in key and (image is None or image.get(name) is None)]:
            del row[name]

    def _delete(self, record: Record, value: Row, before: Row | None, plan: _Plan) -> Record | None:
        mode = self._options.deletes
        if mode == "drop":
            return None
        rows = plan.before
        if mode != "rewrite":
            return self._finish(record, value, None, plan, plan.after, add_first=False)
        row = rows.flatten(before) if before is not None else self._of_key(record, rows)
        if self._options.omit_untouched:
            self._omit(row, before, record)
        row[DELETED] = "true"
        return self._finish(record, value, row, plan, rows, add_first=False)

    def _of_key(self, record: Record, rows: _RowPlan) -> Row:
        key = key_fields(record)
        if not key:
            raise SmtRecordError(REMEDY)
        return rows.of_key(key)

    def _finish(
        self, record: Record, value: Row, row: Row | None, plan: _Plan, rows: _RowPlan, *, add_first: bool
    ) -> Record:
        options = self._options
        headers = [*record.headers, *_headers_of(plan, value)] if plan.headers else record.headers
        topic = record.topic
        if options.route_by_field:
            topic = routed(options.route_by_field, record, value, row)
        key, key_schema = record.key, record.key_schema
        dropped: frozenset[str] = frozenset()
        if options.drop_fields_header:
            asked = frozenset(named_in_header(options.drop_fields_header, record))
            dropped = asked & rows.optional_names() if options.drop_only_optional else asked
            if not add_first:
                dropped -= {reference.name for reference, _ in plan.added}
            if asked and options.drop_fields_from_key and key_schema is not None and type(key) is dict:
                key, key_schema = self._drop_from_key(key, key_schema, asked)
        if row is None:
            # A tombstone is null bytes, which takes a null schema. Java keeps the image's, and writes a JSON null.
            image = rows.image if options.strict else None
            schema = {part: inner for part, inner in image.items() if part != "field"} if image else None
            return Record(topic, key, None, headers, key_schema, schema)
        if dropped:
            row = rows.with_defaults(row)
        for reference, _ in plan.added:
            row[reference.name] = _value_of(reference, value, plan)
        for name in dropped:
            row.pop(name, None)
        return Record(topic, key, row, headers, key_schema, rows.schema_without(dropped))

    def _drop_from_key(self, key: Row, schema: Schema, asked: frozenset[str]) -> tuple[Row, Schema]:
        gone = {
            field["field"]
            for field in schema.get("fields", ())
            if field["field"] in asked and (field.get("optional") or not self._options.drop_only_optional)
        }
        if not gone:
            return key, schema
        kept = [field for field in schema["fields"] if field["field"] not in gone]
        return {name: part for name, part in key.items() if name not in gone}, with_fields(schema, kept)


def reference_schema(reference: FieldReference, envelope: Schema) -> Schema | None:
    """The schema that a copied field gets, None where the envelope has no such field."""
    parent = envelope if reference.struct is None else field_schema(envelope, reference.struct)
    found = field_schema(parent, reference.field) or field_schema(envelope, reference.field)
    return named(found, reference.name) if found is not None else None


def _headers_of(plan: _Plan, value: Row) -> list[Header]:
    return [Header(reference.name, _value_of(reference, value, plan), found) for reference, found in plan.headers]


def _value_of(reference: FieldReference, value: Row, plan: _Plan) -> Any:
    parent = value if reference.struct is None else value.get(reference.struct)
    found = (
        parent[reference.field]
        if isinstance(parent, dict) and reference.field in parent
        else value.get(reference.field)
    )
    return None if found is not None and found == plan.unset.get(reference.name) else found


def _default_of(reference: FieldReference, envelope: Schema) -> Any:
    parent = envelope if reference.struct is None else field_schema(envelope, reference.struct)
    found = field_schema(parent, reference.field) or field_schema(envelope, reference.field)
    return found.get("default") if found is not None else None
