"""Batches as JSON documents for people and scripts: what the ``read`` command prints.

In: a ``Batch``. Out: plain JSON values: stream, time, and the changes with keys, columns (untouched ones left out) and
images; with ``raw``, the rows of the log too. Values are rendered as in records.
"""

from __future__ import annotations

from typing import Any

import orjson

from connector.changes import (
    UNTOUCHED,
    Batch,
    Change,
    ColumnPlace,
    LogLayout,
    Row,
    bound_places,
    changes_of,
    deleted_elements_type,
)
from connector.errors import PoisonRow
from connector.formats.deltas import delta_cell
from connector.formats.json_converter import to_json
from connector.values import NativeType, RenderingRules, column_renderer, is_multi_cell, native, render_uuid, renderer

_RULES = RenderingRules(keep_empty=True)
_LOG_TYPES = {
    "cdc$stream_id": "blob",
    "cdc$time": "timeuuid",
    "cdc$batch_seq_no": "int",
    "cdc$operation": "tinyint",
    "cdc$ttl": "bigint",
    "cdc$end_of_batch": "boolean",
}


def batch_document(batch: Batch, raw: bool = False) -> dict[str, Any]:
    """The document of a complete batch; ``PoisonRow`` if a cell or an operation cannot be read."""
    document: dict[str, Any] = {
        "keyspace_name": batch.layout.description.keyspace,
        "table_name": batch.layout.description.name,
        "stream_id": batch.stream_id.hex(),
        "time": render_uuid(batch.time),
        "timestamp_us": batch.timestamp_us,
        "changes": [_change(change) for change in changes_of(batch)],
    }
    if raw:
        document["rows"] = [_row(batch.layout, row) for row in batch.rows]
    # Through JSON once, so that blobs, floats and numbers that are none come out as they stand in records.
    plain: dict[str, Any] = orjson.loads(to_json(document))
    return plain


def _change(change: Change) -> dict[str, Any]:
    layout = change.batch.layout
    document: dict[str, Any] = {
        "op": change.kind,
        "operation": change.code,
        "batch_seq_no": change.batch_seq_no,
        "ttl": change.ttl,
    }
    if change.kind in ("range", "partition"):
        document["key"] = {place.name: _value(change, place, change.row) for place in layout.partition_key}
        if change.end is not None:
            document["start"] = _bound(change, change.row)
            document["end"] = _bound(change, change.end)
        return document
    document["key"] = {place.name: _value(change, place, change.row) for place in layout.keys}
    document["columns"] = _columns(change)
    document["before"] = _image(change, change.before)
    document["after"] = _image(change, change.after)
    return document


def _columns(change: Change) -> dict[str, Any]:
    held = change.columns
    shown: dict[str, Any] = {}
    for place in change.batch.layout.places:
        if place.column.is_key or held[place.name] is UNTOUCHED:
            continue
        if is_multi_cell(place.column.type):
            shown[place.name] = delta_cell(place, _RULES)(change.row)["value"]
        else:
            shown[place.name] = _value(change, place, change.row)
    return shown


def _image(change: Change, image: Row | None) -> dict[str, Any] | None:
    if image is None:
        return None
    present = change.before_values if image is change.before else change.after_values
    places = change.batch.layout.places
    return {place.name: _value(change, place, image) for place in places if place.name in (present or {})}


def _value(change: Change, place: ColumnPlace, row: Row) -> Any:
    cell = None if place.value is None else row[place.value]
    if cell is None:
        return None
    try:
        return column_renderer(place.column.type, _RULES)(cell)
    except ValueError as error:
        raise PoisonRow(f"{change.table.full_name}, column {place.name}: {error}") from error


def _bound(change: Change, row: Row) -> dict[str, Any]:
    places = bound_places(change.batch.layout.clustering_key, row)
    _, inclusive = change.bound(row)
    return {"values": [_value(change, place, row) for place in places], "inclusive": inclusive}


def _row(layout: LogLayout, row: Row) -> dict[str, Any]:
    """A row of the log, with all its columns that are not null, as the log has them."""
    types: dict[str, Any] = {name: native(type_) for name, type_ in _LOG_TYPES.items()}
    for place in layout.places:
        types[place.name] = place.log_type
        types[f"cdc$deleted_{place.name}"] = native("boolean")
        types[f"cdc$deleted_elements_{place.name}"] = deleted_elements_type(place.column.type)
    shown: dict[str, Any] = {}
    for name, cell in zip(layout.columns, row, strict=True):
        type_ = types.get(name)
        if cell is None:
            continue
        if name == "cdc$stream_id" or type_ is None:
            shown[name] = cell.hex()
            continue
        try:
            shown[name] = renderer(type_, _RULES)(cell)
        except ValueError:
            shown[name] = cell if isinstance(type_, NativeType) and type_.name == "blob" else cell.hex()
    return shown
