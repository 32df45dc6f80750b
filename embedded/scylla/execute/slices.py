"""Clustering slices: from the edges of inequalities to ranges in storage order.

In: a prefix of the clustering key and lower and upper edges on the columns behind it. Out: non-empty slices.
A DESC column turns its edges round; a multi-column inequality over mixed directions falls into several
slices.
"""

from __future__ import annotations

from embedded.scylla.mutation import Bound, ClusteringKey, Slice, end_position, start_position
from embedded.scylla.schema import Column, Table

Edge = tuple[tuple[Column, ...], tuple[bytes, ...], bool]
"""Restricted columns, their values, and whether rows with just these values are inside."""


def bounded_slices(table: Table, prefix: ClusteringKey, lower: Edge | None, upper: Edge | None) -> list[Slice]:
    """The slices of rows with this prefix between the edges, which begin with the same column."""
    whole = Bound(prefix, True)
    orders = {column.order for edge in (lower, upper) if edge for column in edge[0]}
    if len(orders) <= 1:
        ends = [Bound(prefix + edge[1], edge[2]) if edge else whole for edge in (lower, upper)]
        if "desc" in orders:
            ends.reverse()
        return [Slice(ends[0], ends[1])]
    found = [Slice(whole, whole)]
    for edge, above in ((lower, True), (upper, False)):
        if edge is not None:
            found = _intersection(found, _mixed(prefix, edge, above), table)
    return found


def _mixed(prefix: ClusteringKey, edge: Edge, above: bool) -> list[Slice]:
    """`(a, b) > (x, y)` is `a > x`, or `a = x` and `b > y`; each is one slice whatever the column's direction."""
    columns, values, inclusive = edge
    found = []
    for at, column in enumerate(columns):
        beginning = prefix + values[:at]
        there, open_end = Bound((*beginning, values[at]), False), Bound(beginning, True)
        forward = above == (column.order != "desc")
        found.append(Slice(there, open_end) if forward else Slice(open_end, there))
    if inclusive:
        exact = Bound(prefix + values, True)
        found.append(Slice(exact, exact))
    return found


def _intersection(one: list[Slice], other: list[Slice], table: Table) -> list[Slice]:
    key = table.sort_key
    found = []
    for left in one:
        for right in other:
            start = max(left.start, right.start, key=lambda bound: start_position(bound, key))
            end = min(left.end, right.end, key=lambda bound: end_position(bound, key))
            if start_position(start, key) < end_position(end, key):
                found.append(Slice(start, end))
    return found


def in_storage_order(slices: list[Slice], table: Table) -> list[Slice]:
    """Sorted, without the empty ones."""
    key = table.sort_key
    placed = [(start_position(each.start, key), end_position(each.end, key), each) for each in slices]
    kept = [entry for entry in placed if entry[0] < entry[1]]
    if len(kept) > 1:
        kept.sort(key=lambda entry: entry[0])
    return [each for _, _, each in kept]
