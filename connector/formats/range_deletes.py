"""Range and partition deletes of clustered tables, as records of their own (our addition, ``cdc.range.deletes=topic``).

In: a ``LogLayout`` and the output options. Out: a ``RecordPlan`` for the topic ``<data
topic>.range-deletes``. Bounds are in storage order, as in the log: of a descending column the start is the
greater value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connector.changes import Change, ColumnPlace, LogLayout, Row, bound_places
from connector.config import OutputConfig
from connector.formats.plan import RecordPlan, row_field, rules_of, source_of, struct_of
from connector.formats.record import Schema
from connector.formats.schemas import INT64, STRING, required, schema, schema_of, source_schema, struct
from connector.values import renderer

_INCLUSIVE = (b"\x05", b"\x07")


def range_delete_plan(layout: LogLayout, options: OutputConfig) -> RecordPlan:
    """The plan of a table's range and partition deletes."""
    keyspace, table = layout.description.keyspace, layout.description.name
    key_schema, value_schema = _schemas(layout, options)
    rules = rules_of(options)
    read = {place.name: row_field(place, renderer(place.column.type, rules)) for place in layout.keys}
    partition_of = struct_of([(place.name, read[place.name]) for place in layout.partition_key])
    bound = _bound(layout, read, options.value_converter.kind != "json" or options.value_converter.schemas_enable)
    source = source_of(layout, options)

    def value(change: Change, now: int) -> dict[str, Any]:
        of_range = change.kind == "range"
        return {
            "source": source(change),
            "kind": change.kind,
            "partition": partition_of(change.row),
            "start": bound(change.row) if of_range else None,
            "end": bound(change.end) if of_range else None,
            "ts_ms": now // 1_000_000,
            "ts_us": now // 1000,
            "ts_ns": now,
        }

    return RecordPlan(
        topic=options.names.range_deletes_topic(keyspace, table),
        key_schema=key_schema,
        value_schema=value_schema,
        key=lambda change: partition_of(change.row),
        value=value,
    )


def _bound(
    layout: LogLayout, read: Mapping[str, Callable[[Row], Any]], with_schemas: bool
) -> Callable[[Row | None], dict[str, Any] | None]:
    """One end of a range. A schema has a field for every clustering column, and so a ``length``: how many are fixed."""
    operation_at = layout.operation

    def bound(row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        places = bound_places(layout.clustering_key, row)
        inclusive = row[operation_at] in _INCLUSIVE
        fixed = {place.name: read[place.name](row) for place in places}
        if not with_schemas:
            return {"values": list(fixed.values()), "inclusive": inclusive}
        values = {place.name: fixed.get(place.name) for place in layout.clustering_key}
        return {"values": values, "length": len(places), "inclusive": inclusive}

    return bound


def _schemas(layout: LogLayout, options: OutputConfig) -> tuple[Schema, Schema]:
    """Of keys, and of values."""
    base = options.names.schema_base(layout.description.keyspace, layout.description.name)

    def fields(places: Sequence[ColumnPlace]) -> list[tuple[str, Schema]]:
        return [(place.name, schema_of(place.column.type, base)) for place in places]

    key_schema = struct(f"{base}.PartitionKey", fields(layout.partition_key), optional=False)
    bound_schema = struct(
        f"{base}.Bound",
        [
            ("values", required(struct(f"{base}.BoundValues", fields(layout.clustering_key)))),
            ("length", schema("int32", False)),
            ("inclusive", schema("boolean", False)),
        ],
    )
    value_schema = struct(
        f"{base}.RangeDelete",
        [
            ("source", source_schema(options.metadata)),
            ("kind", required(STRING)),
            ("partition", key_schema),
            ("start", bound_schema),
            ("end", bound_schema),
            ("ts_ms", INT64),
            ("ts_us", INT64),
            ("ts_ns", INT64),
        ],
        optional=False,
    )
    return key_schema, value_schema
