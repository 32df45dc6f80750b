"""The ``advanced`` format: plain columns of whole rows, taken from the table's pre-images and post-images.

In: a ``LogLayout`` and the output options. Out: a ``RecordPlan``. What the operation itself wrote is never
shown, only used to tell which columns it modified. The primary key stands where its placement says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from connector.changes import TRUE, Change, ColumnPlace, LogLayout, Row
from connector.config import OutputConfig
from connector.formats.columns import Columns, names_of
from connector.formats.headers import header_text
from connector.formats.plan import (
    Field,
    Headers,
    RecordPlan,
    RowOf,
    row_field,
    rules_of,
    source_of,
    source_times,
    struct_of,
)
from connector.formats.record import Schema
from connector.formats.record_format import Bare, Columnwise, RecordFormat, RowsAfter, structs_of
from connector.formats.schemas import envelope_schema, schema_of, struct
from connector.values import NativeType, column_renderer, decoder, freeze, native, renderer

_DATE: Final = native("date")
_NULL: Final = (None,)
_NOTHING: Final = (None, b"")


def advanced_plan(layout: LogLayout, options: OutputConfig) -> RecordPlan:
    """The plan of a table in the advanced format."""
    keyspace, table = layout.description.keyspace, layout.description.name
    base = options.names.schema_base(keyspace, table)
    key_places = advanced_key(layout)
    rules = rules_of(options)
    read = {place.name: row_field(place, column_renderer(place.column.type, rules)) for place in layout.places}

    key_struct = struct_of([(place.name, read[place.name]) for place in key_places])
    key_schema = struct(f"{base}.Key", [(place.name, _column_schema(place, base)) for place in key_places], False)
    before_places = payload_places(layout, "payload-before" in options.key_placement)
    after_places = payload_places(layout, "payload-after" in options.key_placement)
    key_name = options.payload_key_name if "payload-key" in options.key_placement else None
    before_of, after_of = shown_rows(layout, options)
    before_struct = struct_of([(place.name, read[place.name]) for place in before_places])
    after_struct = struct_of([(place.name, read[place.name]) for place in after_places])
    source = source_of(layout, options)

    def value(change: Change, now: int) -> dict[str, Any]:
        before, after = before_of(change), after_of(change)
        envelope: dict[str, Any] = {
            "source": source(change),
            "before": None if before is None else before_struct(before),
            "after": None if after is None else after_struct(after),
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
    return RecordPlan(
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


def advanced_key(layout: LogLayout) -> list[ColumnPlace]:
    """Partition columns, then clustering columns, each in alphabetical order: not the order of the table's key."""
    keys = [place for place in layout.places if place.column.is_key]
    return sorted(keys, key=lambda place: place.column.kind == "clustering")


def payload_places(layout: LogLayout, with_key: bool) -> list[ColumnPlace]:
    return [place for place in layout.places if with_key or not place.column.is_key]


def _column_schema(place: ColumnPlace, base: str) -> Schema:
    return schema_of(freeze(place.column.type), "" if place.column.is_key else base)


def shown_rows(layout: LogLayout, options: OutputConfig) -> tuple[RowOf, RowOf]:
    """From a change to the rows that ``before`` and ``after`` show, or None: images, with what is not shown as null."""
    return _before(layout, options), _after(layout, options)


def _modified(layout: LogLayout, strict: bool) -> Callable[[Change], list[int]]:
    """From an update to the positions of the values that it modified. With `'delta': 'keys'` its own row tells nothing
    of that, and its images do; to the Java connector it modified nothing then."""
    # To the Java connector a value of no bytes is null, and so nothing that was written.
    cells = [
        (place.value, place.deleted, place.deleted_elements, _NOTHING if strict and _never_empty(place) else _NULL)
        for place in layout.places
        if place.value is not None and not place.column.is_key
    ]

    def modified(change: Change) -> list[int]:
        row = change.row
        found = [
            value
            for value, deleted, elements, nothing in cells
            if row[value] not in nothing
            or (deleted is not None and row[deleted] == TRUE)
            or (elements is not None and row[elements] is not None)
        ]
        return found or ([] if strict else told_by_images(change.before, change.after))

    def told_by_images(pre: Row | None, post: Row | None) -> list[int]:
        """A pre-image may hold what was modified and no more: there a null is set to null. Without it, all may be."""
        return [
            value
            for value, deleted, _, _ in cells
            if pre is None
            or (
                (pre[value] is not None or (deleted is not None and pre[deleted] == TRUE))
                and (post is None or pre[value] != post[value])
            )
        ]

    return modified


def _never_empty(place: ColumnPlace) -> bool:
    type_ = place.column.type
    return isinstance(type_, NativeType) and decoder(type_)(b"") is None


