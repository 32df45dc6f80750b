"""The ordinary table storage: cells in memory, merged as they are written.

In: mutations. Out: live rows at a second of the server's clock. Tombstones and expired cells are kept for
good, as if the grace period never ended, so that nothing older can come back.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from connector.values import CqlType, ListType, MapType, SetType, native, order_key
from embedded.scylla.merge import (
    covering_deletion,
    merge_collection,
    winning_cell,
    winning_marker,
    with_range,
)
from embedded.scylla.mutation import (
    Cell,
    Cells,
    ClusteringKey,
    CollectionMutation,
    Marker,
    PartitionMutation,
    RangeTombstone,
    RowMutation,
    Slice,
    SortKey,
    end_position,
    start_position,
)
from embedded.scylla.schema import Column, Table
from embedded.scylla.spelling import element_spelling
from embedded.scylla.store import LiveCells, LiveRow, Page, PageRequest, RingPosition

NEVER = -(1 << 63)
"""A deletion time before every timestamp."""


def element_order(column: Column) -> Callable[[bytes], Any]:
    """How the cells of a multi-cell column are sorted by their keys."""
    type_ = column.type
    if isinstance(type_, MapType):
        return order_key(type_.key)
    if isinstance(type_, SetType):
        return order_key(type_.element)
    if isinstance(type_, ListType):
        return order_key(native("timeuuid"))
    return bytes


def _ordered_types(table: Table) -> list[CqlType]:
    """The types by whose order rows and elements are kept."""
    return [column.type for column in table.columns if column.kind == "clustering" or column.multi_cell]


class StoredRow:
    """A clustering row (or the only row of a partition without clustering columns)."""

    __slots__ = ("cells", "deletion", "key", "marker")

    def __init__(self, key: ClusteringKey) -> None:
        self.key = key
        self.marker: Marker | None = None
        self.deletion = NEVER
        self.cells: Cells = {}

    def prune(self, deletion: int) -> None:
        """Removes what a tombstone of this time covers."""
        if self.marker is not None and self.marker.timestamp <= deletion:
            self.marker = None
        prune_cells(self.cells, deletion)

    @property
    def blank(self) -> bool:
        return self.marker is None and not self.cells and self.deletion == NEVER


def prune_cells(cells: Cells, deletion: int) -> None:
    """Removes the cells written at or before a tombstone's time."""
    for name, value in list(cells.items()):
        if isinstance(value, CollectionMutation):
            for key in [key for key, cell in value.cells.items() if cell.timestamp <= deletion]:
                del value.cells[key]
            if value.tombstone is not None and value.tombstone <= deletion:
                value.tombstone = None
            if value.tombstone is None and not value.cells:
                del cells[name]
        elif value.timestamp <= deletion:
            del cells[name]


def apply_cells(into: Cells, written: Cells, floor: int) -> None:
    """Merges cells into a row whose tombstones reach up to `floor`."""
    for name, value in written.items():
        present = into.get(name)
        if isinstance(value, Cell):
            if value.timestamp > floor:
                into[name] = winning_cell(present, value) if isinstance(present, Cell) else value
            continue
        if not isinstance(present, CollectionMutation):
            present = CollectionMutation()
        merge_collection(present, value)
        if floor != NEVER:
            holder: Cells = {name: present}
            prune_cells(holder, floor)
        if present.tombstone is not None or present.cells:
            into[name] = present


class StoredPartition:
    """All that was written to one partition."""

    __slots__ = ("deletion", "ends", "key", "order", "ranges", "rows", "starts", "static", "token")

    def __init__(self, key: bytes, token: int) -> None:
        self.key = key
        self.token = token
        self.deletion = NEVER
        self.static: Cells = {}
        self.rows: dict[SortKey, StoredRow] = {}
        self.order: list[SortKey] = []
        self.ranges: list[RangeTombstone] = []
        self.starts: list[SortKey] = []
        self.ends: list[SortKey] = []

    def apply(self, mutation: PartitionMutation, sort_key: Callable[[ClusteringKey], SortKey]) -> None:
        if mutation.deletion is not None and mutation.deletion > self.deletion:
            self._delete_all(mutation.deletion, sort_key)
        for tombstone in mutation.ranges:
            self._delete_range(tombstone, sort_key)
        if mutation.static:
            apply_cells(self.static, mutation.static, self.deletion)
        for key, written in mutation.rows.items():
            self._apply_row(key, sort_key(key), written)

    def _apply_row(self, key: ClusteringKey, place: SortKey, written: RowMutation) -> None:
        row = self.rows.get(place)
        created = row is None
        if row is None:
            row = StoredRow(key)
        if written.deletion is not None and written.deletion > row.deletion:
            row.deletion = written.deletion
            row.prune(written.deletion)
        floor = max(self.deletion, row.deletion)
        if self.ranges:
            covering = covering_deletion(self.ranges, self.starts, self.ends, place)
            floor = floor if covering is None else max(floor, covering)
        if written.marker is not None and written.marker.timestamp > floor:
            row.marker = winning_marker(row.marker, written.marker)
        if written.cells:
            apply_cells(row.cells, written.cells, floor)
        if created and not row.blank:
            self.rows[place] = row
            if not self.order or self.order[-1] < place:
                self.order.append(place)
            else:
                insort(self.order, place)

    def _delete_all(self, deletion: int, sort_key: Callable[[ClusteringKey], SortKey]) -> None:
        self.deletion = deletion
        prune_cells(self.static, deletion)
        for place in list(self.order):
            row = self.rows[place]
            row.prune(deletion)
            if row.deletion <= deletion:
                row.deletion = NEVER
        kept = [place for place in self.order if not self.rows[place].blank]
        self.rows = {place: self.rows[place] for place in kept}
        self.order = kept
        self._set_ranges([tombstone for tombstone in self.ranges if tombstone.timestamp > deletion], sort_key)

    def _delete_range(self, tombstone: RangeTombstone, sort_key: Callable[[ClusteringKey], SortKey]) -> None:
        if tombstone.timestamp <= self.deletion:
            return
        self._set_ranges(with_range(self.ranges, tombstone, sort_key), sort_key)
        low = bisect_left(self.order, start_position(tombstone.start, sort_key))
        high = bisect_left(self.order, end_position(tombstone.end, sort_key))
        for place in self.order[low:high]:
            row = self.rows[place]
            row.prune(tombstone.timestamp)
            if row.blank:
                del self.rows[place]
        if high > low:
            self.order[low:high] = [place for place in self.order[low:high] if place in self.rows]

    def rearrange(self, table: Table) -> None:
        """Keys get their places anew: a user type in them has changed."""
        spells = {column.name: spell for column in table.columns if (spell := element_spelling(column.type))}
        for cells in [self.static, *(row.cells for row in self.rows.values())]:
            for name, spell in spells.items():
                value = cells.get(name)
                if isinstance(value, CollectionMutation):
                    value.cells = {spell(key): cell for key, cell in value.cells.items()}
        self.rows = {table.sort_key(row.key): row for row in self.rows.values()}
        self.order = sorted(self.rows)
        self._set_ranges(self.ranges, table.sort_key)

    def _set_ranges(self, ranges: list[RangeTombstone], sort_key: Callable[[ClusteringKey], SortKey]) -> None:
        self.ranges = ranges
        self.starts = [start_position(tombstone.start, sort_key) for tombstone in ranges]
        self.ends = [end_position(tombstone.end, sort_key) for tombstone in ranges]


