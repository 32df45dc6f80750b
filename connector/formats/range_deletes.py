"""Range and partition deletes of clustered tables, as records of their own (our addition, ``cdc.range.deletes=topic``).

In: a ``LogLayout`` and the output options. Out: a ``RecordPlan`` for the topic ``<data
topic>.range-deletes``. Bounds are in storage order, as in the log: of a descending column the start is the
greater value.
"""

from __future__ import annotations

from typing import Any

from connector.changes import Change, LogLayout, Row, bound_places
from connector.config import OutputConfig
from connector.formats.plan import RecordPlan, row_field, rules_of, source_of, struct_of
from connector.formats.schemas import INT64, STRING, required, schema, schema_of, source_schema, struct
from connector.values import renderer

_INCLUSIVE = (b"\x05", b"\x07")


def range_delete_plan(layout: LogLayout, options: OutputConfig) -> RecordPlan:
    """The plan of a table's range and partition deletes."""
    keyspace, table = layout.description.keyspace, layout.description.name
    base = options.names.schema_base(keyspace, table)
    rules = rules_of(options)
    read = {p.name: row_field(p, renderer(p.column.type, rules)) for p in layout.keys}
    partition_of = struct_of([(place.name, read[place.name]) for place in layout.partition_key])
    with_schemas = options.value_converter.kind != "json" or options.value_converter.schemas_enable
    source, operation_at = source_of(layout, options), layout.operation

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

    key_schema = struct(
        f"{base}.PartitionKey", [(p.name, schema_of(p.column.type, base)) for p in layout.partition_key], optional=False
    )
    values_schema = struct(
        f"{base}.BoundValues", [(p.name, schema_of(p.column.type, base)) for p in layout.clustering_key]
    )
    bound_schema = struct(
        f"{base}.Bound",
        [
            ("values", required(values_schema)),
            ("length", schema("int32", False)),
            ("inclusive", schema("boolean", False)),
        ],
    )
    return RecordPlan(
        topic=options.names.range_deletes_topic(keyspace, table),
        key_schema=key_schema,
        value_schema=struct(
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
        ),
        key=lambda change: partition_of(change.row),
        value=value,
    )