def _only_updated(layout: LogLayout, strict: bool) -> Callable[[Row, Change], Row]:
    """From an image and its change to the image with nothing in it but the key and what was modified."""
    keys = [place.value for place in layout.keys if place.value is not None]
    modified_of, blank = _modified(layout, strict), [None] * len(layout.columns)

    def only_updated(image: Row, change: Change) -> Row:
        shown: list[bytes | None] = [*blank]
        for at in (*keys, *modified_of(change)):
            shown[at] = image[at]
        return tuple(shown)

    return only_updated


def _before(layout: LogLayout, options: OutputConfig) -> RowOf:
    if options.include_before == "none":
        return lambda change: None
    modified_of, only_updated = _modified(layout, options.strict), _only_updated(layout, options.strict)
    updated_only = options.include_before == "only-updated"
    with_after = options.include_after != "none"

    def before(change: Change) -> Row | None:
        pre, post = change.before, change.after
        if pre is None or change.kind != "u":
            return pre
        if updated_only:
            return only_updated(pre, change)
        if post is None or not with_after:
            return pre
        # The pre-image may hold the modified columns only: what the operation left alone is as it is after
        # it.
        mixed = [*post]
        for at in modified_of(change):
            mixed[at] = pre[at]
        return tuple(mixed)

    return before


def _after(layout: LogLayout, options: OutputConfig) -> RowOf:
    if options.include_after == "none":
        return lambda change: change.row if change.kind == "r" else None
    only_updated = _only_updated(layout, options.strict)
    updated_only = options.include_after == "only-updated"

    def after(change: Change) -> Row | None:
        if change.kind == "r":
            return change.row
        post = change.after
        if post is None or change.kind == "d":
            return None
        return only_updated(post, change) if updated_only and change.kind == "u" else post

    return after


def header_names(layout: LogLayout) -> tuple[tuple[str, ColumnPlace], ...]:
    """Columns of the key by the names of their headers."""
    prefixes = {"partition_key": "pk", "clustering": "ck"}
    keys = [place for place in layout.places if place.column.is_key]
    return tuple((f"{prefixes[place.column.kind]}.{place.name}", place) for place in keys)


def _headers(layout: LogLayout, read: dict[str, Field], options: OutputConfig) -> Callable[[Change], Headers]:
    columns = [
        (
            name,
            # Of dates the header shows what they are: in strict records their days have been counted Java's way.
            row_field(place, renderer(_DATE)) if place.column.type == _DATE else read[place.name],
            header_text(place.column.type, options.strict),
        )
        for name, place in header_names(layout)
    ]

    def headers(change: Change) -> Headers:
        values = ((name, value(change.row), text) for name, value, text in columns)
        return [(name, text(value)) for name, value, text in values if value is not None]

    return headers


def _rows(layout: LogLayout, options: OutputConfig, values: Columns, bare: Bare) -> RowsAfter:
    before_of, after_of = shown_rows(layout, options)
    places = payload_places(layout, "payload-after" in options.key_placement)
    columns, before_columns = (
        [values.column(place, in_cell=False) for place in side]
        for side in (places, payload_places(layout, "payload-before" in options.key_placement))
    )
    return RowsAfter(after_of, places, columns, advanced_key(layout), before_of, before_columns)


def _columnwise(layout: LogLayout, options: OutputConfig, keys: Columns, values: Columns, bare: Bare) -> Columnwise:
    key_places = advanced_key(layout)
    key_columns = [keys.column(place, in_cell=False) for place in key_places]
    key_join, null = keys.join(names_of(key_places), optional=False), values.null
    before_of, after_of = shown_rows(layout, options)
    befores, afters = (
        structs_of([values.column(place, in_cell=False) for place in places], values.join(names_of(places), True), null)
        for places in (
            payload_places(layout, f"payload-{side}" in options.key_placement) for side in ("before", "after")
        )
    )
    payload_columns = [values.column(place, in_cell=False) for place in key_places]
    payload_join, between = (
        values.join(names_of(key_places), optional=False),
        values.payload_key(options.payload_key_name),
    )
    with_key = "payload-key" in options.key_placement

    def records(changes: Sequence[Change], now: int) -> list[tuple[bytes, bytes]]:
        rows = [change.row for change in changes]
        before, after = befores([*map(before_of, changes)]), afters([*map(after_of, changes)])
        if with_key:
            in_payload = payload_join([column(rows) for column in payload_columns], len(rows))
            after = [shown + between + key for shown, key in zip(after, in_payload, strict=True)]
        envelope = values.envelope(layout, options, now, clock=False)
        made = [
            envelope(change, source_times(change), was, became)
            for change, was, became in zip(changes, before, after, strict=True)
        ]
        return list(zip(keys.framed(key_join([column(rows) for column in key_columns], len(rows))), made, strict=True))

    return records


ADVANCED: Final = RecordFormat(advanced_plan, _columnwise, _rows)
