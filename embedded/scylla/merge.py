"""ScyllaDB's rules for which of two writes wins, and for joining mutations of one partition.

In: cells, markers, collections, range tombstones, mutations. Out: the merged ones. The rules are commutative,
associative and idempotent: a greater timestamp wins; at equal timestamps a tombstone beats a value, a value
with TTL one without, the later expiry the earlier, the greater bytes the lesser.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from embedded.scylla.mutation import (
    Bound,
    Cell,
    Cells,
    ClusteringKey,
    CollectionMutation,
    Marker,
    PartitionMutation,
    RangeTombstone,
    RowMutation,
    SortKey,
    end_position,
    start_position,
)
from embedded.scylla.schema import Table


def winning_cell(one: Cell, other: Cell) -> Cell:
    """The cell that stays."""
    if one.timestamp != other.timestamp:
        return one if one.timestamp > other.timestamp else other
    if one.value is None or other.value is None:
        return one if one.value is None else other
    if (one.ttl > 0) != (other.ttl > 0):
        return one if one.ttl > 0 else other
    if one.expiry != other.expiry:
        return one if one.expiry > other.expiry else other
    if one.ttl != other.ttl:
        # Written later, so it lives longer after its expiry (until it is purged).
        return one if one.ttl < other.ttl else other
    return one if one.value >= other.value else other


def winning_marker(one: Marker | None, other: Marker | None) -> Marker | None:
    """The row marker that stays."""
    if one is None or other is None:
        return one or other
    if one.timestamp != other.timestamp:
        return one if one.timestamp > other.timestamp else other
    if (one.ttl > 0) != (other.ttl > 0):
        return one if one.ttl > 0 else other
    return one if one.expiry >= other.expiry else other


def later(one: int | None, other: int | None) -> int | None:
    """The later of two tombstones' timestamps."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def merge_collection(into: CollectionMutation, other: CollectionMutation) -> None:
    """Joins a collection's writes; a tombstone removes what was written at or before it."""
    tombstone = later(into.tombstone, other.tombstone)
    cells = into.cells
    if tombstone is not None and tombstone != into.tombstone:
        into.tombstone = tombstone
        for key in [key for key, cell in cells.items() if cell.timestamp <= tombstone]:
            del cells[key]
    for key, cell in other.cells.items():
        if tombstone is None or cell.timestamp > tombstone:
            present = cells.get(key)
            cells[key] = cell if present is None else winning_cell(present, cell)


def merge_column(into: Cells, name: str, value: Cell | CollectionMutation) -> None:
    """Joins one more write to a column with what is in `into`."""
    present = into.get(name)
    if present is None:
        into[name] = value
    elif isinstance(value, CollectionMutation):
        if isinstance(present, CollectionMutation):
            merge_collection(present, value)
        else:
            into[name] = value
    elif isinstance(present, Cell):
        into[name] = winning_cell(present, value)
    else:
        into[name] = value


def merge_row(into: RowMutation, other: RowMutation) -> None:
    into.marker = winning_marker(into.marker, other.marker)
    into.deletion = later(into.deletion, other.deletion)
    for name, value in other.cells.items():
        merge_column(into.cells, name, value)


def merge_mutation(into: PartitionMutation, other: PartitionMutation) -> None:
    """Joins two mutations of one partition. Row, range and partition tombstones do not remove cells here: what a batch
    both writes and deletes is logged as both."""
    for name, value in other.static.items():
        merge_column(into.static, name, value)
    for key, row in other.rows.items():
        present = into.rows.get(key)
        if present is None:
            into.rows[key] = row
        else:
            merge_row(present, row)
    for tombstone in other.ranges:
        into.ranges = with_range(into.ranges, tombstone, into.table.sort_key)
    into.deletion = later(into.deletion, other.deletion)


