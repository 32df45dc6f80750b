"""Clustering slices: from the edges of inequalities to ranges in storage order.

In: a prefix of the clustering key and lower and upper edges on the columns behind it. Out: non-empty slices.
A DESC column turns its edges round; a multi-column inequality over mixed directions falls into several
slices, cut where ScyllaDB cuts them, since each is logged as a range of its own.
"""

from __future__ import annotations

from connector.values import order_key
from embedded.scylla.mutation import Bound, ClusteringKey, Slice, end_position, start_position
from embedded.scylla.schema import Column, Table

Edge = tuple[tuple[Column, ...], tuple[bytes, ...], bool]
"""Restricted columns, their values, and whether rows with just these values are inside."""


def bounded_slices(table: Table, prefix: ClusteringKey, lower: Edge | None, upper: Edge | None) -> list[Slice]:
    """The slices of rows with this prefix between the edges, which begin with the same column."""
    whole = Bound(prefix, True)
    orders = {column.order for edge in (lower, upper) if edge for column in edge[0]}
    if len(orders) > 1:
        return _mixed(table, prefix, lower, upper)
    ends = [Bound(prefix + edge[1], edge[2]) if edge else whole for edge in (lower, upper)]
    if "desc" in orders:
        ends.reverse()
    return [Slice(ends[0], ends[1])]


def _mixed(table: Table, prefix: ClusteringKey, lower: Edge | None, upper: Edge | None) -> list[Slice]:
    """The slice between two tuples, where storage order is not that of the tuples: where their first different values
    lie apart is one slice; every further column of either adds one, of the rows that agree with it so far."""
    low, high = (edge[1] if edge else () for edge in (lower, upper))
    columns = table.clustering[len(prefix) :]
    if lower and upper and not _apart(columns, lower, upper):
        return []
    common = 0
    while common < min(len(low), len(high)) and _same(columns[common], low[common], high[common]):
        common += 1
    if lower and upper and common == len(low) == len(high):
        exact = Bound(prefix + low, True)
        return [Slice(exact, exact)]

    def slice_of(column: Column, start: Bound, end: Bound) -> Slice:
        return Slice(end, start) if column.order == "desc" else Slice(start, end)

    found = [slice_of(columns[common], _cut(prefix, lower, common + 1), _cut(prefix, upper, common + 1))]
    for length in range(common + 2, len(low) + 1):
        rest = Bound(prefix + low[: length - 1], True)
        found.append(slice_of(columns[length - 1], _cut(prefix, lower, length), rest))
    for length in range(common + 2, len(high) + 1):
        rest = Bound(prefix + high[: length - 1], True)
        found.append(slice_of(columns[length - 1], rest, _cut(prefix, upper, length)))
    return found


def _cut(prefix: ClusteringKey, edge: Edge | None, length: int) -> Bound:
    """The edge as far as its first columns: only the whole of it can be inside."""
    if edge is None:
        return Bound(prefix, True)
    values = edge[1][:length]
    return Bound(prefix + values, edge[2] and len(values) == len(edge[1]))


def _same(column: Column, one: bytes, other: bytes) -> bool:
    if one == other:
        return True
    order = order_key(column.type)
    return bool(order(one) == order(other))


def _apart(columns: tuple[Column, ...], lower: Edge, upper: Edge) -> bool:
    """Whether a tuple can lie above the lower edge and below the upper one."""
    shared = min(len(lower[1]), len(upper[1]))
    orders = [order_key(column.type) for column in columns[:shared]]
    low, high = ([order(raw) for order, raw in zip(orders, edge[1])] for edge in (lower, upper))
    if low != high:
        return bool(low < high)
    if len(lower[1]) == len(upper[1]):
        return lower[2] and upper[2]
    # The shorter edge stands for all that begins with it.
    return lower[2] if len(lower[1]) < len(upper[1]) else upper[2]


def in_storage_order(slices: list[Slice], table: Table) -> list[Slice]:
    """Sorted, without the empty ones."""
    key = table.sort_key
    placed = [(start_position(each.start, key), end_position(each.end, key), each) for each in slices]
    kept = [entry for entry in placed if entry[0] < entry[1]]
    if len(kept) > 1:
        kept.sort(key=lambda entry: entry[0])
    return [each for _, _, each in kept]
