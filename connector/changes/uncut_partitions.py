"""Partitions of a table as they came, in the order of their tokens: nobody cuts those that nothing happens to.

In: pages of rows as they are selected, what finds rows in bytes; what a partition has become since. Out: single
partitions, for who needs one; all that are left in one piece, with what they have become; or all of them, cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from connector.changes.batch import Row
from connector.changes.uncut import Scanner, UncutRows, bytes_of

#: What a row takes beside its bytes: where it begins, and where its partition does.
BYTES_OF_AN_UNCUT_ROW = 12


class UncutPartitions:
    """Those of one read. Partitions are known by their numbers here, and outside by their keys."""

    def __init__(self, scanner: Scanner, rows: UncutRows, keys: int) -> None:
        """``keys``: so many columns are the key of a partition."""
        self._scanner = scanner
        self._rows = rows
        self._keys = keys
        self._begin, self._end = 0, rows.batches
        self._changed: dict[int, Sequence[Row]] = {}
        self._numbers: dict[Row, int] | None = None

    @classmethod
    def of(cls, scanner: Scanner, pages: Sequence[Sequence[Row]], columns: int, keys: int) -> UncutPartitions:
        """Of pages that follow each other."""
        body = b"".join(map(_body, pages))
        return cls(scanner, _scanned(scanner, body, columns, sum(map(len, pages)), keys), keys)

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self._rows.body) + BYTES_OF_AN_UNCUT_ROW * len(self._rows)

    def __len__(self) -> int:
        return self._end - self._begin

    def __reversed__(self) -> Iterator[Row]:
        """Their keys, from the last one on."""
        return map(self._key, reversed(range(self._begin, self._end)))

    def __contains__(self, key: Row) -> bool:
        return self._number(key) is not None

    def __getitem__(self, key: Row) -> Sequence[Row]:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Row, rows: Sequence[Row]) -> None:
        """What has become of one of them: nothing, perhaps."""
        number = self._number(key)
        assert number is not None, "what was not read has no place"
        self._changed[number] = rows

    def __delitem__(self, key: Row) -> None:
        """The last one."""
        assert key == self._key(self._end - 1)
        self._end -= 1

    def get(self, key: Row) -> Sequence[Row] | None:
        number = self._number(key)
        return None if number is None else self._of(number)

    def forget(self, last: int) -> None:
        """All up to and with this number."""
        self._begin = last + 1

    def cut(self) -> dict[Row, list[Row]]:
        """All that are left, as objects."""
        return {self._key(number): list(self._of(number)) for number in range(self._begin, self._end)}

    def left(self) -> Left:
        """All that are left, without those of which nothing is."""
        changed = sorted(number for number in self._changed if number >= self._begin)
        if not changed:
            return Left(self._rows, self._keys, range(self._begin, self._end), self._begin)
        pieces: list[bytes] = []
        numbers: list[int] = []
        count, at = 0, self._begin
        for number in (*changed, self._end):
            if at < number:
                pieces.append(self._bytes(at, number))
                numbers += range(at, number)
                count += self._rows.firsts[number] - self._rows.firsts[at]
            if number < self._end and (rows := self._changed[number]):
                pieces += map(bytes_of, rows)
                numbers.append(number)
                count += len(rows)
            at = number + 1
        rows = _scanned(self._scanner, b"".join(pieces), self._rows.columns, count, self._keys)
        return Left(rows, self._keys, numbers, 0)

    def _of(self, number: int) -> Sequence[Row]:
        changed = self._changed.get(number)
        firsts = self._rows.firsts
        return self._rows[firsts[number] : firsts[number + 1]] if changed is None else changed

    def _bytes(self, begin: int, end: int) -> bytes:
        starts, firsts = self._rows.starts, self._rows.firsts
        return self._rows.body[starts[firsts[begin]] : starts[firsts[end]]]

    def _key(self, number: int) -> Row:
        return self._rows.cells(self._rows.firsts[number], self._keys)

    def _number(self, key: Row) -> int | None:
        if self._numbers is None:
            self._numbers = {self._key(number): number for number in range(self._begin, self._end)}
        number = self._numbers.get(key)
        return number if number is not None and self._begin <= number < self._end else None


class Left(Sequence[Row]):
    """The keys of partitions that are left. ``rows`` are theirs, from batch ``begin`` on; ``numbers`` is what they are
    known by."""

    def __init__(self, rows: UncutRows, keys: int, numbers: Sequence[int], begin: int) -> None:
        self.rows = rows
        self.numbers = numbers
        self.begin = begin
        self._keys = keys

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> Left: ...

    def __getitem__(self, at: int | slice) -> Row | Left:
        if isinstance(at, slice):
            begin = range(len(self.numbers))[at].start
            return Left(self.rows, self._keys, self.numbers[at], self.begin + begin)
        return self.rows.cells(self.rows.firsts[self.begin + range(len(self.numbers))[at]], self._keys)


def _body(rows: Sequence[Row]) -> bytes:
    if isinstance(rows, UncutRows):
        return rows.body[rows.starts[0] : rows.starts[len(rows)]]
    return b"".join(map(bytes_of, rows))


def _scanned(scanner: Scanner, body: bytes, columns: int, rows: int, keys: int) -> UncutRows:
    scanned = scanner.scan_selected(body, 0, columns, rows, keys)
    assert scanned is not None, "rows stay rows"
    return scanned
