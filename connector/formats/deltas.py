"""Cells of collections and user types that are stored cell by cell: what an operation did to them (our addition).

In: a column of such a type. Out: the schema of its cell, ``{value: {mode, elements}}``, and a callable that makes it
from a delta row. ``mode`` is ``overwrite`` when everything that was there is gone, else ``modify``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from connector.changes import TRUE, ColumnPlace, Row, field_name
from connector.config import avro_name
from connector.formats.record import Schema
from connector.formats.schemas import STRING, array, required, schema, schema_of, struct
from connector.values import (
    ListType,
    MapType,
    MultiCellType,
    Render,
    RenderingRules,
    SetType,
    UserType,
    freeze,
    is_multi_cell,
    render_uuid,
    renderer,
    split_cells,
    split_fields,
)

#: From the value cell and the cell of removed elements to the delta's ``elements``.
Elements = Callable[[bytes | None, bytes | None], Any]


def delta_cell_schema(place: ColumnPlace, base: str) -> Schema:
    """The schema of the column's cell; ``base`` begins the names of the table's schemas."""
    prefix = avro_name(f"{base}.{place.name}")
    elements = _elements_schema(_multi_cell(place), base, prefix)
    delta = struct(f"{prefix}.Delta", [("mode", required(STRING)), ("elements", elements)])
    return struct(f"{prefix}.Cell", [("value", delta)])


def _multi_cell(place: ColumnPlace) -> MultiCellType:
    assert is_multi_cell(place.column.type)
    return place.column.type


def _elements_schema(type_: MultiCellType, base: str, prefix: str) -> Schema:
    if isinstance(type_, UserType):
        cells = [
            (name, struct(avro_name(f"{prefix}.{name}.Cell"), [("value", schema_of(field, base))]))
            for name, field in type_.fields
        ]
        return struct(f"{prefix}.Elements", cells)
    if isinstance(type_, ListType):
        parts = (STRING, schema_of(type_.element, base))
    elif isinstance(type_, SetType):
        parts = (schema_of(type_.element, base), schema("boolean"))
    elif isinstance(type_, MapType):
        parts = (schema_of(type_.key, base), schema_of(type_.value, base))
    else:
        assert_never(type_)
    entry = struct(f"{prefix}.Element", [("key", parts[0]), ("value", parts[1])], optional=False)
    return array(entry)


def delta_cell(place: ColumnPlace, rules: RenderingRules) -> Callable[[Row], Any]:
    """From a delta row: None where the column is untouched."""
    elements = _elements(_multi_cell(place), rules)
    at, deleted_at, removed_at = place.value, place.deleted, place.deleted_elements
    assert at is not None

    def cell(row: Row) -> Any:
        raw = row[at]
        removed = None if removed_at is None else row[removed_at]
        overwrite = deleted_at is not None and row[deleted_at] == TRUE
        if raw is None and removed is None and not overwrite:
            return None
        return {"value": {"mode": "overwrite" if overwrite else "modify", "elements": elements(raw, removed)}}

    return cell


def _elements(type_: MultiCellType, rules: RenderingRules) -> Elements:
    if isinstance(type_, UserType):
        return _field_elements(type_, rules)
    if isinstance(type_, SetType):
        render = renderer(type_.element, rules)
        return _keyed_elements(render, None)
    if isinstance(type_, ListType):
        return _keyed_elements(render_uuid, renderer(type_.element, rules))
    if isinstance(type_, MapType):
        return _keyed_elements(renderer(type_.key, rules), renderer(type_.value, rules))
    assert_never(type_)


def _keyed_elements(render_key: Render, render_value: Render | None) -> Elements:
    def elements(raw: bytes | None, removed: bytes | None) -> Any:
        found: list[dict[str, Any]] = []
        if raw:
            cells = split_cells(raw, 1 if render_value is None else 2)
            if render_value is None:
                found = [{"key": render_key(key or b""), "value": True} for key in cells]
            else:
                pairs = iter(cells)
                found = [
                    {"key": render_key(key or b""), "value": None if value is None else render_value(value)}
                    for key, value in zip(pairs, pairs, strict=True)
                ]
        if removed:
            found += [{"key": render_key(key or b""), "value": None} for key in split_cells(removed)]
        return found

    return elements


def _field_elements(type_: UserType, rules: RenderingRules) -> Elements:
    frozen = freeze(type_)
    assert isinstance(frozen, UserType)
    names = [name for name, _ in frozen.fields]
    renders = [renderer(field, rules) for _, field in frozen.fields]
    spelled = type_.cql()

    def elements(raw: bytes | None, removed: bytes | None) -> Any:
        found: dict[str, Any] = dict.fromkeys(names)
        if raw:
            for name, cell, render in zip(names, split_fields(raw, len(names), spelled), renders, strict=True):
                if cell is not None:
                    found[name] = {"value": render(cell)}
        if removed:
            for index in split_cells(removed):
                found[field_name(type_, int.from_bytes(index or b"", "big", signed=True))] = {"value": None}
        return found

    return elements
