"""Storage of tables whose rows are computed at each read: the system tables.

In: a function that gives rows as Python values. Out: partitions and rows like any other table's. Nothing can
be written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from connector.values import ListType, MapType, UserType, encoder, freeze, split_cells, split_fields
from embedded.scylla.mutation import (
    Cell,
    ClusteringKey,
    Marker,
    PartitionMutation,
    Slice,
    SortKey,
    end_position,
    start_position,
)
from embedded.scylla.schema import Column, Table, partition_key_bytes
from embedded.scylla.store import LiveCells, LiveRow, Page, PageRequest, RingPosition

Scan = Callable[[], Iterable[Mapping[str, Any]]]
LiveValue = Cell | list[tuple[bytes, Cell]]


def _cells_of(column: Column) -> Callable[[bytes], LiveValue | None]:
    """From a serialised value to a cell, or to the elements of a multi-cell column."""
    if not column.multi_cell:
        return lambda raw: Cell(0, raw)
    type_ = column.type
    if isinstance(type_, MapType):
        return lambda raw: _pairs(split_cells(raw, 2)) or None
    if isinstance(type_, ListType):
        return lambda raw: [(at.to_bytes(16, "big"), Cell(0, part)) for at, part in enumerate(split_cells(raw))] or None
    if isinstance(type_, UserType):
        count, spelled = len(type_.fields), type_.cql()
        return lambda raw: (
            [
                (at.to_bytes(2, "big"), Cell(0, part))
                for at, part in enumerate(split_fields(raw, count, spelled))
                if part is not None
            ]
            or None
        )
    return lambda raw: [(part or b"", Cell(0, b"")) for part in split_cells(raw)] or None


def _pairs(cells: list[bytes | None]) -> list[tuple[bytes, Cell]]:
    return [(key or b"", Cell(0, value)) for key, value in zip(cells[::2], cells[1::2])]


class _Partition:
    """A computed partition."""

    def __init__(self, key: bytes, token: int, table: Table) -> None:
        self.key = key
        self.token = token
        self._table = table
        self._static: dict[str, LiveValue] = {}
        self._rows: dict[SortKey, LiveRow] = {}
        self._order: list[SortKey] | None = None

    def add(self, clustering: ClusteringKey | None, cells: LiveCells, static: LiveCells) -> None:
        """A row and the statics that came with it; without a clustering key only these."""
        self._static.update(static)
        if clustering is None:
            return
        self._rows[self._table.sort_key(clustering)] = LiveRow(clustering, cells, Marker(0))

    def static(self) -> LiveCells:
        return self._static

    def rows(self, slices: Sequence[Slice], reverse: bool = False) -> Iterator[LiveRow]:
        if self._order is None:
            self._order = sorted(self._rows)
        order, key = self._order, self._table.sort_key
        for start, end in reversed(slices) if reverse else slices:
            low = bisect_left(order, start_position(start, key))
            high = bisect_left(order, end_position(end, key))
            places = order[low:high]
            for place in reversed(places) if reverse else places:
                yield self._rows[place]


class VirtualStore:
    """A `TableStore` that computes its rows."""

    def __init__(self, table: Table, scan: Scan) -> None:
        self._table = table
        self._scan = scan
        self._encoders = {column.name: encoder(freeze(column.type)) for column in table.columns}
        self._cells = {column.name: _cells_of(column) for column in table.static + table.regular}
        self._static = frozenset(column.name for column in table.static)
        self._kept: tuple[tuple[Mapping[str, Any], ...], dict[bytes, _Partition]] | None = None

    def _partitions(self, only: bytes | None) -> dict[bytes, _Partition]:
        rows = self._scan()
        if not isinstance(rows, tuple):
            return self._computed(rows, only)
        # A tuple never changes, and is given again as long as it is true: readers ask for one of a thousand tables
        # after the other, and no answer takes a look at all of them.
        if self._kept is None or self._kept[0] is not rows:
            self._kept = rows, self._computed(rows, None)
        return self._kept[1]

    def _computed(self, rows: Iterable[Mapping[str, Any]], only: bytes | None) -> dict[bytes, _Partition]:
        found: dict[bytes, _Partition] = {}
        table, encoders = self._table, self._encoders
        for row in rows:
            key = partition_key_bytes(tuple(encoders[column.name](row[column.name]) for column in table.partition_key))
            if only is not None and key != only:
                continue
            partition = found.get(key)
            if partition is None:
                partition = found[key] = _Partition(key, table.token_of(key), table)
            clustering: ClusteringKey | None = None
            if all(column.name in row for column in table.clustering):
                clustering = tuple(encoders[column.name](row[column.name]) for column in table.clustering)
            static: dict[str, LiveValue] = {}
            cells: dict[str, LiveValue] = {}
            for name, make in self._cells.items():
                value = row.get(name)
                if value is not None:
                    made = make(encoders[name](value))
                    if made is not None:
                        (static if name in self._static else cells)[name] = made
            partition.add(clustering, cells, static)
        return found

    def apply(self, mutation: PartitionMutation) -> None:
        """Writes are refused before they come here."""

    def partition(self, key: bytes, now: int) -> _Partition | None:
        return self._partitions(key).get(key)

    def partitions(self, start: RingPosition, now: int) -> Iterator[_Partition]:
        found = sorted(self._partitions(None).values(), key=lambda each: (each.token, each.key))
        return (each for each in found if (each.token, each.key) >= start)

    def alter(self, table: Table, dropped: Collection[str]) -> None:
        """Virtual tables do not change."""

    def truncate(self) -> None:
        """There is nothing to forget."""

    def fast_page(self, request: PageRequest) -> Page | None:
        return None