class RowView:
    """A `PartitionView` of a stored partition."""

    __slots__ = ("_orders", "_partition", "_sort_key", "now")

    def __init__(
        self,
        partition: StoredPartition,
        sort_key: Callable[[ClusteringKey], SortKey],
        orders: dict[str, Callable[[bytes], Any]],
        now: int,
    ) -> None:
        self._partition = partition
        self._sort_key = sort_key
        self._orders = orders
        self.now = now

    @property
    def key(self) -> bytes:
        return self._partition.key

    @property
    def token(self) -> int:
        return self._partition.token

    def static(self) -> LiveCells:
        return self._live(self._partition.static) if self._partition.static else {}

    def _live(self, cells: Cells) -> LiveCells:
        now = self.now
        live: dict[str, Cell | list[tuple[bytes, Cell]]] = {}
        for name, value in cells.items():
            if isinstance(value, Cell):
                if value.value is not None and (not value.ttl or value.expiry > now):
                    live[name] = value
                continue
            elements = [
                (key, cell)
                for key, cell in value.cells.items()
                if cell.value is not None and (not cell.ttl or cell.expiry > now)
            ]
            if elements:
                order = self._orders[name]
                elements.sort(key=lambda element: order(element[0]))
                live[name] = elements
        return live

    def rows(self, slices: Sequence[Slice], reverse: bool = False) -> Iterator[LiveRow]:
        partition, now = self._partition, self.now
        order, sort_key = partition.order, self._sort_key
        for start, end in reversed(slices) if reverse else slices:
            low = bisect_left(order, start_position(start, sort_key))
            high = bisect_left(order, end_position(end, sort_key))
            places = order[low:high]
            if reverse:
                places.reverse()
            for place in places:
                row = partition.rows[place]
                live = self._live(row.cells)
                marker = row.marker
                if marker is not None and marker.ttl and marker.expiry <= now:
                    marker = None
                if live or marker is not None:
                    yield LiveRow(row.key, live, marker)


class RowStore:
    """A `TableStore` that keeps every cell."""

    def __init__(self, table: Table) -> None:
        self._partitions: dict[bytes, StoredPartition] = {}
        self._ring: list[RingPosition] = []
        self._unsorted = False
        self._set_table(table)

    def _set_table(self, table: Table) -> None:
        self._table = table
        self._sort_key = table.sort_key
        self._orders = {column.name: element_order(column) for column in table.columns if column.multi_cell}

    def apply(self, mutation: PartitionMutation) -> None:
        partition = self._partitions.get(mutation.key)
        if partition is None:
            partition = self._partitions[mutation.key] = StoredPartition(mutation.key, mutation.token)
            self._ring.append((mutation.token, mutation.key))
            self._unsorted = True
        partition.apply(mutation, self._sort_key)

    def partition(self, key: bytes, now: int) -> RowView | None:
        partition = self._partitions.get(key)
        return None if partition is None else RowView(partition, self._sort_key, self._orders, now)

    def partitions(self, start: RingPosition, now: int) -> Iterator[RowView]:
        if self._unsorted:
            self._ring.sort()
            self._unsorted = False
        ring = self._ring
        for at in range(bisect_left(ring, start), len(ring)):
            yield RowView(self._partitions[ring[at][1]], self._sort_key, self._orders, now)

    def alter(self, table: Table, dropped: Collection[str]) -> None:
        before = self._table
        self._set_table(table)
        ordered = [_ordered_types(each) for each in (before, table)]
        for partition in self._partitions.values():
            if ordered[0] != ordered[1]:
                partition.rearrange(table)
            for cells in [partition.static, *(row.cells for row in partition.rows.values())]:
                for name in dropped:
                    cells.pop(name, None)

    def truncate(self) -> None:
        self._partitions.clear()
        self._ring.clear()

    def fast_page(self, request: PageRequest) -> Page | None:
        return None
