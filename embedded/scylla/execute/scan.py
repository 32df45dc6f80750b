"""The rows that a SELECT walks over: partitions in their order, rows of their slices, from a page's beginning.

In: a store, the compiled WHERE clause and a position. Out: rows with the key of their partition. Static-only
partitions give one row without clustering key where no clustering restriction is in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from embedded.scylla.execute.filters import Predicate
from embedded.scylla.execute.paging import NO_LIMIT, Position
from embedded.scylla.execute.restrictions import Restrictions
from embedded.scylla.execute.rows import NO_CELLS, RowAt
from embedded.scylla.execute.run import Run
from embedded.scylla.mutation import Bound, ClusteringKey, Slice, end_position, start_position
from embedded.scylla.schema import Table, partition_key_values
from embedded.scylla.store import PartitionView, TableStore


@dataclass(frozen=True, slots=True)
class Scan:
    """How to walk. `distinct`: one row per partition. `per_partition`: rows of one partition at most."""

    table: Table
    restrictions: Restrictions
    reverse: bool = False
    distinct: bool = False


Found = tuple[bytes, RowAt]


class _Walk:
    """One walk over partitions: the clustering key of the last row, also of one that was filtered out."""

    last: ClusteringKey = ()


def partitions(scan: Scan, store: TableStore, run: Run, position: Position | None) -> Iterator[PartitionView]:
    """The partitions that may hold rows, from the position's one on."""
    restrictions = scan.restrictions
    if restrictions.key_values is not None:
        keys = restrictions.partition_keys(run)
        if position is not None and position.key in keys:
            keys = keys[keys.index(position.key) :]
        for key in keys:
            view = store.partition(key, run.now_s)
            if view is not None:
                yield view
        return
    low, high = restrictions.token_range(run)
    start = (low, b"")
    if position is not None:
        start = (scan.table.token_of(position.key), position.key)
    for view in store.partitions(start, run.now_s):
        if view.token > high:
            return
        yield view


def rows(
    scan: Scan,
    store: TableStore,
    run: Run,
    position: Position | None,
    per_partition: int,
) -> Iterator[Found]:
    """All rows in order, behind the position, filtered, with at most `per_partition` of each partition."""
    slices = scan.restrictions.slices(run)
    tests = [begin(run) for begin in scan.restrictions.filters]
    walk = _Walk()
    for view in partitions(scan, store, run, position):
        allowed = per_partition
        wanted: Sequence[Slice] = slices
        if position is not None and view.key == position.key:
            if position.row is None or scan.distinct:
                continue
            allowed = position.in_partition
            wanted = behind(slices, position.row, scan)
        resumed = wanted is not slices
        for row in _partition_rows(scan, view, wanted, tests, resumed, walk):
            if allowed == 0:
                break
            yield view.key, row
            if allowed != NO_LIMIT:
                allowed -= 1


def _partition_rows(
    scan: Scan,
    view: PartitionView,
    slices: Sequence[Slice],
    tests: list[Predicate],
    resumed: bool,
    walk: _Walk,
) -> Iterator[RowAt]:
    pk = partition_key_values(scan.table, view.key)
    static = view.static()
    if scan.distinct:
        if static or next(iter(view.rows(slices)), None) is not None:
            row = RowAt(pk, (), static, NO_CELLS)
            if all(test(row) for test in tests):
                yield row
        return
    found = False
    for key, cells, marker in view.rows(slices, scan.reverse):
        found = True
        walk.last = key
        row = RowAt(pk, key, static, cells, marker)
        if not tests or all(test(row) for test in tests):
            yield row
    if not found and static and not scan.restrictions.clustering and not resumed:
        row = RowAt(pk, (), static, NO_CELLS, before=walk.last)
        if all(test(row) for test in tests):
            yield row


def behind(slices: Sequence[Slice], row: tuple[bytes, ...], scan: Scan) -> list[Slice]:
    """What is left of the slices behind a row (before it when read backwards)."""
    key = scan.table.sort_key
    edge = Bound(row, False)
    left = []
    for start, end in slices:
        if scan.reverse:
            if end_position(end, key) > end_position(edge, key):
                end = edge
        elif start_position(start, key) < start_position(edge, key):
            start = edge
        if start_position(start, key) < end_position(end, key):
            left.append(Slice(start, end))
    return left
