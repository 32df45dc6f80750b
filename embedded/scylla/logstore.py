"""The store of a log table: rows kept as they are answered, so that reading the log costs little more than
copying it.

Comes in: `LogMutation`s, whose rows are already encoded, and ordinary mutations from users who write into a
log by hand. Goes out: encoded pages, and rows cell by cell for every other SELECT. A stream that a user wrote
to is kept in an ordinary row store from then on: its cells no longer share one timestamp and one TTL.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from struct import Struct

from embedded.scylla.cdc.log_rows import LogMutation
from embedded.scylla.cdc.plan import cell
from embedded.scylla.logrow import (
    BEHIND,
    NULL,
    number_order,
    project_row,
    row_order,
    split_row,
    time_order,
    write_time,
)
from embedded.scylla.mutation import FULL_SLICE, Cell, ClusteringKey, PartitionMutation, RowMutation, Slice
from embedded.scylla.schema import Table
from embedded.scylla.store import LiveCells, LiveRow, Page, PageRequest, PartitionView, RingPosition, TableStore
from embedded.scylla.tokens import cdc_token

_PURGE_EVERY = 4096
#: A page is cut short here, as ScyllaDB's are.
_PAGE_BYTES = 1 << 20
_pack_place = Struct(">I").pack
_unpack_place = Struct(">I").unpack_from


class _Shape:
    """The columns of the encoded rows. A column that was dropped and added again is another column: `ids`
    tell."""

    __slots__ = ("ids", "names")

    def __init__(self, table: Table, incarnations: dict[str, int]) -> None:
        self.names = tuple(column.name for column in table.ordered_columns)
        self.ids = tuple((name, incarnations.get(name, 0)) for name in self.names)

    def places_in(self, older: _Shape) -> list[int] | None:
        """Where each column is found in a row of the older shape (-1: not there); None if nothing differs."""
        if older.ids == self.ids:
            return None
        places = {identity: place for place, identity in enumerate(older.ids)}
        return [places.get(identity, -1) for identity in self.ids]


class _Stream:
    """The rows of one stream in order, with the second at which each expires (0: never)."""

    __slots__ = ("bodies", "expiries", "first_expiry", "key", "last", "shape", "token")

    def __init__(self, key: bytes, shape: _Shape) -> None:
        self.key = key
        self.token = cdc_token(key)
        self.shape = shape
        self.bodies: list[bytes] = []
        self.expiries = array("q")
        self.first_expiry = 0
        self.last = b""

    def add(self, bodies: list[bytes], expiry: int) -> None:
        """Put consecutive rows in their place."""
        order = row_order(bodies[0])
        if order > self.last:
            self.bodies += bodies
            self.last = row_order(bodies[-1]) if len(bodies) > 1 else order
            if len(bodies) == 1:
                self.expiries.append(expiry)
            else:
                self.expiries.extend([expiry] * len(bodies))
        else:
            at = bisect_left(self.bodies, order, key=row_order)
            self.bodies[at:at] = bodies
            self.expiries[at:at] = array("q", [expiry] * len(bodies))
        if expiry and (not self.first_expiry or expiry < self.first_expiry):
            self.first_expiry = expiry

    def extend(self, bodies: list[bytes], expiries: array[int]) -> None:
        """Put many rows, in ascending order, in their places."""
        if row_order(bodies[0]) > self.last:
            at = len(self.bodies)
            self.last = row_order(bodies[-1])
        else:
            at = bisect_left(self.bodies, row_order(bodies[0]), key=row_order)
            if at < len(self.bodies) and row_order(self.bodies[at]) < row_order(bodies[-1]):
                for body, expiry in zip(bodies, expiries):
                    self.add([body], expiry)
                return
        self.bodies[at:at] = bodies
        self.expiries[at:at] = expiries
        first = min(filter(None, expiries), default=0)
        if first and (not self.first_expiry or first < self.first_expiry):
            self.first_expiry = first

    def live(self, now: int, shape: _Shape) -> _Stream:
        """This stream without the rows that have expired, in the present shape."""
        if self.first_expiry and self.first_expiry <= now:
            kept = [at for at, expiry in enumerate(self.expiries) if not expiry or expiry > now]
            self.bodies = [self.bodies[at] for at in kept]
            self.expiries = array("q", [self.expiries[at] for at in kept])
            self.first_expiry = min(filter(None, self.expiries), default=0)
        if self.shape is not shape:
            places = shape.places_in(self.shape)
            if places is not None:
                self.bodies = [project_row(body, places) for body in self.bodies]
            self.shape = shape
        return self

    def between(self, start: bytes | None, end: bytes | None) -> tuple[int, int]:
        """Indexes of the rows from one place up to, not including, another."""
        first = bisect_left(self.bodies, start, key=row_order) if start else 0
        last = len(self.bodies) if end is None else bisect_left(self.bodies, end, key=row_order)
        return first, last

    def order_at(self, place: int) -> bytes:
        return row_order(self.bodies[place])


class _HandWritten:
    """A stream with rows written by hand, as it is at one second: encoded rows with their places."""

    __slots__ = ("bodies", "now", "orders")

    def __init__(self, view: PartitionView | None, key: bytes, names: Sequence[str], now: int) -> None:
        self.now = now
        self.bodies: list[bytes] = []
        self.orders: list[bytes] = []
        for row in view.rows([FULL_SLICE]) if view is not None else ():
            cells = [row.cells.get(name) for name in names[3:]]
            raw = [key, *row.key, *(each.value if isinstance(each, Cell) else None for each in cells)]
            self.bodies.append(b"".join([NULL if value is None else cell(value) for value in raw]))
            self.orders.append(time_order(row.key[0]) + number_order(row.key[1]))

    def between(self, start: bytes | None, end: bytes | None) -> tuple[int, int]:
        first = bisect_left(self.orders, start) if start else 0
        return first, len(self.orders) if end is None else bisect_left(self.orders, end)

    def order_at(self, place: int) -> bytes:
        return self.orders[place]


class LogStore:
    """All streams of one log table. `ordinary` makes the store for streams that users wrote to by hand."""

    def __init__(self, table: Table, ordinary: Callable[[Table], TableStore]) -> None:
        self.table = table
        self._incarnations: dict[str, int] = {}
        self._shape = _Shape(table, self._incarnations)
        self._streams: dict[bytes, _Stream] = {}
        self._ring: list[RingPosition] = []
        self._make_ordinary = ordinary
        self._by_hand = ordinary(table)
        self._by_hand_keys: set[bytes] = set()
        self._hand_written: dict[bytes, _HandWritten] = {}

    def apply(self, mutation: PartitionMutation) -> None:
        if isinstance(mutation, LogMutation):
            if mutation.key not in self._by_hand_keys:
                stream = self._stream(mutation.key)
                stream.add(mutation.bodies, mutation.expiry)
                # Streams that nobody reads must not keep what has expired for ever.
                if len(stream.bodies) % _PURGE_EVERY < len(mutation.bodies):
                    stream.live(mutation.expiry - mutation.ttl, self._shape)
            else:
                expiries = [mutation.expiry] * len(mutation.bodies)
                self._apply_by_hand(self._cell_by_cell(mutation.key, mutation.bodies, expiries))
            return
        self._write_by_hand(mutation)

    def extend(self, key: bytes, bodies: list[bytes], expiries: array[int]) -> None:
        """Add many rows of one stream at once, each with its expiry, in ascending order."""
        if key in self._by_hand_keys:
            self._apply_by_hand(self._cell_by_cell(key, bodies, expiries))
        else:
            self._stream(key).extend(bodies, expiries)

    def row_count(self, now: int) -> int:
        """Encoded rows that live now."""
        return sum(len(stream.live(now, self._shape).bodies) for stream in self._streams.values())

    def partition(self, key: bytes, now: int) -> PartitionView | None:
        if key in self._by_hand_keys:
            return self._by_hand.partition(key, now)
        stream = self._streams.get(key)
        return None if stream is None else _StreamView(stream.live(now, self._shape))

    def partitions(self, start: RingPosition, now: int) -> Iterator[PartitionView]:
        at = bisect_left(self._ring, start)
        while at < len(self._ring):
            position = self._ring[at]
            view = self.partition(position[1], now)
            if view is not None:
                yield view
            # The ring may have grown or shrunk between two partitions of a long scan.
            at = bisect_left(self._ring, (position[0], position[1] + b"\0"))

    def alter(self, table: Table, dropped: Collection[str]) -> None:
        names = {column.name for column in table.columns}
        for name in {*dropped, *(old for old in self._shape.names if old not in names)}:
            self._incarnations[name] = self._incarnations.get(name, 0) + 1
        self.table = table
        self._shape = _Shape(table, self._incarnations)
        self._by_hand.alter(table, dropped)
        self._hand_written.clear()

    def truncate(self) -> None:
        self._streams.clear()
        self._ring.clear()
        self._by_hand = self._make_ordinary(self.table)
        self._by_hand_keys.clear()
        self._hand_written.clear()

    def fast_page(self, request: PageRequest) -> Page | None:
        """A page straight from the encoded rows; None if a column or a bound is none of the log's."""
        places = self._places(request.columns)
        start = _bound(request.lower, after=not request.lower_inclusive)
        end = _bound(request.upper, after=request.upper_inclusive)
        if places is None or start == b"" or end == b"":
            return None
        at, resume = 0, None
        if request.position is not None:
            at, resume = _unpack_place(request.position)[0], request.position[4:] + b"\0"
        parts: list[bytes] = []
        wanted = request.max_rows
        position: bytes | None = None
        for place in range(at, len(request.keys)):
            stream = self._readable(request.keys[place], request.now)
            if stream is None:
                continue
            first, last = stream.between(resume if place == at and resume else start, end)
            if first >= last:
                continue
            if not wanted:
                # The page is full and there is more: go on behind its last row.
                break
            taken = min(last, first + wanted)
            parts += stream.bodies[first:taken]
            wanted -= taken - first
            position = _pack_place(place) + stream.order_at(taken - 1)
            if taken < last:
                break
        else:
            position = None
        if places:
            parts = [project_row(row, places) for row in parts]
        body = b"".join(parts)
        if len(body) > _PAGE_BYTES and len(parts) > 1:
            ends = accumulate(map(len, parts))
            fitting = sum(1 for _ in takewhile(lambda end: end <= _PAGE_BYTES, ends))
            return self.fast_page(replace(request, max_rows=max(1, fitting)))
        return Page(body, len(parts), position)

    def _readable(self, key: bytes, now: int) -> _Stream | _HandWritten | None:
        if key not in self._by_hand_keys:
            stream = self._streams.get(key)
            return None if stream is None else stream.live(now, self._shape)
        shown = self._hand_written.get(key)
        if shown is None or shown.now != now:
            shown = _HandWritten(self._by_hand.partition(key, now), key, self._shape.names, now)
            self._hand_written[key] = shown
        return shown

    def _places(self, columns: tuple[str, ...]) -> tuple[int, ...] | None:
        """Where the wanted columns are: empty for all of them in order, None if one is unknown."""
        if columns == self._shape.names:
            return ()
        try:
            return tuple(self._shape.names.index(name) for name in columns)
        except ValueError:
            return None

    def _stream(self, key: bytes) -> _Stream:
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(key, self._shape)
            if key not in self._by_hand_keys:
                insort(self._ring, (stream.token, key))
        elif stream.shape is not self._shape:
            stream.live(0, self._shape)
        return stream

    def _write_by_hand(self, mutation: PartitionMutation) -> None:
        key = mutation.key
        if key not in self._by_hand_keys:
            stream = self._streams.pop(key, None)
            if stream is None:
                insort(self._ring, (cdc_token(key), key))
            else:
                stream.live(0, self._shape)
                self._apply_by_hand(self._cell_by_cell(key, stream.bodies, stream.expiries))
            self._by_hand_keys.add(key)
        self._apply_by_hand(mutation)

    def _apply_by_hand(self, mutation: PartitionMutation) -> None:
        self._hand_written.pop(mutation.key, None)
        self._by_hand.apply(mutation)

    def _cell_by_cell(self, key: bytes, bodies: Sequence[bytes], expiries: Sequence[int]) -> PartitionMutation:
        """Encoded rows as an ordinary mutation."""
        mutation = PartitionMutation(self.table, key)
        for body, expiry in zip(bodies, expiries):
            row = _live_row(body, expiry, self._shape.names)
            mutation.rows[row.key] = RowMutation(cells=dict(row.cells))  # type: ignore[arg-type]
        return mutation