def merge_mutations(mutations: list[PartitionMutation]) -> list[PartitionMutation]:
    """One mutation per table and partition, in the order of their first appearance."""
    if len(mutations) == 1:
        return mutations
    merged: dict[tuple[str, str, bytes], PartitionMutation] = {}
    for mutation in mutations:
        place = (mutation.table.keyspace, mutation.table.name, mutation.key)
        present = merged.get(place)
        if present is None:
            merged[place] = mutation
        else:
            merge_mutation(present, mutation)
    return list(merged.values())


# ---- range tombstones --------------------------------------------------------------------------------------------

Sorter = Callable[[ClusteringKey], SortKey]
_Edge = tuple[SortKey, Bound]
_Piece = tuple[_Edge, _Edge, int]


def is_empty_range(start: Bound, end: Bound, sort_key: Sorter) -> bool:
    """Whether no row can lie between the bounds."""
    return not start_position(start, sort_key) < end_position(end, sort_key)


def only_row(start: Bound, end: Bound, table: Table) -> ClusteringKey | None:
    """The row that a closed range of a single clustering key deletes: ScyllaDB writes a row tombstone for it. None if
    the range may hold more, or none."""
    key = start.prefix
    if not start.inclusive or not end.inclusive or not len(key) == len(end.prefix) == len(table.clustering):
        return None
    return key if key and table.sort_key(key) == table.sort_key(end.prefix) else None


def _piece(tombstone: RangeTombstone, sort_key: Sorter) -> _Piece:
    start = (start_position(tombstone.start, sort_key), tombstone.start)
    return start, (end_position(tombstone.end, sort_key), tombstone.end), tombstone.timestamp


def _opposite(bound: Bound) -> Bound:
    """The same place seen from the other side: an end where a range starts, a start where one ends."""
    return Bound(bound.prefix, not bound.inclusive)


def with_range(ranges: list[RangeTombstone], added: RangeTombstone, sort_key: Sorter) -> list[RangeTombstone]:
    """The sorted, non-overlapping list with one more tombstone: where they overlap the later one stays, and those of
    equal timestamp that overlap or touch become one."""
    if not ranges:
        return [added]
    start, finish, stamp = _piece(added, sort_key)
    begin: _Edge | None = start
    pieces: list[_Piece] = []
    for old in (_piece(tombstone, sort_key) for tombstone in ranges):
        left, right, older = old
        if begin is None or not (left[0] < finish[0] and begin[0] < right[0]):
            pieces.append(old)
        elif older > stamp:
            if begin[0] < left[0]:
                pieces.append((begin, (left[0], _opposite(left[1])), stamp))
            pieces.append(old)
            begin = (right[0], _opposite(right[1])) if right[0] < finish[0] else None
        else:
            if left[0] < begin[0]:
                pieces.append((left, (begin[0], _opposite(begin[1])), older))
            if finish[0] < right[0]:
                pieces.append(((finish[0], _opposite(finish[1])), right, older))
    if begin is not None:
        pieces.append((begin, finish, stamp))
    return [RangeTombstone(left[1], right[1], stamp) for left, right, stamp in _joined(pieces)]


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces in order; neighbours of equal timestamp without a place between them are made one."""
    pieces = sorted(pieces, key=lambda piece: piece[0][0])
    joined: list[_Piece] = []
    for begin, finish, stamp in pieces:
        if joined:
            before, end, last = joined[-1]
            if last == stamp and begin[0] == end[0]:
                joined[-1] = (before, finish, stamp)
                continue
        joined.append((begin, finish, stamp))
    return joined


def covering_deletion(
    ranges: list[RangeTombstone], starts: list[SortKey], ends: list[SortKey], key: SortKey
) -> int | None:
    """The timestamp of the tombstone over a row, given the list's start and end positions."""
    at = bisect_left(starts, key)
    if at < len(starts) and starts[at] == key:
        at += 1
    if at == 0:
        return None
    return ranges[at - 1].timestamp if key < ends[at - 1] else None
