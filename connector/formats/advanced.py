"""The ``advanced`` format: plain columns of whole rows, taken from the table's pre-images and post-images.

In: a ``LogLayout`` and the output options. Out: a ``TablePlan``. What the operation itself wrote is never
shown, only used to tell which columns it modified. The primary key stands where its placement says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connector.changes import Change, LogLayout, Row
from connector.changes.change import TRUE
from connector.changes.layout import ColumnPlace
from connector.config.connector_config import OutputConfig
from connector.formats.headers import header_text
from connector.formats.plan import Field, Headers, TablePlan, row_field, rules_of, source_of, struct_of
from connector.formats.record import Schema
from connector.formats.schemas import envelope_schema, schema_of, struct
from connector.values.rendering import column_renderer, renderer
from connector.values.types import freeze, native

_DATE: Final = native("date")


def advanced_plan(layout: LogLayout, options: OutputConfig) -> TablePlan:
    """The plan of a table in the advanced format."""
    keyspace, table = layout.description.keyspace, layout.description.name
    base = options.names.schema_base(keyspace, table)
    key_places = _key_places(layout)
    rules = rules_of(options)
    read = {place.name: row_field(place, column_renderer(place.column.type, rules)) for place in layout.places}

    key_struct = struct_of([(place.name, read[place.name]) for place in key_places])
    key_schema = struct(f"{base}.Key", [(place.name, _column_schema(place, base)) for place in key_places], False)
    before_places = _payload_places(layout, "payload-before" in options.key_placement)
    after_places = _payload_places(layout, "payload-after" in options.key_placement)
    key_name = options.payload_key_name if "payload-key" in options.key_placement else None
    before = _before(before_places, read, options)
    after = _after(after_places, read, options)
    source = source_of(layout, options)

    def value(change: Change, now: int) -> dict[str, Any]:
        envelope: dict[str, Any] = {
            "source": source(change),
            "before": before(change),
            "after": after(change),
        }
        if key_name is not None:
            envelope[key_name] = key_struct(change.row)
        envelope["op"] = change.kind
        envelope["ts_ms"] = now // 1_000_000
        envelope["transaction"] = None
        # The Java connector leaves these two null in this format.
        envelope["ts_us"] = None
        envelope["ts_ns"] = None
        return envelope

    in_kafka_key = "kafka-key" in options.key_placement
    return TablePlan(
        topic=options.names.data_topic(keyspace, table),
        key_schema=key_schema if in_kafka_key else None,
        value_schema=envelope_schema(
            base,
            struct(f"{base}.Before", [(place.name, _column_schema(place, base)) for place in before_places]),
            struct(f"{base}.After", [(place.name, _column_schema(place, base)) for place in after_places]),
            options.metadata,
            None if key_name is None else (key_name, key_schema),
        ),
        key=(lambda change: key_struct(change.row)) if in_kafka_key else (lambda change: None),
        value=value,
        headers=_headers(layout, read, options) if "kafka-headers" in options.key_placement else None,
    )


def _key_places(layout: LogLayout) -> list[ColumnPlace]:
    """Partition columns, then clustering columns, each in alphabetical order: not the order of the table's key."""
    keys = [place for place in layout.places if place.column.is_key]
    return sorted(keys, key=lambda place: place.column.kind == "clustering")


def _payload_places(layout: LogLayout, with_key: bool) -> list[ColumnPlace]:
    return [place for place in layout.places if with_key or not place.column.is_key]


def _column_schema(place: ColumnPlace, base: str) -> Schema:
    return schema_of(freeze(place.column.type), "" if place.column.is_key else base)


def _modified(places: list[ColumnPlace]) -> Callable[[Row], set[str]]:
    cells = [(p.name, p.value, p.deleted, p.deleted_elements) for p in places if not p.column.is_key]

    def modified(row: Row) -> set[str]:
        return {
            name
            for name, value, deleted, elements in cells
            if (value is not None and row[value] is not None)
            or (deleted is not None and row[deleted] == TRUE)
            or (elements is not None and row[elements] is not None)
        }

    return modified


def _before(
    places: list[ColumnPlace], read: dict[str, Field], options: OutputConfig
) -> Callable[[Change], dict[str, Any] | None]:
    if options.include_before == "none":
        return lambda change: None
    image = struct_of([(place.name, read[place.name]) for place in places])
    keys = {place.name for place in places if place.column.is_key}
    modified_of = _modified(places)
    only_updated = options.include_before == "only-updated"
    with_after = options.include_after != "none"

    def before(change: Change) -> dict[str, Any] | None:
        pre, post = change.before, change.after
        if pre is None:
            return None
        if change.kind != "u":
            return image(pre)
        if only_updated:
            shown = modified_of(change.row) | keys
            return {place.name: read[place.name](pre) if place.name in shown else None for place in places}
        if post is None or not with_after:
            return image(pre)
        # The pre-image may hold the modified columns only: what the operation left alone is as it is after
        # it.
        modified = modified_of(change.row)
        return {place.name: read[place.name](pre if place.name in modified else post) for place in places}

    return before


def _after(
    places: list[ColumnPlace], read: dict[str, Field], options: OutputConfig
) -> Callable[[Change], dict[str, Any] | None]:
    if options.include_after == "none":
        return lambda change: None
    image = struct_of([(place.name, read[place.name]) for place in places])
    keys = {place.name for place in places if place.column.is_key}
    modified_of = _modified(places)
    only_updated = options.include_after == "only-updated"

    def after(change: Change) -> dict[str, Any] | None:
        post = change.after
        if post is None or change.kind == "d":
            return None
        if only_updated and change.kind == "u":
            shown = modified_of(change.row) | keys
            return {place.name: read[place.name](post) if place.name in shown else None for place in places}
        return image(post)

    return after


def _headers(layout: LogLayout, read: dict[str, Field], options: OutputConfig) -> Callable[[Change], Headers]:
    prefixes = {"partition_key": "pk", "clustering": "ck"}
    columns = [
        (
            f"{prefixes[place.column.kind]}.{place.name}",
            # Of dates the header shows what they are: in strict records their days have been counted Java's way.
            row_field(place, renderer(_DATE)) if place.column.type == _DATE else read[place.name],
            header_text(place.column.type, options.strict),
        )
        for place in layout.places
        if place.column.is_key
    ]

    def headers(change: Change) -> Headers:
        values = ((name, value(change.row), text) for name, value, text in columns)
        return [(name, text(value)) for name, value, text in values if value is not None]

    return headers
