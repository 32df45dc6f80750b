"""An executable model of ScyllaDB's CDC for one partition, written apart from the server, over plain Python values.

Comes in: writes (`Write` and the functions that make them) grouped into requests. Goes out: for each request the log
rows it leaves, as `ModelRow`s. The model keeps the base table itself, cell by cell with timestamps, for the images.

A multi-cell value is a dict: element key → value (sets: key → key, user types: field index → value, lists: position →
value, a position being a time and the element's number within the request).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

Key = tuple[int, ...]
NEVER = -(10**18)
PAST = -(10**9)
"""Where the time of what is prepended to a list is counted back from."""
MOST_ELEMENTS = 1 << 17


class Stamp(NamedTuple):
    """A cell: when written, for how long, and what (None: deleted)."""

    at: int
    ttl: int
    value: Any


@dataclass
class Many:
    """What was written to a multi-cell column."""

    tombstone: int | None = None
    cells: dict[Any, Stamp] = field(default_factory=dict)


@dataclass
class Line:
    """What was written to a row: `cells` by column."""

    marker: tuple[int, int] | None = None
    deleted: int | None = None
    cells: dict[str, Stamp | Many] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape:
    """A table: clustering columns, static and regular ones, and which of them have many cells and of what kind."""

    clustering: tuple[str, ...] = ("ck",)
    static: tuple[str, ...] = ()
    regular: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    fields: int = 2
    descending: bool = False

    def order(self, keys: Iterable[Key]) -> list[Key]:
        return sorted(keys, reverse=self.descending)


Bound = tuple[Key, bool]
Range = tuple[Bound, Bound, int]
Place = tuple[float, ...]


@dataclass
class Request:
    """Everything one request writes to the partition, merged."""

    static: dict[str, Stamp | Many] = field(default_factory=dict)
    rows: dict[Key, Line] = field(default_factory=dict)
    ranges: list[Range] = field(default_factory=list)
    deleted: int | None = None
    elements: int = 0

    def row(self, key: Key) -> Line:
        return self.rows.setdefault(key, Line())


class ModelRow(NamedTuple):
    """A log row: time, number, operation, ttl, whether it ends its batch, and its other columns that are not null."""

    time: int
    number: int
    operation: int
    ttl: int | None
    end: bool
    columns: dict[str, Any]


def _newer(a: Stamp, b: Stamp) -> Stamp:
    def rank(stamp: Stamp) -> tuple[Any, ...]:
        value = -(10**12) if stamp.value is None else stamp.value
        return stamp.at, stamp.value is None, stamp.ttl > 0, stamp.ttl, value.to_bytes(4, "big", signed=True)

    if a.at != b.at:
        return a if a.at > b.at else b
    if a.value is None or b.value is None:
        return a if a.value is None else b
    return a if rank(a) >= rank(b) else b


def _put(cells: dict[str, Stamp | Many], column: str, new: Stamp | Many) -> None:
    old = cells.get(column)
    if old is None:
        cells[column] = Many(new.tombstone, dict(new.cells)) if isinstance(new, Many) else new
    elif isinstance(new, Stamp):
        assert isinstance(old, Stamp)
        cells[column] = _newer(old, new)
    else:
        assert isinstance(old, Many)
        tombstones = [each for each in (old.tombstone, new.tombstone) if each is not None]
        tombstone = max(tombstones, default=None)
        merged = dict(old.cells)
        for key, stamp in new.cells.items():
            merged[key] = _newer(merged[key], stamp) if key in merged else stamp
        cells[column] = Many(
            tombstone, {key: each for key, each in merged.items() if tombstone is None or each.at > tombstone}
        )


def write_value(shape: Shape, cells: dict[str, Stamp | Many], column: str, value: Any, at: int, ttl: int) -> None:
    """`column = value`; None is null."""
    if column not in shape.kinds:
        _put(cells, column, Stamp(at, 0 if value is None else ttl, value))
        return
    live = {key: Stamp(at, ttl, each) for key, each in (value or {}).items() if each is not None}
    _put(cells, column, Many(at - 1, live))


def write_elements(cells: dict[str, Stamp | Many], column: str, elements: Mapping[Any, Any], at: int, ttl: int) -> None:
    """`column = column + …`, `column[k] = …`; a None value removes the element."""
    if elements:
        stamps = {key: Stamp(at, 0 if each is None else ttl, each) for key, each in elements.items()}
        _put(cells, column, Many(None, stamps))


def delete_column(shape: Shape, cells: dict[str, Stamp | Many], column: str, at: int) -> None:
    """`DELETE column`."""
    _put(cells, column, Many(at) if column in shape.kinds else Stamp(at, 0, None))


def write_list(
    request: Request, cells: dict[str, Stamp | Many], verb: str, values: Sequence[int], at: int, ttl: int
) -> None:
    """`l = […]` (set), `l = l + […]` (append), `l = […] + l` (prepend); elements are counted through the request."""
    first = MOST_ELEMENTS - request.elements - len(values) if verb == "prepend" else request.elements
    request.elements += len(values)
    time = PAST - at if verb == "prepend" else at
    live = {(time, first + place): Stamp(at, ttl, value) for place, value in enumerate(values)}
    _put(cells, "l", Many(at - 1 if verb == "set" else None, live))


def delete_row(request: Request, key: Key, at: int) -> None:
    line = request.row(key)
    line.deleted = max(at, line.deleted or at)


def delete_range(shape: Shape, request: Request, start: Bound, end: Bound, at: int) -> None:
    """A closed range of one row is a row delete. Others are laid over each other: where they overlap the latest counts,
    and neighbours of one time are one range."""
    row = only_row(shape, start, end)
    if row is not None:
        delete_row(request, row, at)
        return
    laid = [
        (_place(shape, low, -1), _place(shape, high, 1), stamp)
        for low, high, stamp in [*request.ranges, (start, end, at)]
    ]
    pieces: list[tuple[Place, Place, int]] = []
    for low, high in pairwise(sorted({place for piece in laid for place in piece[:2]})):
        stamps = [stamp for begin, finish, stamp in laid if begin <= low and high <= finish]
        if not stamps:
            continue
        if pieces and pieces[-1][1:] == (low, max(stamps)):
            low = pieces.pop()[0]
        pieces.append((low, high, max(stamps)))
    request.ranges = [(_bound(shape, low, -1), _bound(shape, high, 1), stamp) for low, high, stamp in pieces]


def _place(shape: Shape, bound: Bound, side: int) -> Place:
    """Where a bound lies in storage order; `side` is -1 for a start and 1 for an end."""
    prefix, inclusive = bound
    behind = side if inclusive else -side
    return (*(-value if shape.descending else value for value in prefix), behind * float("inf"))


def _bound(shape: Shape, place: Place, side: int) -> Bound:
    *prefix, behind = place
    return tuple(int(-value if shape.descending else value) for value in prefix), (behind > 0) == (side > 0)


def only_row(shape: Shape, start: Bound, end: Bound) -> Key | None:
    """The row of a range that is closed and holds just one."""
    whole = start[1] and end[1] and start[0] == end[0] and len(start[0]) == len(shape.clustering)
    return start[0] if whole else None


class BaseTable:
    """The partition's contents: every write that still matters."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.static: dict[str, Stamp | Many] = {}
        self.rows: dict[Key, Line] = {}
        self.ranges: list[Range] = []
        self.deleted = NEVER

    def apply(self, request: Request) -> None:
        if request.deleted is not None:
            self.deleted = max(self.deleted, request.deleted)
        self.ranges += request.ranges
        for column, written in request.static.items():
            _put(self.static, column, written)
        for key, line in request.rows.items():
            mine = self.rows.setdefault(key, Line())
            if line.marker is not None and (mine.marker is None or line.marker > mine.marker):
                mine.marker = line.marker
            if line.deleted is not None:
                mine.deleted = max(line.deleted, NEVER if mine.deleted is None else mine.deleted)
            for column, written in line.cells.items():
                _put(mine.cells, column, written)

    def live_static(self) -> dict[str, Any]:
        return self._live(self.static, self.deleted)

    def live_row(self, key: Key) -> dict[str, Any] | None:
        line = self.rows.get(key)
        if line is None:
            return None
        floor = max(
            [self.deleted, NEVER if line.deleted is None else line.deleted]
            + [at for start, end, at in self.ranges if inside(key, start, end, self.shape.descending)]
        )
        live = self._live(line.cells, floor)
        return live if live or (line.marker is not None and line.marker[0] > floor) else None

    def _live(self, cells: Mapping[str, Stamp | Many], floor: int) -> dict[str, Any]:
        live: dict[str, Any] = {}
        for column, written in cells.items():
            if isinstance(written, Stamp):
                if written.value is not None and written.at > floor:
                    live[column] = written.value
            else:
                elements = {k: s.value for k, s in written.cells.items() if s.value is not None and s.at > floor}
                if elements:
                    live[column] = elements
        return live


def inside(key: Key, start: tuple[Key, bool], end: tuple[Key, bool], descending: bool = False) -> bool:
    """Whether a clustering key lies between two bounds, given in storage order."""
    low, high = key[: len(start[0])], key[: len(end[0])]
    after = low < start[0] if descending else low > start[0]
    before = high > end[0] if descending else high < end[0]
    return (after or (low == start[0] and start[1])) and (before or (high == end[0] and end[1]))
