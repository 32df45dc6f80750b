"""Partitions of a snapshot in bytes, one batch each, for whoever makes records of the bytes themselves.

In: partitions as they were selected or folded, the place where they stand. Out: a sequence of batches, each made only
when it is asked for; the plain ones are those of ``WholeRows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, c_int64
from itertools import accumulate
from struct import Struct
from typing import Any

from connector.changes.batch import Batch, Row
from connector.changes.change import TRUE, WHOLE_ROW, WHOLE_ROW_ASKED_FOR
from connector.changes.layout import LogLayout
from connector.changes.uncut import UncutBatches, UncutRows
from connector.changes.whole_rows import WholeRows

_NULL = b"\xff\xff\xff\xff"
_FIRST = b"\x00\x00\x00\x00"
_length = Struct(">i").pack

Partitions = Sequence[Sequence[Row]]


class WholeBatches(UncutBatches):
    """Without static columns, and lists of single elements (see `WholeRows.straight`); no cell has a TTL."""

    def __init__(
        self,
        layout: LogLayout,
        shape: WholeRows,
        place: tuple[bytes, bytes],
        asked_for: bool,
        partitions: Partitions,
        rows: UncutRows | None = None,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        """``place``: stream and time that they all have. ``rows``: of all partitions, if they are made already."""
        if rows is None:
            operation = WHOLE_ROW_ASKED_FOR if asked_for else WHOLE_ROW
            rows = _uncut((*place, _FIRST, operation, TRUE, TRUE), partitions, len(shape.columns))
        super().__init__(layout, rows, begin, end)
        self._shape = shape
        self._place = place
        self._asked_for = asked_for
        self._partitions = partitions

    def place(self, at: int) -> tuple[bytes, bytes]:
        return self._place

    def _part(self, begin: int, end: int) -> UncutBatches:
        return WholeBatches(
            self.layout, self._shape, self._place, self._asked_for, self._partitions, self.rows, begin, end
        )

    def _batch(self, number: int) -> Batch:
        rows = list(self._shape.of_partition(self._partitions[number], asked_for=self._asked_for))
        return Batch(self._shape.layout, *self._place, rows)


def _uncut(head: Row, partitions: Partitions, width: int) -> UncutRows:
    begin = _bytes_of(head)
    made = [begin + _bytes_of(row[:width]) for rows in partitions for row in rows]
    starts, firsts = accumulate(map(len, made), initial=0), accumulate(map(len, partitions), initial=0)

    def cut() -> Sequence[Row]:
        return [(*head, *row[:width]) for rows in partitions for row in rows]

    # As the kernel reads them.
    begins: Any = (c_int64 * (len(made) + 1))(*starts)
    ends: Any = (c_int32 * (len(partitions) + 1))(*firsts)
    return UncutRows(b"".join(made), len(head) + width, begins, ends, len(partitions), 0, cut)


def _bytes_of(row: Row) -> bytes:
    cells: list[Any] = []
    for cell in row:
        if cell is None:
            cells.append(_NULL)
        else:
            cells += (_length(len(cell)), cell)
    return b"".join(cells)
