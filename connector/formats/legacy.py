"""The ``legacy`` format: the columns that an operation wrote, each in a cell ``{"value": …}``; null means untouched.

In: a ``LogLayout`` and the output options. Out: a ``RecordPlan``. Key columns stand bare. Columns of
collection, tuple and user types are left out unless ``cdc.include.collections=delta``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

from connector.changes import TRUE, Change, ColumnPlace, LogLayout, Row
from connector.config import OutputConfig, avro_name
from connector.formats.columns import Column, Columns, names_of
from connector.formats.deltas import delta_cell, delta_cell_schema
from connector.formats.plan import Field, RecordPlan, RowOf, row_field, rules_of, source_of, source_times, struct_of
from connector.formats.record import Schema
from connector.formats.record_format import Bare, Columnwise, RecordFormat, RowsAfter, structs_of
from connector.formats.schemas import envelope_schema, schema_of, struct
from connector.values import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    Render,
    SetType,
    TupleType,
    UserType,
    VectorType,
    is_multi_cell,
    renderer,
)


def legacy_plan(layout: LogLayout, options: OutputConfig) -> RecordPlan:
    """The plan of a table in the legacy format."""
    keyspace, table = layout.description.keyspace, layout.description.name
    base = options.names.schema_base(keyspace, table)
    rules = rules_of(options)
    shown = shown_places(layout, options)
    key_places = [place for place in shown if place.column.is_key]

    key_struct = struct_of([(place.name, row_field(place, renderer(place.column.type, rules))) for place in key_places])
    fields: list[tuple[str, Field]] = []
    for place in shown:
        render = renderer(place.column.type, rules)
        if place.column.is_key:
            fields.append((place.name, row_field(place, render)))
        elif is_multi_cell(place.column.type):
            fields.append((place.name, delta_cell(place, rules)))
        else:
            fields.append((place.name, _cell(place, render, options.strict)))
    written = struct_of(fields)
    source, image_of = source_of(layout, options), legacy_image(layout, options)

    def value(change: Change, now: int) -> dict[str, Any]:
        row = change.row
        image = image_of(change)
        deleted = change.kind == "d"
        before = image if image is not None else row if deleted else None
        us: int | None = now // 1000
        ns: int | None = now
        if image is not None and not deleted:
            # The Java connector fills these two in all records but those.
            us = ns = None
        return {
            "source": source(change),
            "before": None if before is None else written(before),
            "after": None if deleted else written(row),
            "op": change.kind,
            "ts_ms": now // 1_000_000,
            "transaction": None,
            "ts_us": us,
            "ts_ns": ns,
        }

    row_fields = [(place.name, _field_schema(place, base)) for place in shown]
    return RecordPlan(
        topic=options.names.data_topic(keyspace, table),
        key_schema=struct(f"{base}.Key", [(p.name, schema_of(p.column.type, "")) for p in key_places], optional=False),
        value_schema=envelope_schema(
            base, struct(f"{base}.Before", row_fields), struct(f"{base}.After", row_fields), options.metadata
        ),
        key=lambda change: key_struct(change.row),
        value=value,
    )


def legacy_image(layout: LogLayout, options: OutputConfig) -> RowOf:
    """From a change to the row that stands in ``before``, or None: its pre-image, as if it had been written."""
    if not options.preimages:
        return lambda change: None
    cells = [
        (place.value, place.deleted, place.deleted_elements)
        for place in layout.places
        if place.value is not None and place.deleted is not None
    ]

    def image(change: Change) -> Row | None:
        # As in the Java connector, the pre-image belongs to the first of several operations on a row.
        if change.before is None or change.follows_another:
            return None
        shown, row = [*change.before], change.row
        for value, deleted, elements in cells:
            # Null before, and set to null: a cell all the same, so that both sides show the column.
            shown[deleted] = row[deleted]
            if elements is not None:
                # Of a collection an image has the whole.
                shown[elements] = None
                shown[deleted] = TRUE if shown[value] is not None else row[deleted]
        return tuple(shown)

    return image


def shown_places(layout: LogLayout, options: OutputConfig) -> list[ColumnPlace]:
    """The columns that records have."""
    return [p for p in layout.places if options.collections == "delta" or has_legacy_form(p.column.type)]


def has_legacy_form(type_: CqlType) -> bool:
    """Whether the Java connector's legacy format knows the type; vectors are our addition."""
    match type_:
        case NativeType() | VectorType():
            return True
        case ListType() | SetType() | MapType() | TupleType() | UserType():
            return False
        case _:
            assert_never(type_)


