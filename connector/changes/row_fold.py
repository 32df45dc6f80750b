"""A partition's rows, brought from when they were read to a later moment by the changes since.

In: rows as they were selected, and every change of their partition that came between, in order. Out: the rows of that
moment, of those that were there when they were read; or `Doubtful`, where a SELECT does not tell enough.

Each change is newer than whatever the rows hold without it, so that applying all of them in order is right whether or
not the rows were read before or behind them: what any change touched is as the last one left it. No write times are
needed for it but those of the changes, which count where several have the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from connector.changes.batch import Batch, Row
from connector.changes.change import TRUE, Change
from connector.changes.layout import ColumnPlace
from connector.changes.matching import changes_of
from connector.changes.whole_rows import WholeRows
from connector.timeuuid import time_key
from connector.values import (
    ListType,
    MapType,
    MultiCellType,
    SetType,
    UserType,
    is_multi_cell,
    order_key,
    split_cells,
    split_fields,
)

_count = struct.Struct(">i").pack
_BEFORE = -(1 << 63)
_SECOND = 1_000_000

Clustering = tuple[bytes | None, ...]


class Doubtful(Exception):
    """What was read and what came since do not tell what the row is. Read it again."""


@dataclass(slots=True)
class _Cell:
    """``at``: when a change wrote it; ``until``: when its time to live ends; ``written``: when, if anybody told."""

    value: bytes | None
    at: int = _BEFORE
    until: int | None = None
    written: int | None = None


@dataclass(slots=True)
class _Elements:
    """A collection: cells by the raw keys of its elements; None keeps the removed apart from those never there.
    ``unknown``: a list as it was read, whose elements have no keys here; ``doubtful``: single elements of it have
    changed since, so that it is neither as it was read, nor known."""

    cells: dict[bytes, _Cell] = field(default_factory=dict)
    unknown: bytes | None = None
    doubtful: bool = False


@dataclass(slots=True)
class _Row:
    """``marker``: whether the row lives without any value; None: that is not known. ``untold``: when a change wrote
    what the log does not tell."""

    cells: dict[int, _Cell | _Elements]
    marker: bool | None
    marked: int = _BEFORE
    marker_until: int | None = None
    deleted: int = _BEFORE
    untold: int = _BEFORE


def brought_to(upto_us: int, shape: WholeRows, rows: Sequence[Row], batches: Iterable[Batch]) -> list[Row]:
    """The rows as they are when everything before ``upto_us`` has happened. Raises `Doubtful`."""
    folded = FoldedPartition(shape, rows)
    for batch in batches:
        folded.apply(batch)
    return folded.rows(upto_us)


class FoldedPartition:
    """A partition as it was read, brought forward batch by batch: it takes no more memory with every change."""

    def __init__(self, shape: WholeRows, rows: Sequence[Row]) -> None:
        self._shape = shape
        self._key = rows[0][: shape.width]
        self._columns = {column.name: at for at, column in enumerate(shape.columns)}
        self._dropped = {each.name: each.dropped_us for each in shape.description.dropped}
        self._orders = [(order_key(column.type), column.order == "desc") for column in shape.description.clustering_key]
        self._static = _Row({at: self._read(at, rows[0]) for at in shape.statics}, marker=False)
        self._rows: dict[Clustering, _Row] = {}
        for row in rows:
            if shape.keys > shape.width and row[shape.width] is None:
                continue
            lives = any(row[at] is not None for at in shape.regulars)
            cells = {at: self._read(at, row) for at in shape.regulars}
            self._rows[row[shape.width : shape.keys]] = _Row(cells, marker=None if lives else True)

    def _read(self, at: int, row: Row) -> _Cell | _Elements:
        type_, raw = self._shape.columns[at].type, row[at]
        if not is_multi_cell(type_):
            end = self._shape.end_of(row, at)
            until = None if end is None else end * _SECOND
            return _Cell(raw, until=until, written=self._shape.written_at(row, at))
        if isinstance(type_, ListType):
            return _Elements(unknown=raw)
        return _Elements({key: _Cell(value) for key, value in _entries(type_, raw)})

    # -- changes ---------------------------------------------------------------------------------------------

    def apply(self, batch: Batch) -> None:
        """The next one of its partition."""
        for change in changes_of(batch):
            self._apply(change)

    def learn(self, older: FoldedPartition) -> None:
        """Take from a fold of an earlier read what no SELECT tells and that one knows by now. The same changes are
        applied to both, to the last. A row that was not there then has all that it holds from changes, and no part in
        this snapshot."""
        self._rows = {key: row for key, row in self._rows.items() if key in older._rows}
        for key, row in self._rows.items():
            known = older._rows[key]
            if row.marker is None and known.marker is not None:
                row.marker, row.marked, row.marker_until = known.marker, known.marked, known.marker_until
            _learn_lists(row, known)
        _learn_lists(self._static, older._static)

    def rows(self, upto_us: int) -> list[Row]:
        """The rows as of a time. Raises `Doubtful`."""
        found = []
        if any(row.untold > _BEFORE for row in (self._static, *self._rows.values())):
            raise Doubtful("a change with its keys alone does not tell what it wrote")
        statics = {at: self._shown(at, cell, upto_us) for at, cell in self._static.cells.items()}
        for clustering, row in self._rows.items():
            cells = {at: self._shown(at, cell, upto_us) for at, cell in row.cells.items()}
            if self._lives(row, cells, upto_us):
                found.append(self._selected(clustering, cells | statics, row))
        if not found and any(cell is not None for cell in statics.values()):
            nothing: Clustering = (None,) * (self._shape.keys - self._shape.width)
            found.append(self._selected(nothing, statics, self._static))
        return found

    def _apply(self, change: Change) -> None:
        layout, us = change.batch.layout, change.timestamp_us
        clustering = tuple(change.row[place.value or 0] for place in layout.clustering_key)
        if change.kind == "partition":
            _delete(self._static, us)
            for row in self._rows.values():
                _delete(row, us)
        elif change.kind == "range":
            for key, row in self._rows.items():
                if self._within(key, change):
                    _delete(row, us)
        elif change.kind == "d":
            if clustering in self._rows:
                _delete(self._rows[clustering], us)
        elif clustering and clustering[0] is None:
            self._write(self._static, change)
        elif clustering in self._rows:
            row = self._rows[clustering]
            if change.kind == "c" and us > row.deleted:
                until = _until(change)
                if us > row.marked or _rank(b"", until) >= _rank(b"", row.marker_until):
                    row.marker, row.marked, row.marker_until = True, us, until
            self._write(row, change)

    def _write(self, row: _Row, change: Change) -> None:
        us, until, dead = change.timestamp_us, _until(change), change.timestamp_us <= row.deleted
        if not dead and row.cells and _tells_nothing(change):
            row.untold = us
        for place in change.batch.layout.places:
            at = self._columns.get(place.name)
            if at is None or at not in row.cells:
                continue
            # Logs of nodes that have not heard of its end show what a former column of that name was given.
            if us <= self._dropped.get(place.name, _BEFORE):
                continue
            cell, raw = row.cells[at], None if place.value is None else change.row[place.value]
            gone = place.deleted is not None and change.row[place.deleted] == TRUE
            if isinstance(cell, _Elements):
                removed = None if place.deleted_elements is None else change.row[place.deleted_elements]
                if raw is not None or removed is not None or gone:
                    self._write_elements(cell, place, raw, removed, gone, (us, until, dead))
            elif raw is not None or gone:
                _put(cell, None if dead else raw, us, until)

    def _write_elements(
        self,
        cell: _Elements,
        place: ColumnPlace,
        raw: bytes | None,
        removed: bytes | None,
        gone: bool,
        when: tuple[int, int | None, bool],
    ) -> None:
        us, until, dead = when
        type_ = place.column.type
        assert is_multi_cell(type_)
        if gone:
            # What replaces a collection deletes it a moment before.
            cell.unknown, cell.doubtful = None, False
            cell.cells = {key: each for key, each in cell.cells.items() if each.at >= us}
        elif cell.unknown is not None:
            # Until something replaces the list, or it is read again.
            cell.doubtful = True
        for key, value in _entries(type_, raw):
            _put(cell.cells.setdefault(key, _Cell(None)), None if dead else value, us, until)
        for key in _removed(type_, removed):
            _put(cell.cells.setdefault(key, _Cell(None)), None, us, None)

    def _within(self, key: Clustering, change: Change) -> bool:
        assert change.end is not None
        start = self._compared(key, change, change.row)
        end = self._compared(key, change, change.end)
        operation = change.batch.layout.operation
        after = start > 0 or (start == 0 and change.row[operation] == b"\x05")
        return after and (end < 0 or (end == 0 and change.end[operation] == b"\x07"))

    def _compared(self, key: Clustering, change: Change, bound: Row) -> int:
        """A row's place by a bound, in the order of storage: bounds of descending columns come that way round."""
        for cell, place, (order, descending) in zip(key, change.batch.layout.clustering_key, self._orders, strict=True):
            limit = bound[place.value or 0]
            if limit is None or cell is None:
                break
            one, other = order(cell), order(limit)
            if one != other:
                return 1 if (one > other) != descending else -1
        # A bound that fixes no column has the whole partition on its side, and counts as included.
        fixed = bound[change.batch.layout.clustering_key[0].value or 0] is not None
        return 0 if fixed else (1 if bound is change.row else -1)

    # -- the result ------------------------------------------------------------------------------------------

    def _shown(self, at: int, cell: _Cell | _Elements, upto_us: int) -> bytes | None:
        if isinstance(cell, _Cell):
            return cell.value if cell.until is None or cell.until > upto_us else None
        if cell.doubtful:
            raise Doubtful(f"column {self._shape.columns[at].name}: a list's elements have no keys")
        if cell.unknown is not None:
            return cell.unknown
        type_ = self._shape.columns[at].type
        assert is_multi_cell(type_)
        there = {
            key: each.value
            for key, each in cell.cells.items()
            if each.value is not None and (each.until is None or each.until > upto_us)
        }
        return _joined(type_, there)

    def _lives(self, row: _Row, cells: dict[int, bytes | None], upto_us: int) -> bool:
        if any(cell is not None for cell in cells.values()):
            return True
        if row.marker is None:
            raise Doubtful("no SELECT tells whether a row lives without its values")
        return row.marker and (row.marker_until is None or row.marker_until > upto_us)

    def _selected(self, clustering: Clustering, shown: dict[int, bytes | None], row: _Row) -> Row:
        shape = self._shape
        values = (shown.get(at) for at in range(shape.keys, len(shape.columns)))
        if not shape.timed:
            return (*self._key, *clustering, *values)
        cells = [
            (at, cell)
            for at, cell in (*self._static.cells.items(), *row.cells.items())
            if isinstance(cell, _Cell) and shown.get(at) is not None
        ]
        ends = {at: cell.until // _SECOND for at, cell in cells if cell.until is not None}
        written = {at: cell.written for at, cell in cells if cell.written is not None}
        return (*self._key, *clustering, *values, *shape.times(ends, written))


def _learn_lists(row: _Row, known: _Row) -> None:
    for at, cell in row.cells.items():
        older = known.cells[at]
        if not isinstance(cell, _Elements) or not isinstance(older, _Elements):
            continue
        # Of one that nobody has told what was written to it the SELECT alone tells what it has.
        if cell.unknown is not None and older.unknown is None and known.untold == _BEFORE:
            row.cells[at] = older


def _until(change: Change) -> int | None:
    """At a whole second, as servers count."""
    return None if not change.ttl else (change.timestamp_us // _SECOND + change.ttl) * _SECOND


def _put(cell: _Cell, value: bytes | None, us: int, until: int | None) -> None:
    if us < cell.at or (us == cell.at and _rank(value, until) < _rank(cell.value, cell.until)):
        return
    cell.value, cell.at, cell.until, cell.written = value, us, until, us


def _rank(value: bytes | None, until: int | None) -> tuple[bool, bool, int, bytes]:
    """Of two writes at one time a deletion wins, then what ends, then what ends later, then the greater value."""
    return value is None, until is not None, until or 0, value or b""


def _delete(row: _Row, us: int) -> None:
    """What is written at the same time is deleted."""
    row.deleted = max(row.deleted, us)
    if row.untold <= us:
        row.untold = _BEFORE
    if row.marked <= us:
        row.marker, row.marker_until = False, None
    for cell in row.cells.values():
        if isinstance(cell, _Elements):
            cell.unknown, cell.doubtful = None, False
            cell.cells = {key: each for key, each in cell.cells.items() if each.at > us}
        elif cell.at <= us:
            cell.value, cell.at, cell.until = None, us, None


def _tells_nothing(change: Change) -> bool:
    """As with `'delta': 'keys'`: an update writes something, and of an insert that may be its key alone."""
    if change.kind != "u" and change.table.cdc.delta != "keys":
        return False
    row = change.row
    return all(
        place.column.is_key
        or (
            (place.value is None or row[place.value] is None)
            and (place.deleted is None or row[place.deleted] != TRUE)
            and (place.deleted_elements is None or row[place.deleted_elements] is None)
        )
        for place in change.batch.layout.places
    )


def _entries(type_: MultiCellType, raw: bytes | None) -> list[tuple[bytes, bytes | None]]:
    """Elements by their keys; of a user type's fields by their places."""
    if raw is None:
        return []
    if isinstance(type_, UserType):
        fields = split_fields(raw, len(type_.fields), type_.cql())
        return [(at.to_bytes(2, "big"), cell) for at, cell in enumerate(fields) if cell is not None]
    if isinstance(type_, SetType):
        return [(key or b"", b"") for key in split_cells(raw)]
    cells = iter(split_cells(raw, 2))
    return [(key or b"", value) for key, value in zip(cells, cells, strict=True)]


def _removed(type_: MultiCellType, raw: bytes | None) -> list[bytes]:
    return [] if raw is None else [key or b"" for key in split_cells(raw)]


def _joined(type_: MultiCellType, cells: Mapping[bytes, bytes | None]) -> bytes | None:
    """The collection with these elements; without any it is null."""
    if not cells:
        return None
    if isinstance(type_, UserType):
        fields = [cells.get(at.to_bytes(2, "big")) for at in range(len(type_.fields))]
        return b"".join(_with_length(cell) for cell in fields)
    if isinstance(type_, ListType):
        # Keys are times; their order is that of the elements.
        ordered = sorted(cells, key=time_key)
        return _count(len(ordered)) + b"".join(_with_length(cells[key]) for key in ordered)
    order = order_key(type_.key if isinstance(type_, MapType) else type_.element)
    parts = [_count(len(cells))]
    for key in sorted(cells, key=order):
        parts.append(_with_length(key))
        if isinstance(type_, MapType):
            parts.append(_with_length(cells[key]))
    return b"".join(parts)


def _with_length(raw: bytes | None) -> bytes:
    return _count(-1) if raw is None else _count(len(raw)) + raw
