"""The logging half of the CDC model: from a merged request and the base table to log rows.

Comes in: a `Request`, the `BaseTable` before it, and the table's options. Goes out: `ModelRow`s in log order. It
follows the walk of ScyllaDB's own code: one visitor decides whether to split, another sorts changes into batches, a
third writes rows while it keeps the images up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.embedded.scylla.cdc_model import (
    BaseTable,
    Key,
    Line,
    Many,
    ModelRow,
    Range,
    Request,
    Shape,
    Stamp,
    inside,
    only_row,
)


class _Split(Exception):
    """The request cannot be logged as one group."""


class _Visitor:
    """Walks a request in ScyllaDB's order until something demands a split."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.ttl: int | None = None
        self.marked = False

    def see(self, at: int, ttl: int) -> None:
        if self.at not in (None, at) or self.ttl not in (None, ttl):
            raise _Split
        self.at, self.ttl = at, ttl

    def cells(self, cells: dict[str, Stamp | Many], columns: Sequence[str]) -> None:
        for column in columns:
            written = cells.get(column)
            if isinstance(written, Stamp):
                self.see(written.at, 0 if written.value is None else written.ttl)
            elif written is not None:
                if written.tombstone is not None:
                    self.see(written.tombstone + 1, 0)
                for stamp in written.cells.values():
                    if stamp.value is not None and self.marked:
                        raise _Split
                    self.see(stamp.at, 0 if stamp.value is None else stamp.ttl)

    def walk(self, shape: Shape, request: Request) -> int:
        """The only timestamp of the request."""
        clustering = upserts = False
        static = bool(request.static)
        self.cells(request.static, shape.static)
        for key in shape.order(request.rows):
            line = request.rows[key]
            if line.marker is not None or line.cells:
                if static:
                    raise _Split
                clustering = upserts = True
                if line.marker is not None:
                    self.marked = True
                    self.see(*line.marker)
                self.cells(line.cells, shape.regular)
            if line.deleted is not None:
                if static or upserts:
                    raise _Split
                clustering = True
                self.see(line.deleted, 0)
        for _, _, at in request.ranges:
            if static or clustering:
                raise _Split
            self.see(at, 0)
        if self.at is None or request.deleted is not None:
            raise _Split
        return self.at


@dataclass
class _Batch:
    """What happened at one timestamp, by kind."""

    static: list[dict[str, Stamp | Many]] = field(default_factory=list)
    inserts: list[tuple[Key, tuple[int, int], dict[str, Stamp | Many]]] = field(default_factory=list)
    updates: list[tuple[Key, dict[str, Stamp | Many]]] = field(default_factory=list)
    deletes: list[Key] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    whole: bool = False


Pieces = dict[tuple[int, int], tuple[dict[str, Stamp | Many], dict[str, Stamp | Many]]]


def _pieces(cells: dict[str, Stamp | Many], columns: Sequence[str], marker: tuple[int, int] | None) -> Pieces:
    """Cells by (time, TTL): single ones and collections."""
    pieces: Pieces = {}
    if marker is not None:
        pieces[marker] = ({}, {})
    for column in columns:
        written = cells.get(column)
        if isinstance(written, Stamp):
            at = written.at, 0 if written.value is None else written.ttl
            pieces.setdefault(at, ({}, {}))[0][column] = written
        elif written is not None:
            if written.tombstone is not None:
                part = pieces.setdefault((written.tombstone + 1, 0), ({}, {}))[1].setdefault(column, Many())
                assert isinstance(part, Many)
                part.tombstone = written.tombstone
            for element, stamp in written.cells.items():
                at = stamp.at, 0 if stamp.value is None else stamp.ttl
                part = pieces.setdefault(at, ({}, {}))[1].setdefault(column, Many())
                assert isinstance(part, Many)
                part.cells[element] = stamp
    return pieces


