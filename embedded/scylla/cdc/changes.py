"""From one partition's mutation to groups of changes: what is logged together, and in which order.

Comes in: a merged mutation. Goes out: groups in the order of their timestamps; each becomes the log rows of
one `cdc$time`. The rules are ScyllaDB's: a mutation stays whole if all it writes has one timestamp and one
TTL and can be told by one row per clustering row, else it is split by timestamp, kind and TTL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from embedded.scylla.merge import only_row
from embedded.scylla.mutation import (
    Cell,
    Cells,
    ClusteringKey,
    CollectionMutation,
    PartitionMutation,
    RangeTombstone,
    RowMutation,
)
from embedded.scylla.schema import Column

PRE_IMAGE, UPDATE, INSERT, ROW_DELETE, PARTITION_DELETE = 0, 1, 2, 3, 4
RANGE_START_INCLUSIVE, RANGE_START_EXCLUSIVE, RANGE_END_INCLUSIVE, RANGE_END_EXCLUSIVE = 5, 6, 7, 8
POST_IMAGE = 9
#: Deletes that the server itself originates, such as rows whose per-row TTL has passed.
SERVICE_ROW_DELETE, SERVICE_PARTITION_DELETE = -3, -4


class Change(NamedTuple):
    """One delta row of the log (two for a range). `clustering` is None for the static row and whole
    partitions."""

    operation: int
    clustering: ClusteringKey | None = None
    cells: Cells | None = None
    ttl: int = 0
    bounds: RangeTombstone | None = None


@dataclass(slots=True)
class Group:
    """Changes with one timestamp. `static` and `rows` name what they touch, for images: None stands for all
    columns; rows are in clustering order."""

    timestamp: int
    changes: list[Change] = field(default_factory=list)
    static: set[str] = field(default_factory=set)
    rows: dict[ClusteringKey, set[str] | None] = field(default_factory=dict)


class _Write(NamedTuple):
    """One thing that a mutation writes, as CDC sees it: a collection tombstone counts one microsecond later
    than it says, so that `SET m = {…}` (tombstone at T-1, cells at T) is one change."""

    timestamp: int
    ttl: int
    live_element: bool


def ordered_rows(mutation: PartitionMutation) -> list[tuple[ClusteringKey, RowMutation]]:
    """The rows that something happens to, in clustering order."""
    rows = [(key, row) for key, row in mutation.rows.items() if row.marker or row.cells or row.deletion is not None]
    if len(rows) > 1:
        sort_key = mutation.table.sort_key
        rows.sort(key=lambda item: sort_key(item[0]))
    return rows


def change_groups(mutation: PartitionMutation) -> list[Group]:
    """All groups of a mutation, oldest first; none if nothing was written."""
    rows = ordered_rows(mutation)
    whole = _whole_group(mutation, rows)
    return [whole] if whole is not None else _split_groups(mutation, rows)


def _writes(cells: Cells, columns: Sequence[Column]) -> Iterator[_Write]:
    for column in columns:
        written = cells.get(column.name)
        if written is None:
            continue
        if isinstance(written, Cell):
            yield _Write(written.timestamp, written.ttl if written.value is not None else 0, False)
            continue
        if written.tombstone is not None:
            yield _Write(written.tombstone + 1, 0, False)
        for cell in written.cells.values():
            live = cell.value is not None
            yield _Write(cell.timestamp, cell.ttl if live else 0, live)


def _whole_group(mutation: PartitionMutation, rows: list[tuple[ClusteringKey, RowMutation]]) -> Group | None:
    """The mutation as a single group, or None if it must be split."""
    table = mutation.table
    timestamps: set[int] = set()
    ttls: set[int] = set()
    marked = upserted = False
    for write in _writes(mutation.static, table.static):
        timestamps.add(write.timestamp)
        ttls.add(write.ttl)
    for _, row in rows:
        if row.marker is not None or row.cells:
            if mutation.static:
                return None
            upserted = True
            if row.marker is not None:
                marked = True
                timestamps.add(row.marker.timestamp)
                ttls.add(row.marker.ttl)
            for write in _writes(row.cells, table.regular):
                if write.live_element and marked:
                    return None
                timestamps.add(write.timestamp)
                ttls.add(write.ttl)
        if row.deletion is not None:
            if mutation.static or upserted:
                return None
            timestamps.add(row.deletion)
            ttls.add(0)
    if mutation.ranges and (mutation.static or rows):
        return None
    for tombstone in mutation.ranges:
        timestamps.add(tombstone.timestamp)
    # The visitor records no timestamp for a partition delete, so that a lone one is always split as well.
    if mutation.deletion is not None or len(timestamps) != 1 or len(ttls) > 1:
        return None
    group = Group(timestamps.pop())
    ttl = ttls.pop() if ttls else 0
    if mutation.static:
        group.static.update(mutation.static)
        group.changes.append(Change(UPDATE, None, mutation.static, ttl))
    for key, row in rows:
        group.rows[key] = set(row.cells) if row.deletion is None else None
        if row.marker is not None or row.cells:
            group.changes.append(Change(UPDATE if row.marker is None else INSERT, key, row.cells, ttl))
        if row.deletion is not None:
            group.changes.append(Change(ROW_DELETE, key))
    group.changes += [Change(RANGE_START_INCLUSIVE, bounds=tombstone) for tombstone in mutation.ranges]
    return group


class _Bucket:
    """The changes of one timestamp by kind, in the order in which a split lists the kinds."""

    __slots__ = ("inserts", "partition", "ranges", "row_deletes", "static", "updates")

    def __init__(self) -> None:
        self.static: list[Change] = []
        self.inserts: list[Change] = []
        self.updates: list[Change] = []
        self.row_deletes: list[Change] = []
        self.ranges: list[Change] = []
        self.partition: list[Change] = []

    def changes(self) -> list[Change]:
        return self.static + self.inserts + self.updates + self.row_deletes + self.ranges + self.partition


class _Buckets(dict[int, _Bucket]):
    def __missing__(self, timestamp: int) -> _Bucket:
        bucket = self[timestamp] = _Bucket()
        return bucket


def _split_groups(mutation: PartitionMutation, rows: list[tuple[ClusteringKey, RowMutation]]) -> list[Group]:
    table = mutation.table
    buckets = _Buckets()
    for (timestamp, ttl), cells in _by_time_and_ttl(mutation.static, table.static):
        buckets[timestamp].static.append(Change(UPDATE, None, cells, ttl))
    for key, row in rows:
        for (timestamp, ttl), cells in _by_time_and_ttl(row.cells, table.regular, row):
            bucket = buckets[timestamp]
            if row.marker is None or (timestamp, ttl) != (row.marker.timestamp, row.marker.ttl):
                bucket.updates.append(Change(UPDATE, key, cells, ttl))
                continue
            # The insert takes a collection only together with its tombstone: added elements alone are an
            # update.
            added: Cells = {
                name: cell
                for name, cell in cells.items()
                if isinstance(cell, CollectionMutation) and cell.tombstone is None
            }
            own = {name: cell for name, cell in cells.items() if name not in added} if added else cells
            bucket.inserts.append(Change(INSERT, key, own, ttl))
            if added:
                bucket.updates.append(Change(UPDATE, key, added, ttl))
        if row.deletion is not None:
            buckets[row.deletion].row_deletes.append(Change(ROW_DELETE, key))
    for tombstone in mutation.ranges:
        # What a later range leaves of an earlier one may be a single row: told as a row delete, without a pre-image.
        left = only_row(tombstone.start, tombstone.end, table)
        change = Change(RANGE_START_INCLUSIVE, bounds=tombstone) if left is None else Change(ROW_DELETE, left)
        buckets[tombstone.timestamp].ranges.append(change)
    if mutation.deletion is not None:
        buckets[mutation.deletion].partition.append(Change(PARTITION_DELETE))
    return [_split_group(mutation, timestamp, buckets[timestamp]) for timestamp in sorted(buckets)]


def _split_group(mutation: PartitionMutation, timestamp: int, bucket: _Bucket) -> Group:
    group = Group(timestamp, bucket.changes())
    for change in bucket.static:
        group.static.update(change.cells or ())
    touched: dict[ClusteringKey, set[str] | None] = {}
    for change in bucket.row_deletes:
        assert change.clustering is not None
        touched[change.clustering] = None
    if bucket.partition and not mutation.table.clustering:
        touched[()] = None
    for change in bucket.inserts + bucket.updates:
        assert change.clustering is not None
        columns = touched.setdefault(change.clustering, set())
        if columns is not None:
            columns.update(change.cells or ())
    sort_key = mutation.table.sort_key
    group.rows = {key: touched[key] for key in sorted(touched, key=sort_key)}
    return group


def _by_time_and_ttl(
    cells: Cells, columns: Sequence[Column], row: RowMutation | None = None
) -> list[tuple[tuple[int, int], Cells]]:
    """The cells of a row by (timestamp, TTL), ascending; each with its atomic columns before its
    collections."""
    atoms: dict[tuple[int, int], Cells] = {}
    collections: dict[tuple[int, int], dict[str, CollectionMutation]] = {}
    if row is not None and row.marker is not None:
        atoms[row.marker.timestamp, row.marker.ttl] = {}
    for column in columns:
        written = cells.get(column.name)
        if written is None:
            continue
        if isinstance(written, Cell):
            ttl = written.ttl if written.value is not None else 0
            atoms.setdefault((written.timestamp, ttl), {})[column.name] = written
            continue
        if written.tombstone is not None:
            part = collections.setdefault((written.tombstone + 1, 0), {})
            part.setdefault(column.name, CollectionMutation()).tombstone = written.tombstone
        for element, cell in written.cells.items():
            ttl = cell.ttl if cell.value is not None else 0
            part = collections.setdefault((cell.timestamp, ttl), {})
            part.setdefault(column.name, CollectionMutation()).cells[element] = cell
    keys = sorted(atoms.keys() | collections.keys())
    return [(key, {**atoms.get(key, {}), **collections.get(key, {})}) for key in keys]
