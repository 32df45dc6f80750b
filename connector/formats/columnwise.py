"""Records straight from raw cells, a column of many rows at a time.

In: changes of one layout. Out: the bytes of their keys and values, equal byte for byte to what the table's plan and the
converters make of each. Those are the reference: they serve whenever this does not. It has no form for other options
(``columnwise`` is None), and raises at a cell that is not as cells usually are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connector.changes import Change, LogLayout, Row
from connector.config.connector_config import OutputConfig
from connector.formats.advanced import advanced_key, payload_places, shown_rows
from connector.formats.avro_columns import AvroColumns
from connector.formats.avro_converter import AvroConverter
from connector.formats.columns import Column, Columns, Join
from connector.formats.converter import Converter
from connector.formats.json_columns import JsonColumns
from connector.formats.json_converter import JsonConverter
from connector.formats.legacy import has_legacy_form, legacy_image
from connector.formats.plan import TablePlan, rules_of, source_times
from connector.formats.record import Schema

#: From changes and the time now in nanoseconds to key and value of each.
Columnwise = Callable[[Sequence[Change], int], list[tuple[bytes, bytes]]]
#: From rows, some of which are None, to the struct of each.
Structs = Callable[[Sequence[Row | None]], list[bytes]]


def columnwise(
    layout: LogLayout, options: OutputConfig, plan: TablePlan, key_converter: Converter, value_converter: Converter
) -> Columnwise | None:
    """The callable for a table, or None where the options ask for more than the plain form."""
    if options.transforms or options.metadata or options.collections == "delta" or plan.headers is not None:
        return None
    keys = _columns(key_converter, plan.topic, plan.key_schema, options)
    values = _columns(value_converter, plan.topic, plan.value_schema, options)
    if keys is None or values is None or not plan.key_schema or not plan.key_schema["fields"]:
        return None
    make = _legacy if options.format == "legacy" else _advanced
    return make(layout, options, keys, values)


def _columns(converter: Converter, topic: str, schema: Schema | None, options: OutputConfig) -> Columns | None:
    if isinstance(converter, JsonConverter):
        return JsonColumns(*converter.frame(schema), rules_of(options)) if converter.null_is_default else None
    if isinstance(converter, AvroConverter) and schema is not None:
        return AvroColumns(converter.head(topic, schema), rules_of(options))
    return None


def _legacy(layout: LogLayout, options: OutputConfig, keys: Columns, values: Columns) -> Columnwise:
    places = [place for place in layout.places if has_legacy_form(place.column.type)]
    key_places = [place for place in places if place.column.is_key]
    columns = [values.column(place, in_cell=not place.column.is_key) for place in places]
    join, null = values.join(places, optional=True), values.null
    key_columns = [keys.column(place, in_cell=False) for place in key_places]
    key_join = keys.join(key_places, optional=False)
    # Both sides write a key column alike if their converters are of one kind.
    shared = [at for at, place in enumerate(places) if place.column.is_key] if type(keys) is type(values) else None
    image_of, images = legacy_image(layout, options), _structs(columns, join, null)

    def records(changes: Sequence[Change], now: int) -> list[tuple[bytes, bytes]]:
        rows = [change.row for change in changes]
        fields = [column(rows) for column in columns]
        key_fields = [column(rows) for column in key_columns] if shared is None else [fields[at] for at in shared]
        found = [*map(image_of, changes)]
        timed, untimed = (values.envelope(layout, options, now, clock) for clock in (True, False))
        made = []
        for change, image, before, row in zip(changes, found, images(found), join(fields), strict=True):
            if change.kind == "d":
                made.append(timed(source_times(change), row if image is None else before, null, "d"))
            else:
                envelope = timed if image is None else untimed
                made.append(envelope(source_times(change), before, row, change.kind))
        return list(zip(keys.framed(key_join(key_fields)), made, strict=True))

    return records


def _advanced(layout: LogLayout, options: OutputConfig, keys: Columns, values: Columns) -> Columnwise:
    key_places = advanced_key(layout)
    key_columns = [keys.column(place, in_cell=False) for place in key_places]
    key_join, null = keys.join(key_places, optional=False), values.null
    before_of, after_of = shown_rows(layout, options)
    befores, afters = (
        _structs([values.column(place, in_cell=False) for place in places], values.join(places, optional=True), null)
        for places in (
            payload_places(layout, f"payload-{side}" in options.key_placement) for side in ("before", "after")
        )
    )
    payload_columns = [values.column(place, in_cell=False) for place in key_places]
    payload_join, between = values.join(key_places, optional=False), values.payload_key(options.payload_key_name)
    with_key = "payload-key" in options.key_placement

    def records(changes: Sequence[Change], now: int) -> list[tuple[bytes, bytes]]:
        rows = [change.row for change in changes]
        before, after = befores([*map(before_of, changes)]), afters([*map(after_of, changes)])
        if with_key:
            in_payload = payload_join([column(rows) for column in payload_columns])
            after = [shown + between + key for shown, key in zip(after, in_payload, strict=True)]
        envelope = values.envelope(layout, options, now, clock=False)
        made = [
            envelope(source_times(change), was, became, change.kind)
            for change, was, became in zip(changes, before, after, strict=True)
        ]
        return list(zip(keys.framed(key_join([column(rows) for column in key_columns])), made, strict=True))

    return records


def _structs(columns: Sequence[Column], join: Join, null: bytes) -> Structs:
    def structs(rows: Sequence[Row | None]) -> list[bytes]:
        present = [row for row in rows if row is not None]
        if not present:
            return [null] * len(rows)
        made = iter(join([column(present) for column in columns]))
        return [null if row is None else next(made) for row in rows]

    return structs
