"""Whole rows of a table in the shape of its log: what a snapshot shows of a partition, as rows of one batch.

In: a description, rows as a SELECT gives them. Out: a layout, and rows in it that say of each column what it holds,
null included. Static columns have a row of their own, without clustering key, as in the log.

Where times are asked for, a selected row has, behind its columns, the second in which each of its cells ends, and then
the microsecond in which each was written. No row of a log could say that of every cell: a whole row has the cells
`ENDS` and `WRITTEN` for it, as headers show them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from connector.changes.batch import Row
from connector.changes.change import ENDS, SNAPSHOTS, TRUE, WHOLE_ROW, WHOLE_ROW_ASKED_FOR, WRITTEN
from connector.changes.description import Column, TableDescription
from connector.changes.layout import DELETED, DELETED_ELEMENTS, ColumnPlace, LogLayout, layout_of
from connector.timeuuid import time_uuid
from connector.values import ListType, is_multi_cell, order_key, split_cells

_ENVELOPE: Final = ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$ttl", "cdc$end_of_batch")
_STRAIGHT_HEAD: Final = ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$end_of_batch")
#: Whether all regular columns are written, and whether all static ones are.
_FLAGS: Final = (DELETED, f"{DELETED}static")
_count = struct.Struct(">i").pack
_time = struct.Struct(">q")

# Elements that are put in front of a list get times mirrored at 2010, those that are appended get the time.
_MIDDLE: Final = 1_262_304_000 * 10_000_000


def selected_columns(description: TableDescription) -> tuple[Column, ...]:
    """What is read of a row, in this order: partition key, clustering key, all others."""
    others = sorted((c for c in description.columns if not c.is_key), key=lambda column: column.name.encode())
    return (*description.partition_key, *description.clustering_key, *others)


class WholeRows:
    """Of one version of a table. ``dated``: with the times of cells; ``timed``: the columns that have some, in their
    order."""

    def __init__(self, description: TableDescription, dated: bool = False) -> None:
        self.description = description
        self.columns = selected_columns(description)
        self.width = len(description.partition_key)
        self.keys = self.width + len(description.clustering_key)
        others = range(self.keys, len(self.columns))
        self.timed = [at for at in others if dated and not is_multi_cell(self.columns[at].type)]
        names = [*_ENVELOPE]
        for column in self.columns:
            names.append(column.name)
            if not column.is_key:
                names.append(DELETED + column.name)
                if is_multi_cell(column.type):
                    names.append(DELETED_ELEMENTS + column.name)
        if self.timed:
            names += (ENDS, WRITTEN)
        # Types only count for columns that the description lacks.
        self.layout: LogLayout = layout_of(description, tuple((name, "") for name in names))
        by_name = {place.name: place for place in self.layout.places}
        places = [by_name[column.name] for column in self.columns]
        self.statics = [at for at in others if self.columns[at].kind == "static"]
        self._orders = [(order_key(column.type), column.order == "desc") for column in description.clustering_key]
        self.regulars = [at for at in others if self.columns[at].kind == "regular"]
        self._in_json = {at: json.dumps(self.columns[at].name, ensure_ascii=False) for at in self.timed}
        #: Behind the columns of a selected row.
        self._ending = slice(len(self.columns), len(self.columns) + len(self.timed))
        self._ends = dict(zip(self.timed, range(self._ending.start, self._ending.stop), strict=True))
        self._written = {at: place + len(self.timed) for at, place in self._ends.items()}
        #: Elements of these have keys in the log, and none in a table.
        self.lists = [at for at in others if _has_hidden_keys(self.columns[at])]
        self._static_steps = _steps(places, self.width, self.statics)
        self._regular_steps = _steps(places, self.keys, self.regulars)
        #: Where rows stand in the log's shape as they were selected: the flags in front of each, behind the head.
        self.flags_of_all: Row | None = None if self.statics or self.lists or self.timed else (TRUE, None)

    def straight_layout(self, asked_for: bool) -> LogLayout:
        """Of rows that are a head, which all have in common, and what was selected: `straight_rows`. One flag tells of
        all regular columns that a null is there, another one of all static columns: in a row of those that have it,
        none is untouched."""
        names = [*_STRAIGHT_HEAD, *_FLAGS]
        first = len(names)
        flags = {kind: names.index(flag) for kind, flag in zip(("regular", "static"), _FLAGS, strict=True)}
        places = [ColumnPlace(column, first + at, flags.get(column.kind)) for at, column in enumerate(self.columns)]
        names += [column.name for column in self.columns]
        if self.timed:
            names += (ENDS, WRITTEN)
        operation = WHOLE_ROW_ASKED_FOR if asked_for else WHOLE_ROW
        return replace(
            self.layout,
            columns=tuple(names),
            ttl=-1,
            places=tuple(sorted(places, key=lambda place: place.name.encode())),
            snapshot=SNAPSHOTS[operation],
            stream_id=names.index("cdc$stream_id"),
            time=names.index("cdc$time"),
            batch_seq_no=names.index("cdc$batch_seq_no"),
            operation=names.index("cdc$operation"),
            end_of_batch=names.index("cdc$end_of_batch"),
        )

    def straight_head(self, stream: bytes, time: bytes, asked_for: bool) -> Row:
        """What stands in front of the flags."""
        return (stream, time, b"\x00\x00\x00\x00", WHOLE_ROW_ASKED_FOR if asked_for else WHOLE_ROW, TRUE)

    def straight_rows(self, rows: Sequence[Row], statics: bool, at_s: int) -> Iterator[Sequence[bytes | None]]:
        """What follows the head in the rows of a partition: those of `of_partition`, their cells where they were."""
        width = len(self.columns)
        if (flags := self.flags_of_all) is not None:
            for row in rows:
                yield (*flags, *row)
            return
        if statics and self._has_statics(rows):
            nothing: list[bytes | None] = [None] * width
            nothing[: self.width] = rows[0][: self.width]
            yield self._straight(nothing, rows[0], self.statics, (None, TRUE), at_s)
        for row in rows:
            if not self._only_statics(row):
                cells = list(row[:width])
                for at in self.statics:
                    cells[at] = None
                yield self._straight(cells, row, self.regulars, (TRUE, None), at_s)

    def _straight(
        self, cells: list[bytes | None], row: Row, others: Sequence[int], flags: Row, at_s: int
    ) -> Sequence[bytes | None]:
        if others is self.statics:
            for at in others:
                cells[at] = row[at]
        for at in self.lists:
            if (cell := cells[at]) is not None:
                cells[at] = with_keys(cell)
        return (*flags, *cells, *(self._times(row, others, at_s) if self.timed else ()))

    def of_partition(
        self, rows: Sequence[Row], statics: bool = True, asked_for: bool = False, at_s: int = 0
    ) -> Iterator[Row]:
        """What the log would have to say of a partition, given its rows as they are selected; without ``statics``, of
        the rest of one; ``asked_for``: by somebody; ``at_s``: the second from which on TTLs count."""
        operation = WHOLE_ROW_ASKED_FOR if asked_for else WHOLE_ROW
        if statics and self._has_statics(rows):
            yield self._row(operation, rows[0], self._static_steps, at_s)
        for row in rows:
            if not self._only_statics(row):
                yield self._row(operation, row, self._regular_steps, at_s)

    def end_of(self, row: Row, at: int) -> int | None:
        """The second in which a cell of a selected row ends."""
        place = self._ends.get(at)
        raw = None if place is None else row[place]
        return None if raw is None else int(_time.unpack(raw)[0])

    def written_at(self, row: Row, at: int) -> int | None:
        """The microsecond in which a cell of a selected row was written."""
        place = self._written.get(at)
        raw = None if place is None else row[place]
        return None if raw is None else int(_time.unpack(raw)[0])

    def with_ends(self, row: Row, now_s: int) -> Row:
        """A row as it was selected at a second, behind whose columns stand what is left of the timed ones."""
        left = (None if raw is None else _time.pack(now_s + int.from_bytes(raw, "big")) for raw in row[self._ending])
        return (*row[: self._ending.start], *left, *row[self._ending.stop :])

    def ends_by(self, row: Row, second: int) -> bool:
        """Whether a cell of it is no more by then."""
        return any(raw is not None and int(_time.unpack(raw)[0]) <= second for raw in row[self._ending])

    def has_end(self, row: Row) -> bool:
        """Whether a cell of it has a TTL."""
        return any(raw is not None for raw in row[self._ending])

    def times(self, ends: Mapping[int, int], written: Mapping[int, int]) -> Row:
        """What stands behind the columns of a row whose cells end in these seconds, and were written then."""
        told = (times.get(at) for times in (ends, written) for at in self.timed)
        return tuple(None if time is None else _time.pack(time) for time in told)

    def is_behind(self, row: Row, clustering: Sequence[bytes | None]) -> bool:
        """In the order of storage. A row of static columns alone is in front of all."""
        for cell, other, (order, descends) in zip(row[self.width : self.keys], clustering, self._orders, strict=True):
            if cell is None or other is None:
                return other is None and cell is not None
            one, two = order(cell), order(other)
            if one != two:
                return bool((one > two) != descends)
        return False

    def _has_statics(self, rows: Sequence[Row]) -> bool:
        return bool(self.statics and rows) and any(rows[0][at] is not None for at in self.statics)

    def _only_statics(self, row: Row) -> bool:
        return self.keys > self.width and row[self.width] is None

    def _row(self, operation: bytes, cells: Row, steps: _Steps, at_s: int) -> Row:
        row: list[bytes | None] = [None] * len(self.layout.columns)
        row[self.layout.operation] = operation
        row[self.layout.batch_seq_no] = b"\x00\x00\x00\x00"
        row[self.layout.end_of_batch] = TRUE
        for at, value in steps.keys:
            row[value] = cells[at]
        for at, value, deleted, is_whole, is_list in steps.others:
            cell = cells[at]
            if cell is None or is_whole:
                # A null has to be told from what is untouched; a collection is there as a whole.
                row[deleted] = TRUE
            row[value] = with_keys(cell) if is_list and cell is not None else cell
        if self.timed:
            row[-2:] = self._times(cells, steps.columns, at_s)
        return tuple(row)

    def _times(self, row: Row, others: Sequence[int], at_s: int) -> tuple[bytes | None, bytes | None]:
        """What is left of its cells, and when they were written, as headers show it."""
        left: list[str] = []
        if self.has_end(row):
            left = [f"{self._in_json[at]}:{end - at_s}" for at in others if (end := self.end_of(row, at)) is not None]
        written = [f"{self._in_json[at]}:{us}" for at in others if (us := self.written_at(row, at)) is not None]
        return _document(left), _document(written)


def _document(parts: Sequence[str]) -> bytes | None:
    return f"{{{','.join(parts)}}}".encode() if parts else None


def _has_hidden_keys(column: Column) -> bool:
    return is_multi_cell(column.type) and isinstance(column.type, ListType)


@lru_cache(maxsize=256)
def straight_layout(description: TableDescription, asked_for: bool, dated: bool = False) -> LogLayout:
    """See `WholeRows.straight_layout`."""
    return whole_rows(description, dated).straight_layout(asked_for)


@lru_cache(maxsize=256)
def whole_rows(description: TableDescription, dated: bool = False) -> WholeRows:
    return WholeRows(description, dated)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What becomes of selected cells in a row of the log. Of each of the ``columns``, which are no keys: where it is,
    where it goes, where its flag is, whether it is a collection, and one whose elements have hidden keys."""

    keys: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, int, int, bool, bool], ...]
    columns: tuple[int, ...]


def _steps(places: Sequence[ColumnPlace], keys: int, others: Sequence[int]) -> _Steps:
    written = []
    for at in others:
        place = places[at]
        assert place.value is not None and place.deleted is not None
        column = place.column
        written.append((at, place.value, place.deleted, is_multi_cell(column.type), _has_hidden_keys(column)))
    # The log has all keys of its table.
    return _Steps(tuple((at, places[at].value or 0) for at in range(keys)), tuple(written), tuple(others))


def with_keys(cell: bytes) -> bytes:
    """A list of a row as the log has it. No SELECT tells the keys of its elements: they get keys in their order, behind
    those of whatever will be put in front of the list, and before those of what will be appended."""
    parts, at = [cell[:4]], 4
    for number, element in enumerate(split_cells(cell)):
        end = at + 4 + len(element or b"")
        parts += (_key(number), cell[at:end])
        at = end
    return b"".join(parts)


@lru_cache(maxsize=1024)
def _key(number: int) -> bytes:
    return _count(16) + time_uuid(_MIDDLE + number, 0)
