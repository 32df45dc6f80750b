"""Partitions of a snapshot in bytes, one batch each, for whoever makes records of the bytes themselves.

In: partitions as they were selected or folded, the place where they stand. Out: a sequence of batches, each made only
when it is asked for; the plain ones are those of ``WholeRows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, c_int64
from itertools import accumulate, pairwise
from struct import Struct
from typing import Any

from connector.changes.batch import Batch, Row
from connector.changes.layout import LogLayout
from connector.changes.uncut import UncutBatches, UncutRows
from connector.changes.whole_rows import WholeRows

_NULL = b"\xff\xff\xff\xff"
_length = Struct(">i").pack
_MANY = 1024
_LENGTHS = [_length(count) for count in range(_MANY)]

Partitions = Sequence[Sequence[Row]]


class WholeBatches(UncutBatches):
    def __init__(
        self,
        layout: LogLayout,
        shape: WholeRows,
        place: tuple[bytes, bytes],
        asked_for: bool,
        partitions: Partitions,
        statics: bool = True,
        at_s: int = 0,
        rows: UncutRows | None = None,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        """``place``: stream and time that they all have; ``statics``, ``at_s``: as of `WholeRows.of_partition`.
        ``rows``: of all partitions, if they are made already."""
        if rows is None:
            head = shape.straight_head(*place, asked_for)
            rows = _uncut(shape, head, partitions, statics, at_s, len(layout.columns))
        super().__init__(layout, rows, begin, end)
        self._shape = shape
        self._place = place
        self._asked_for = asked_for
        self._partitions = partitions
        self._statics = statics
        self._at_s = at_s

    @property
    def counts(self) -> list[int]:
        """How many rows each has."""
        return [end - first for first, end in pairwise(self.rows.firsts[self.begin : self.end + 1])]

    def place(self, at: int) -> tuple[bytes, bytes]:
        return self._place

    def _part(self, begin: int, end: int) -> UncutBatches:
        return WholeBatches(
            self.layout, self._shape, self._place, self._asked_for, self._partitions, self._statics, self._at_s,
            self.rows, begin, end,
        )  # fmt: skip

    def _batch(self, number: int) -> Batch:
        partition = self._partitions[number]
        rows = list(self._shape.of_partition(partition, self._statics, self._asked_for, self._at_s))
        return Batch(self._shape.layout, *self._place, rows)


def _uncut(shape: WholeRows, head: Row, partitions: Partitions, statics: bool, at_s: int, width: int) -> UncutRows:
    begin = _bytes_of(head)
    if (flags := shape.flags_of_all) is not None:
        begin += _bytes_of(flags)
        made = [begin + _bytes_of(row) for rows in partitions for row in rows]
        counts = map(len, partitions)
    else:
        straight = [[*shape.straight_rows(each, statics, at_s)] for each in partitions]
        made = [begin + _bytes_of(row) for rows in straight for row in rows]
        counts = map(len, straight)

    def cut() -> Sequence[Row]:
        return [(*head, *row) for rows in partitions for row in shape.straight_rows(rows, statics, at_s)]

    # As the kernel reads them.
    begins: Any = (c_int64 * (len(made) + 1))(*accumulate(map(len, made), initial=0))
    ends: Any = (c_int32 * (len(partitions) + 1))(*accumulate(counts, initial=0))
    return UncutRows(b"".join(made), width, begins, ends, len(partitions), 0, cut)


def _bytes_of(row: Sequence[bytes | None]) -> bytes:
    """Once for each cell of a snapshot: most of what a row costs."""
    cells: list[bytes] = []
    add = cells.append
    for cell in row:
        if cell is None:
            add(_NULL)
        else:
            count = len(cell)
            add(_LENGTHS[count] if count < _MANY else _length(count))
            add(cell)
    return b"".join(cells)
