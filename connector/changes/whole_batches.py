"""Partitions of a snapshot in bytes, one batch each, for whoever makes records of the bytes themselves.

In: partitions as they were selected or folded, the place where they stand. Out: a sequence of batches, each made only
when it is asked for; the plain ones are those of ``WholeRows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, c_int64
from itertools import accumulate, pairwise
from typing import Any

from connector.changes.batch import Batch, Row
from connector.changes.layout import LogLayout
from connector.changes.uncut import UncutBatches, UncutRows, bytes_of
from connector.changes.uncut_partitions import Left
from connector.changes.whole_rows import WholeRows

Partitions = Sequence[Sequence[Row]]


class WholeBatches(UncutBatches):
    def __init__(
        self,
        layout: LogLayout,
        shape: WholeRows,
        place: tuple[bytes, bytes],
        asked_for: bool,
        partitions: Partitions | None,
        *,
        statics: bool = True,
        at_s: int = 0,
        rows: UncutRows | None = None,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        """``place``: stream and time that they all have; ``statics``, ``at_s``: as of `WholeRows.of_partition`.
        ``rows``: of all partitions, with their head, if they are made already; without ``partitions`` they are as they
        were selected."""
        if rows is None:
            assert partitions is not None
            head = shape.straight_head(*place, asked_for)
            rows = _uncut(shape, head, partitions, statics, at_s, len(layout.columns))
        super().__init__(layout, rows, begin, end)
        self._shape = shape
        self._place = place
        self._asked_for = asked_for
        self._partitions = partitions
        self._statics = statics
        self._at_s = at_s

    @classmethod
    def as_selected(
        cls, layout: LogLayout, shape: WholeRows, place: tuple[bytes, bytes], asked_for: bool, left: Left
    ) -> WholeBatches:
        """Of rows that nobody has cut, and that stand in the log's shape as they were selected."""
        assert shape.flags_of_all is not None
        rows = left.rows.with_head((*shape.straight_head(*place, asked_for), *shape.flags_of_all))
        return cls(layout, shape, place, asked_for, None, rows=rows, begin=left.begin, end=left.begin + len(left))

    @property
    def counts(self) -> list[int]:
        """How many rows each has."""
        return [end - first for first, end in pairwise(self.rows.firsts[self.begin : self.end + 1])]

    def place(self, at: int) -> tuple[bytes, bytes]:
        return self._place

    def _part(self, begin: int, end: int) -> UncutBatches:
        return WholeBatches(
            self.layout,
            self._shape,
            self._place,
            self._asked_for,
            self._partitions,
            statics=self._statics,
            at_s=self._at_s,
            rows=self.rows,
            begin=begin,
            end=end,
        )

    def _batch(self, number: int) -> Batch:
        firsts = self.rows.firsts
        partition = (
            self.rows[firsts[number] : firsts[number + 1]] if self._partitions is None else self._partitions[number]
        )
        rows = list(self._shape.of_partition(partition, self._statics, self._asked_for, self._at_s))
        return Batch(self._shape.layout, *self._place, rows)


def _uncut(shape: WholeRows, head: Row, partitions: Partitions, statics: bool, at_s: int, width: int) -> UncutRows:
    if (flags := shape.flags_of_all) is not None:
        head = (*head, *flags)
        made = [bytes_of(row) for rows in partitions for row in rows]
        counts = map(len, partitions)
    else:
        straight = [[*shape.straight_rows(each, statics, at_s)] for each in partitions]
        made = [bytes_of(row) for rows in straight for row in rows]
        counts = map(len, straight)
    # As the kernel reads them.
    begins: Any = (c_int64 * (len(made) + 1))(*accumulate(map(len, made), initial=0))
    ends: Any = (c_int32 * (len(partitions) + 1))(*accumulate(counts, initial=0))
    return UncutRows(
        b"".join(made), width - len(head), begins, ends, len(partitions), 0, None, bytes_of(head), len(head)
    )
