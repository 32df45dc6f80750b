"""What a table's storage must offer, whatever keeps the rows.

In: mutations, and reads at a given second of the server's clock. Out: live rows with their cells, in storage
order, and partitions in ring order. `rowstore.py` keeps cells in memory; the CDC room keeps log rows encoded;
virtual tables compute their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from embedded.scylla.mutation import Cell, ClusteringKey, Marker, PartitionMutation, Slice
from embedded.scylla.schema import Table

LiveCells = Mapping[str, Cell | list[tuple[bytes, Cell]]]
"""Column → its live cell, or the live elements of a multi-cell column in the order of their keys (never empty)."""

RingPosition = tuple[int, bytes]
"""Token and serialised partition key: partitions lie in this order. `(token, key + b"\\0")` is just behind a key."""


class LiveRow(NamedTuple):
    """A row that exists: it has a live marker or a live cell."""

    key: ClusteringKey
    cells: LiveCells
    marker: Marker | None = None


class PartitionView(Protocol):
    """One partition, read at one time. It may turn out to hold nothing that lives."""

    @property
    def key(self) -> bytes: ...

    @property
    def token(self) -> int: ...

    def static(self) -> LiveCells: ...

    def rows(self, slices: Sequence[Slice], reverse: bool = False) -> Iterator[LiveRow]:
        """Live rows of the slices (which do not overlap and are in storage order), backwards if `reverse`."""
        ...


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page of `SELECT columns WHERE partition key = / IN … [AND first clustering column in lower..upper]`.

    `keys` are to be answered in this order. `position` is what the previous page gave back, None for the first page.
    At most `max_rows` rows are wanted. Rows come with ascending clustering key.
    """

    keys: tuple[bytes, ...]
    columns: tuple[str, ...]
    lower: bytes | None
    lower_inclusive: bool
    upper: bytes | None
    upper_inclusive: bool
    max_rows: int
    position: bytes | None
    now: int


@dataclass(frozen=True, slots=True)
class Page:
    """The answer: `body` as on the wire, and where to go on, None when everything has been given."""

    body: bytes
    row_count: int
    position: bytes | None


class TableStore(Protocol):
    """The four verbs of a table's storage, and one short cut."""

    def apply(self, mutation: PartitionMutation) -> None:
        """Merge a mutation into what is there. Never fails."""
        ...

    def partition(self, key: bytes, now: int) -> PartitionView | None:
        """The partition as it is at this second, or None when nothing was ever written to it."""
        ...

    def partitions(self, start: RingPosition, now: int) -> Iterator[PartitionView]:
        """Partitions at or behind this place of the ring, in its order."""
        ...

    def alter(self, table: Table, dropped: Collection[str]) -> None:
        """The table is now this one; forget the values of the dropped columns."""
        ...

    def truncate(self) -> None:
        """Forget everything."""
        ...

    def fast_page(self, request: PageRequest) -> Page | None:
        """A page that is already encoded, or None when the store has no quicker way than `partition`."""
        ...