def _field_schema(place: ColumnPlace, base: str) -> Schema:
    if place.column.is_key:
        return schema_of(place.column.type, "")
    if is_multi_cell(place.column.type):
        return delta_cell_schema(place, base)
    return struct(avro_name(f"{base}.{place.name}.Cell"), [("value", schema_of(place.column.type, base))])


def _cell(place: ColumnPlace, render: Render, strict: bool) -> Field:
    at, deleted_at = place.value, place.deleted
    if at is None:
        return lambda row: None

    def cell(row: Row) -> Any:
        raw = row[at]
        if raw is not None:
            value = render(raw)
            # To the Java connector a value of no bytes is null, and so it is not there.
            if value is not None or not strict:
                return {"value": value}
        return {"value": None} if deleted_at is not None and row[deleted_at] == TRUE else None

    return cell


def _column(place: ColumnPlace, options: OutputConfig, values: Columns, bare: Bare) -> Column:
    in_cell = not place.column.is_key and place.name not in bare
    if not is_multi_cell(place.column.type):
        return values.column(place, in_cell)
    cell, schema = delta_cell(place, rules_of(options)), delta_cell_schema(place, "")
    if in_cell:
        write = values.written(schema)
        return lambda rows: write([*map(cell, rows)])
    write = values.written(schema["fields"][0])
    return lambda rows: write([found if (found := cell(row)) is None else found["value"] for row in rows])


def _rows(layout: LogLayout, options: OutputConfig, values: Columns, bare: Bare) -> RowsAfter:
    places = shown_places(layout, options)
    columns = [_column(place, options, values, bare) for place in places]
    key_places = [place for place in places if place.column.is_key]
    return RowsAfter(lambda change: change.row, places, columns, key_places, legacy_image(layout, options), columns)


def _columnwise(layout: LogLayout, options: OutputConfig, keys: Columns, values: Columns, bare: Bare) -> Columnwise:
    places = shown_places(layout, options)
    key_places = [place for place in places if place.column.is_key]
    columns = [_column(place, options, values, bare) for place in places]
    join, null = values.join(names_of(places), optional=True), values.null
    key_columns = [keys.column(place, in_cell=False) for place in key_places]
    key_join = keys.join(names_of(key_places), optional=False)
    # Both sides write a key column alike if their converters are of one kind.
    shared = [at for at, place in enumerate(places) if place.column.is_key] if type(keys) is type(values) else None
    image_of, images = legacy_image(layout, options), structs_of(columns, join, null)

    def records(changes: Sequence[Change], now: int) -> list[tuple[bytes, bytes]]:
        rows = [change.row for change in changes]
        fields = [column(rows) for column in columns]
        key_fields = [column(rows) for column in key_columns] if shared is None else [fields[at] for at in shared]
        found = [*map(image_of, changes)]
        timed, untimed = (values.envelope(layout, options, now, clock) for clock in (True, False))
        made = []
        for change, image, before, row in zip(changes, found, images(found), join(fields, len(rows)), strict=True):
            if change.kind == "d":
                made.append(timed(change, source_times(change), row if image is None else before, null))
            else:
                envelope = timed if image is None else untimed
                made.append(envelope(change, source_times(change), before, row))
        return list(zip(keys.framed(key_join(key_fields, len(rows))), made, strict=True))

    return records


LEGACY: Final = RecordFormat(legacy_plan, _columnwise, _rows)