class _StreamView:
    """One stream, cell by cell."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self.key = stream.key
        self.token = stream.token

    def static(self) -> LiveCells:
        return {}

    def rows(self, slices: Sequence[Slice], reverse: bool = False) -> Iterator[LiveRow]:
        stream, names = self._stream, self._stream.shape.names
        for each in reversed(slices) if reverse else slices:
            start = _place(each.start.prefix, after=not each.start.inclusive)
            end = _place(each.end.prefix, after=each.end.inclusive) if each.end.prefix else None
            first, last = stream.between(start, end)
            for at in range(last - 1, first - 1, -1) if reverse else range(first, last):
                yield _live_row(stream.bodies[at], stream.expiries[at], names)


def _bound(time: bytes | None, *, after: bool) -> bytes | None:
    """Where a bound on `cdc$time` lies, `after` all rows of that time or before them; empty if it is no
    timeuuid."""
    if time is None:
        return None
    if len(time) != 16:
        return b""
    return time_order(time) + BEHIND if after else time_order(time)


def _place(prefix: ClusteringKey, *, after: bool) -> bytes:
    place = b""
    if prefix:
        place = time_order(prefix[0]) if len(prefix[0]) == 16 else b""
    if len(prefix) > 1:
        place += number_order(prefix[1])
    return place + BEHIND if after else place


def _live_row(body: bytes, expiry: int, names: Sequence[str]) -> LiveRow:
    raw = split_row(body)
    timestamp = write_time(body)
    ttl = max(1, expiry - timestamp // 1_000_000) if expiry else 0
    cells = {name: Cell(timestamp, value, ttl, expiry) for name, value in zip(names[3:], raw[3:]) if value is not None}
    key = raw[1], raw[2]
    assert key[0] is not None and key[1] is not None
    return LiveRow((key[0], key[1]), cells)
