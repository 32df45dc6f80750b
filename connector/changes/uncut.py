"""Pages whose rows nobody has cut yet: their bytes, and where in them rows begin and batches end.

In: what a scan of a page found. Out: rows and batches as sequences, each made when it is asked for. Whoever can use the
bytes themselves needs none of them. And back: a row as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Protocol, overload

from connector.changes.assembler import BatchAssembler
from connector.changes.batch import Batch, Row
from connector.changes.layout import LogLayout

_unpack_length = Struct(">i").unpack_from

#: Rows that are cut one by one before all of a page are cut at once, which is quicker for many.
_FEW = 200


class Scanner(Protocol):
    """Whoever finds out where rows begin in bytes. Called in any thread."""

    def __hash__(self) -> int: ...

    def scan(
        self, body: bytes, at: int, columns: Sequence[str], rows: int, cut: Callable[[], Sequence[Row]]
    ) -> UncutRows | None:
        """Rows of a log, from where they begin in a body, and what cuts them; None if they are to be cut."""

    def scan_selected(
        self, body: bytes, at: int, columns: int, rows: int, keys: int, cut: Callable[[], Sequence[Row]] | None = None
    ) -> UncutRows | None:
        """Rows of a table: each partition, the key of which are the first ``keys`` columns, is a batch."""


class UncutRows(Sequence[Row]):
    """The rows of one page.

    ``starts``: where in ``body`` each begins, and where the last ends. ``firsts``: the first row of each batch that is
    known to be complete, and the one behind the last of them; of the batches of rows from there on the page does not
    tell. ``turns``: how often a batch has another stream than the one before. ``head``: ``headed`` cells that stand in
    front of those of each row, for whoever reads the bytes.
    """

    def __init__(
        self,
        body: bytes,
        columns: int,
        starts: Sequence[int],
        firsts: Sequence[int],
        batches: int,
        turns: int,
        cut: Callable[[], Sequence[Row]] | None,
        head: bytes = b"",
        headed: int = 0,
    ) -> None:
        """``cut``: all of them, which is quicker for many than one by one."""
        self.body = body
        self.columns = columns
        self.starts = starts
        self.firsts = firsts
        self.batches = batches
        self.turns = turns
        self.head = head
        self.headed = headed
        self._cut = cut
        self._rows: Sequence[Row] | None = None
        self._by_hand = 0

    def with_head(self, head: Row) -> UncutRows:
        """The same rows, in front of each of which it stands."""
        return UncutRows(
            self.body, self.columns, self.starts, self.firsts, self.batches, self.turns, None, bytes_of(head), len(head)
        )

    @property
    def complete(self) -> int:
        """So many rows, from the first, belong to complete batches."""
        return self.firsts[self.batches]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        numbers = range(len(self))[at]
        several = [numbers] if isinstance(numbers, int) else numbers
        self._by_hand += len(several)
        if self._rows is not None or (self._cut is not None and self._by_hand > _FEW):
            return self._all()[at]
        rows = [self.cells(number, self.columns) for number in several]
        return rows if isinstance(at, slice) else rows[0]

    def _all(self) -> Sequence[Row]:
        if self._rows is None:
            if self._cut is None:
                return [self.cells(number, self.columns) for number in range(len(self))]
            self._rows, self._cut = self._cut(), None
        return self._rows

    def cells(self, number: int, count: int) -> Row:
        """The first cells of a row."""
        cells: list[bytes | None] = []
        at, body = self.starts[number], self.body
        for _ in range(count):
            (length,) = _unpack_length(body, at)
            at += 4
            if length < 0:
                cells.append(None)
            else:
                cells.append(body[at : at + length])
                at += length
        return tuple(cells)


class UncutBatches(Sequence[Batch]):
    """Complete batches of one page; a part of them is another one of these."""

    def __init__(self, layout: LogLayout, rows: UncutRows, begin: int = 0, end: int | None = None) -> None:
        self.layout = layout
        self.rows = rows
        self.begin = begin
        self.end = rows.batches if end is None else end

    def __len__(self) -> int:
        return self.end - self.begin

    @overload
    def __getitem__(self, at: int) -> Batch: ...

    @overload
    def __getitem__(self, at: slice) -> UncutBatches: ...

    def __getitem__(self, at: int | slice) -> Batch | UncutBatches:
        numbers = range(self.begin, self.end)[at]
        if isinstance(numbers, int):
            return self._batch(numbers)
        assert numbers.step == 1, "batches are delivered in their order"
        return self._part(numbers.start, max(numbers.start, numbers.stop))

    def newest(self) -> dict[bytes, bytes]:
        """Of each stream the time of its last batch."""
        numbers = range(self.begin if self.rows.turns else max(self.begin, self.end - 1), self.end)
        return dict(self.place(number - self.begin) for number in numbers)

    def place(self, at: int) -> tuple[bytes, bytes]:
        """Stream and time of a batch."""
        number = self.begin + at
        if (self.layout.stream_id, self.layout.time) != (0, 1):
            batch = self._batch(number)
            return batch.stream_id, batch.time
        # As in every log: nothing more of the row has to be cut.
        body, at = self.rows.body, self.rows.starts[self.rows.firsts[number]] + 4
        end = at + _unpack_length(body, at - 4)[0]
        return body[at:end], body[end + 4 : end + 20]

    def _part(self, begin: int, end: int) -> UncutBatches:
        return UncutBatches(self.layout, self.rows, begin, end)

    def _batch(self, number: int) -> Batch:
        rows = self.rows[self.rows.firsts[number] : self.rows.firsts[number + 1]]
        # Sorts them, and looks whether they can be.
        assembler = BatchAssembler()
        (batch,) = assembler.feed(self.layout, rows) + assembler.finish()
        return batch


_NULL = b"\xff\xff\xff\xff"
_length = Struct(">i").pack
_MANY = 1024
_LENGTHS = [_length(count) for count in range(_MANY)]


def bytes_of(row: Sequence[bytes | None]) -> bytes:
    """A row as it stands in a page: once for each cell of a snapshot that is not as it came."""
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


def newest_of(batches: Sequence[Batch]) -> dict[bytes, bytes]:
    """Of each stream the time of its last batch, in the order in which they are delivered."""
    return batches.newest() if isinstance(batches, UncutBatches) else {each.stream_id: each.time for each in batches}