def _batches(shape: Shape, request: Request) -> dict[int, _Batch]:
    batches: dict[int, _Batch] = {}

    def batch(at: int) -> _Batch:
        return batches.setdefault(at, _Batch())

    for (at, _), (single, many) in sorted(_pieces(request.static, shape.static, None).items()):
        batch(at).static.append({**single, **many})
    for key in shape.order(request.rows):
        line = request.rows[key]
        for (at, ttl), (single, many) in sorted(_pieces(line.cells, shape.regular, line.marker).items()):
            if line.marker != (at, ttl):
                batch(at).updates.append((key, {**single, **many}))
                continue
            covering = {c: x for c, x in many.items() if isinstance(x, Many) and x.tombstone is not None}
            adding = {c: x for c, x in many.items() if c not in covering}
            batch(at).inserts.append((key, (at, ttl), {**single, **covering}))
            if adding:
                batch(at).updates.append((key, adding))
        if line.deleted is not None:
            batch(line.deleted).deletes.append(key)
    for each in request.ranges:
        batch(each[2]).ranges.append(each)
    if request.deleted is not None:
        batch(request.deleted).whole = True
    return batches


class ModelLog:
    """Logs requests of one partition with given options."""

    def __init__(self, shape: Shape, preimage: str = "false", postimage: bool = False, delta: str = "full") -> None:
        self.shape, self.preimage, self.postimage, self.delta = shape, preimage, postimage, delta

    def rows(self, base: BaseTable, request: Request) -> list[ModelRow]:
        """The log rows of a request; the base table is as it was before."""
        self._out: list[ModelRow] = []
        self._rows: dict[Key, dict[str, Any]] = {}
        self._static: dict[str, Any] = {}
        shape = self.shape
        if self.preimage != "false" or self.postimage:
            self._load(base, request)
        try:
            at = _Visitor().walk(shape, request)
        except _Split:
            batches = _batches(shape, request)
            for at in sorted(batches):
                self._log_batch(at, batches[at])
            return self._out
        touched: dict[Key, Iterable[str]] = {
            key: shape.regular if line.deleted is not None else line.cells for key, line in request.rows.items()
        }
        self._begin(at)
        self._images_before(set(request.static), touched)
        self._log_changes(request)
        self._images_after(bool(request.static), touched)
        self._end()
        return self._out

    def _load(self, base: BaseTable, request: Request) -> None:
        shape = self.shape
        full = self.postimage or self.preimage == "full"
        only_row = request.deleted is not None and not shape.clustering
        if request.static:
            live = base.live_static()
            wanted = shape.static if full else [c for c in shape.static if c in request.static]
            self._static = {c: live[c] for c in wanted if c in live}
        if not request.rows and not only_row:
            return
        columns: Sequence[str] = shape.regular
        if not (full or only_row or any(line.deleted is not None for line in request.rows.values())):
            first = request.rows[shape.order(request.rows)[0]]
            columns = [c for c in shape.regular if c in first.cells]
        for key in [()] if only_row else list(request.rows):
            row = base.live_row(key)
            if row is not None:
                self._rows[key] = {c: row[c] for c in columns if c in row}

    def _begin(self, at: int) -> None:
        self._at, self._first = at, len(self._out)

    def _add(self, operation: int, key: Key | None, ttl: int | None = None) -> dict[str, Any]:
        columns: dict[str, Any] = {"pk": 0}
        for name, value in zip(self.shape.clustering, key or ()):
            columns[name] = value
        self._out.append(ModelRow(self._at, len(self._out) - self._first, operation, ttl or None, False, columns))
        return columns

    def _end(self) -> None:
        if len(self._out) > self._first:
            self._out[-1] = self._out[-1]._replace(end=True)

    def _images_before(self, static: Iterable[str], rows: dict[Key, Iterable[str]]) -> None:
        if self.preimage == "false":
            return
        static = set(static)
        if static and self._static:
            self._image(0, None, [c for c in self.shape.static if c in static], self.shape.static, self._static)
        for key in self.shape.order(rows):
            if key in self._rows:
                touched = [c for c in self.shape.regular if c in set(rows[key])]
                self._image(0, key, touched, self.shape.regular, self._rows[key])

    def _images_after(self, static: bool, rows: dict[Key, Iterable[str]]) -> None:
        if not self.postimage:
            return
        if static and self._static:
            self._image(9, None, self.shape.static, self.shape.static, self._static)
        for key in self.shape.order(rows):
            if key in self._rows:
                self._image(9, key, self.shape.regular, self.shape.regular, self._rows[key])

    def _image(
        self, operation: int, key: Key | None, touched: Sequence[str], every: Sequence[str], state: dict[str, Any]
    ) -> None:
        columns = self._add(operation, key)
        for column in every if self.preimage == "full" and operation == 0 else touched:
            if state.get(column) is not None:
                columns[column] = self._shown(column, state[column])
            elif operation == 0:
                columns["cdc$deleted_" + column] = True

    def _shown(self, column: str, value: Any) -> Any:
        if self.shape.kinds.get(column) == "udt":
            return tuple(value.get(index) for index in range(self.shape.fields))
        if self.shape.kinds.get(column) == "set":
            return sorted(value)
        return sorted(value.items()) if column in self.shape.kinds else value

    def _log_changes(self, request: Request) -> None:
        shape = self.shape
        if request.static:
            self._log_cells(1, None, None, request.static)
        for key in shape.order(request.rows):
            line = request.rows[key]
            if line.marker is not None or line.cells:
                self._log_cells(1 if line.marker is None else 2, key, line.marker, line.cells)
            if line.deleted is not None:
                self._add(3, key)
                self._rows.pop(key, None)
        for start, end, _ in request.ranges:
            row = only_row(shape, start, end)
            if row is not None:
                # What a later range left of an earlier one; only a split meets such.
                self._add(3, row)
                self._rows.pop(row, None)
                continue
            self._add(5 if start[1] else 6, start[0])
            self._add(7 if end[1] else 8, end[0])
            for key in [key for key in self._rows if inside(key, start, end, shape.descending)]:
                del self._rows[key]
        if request.deleted is not None:
            self._add(4, None)
            self._rows.clear()

    def _log_cells(
        self, operation: int, key: Key | None, marker: tuple[int, int] | None, cells: dict[str, Stamp | Many]
    ) -> None:
        ttl = marker[1] if marker is not None else 0
        live = [
            stamp.ttl
            for written in cells.values()
            for stamp in (written.cells.values() if isinstance(written, Many) else [written])
            if stamp.value is not None
        ]
        columns = self._add(operation, key, live[-1] if live else ttl)
        state = self._static if key is None else self._rows.setdefault(key, {})
        for column, written in cells.items():
            shown = self._log_one(column, written, state)
            if self.delta == "full":
                columns.update(shown)

    def _log_one(self, column: str, written: Stamp | Many, state: dict[str, Any]) -> dict[str, Any]:
        """What the row shows of one column; its state is brought up to date."""
        if isinstance(written, Stamp):
            state[column] = written.value
            return {"cdc$deleted_" + column: True} if written.value is None else {column: written.value}
        shown: dict[str, Any] = {}
        added = {key: stamp.value for key, stamp in written.cells.items() if stamp.value is not None}
        removed = sorted(key for key, stamp in written.cells.items() if stamp.value is None)
        present = bool(added) or self.shape.kinds[column] == "udt"
        if written.tombstone is not None:
            shown["cdc$deleted_" + column] = True
        if removed:
            shown["cdc$deleted_elements_" + column] = removed
        if present:
            shown[column] = self._shown(column, added)
        before = state.get(column) if written.tombstone is None else None
        after = None
        if present or (removed and before is not None):
            after = {**(before or {}), **added}
            for key in removed:
                after.pop(key, None)
        state[column] = after
        return shown

    def _log_batch(self, at: int, batch: _Batch) -> None:
        static = {column for cells in batch.static for column in cells}
        touched: dict[Key, set[str]] = {key: set(self.shape.regular) for key in batch.deletes}
        if batch.whole and not self.shape.clustering:
            touched[()] = set(self.shape.regular)
        for key, _, cells in batch.inserts:
            touched.setdefault(key, set()).update(cells)
        for key, cells in batch.updates:
            touched.setdefault(key, set()).update(cells)
        rows: dict[Key, Iterable[str]] = dict(touched)
        self._begin(at)
        self._images_before(static, rows)
        for cells in batch.static:
            self._log_changes(Request(static=cells))
        for key, marker, cells in batch.inserts:
            self._log_changes(Request(rows={key: Line(marker, None, cells)}))
        for key, cells in batch.updates:
            self._log_changes(Request(rows={key: Line(None, None, cells)}))
        for key in batch.deletes:
            self._log_changes(Request(rows={key: Line(None, at)}))
        for each in batch.ranges:
            self._log_changes(Request(ranges=[each]))
        if batch.whole:
            self._log_changes(Request(deleted=at))
        self._images_after(bool(static), rows)
        self._end()
