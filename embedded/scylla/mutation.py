"""Writes as values: cells, rows, range tombstones and the mutation of one partition.

In: built by statement execution (and by the CDC room, for log rows). Out: handed to the CDC room and then to
a store. Values and keys are serialised bytes throughout; columns are named. Timestamps are microseconds, ttl
seconds, expiry seconds since the epoch on the server's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from embedded.scylla.schema import Table, partition_key_values

ClusteringKey = tuple[bytes, ...]


class Cell(NamedTuple):
    """One value with its write time. `value` None is a tombstone; `ttl` 0 means that it does not expire."""

    timestamp: int
    value: bytes | None
    ttl: int = 0
    expiry: int = 0


class Marker(NamedTuple):
    """The row marker that INSERT writes: the row exists even without any value."""

    timestamp: int
    ttl: int = 0
    expiry: int = 0


@dataclass(slots=True)
class CollectionMutation:
    """A write to a multi-cell column.

    `tombstone` deletes what was written at or before it. Cells are keyed by the serialised map key, set element (their
    value is then empty), timeuuid of the list position, or two-byte field index of the user type.
    """

    tombstone: int | None = None
    cells: dict[bytes, Cell] = field(default_factory=dict)


Cells = dict[str, Cell | CollectionMutation]


@dataclass(slots=True)
class RowMutation:
    """`deletion` is the timestamp of a row tombstone."""

    marker: Marker | None = None
    deletion: int | None = None
    cells: Cells = field(default_factory=dict)


class Bound(NamedTuple):
    """One end of a clustering range: a prefix of the clustering key, and whether rows with that prefix are inside."""

    prefix: ClusteringKey
    inclusive: bool


UNBOUNDED = Bound((), True)


class Slice(NamedTuple):
    """Rows between two bounds in *storage* order (a DESC column's greater value comes first)."""

    start: Bound
    end: Bound


FULL_SLICE = Slice(UNBOUNDED, UNBOUNDED)


class RangeTombstone(NamedTuple):
    """A deleted slice; bounds in storage order."""

    start: Bound
    end: Bound
    timestamp: int


class _Top:
    """Sorts after everything: appended to a prefix it marks the place behind all rows with that prefix."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self


TOP: Any = _Top()
SortKey = tuple[Any, ...]


def start_position(bound: Bound, sort_key: Callable[[ClusteringKey], SortKey]) -> SortKey:
    """Where a range that starts with this bound begins among sort keys."""
    key = sort_key(bound.prefix)
    return key if bound.inclusive else (*key, TOP)


def end_position(bound: Bound, sort_key: Callable[[ClusteringKey], SortKey]) -> SortKey:
    """Where a range that ends with this bound ends (exclusively) among sort keys."""
    key = sort_key(bound.prefix)
    return (*key, TOP) if bound.inclusive else key


@dataclass(slots=True)
class PartitionMutation:
    """Everything one request writes to one partition of one table."""

    table: Table
    key: bytes
    static: Cells = field(default_factory=dict)
    rows: dict[ClusteringKey, RowMutation] = field(default_factory=dict)
    ranges: list[RangeTombstone] = field(default_factory=list)
    deletion: int | None = None
    _token: int | None = None

    @property
    def token(self) -> int:
        if self._token is None:
            self._token = self.table.token_of(self.key)
        return self._token

    @property
    def key_values(self) -> tuple[bytes, ...]:
        """The partition key's columns."""
        return partition_key_values(self.table, self.key)

    @property
    def empty(self) -> bool:
        """Nothing is written at all, so that nothing is logged either."""
        return not self.rows and not self.static and not self.ranges and self.deletion is None

    def row(self, clustering: ClusteringKey) -> RowMutation:
        """The row's mutation, made if there is none yet."""
        found = self.rows.get(clustering)
        if found is None:
            found = self.rows[clustering] = RowMutation()
        return found
