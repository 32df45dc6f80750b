"""Tables and pages of logs, made up from a seed: what the kernel and the plain way are held against each other on.

In: a seed. Out: a layout and the rows of batches, of all types, operations and images, some of whose cells are odd.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Final

from connector.changes import (
    CdcOptions,
    Column,
    LogLayout,
    Row,
    TableDescription,
    WholeRows,
    deleted_elements_type,
    layout_of,
)
from connector.timeuuid import time_key, time_uuid
from connector.values import (
    NATIVE_NAMES,
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    encode_vint,
    fixed_size,
    freeze,
    is_multi_cell,
    native,
)

_count = struct.Struct(">i").pack
_TEXTS: Final = (
    "",
    "a",
    "plain text of some length",
    'quote " and \\',
    "tab\t\x01\x1f\x7f",
    "größe €",
    "😀 and é",
    "\u2028",
)
_DOUBLES: Final = (
    0.0, -0.0, 1.0, -1.5, 0.1, 1e7, 9999999.999, 1e-3, 9e-4, 1e23, 2e-5, 5e-324, 1e22, 123456.789, 2.0**52, 2.0**53 + 2,
    float("inf"), float("-inf"), float("nan"), 1.7976931348623157e308, 2.2250738585072014e-308,
)  # fmt: skip
_NAMES: Final = ("a", "Zz", "b_2", "c3", "d", "e", "f9", "gG")
_ODD: Final = 0.004
#: The second from which on what is left of cells counts.
SELECTED_AT: Final = 1_765_000_000


class Samples:
    """What one seed gives."""

    def __init__(self, seed: int, avro_names: bool = False) -> None:
        self._random = random.Random(seed)
        self._used = 0
        self._odd = self._random.random() < 0.3
        self.layout = self._table(avro_names)

    # -- tables ------------------------------------------------------------------------------------------------

    def _table(self, avro_names: bool) -> LogLayout:
        pick = self._random
        names = list(_NAMES if avro_names else (*_NAMES, '100% "q"', "größe😀"))
        pick.shuffle(names)
        odd = not avro_names and pick.random() < 0.2
        columns = [Column('p "k"\\' if odd else "pk", self._key_type(), "partition_key", 0)]
        if pick.random() < 0.2:
            columns.append(Column("Pk2", self._key_type(), "partition_key", 1))
        clustered = pick.random() < 0.7
        if clustered:
            columns.append(Column("c% é" if odd else "ck", self._key_type(), "clustering", 0))
            if pick.random() < 0.3:
                columns.append(Column("Ck2", self._key_type(), "clustering", 1, "desc"))
        for name in names[: pick.randint(0, 7)]:
            static = clustered and pick.random() < 0.15
            columns.append(Column(name, self._type(2), "static" if static else "regular"))
        named = ("Ks_1", "T") if pick.random() < 0.2 else ("ks", "t")
        description = TableDescription(*named, "id", tuple(columns), CdcOptions())
        return layout_of(description, _log_columns(description))

    def _key_type(self) -> CqlType:
        return freeze(self._type(1)) if self._random.random() < 0.1 else self._native()

    def _native(self) -> CqlType:
        return native(self._random.choice(sorted(NATIVE_NAMES - {"counter"})))

    def _type(self, depth: int) -> CqlType:
        pick = self._random
        if depth == 0 or pick.random() < 0.6:
            return self._native()
        kind = pick.randrange(6)
        inner, other = freeze(self._type(depth - 1)), freeze(self._type(depth - 1))
        frozen = pick.random() < 0.5
        if kind == 0:
            return ListType(inner, frozen)
        if kind == 1:
            return SetType(inner, frozen)
        if kind == 2:
            return MapType(inner, other, frozen)
        if kind == 3:
            return TupleType((inner, other))
        if kind == 4:
            return VectorType(inner, pick.randint(1, 3))
        self._used += 1
        return UserType("ks", f"u{self._used}", (("x", inner), ("Y", other), ("l", ListType(inner, True))), frozen)

    # -- cells -------------------------------------------------------------------------------------------------

    def value(self, type_: CqlType) -> bytes:
        """A cell of a type as it stands inside others; an odd one now and then."""
        pick = self._random
        if self._odd and pick.random() < _ODD:
            return pick.choice((b"", b"\xff", pick.randbytes(pick.randrange(20))))
        if isinstance(type_, NativeType):
            return self._native_value(type_.name)
        if isinstance(type_, ListType | SetType):
            return self._cells([self.value(type_.element) for _ in range(pick.randrange(4))], 1)
        if isinstance(type_, MapType):
            parts = (type_.key, type_.value) * pick.randrange(4)
            return self._cells([self.value(part) for part in parts], 2)
        if isinstance(type_, VectorType):
            elements = [self.value(type_.element) for _ in range(type_.dimensions)]
            if fixed_size(type_.element) is not None:
                return b"".join(elements)
            return b"".join(encode_vint(len(element)) + element for element in elements)
        if isinstance(type_, TupleType):
            return self._fields(type_.elements)
        assert isinstance(type_, UserType)
        return self._fields([field for _, field in type_.fields])

    def _cells(self, cells: Sequence[bytes | None], per_entry: int) -> bytes:
        return _count(len(cells) // per_entry) + b"".join(map(_cell, cells))

    def _fields(self, types: Sequence[CqlType]) -> bytes:
        cells = [None if self._random.random() < 0.3 else self.value(type_) for type_ in types]
        return b"".join(map(_cell, cells[: self._random.randint(1, len(cells))]))

    def _native_value(self, name: str) -> bytes:
        pick = self._random
        sizes = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "date": 4, "timestamp": 8, "time": 8, "uuid": 16}
        if name in sizes:
            size = sizes[name]
            bits = pick.getrandbits(8 * size) >> pick.randrange(8 * size)
            return (bits ^ (-pick.randrange(2) & (1 << 8 * size) - 1)).to_bytes(size, "big")
        if name == "timeuuid":
            return self.time()
        if name == "boolean":
            return pick.choice((b"\0", b"\1"))
        if name in ("double", "float"):
            layout = ">d" if name == "double" else ">f"
            kind = pick.randrange(4)
            if kind == 0:
                return pick.randbytes(struct.calcsize(layout))
            number = pick.choice(_DOUBLES) if kind == 1 else round(pick.uniform(-1e4, 1e4), pick.randrange(6))
            if kind == 2:
                number *= 10.0 ** pick.randint(-30, 30)
            return struct.pack(layout, number if name == "double" or not 3e38 < abs(number) < 2e308 else 0.0)
        if name in ("varint", "decimal"):
            number = pick.getrandbits(pick.choice((1, 7, 8, 31, 63, 64, 100, 300))) * pick.choice((1, -1))
            raw = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
            scale = pick.choice((0, 1, 2, 5, 18, -3, 40, 2**31 - 1, -(2**31)))
            return raw if name == "varint" else _count(scale) + raw
        if name == "duration":
            sign = pick.randrange(2)
            parts = (
                pick.getrandbits(pick.choice((0, 5, 31))),
                pick.getrandbits(9),
                pick.getrandbits(pick.choice((9, 62))),
            )
            return b"".join(encode_vint(2 * part - (sign and part > 0)) for part in parts)
        if name == "inet":
            return pick.choice(
                (pick.randbytes(4), pick.randbytes(16), bytes(10) + b"\xff\xff" + pick.randbytes(4), bytes(16))
            )
        if name == "blob":
            return pick.randbytes(pick.randrange(40))
        text = pick.choice(_TEXTS) + pick.choice(_TEXTS)
        return text.encode() if name == "text" else text.encode("ascii", "ignore")

    # -- rows --------------------------------------------------------------------------------------------------

    def time(self) -> bytes:
        """A time UUID; rarely one from before 1970 or far ahead."""
        ticks = self._random.randrange(17_000_000_000_000_000, 18_000_000_000_000_000)
        if self._random.random() < 0.05:
            ticks = self._random.randrange(-(10**17), 9 * 10**17)
        return time_uuid(ticks, self._random.getrandbits(64))

    def batch(self, stream: bytes) -> list[Row]:
        """The rows of one batch: pre-images, changes, post-images, of few keys."""
        pick, layout, time = self._random, self.layout, self.time()
        keys = [[self._key_cell(place.column) for place in layout.keys] for _ in range(pick.choice((1, 1, 1, 2, 3)))]
        if layout.static and pick.random() < 0.15:
            # That of the static row.
            partition = keys[0][: len(layout.partition_key)]
            keys.append([*partition, *[None] * len(layout.clustering_key)])
        if pick.random() < 0.1:
            # A key may be changed more than once, as by an insert beside a delete of its row.
            keys.append(keys[0])
        rows: list[tuple[int, list[bytes | None]]] = []
        for operation, chance in ((0, 0.5), (None, 1.0), (9, 0.5)):
            for key in keys:
                if pick.random() < chance:
                    codes = (1, 1, 1, 3) if self._is_static(key) else (1, 1, 2, 2, 3, -3, 4)
                    code = pick.choice(codes) if operation is None else operation
                    rows.append((code, key))
        if layout.clustering_key and pick.random() < 0.04:
            rows += ((code, self._bound(keys[0])) for code in (pick.choice((5, 6)), pick.choice((7, 8))))
        if self._odd and pick.random() < 0.1:
            rows.append((pick.choice((5, 7, 12, 0x7F)), keys[0]))
        last, numbers = len(rows) - 1, list(range(len(rows)))
        if pick.random() < 0.1:
            numbers = [3 * number + pick.randrange(3) for number in numbers]
        made = [
            self._row(code, key, stream, time, number, at == last)
            for at, (number, (code, key)) in enumerate(zip(numbers, rows, strict=True))
        ]
        return self._keys_only(made) if pick.random() < 0.15 else made

    def _keys_only(self, rows: list[Row]) -> list[Row]:
        """As with `'delta': 'keys'`: what changed is told by images, which have some cells in common."""
        pick, layout = self._random, self.layout
        told = [at for place in layout.regular for at in (place.value, place.deleted, place.deleted_elements)]
        images = [row for row in rows if row[layout.operation] in (b"\0", b"\t")]
        made: list[Row] = []
        for row in rows:
            cells = list(row)
            for at in told:
                if at is not None and row not in images:
                    cells[at] = None
                elif at is not None and pick.random() < 0.5:
                    cells[at] = images[0][at]
            made.append(tuple(cells))
        return made

    def _bound(self, key: list[bytes | None]) -> list[bytes | None]:
        """An end of a deleted range: a part of the clustering key, or nothing of it."""
        known = len(self.layout.partition_key) + self._random.randrange(len(self.layout.clustering_key) + 1)
        return [cell if at < known else None for at, cell in enumerate(key)]

    def _key_cell(self, column: Column) -> bytes | None:
        """Hardly ever one that a column lost when it was renamed."""
        return None if self._random.random() < 0.005 else self.value(column.type)

    def _is_static(self, key: list[bytes | None]) -> bool:
        return bool(self.layout.static) and all(cell is None for cell in key[len(self.layout.partition_key) :])

    def _row(self, code: int, key: list[bytes | None], stream: bytes, time: bytes, number: int, last: bool) -> Row:
        pick, layout = self._random, self.layout
        cells: list[bytes | None] = [None] * len(layout.columns)
        cells[layout.stream_id], cells[layout.time] = stream, time
        cells[layout.batch_seq_no] = _count(number)
        cells[layout.operation] = struct.pack(">b", code)
        cells[layout.end_of_batch] = b"\1" if last else pick.choice((None, b"\0"))
        if pick.random() < 0.3:
            cells[layout.ttl] = pick.getrandbits(30).to_bytes(8, "big")
        for place, cell in zip(layout.keys, key, strict=True):
            cells[place.value or 0] = cell
        others = layout.static if self._is_static(key) and pick.random() < 0.9 else (*layout.static, *layout.regular)
        for place in others:
            if place.value is None:
                continue
            if pick.random() < 0.6:
                cells[place.value] = self._column(place.column.type)
            if place.deleted is not None:
                cells[place.deleted] = pick.choice((None, None, b"\1", b"\0"))
            if place.deleted_elements is not None and pick.random() < 0.3:
                cells[place.deleted_elements] = self._removed(place.column.type)
        return tuple(cells)

    def _column(self, type_: CqlType) -> bytes:
        if is_multi_cell(type_) and isinstance(type_, ListType):
            times = [self.time() for _ in range(self._random.randrange(4))]
            if self._random.random() < 0.9:
                times.sort(key=time_key)
            return self._cells([cell for time in times for cell in (time, self.value(type_.element))], 2)
        return self.value(freeze(type_))

    def _removed(self, type_: CqlType) -> bytes:
        kind = deleted_elements_type(type_)
        assert kind is not None
        if isinstance(type_, UserType):
            return self._cells([self._random.randrange(3).to_bytes(2, "big") for _ in range(2)], 1)
        return self._cells([self.value(kind.element) for _ in range(self._random.randrange(3))], 1)

    def partition(self, shape: WholeRows) -> list[Row]:
        """Rows of one as they are selected: perhaps of its static values alone."""
        pick, columns = self._random, shape.columns
        key = {at: self.value(columns[at].type) for at in range(shape.width)}
        statics = {at: self._selected(columns[at]) for at in shape.statics}
        alone = pick.random() < 0.3 and any(cell is not None for cell in statics.values())
        rows: list[Row] = []
        for _ in range(1 if alone else pick.choice((1, 1, 2, 3))):
            shared, cells = key | statics, range(len(columns))
            row = [shared[at] if at in shared else None if alone else self._selected(columns[at]) for at in cells]
            times = (self._end, self._written) if shape.timed else ()
            rows.append((*row, *(None if row[at] is None else draw() for draw in times for at in shape.timed)))
        return rows

    def _selected(self, column: Column) -> bytes | None:
        type_ = column.type
        if self._random.random() < (0 if column.is_key else 0.3):
            return None
        if is_multi_cell(type_) and isinstance(type_, ListType):
            return self._cells([self.value(type_.element) for _ in range(self._random.randrange(4))], 1)
        return self.value(freeze(type_))

    def _end(self) -> bytes | None:
        """The second in which a cell ends."""
        return None if self._random.random() < 0.7 else struct.pack(">q", SELECTED_AT + self._random.getrandbits(20))

    def _written(self) -> bytes | None:
        """The microsecond in which a cell was written."""
        return None if self._random.random() < 0.2 else struct.pack(">q", self._random.getrandbits(51))

    def page(self, batches: int) -> list[Row]:
        """Rows of so many batches, of few streams."""
        streams = [self._random.randbytes(16) for _ in range(2)]
        rows: list[Row] = []
        for number in range(batches):
            rows += self.batch(streams[number * 2 // batches])
        return rows


def page_of(rows: Sequence[Row]) -> bytes:
    """Rows as the native protocol carries them."""
    return b"".join(_cell(cell) for row in rows for cell in row)


def _cell(raw: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if raw is None else _count(len(raw)) + raw


def _log_columns(description: TableDescription) -> tuple[tuple[str, str], ...]:
    """The columns of the table's log, in the order of its pages; their types follow from the description."""
    rest = ["cdc$end_of_batch", "cdc$operation", "cdc$ttl"]
    for column in description.columns:
        rest.append(column.name)
        if not column.is_key:
            rest.append(f"cdc$deleted_{column.name}")
            if deleted_elements_type(column.type) is not None:
                rest.append(f"cdc$deleted_elements_{column.name}")
    first = ["cdc$stream_id", "cdc$time", "cdc$batch_seq_no"]
    return tuple((name, "") for name in (*first, *sorted(rest, key=lambda name: name.encode())))
