"""A row while a statement looks at it, and how a column's value is taken from it.

In: live rows of a store. Out: serialised values, multi-cell columns put together from their cells.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.values import ListType, MapType, UserType
from embedded.scylla.execute.validation import pack_cells, pack_collection
from embedded.scylla.mutation import Cell, ClusteringKey, Marker
from embedded.scylla.schema import Column
from embedded.scylla.store import LiveCells

NO_CELLS: LiveCells = {}


class RowAt:
    """One row with its partition's key and statics. `ck` is empty when only the statics of the partition exist;
    `before` is then the clustering key of the row that was looked at before it."""

    __slots__ = ("before", "cells", "ck", "marker", "pk", "static")

    def __init__(
        self,
        pk: tuple[bytes, ...],
        ck: ClusteringKey,
        static: LiveCells,
        cells: LiveCells,
        marker: Marker | None = None,
        before: ClusteringKey = (),
    ) -> None:
        self.before = before
        self.pk = pk
        self.ck = ck
        self.static = static
        self.cells = cells
        self.marker = marker

    def computed(self) -> RowAt:
        """The row as functions see it. ScyllaDB does not clear the clustering key between partitions when a selection
        computes anything, so that a partition of statics only shows the key of another partition's row
        (scylladb/scylladb#21267; in all of 2025.1 to 2026.1)."""
        return self if self.ck or not self.before else RowAt(self.pk, self.before, self.static, self.cells)


Get = Callable[[RowAt], bytes | None]


def packed(column: Column, elements: list[tuple[bytes, Cell]]) -> bytes:
    """The serialised collection or user type that live elements make up."""
    type_ = column.type
    if isinstance(type_, MapType):
        return pack_collection([part for key, cell in elements for part in (key, cell.value or b"")], 2)
    if isinstance(type_, ListType):
        return pack_collection([cell.value or b"" for _, cell in elements])
    if isinstance(type_, UserType):
        fields: list[bytes | None] = [None] * len(type_.fields)
        for key, cell in elements:
            place = int.from_bytes(key, "big")
            if place < len(fields):
                fields[place] = cell.value
        return pack_cells(fields)
    return pack_collection([key for key, _ in elements])


def live_value(column: Column, value: Cell | list[tuple[bytes, Cell]] | None) -> bytes | None:
    """The serialised value of a column's live cell or elements."""
    if value is None:
        return None
    return packed(column, value) if isinstance(value, list) else value.value


def column_getter(column: Column) -> Get:
    """Takes a column's value from a row."""
    name, at = column.name, column.position
    if column.kind == "partition_key":
        return lambda row: row.pk[at]
    if column.kind == "clustering":
        return lambda row: row.ck[at] if row.ck else None
    if column.kind == "static":
        if column.multi_cell:
            return lambda row: live_value(column, row.static.get(name))
        return lambda row: cell.value if (cell := row.static.get(name)) is not None else None  # type: ignore[union-attr]
    if column.multi_cell:
        return lambda row: live_value(column, row.cells.get(name))
    return lambda row: cell.value if (cell := row.cells.get(name)) is not None else None  # type: ignore[union-attr]


def cell_getter(column: Column) -> Callable[[RowAt], Cell | list[tuple[bytes, Cell]] | None]:
    """Takes a column's live cell or elements from a row, for `writetime` and `ttl`."""
    name = column.name
    if column.kind == "static":
        return lambda row: row.static.get(name)
    return lambda row: row.cells.get(name)
