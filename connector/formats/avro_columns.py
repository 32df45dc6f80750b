"""Columns, structs and envelopes in Avro's binary encoding.

In: raw cells. Out: bytes, the same as ``writer`` makes of a plan's values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

from connector import __version__
from connector.changes import Change, ColumnPlace, LogLayout
from connector.config import OutputConfig
from connector.formats.avro_converter import long_bytes, writer
from connector.formats.columns import (
    INTEGERS,
    OPERATIONS,
    SNAPSHOT_TEXTS,
    Column,
    Envelope,
    Join,
    Written,
    absent,
    by_row,
    usual,
)
from connector.formats.plan import metadata_of
from connector.formats.record import Schema
from connector.formats.schemas import schema_of
from connector.values import NativeType, RenderingRules, column_renderer, freeze

# The branches of optional fields, and of the one with a default.
_NULL = b"\x00"
_PRESENT = b"\x02"
_DEFAULT_FIRST = b"\x00"
_NULL_CELL = _PRESENT + _NULL

_unpack_double = Struct(">d").unpack
_pack_double = Struct("<d").pack


class AvroColumns:
    """One side of the records of a topic; ``head`` gives what stands before each value."""

    null = _NULL

    def __init__(self, head: Callable[[], bytes], rules: RenderingRules) -> None:
        self._head = head
        self._rules = rules

    def column(self, place: ColumnPlace, in_cell: bool) -> Column:
        at, deleted_at = place.value, place.deleted if in_cell else None
        assert at is not None, "a layout has the columns of its page"
        cell = _PRESENT if in_cell else b""
        present = cell + _PRESENT
        name = place.column.type.name if isinstance(place.column.type, NativeType) else ""
        if name in INTEGERS:
            unpack = Struct(INTEGERS[name]).unpack
            return lambda rows: [
                absent(row, deleted_at, _NULL_CELL, _NULL)
                if (raw := row[at]) is None
                else present + long_bytes(*unpack(raw))
                for row in rows
            ]
        if name == "text":
            return lambda rows: [
                absent(row, deleted_at, _NULL_CELL, _NULL) if (raw := row[at]) is None else present + _text(raw)
                for row in rows
            ]
        if name == "double":
            return lambda rows: [
                absent(row, deleted_at, _NULL_CELL, _NULL)
                if (raw := row[at]) is None
                else present + _pack_double(*_unpack_double(raw))
                for row in rows
            ]
        render = usual(column_renderer(place.column.type, self._rules), in_cell)
        write = writer(schema_of(freeze(place.column.type), ""))

        def written(raw: bytes) -> bytes:
            buffer = bytearray(cell)
            write(render(raw), buffer)
            return bytes(buffer)

        return lambda rows: [
            absent(row, deleted_at, _NULL_CELL, _NULL) if (raw := row[at]) is None else written(raw) for row in rows
        ]

    def written(self, schema: Schema) -> Written:
        write = writer(schema)

        def written(value: Any) -> bytes:
            buffer = bytearray()
            write(value, buffer)
            return bytes(buffer)

        return lambda values: [written(value) for value in values]

    def join(self, names: Sequence[str], optional: bool) -> Join:
        join = b"".join
        if not optional:
            return lambda fields, rows: [join(cells) for cells in by_row(fields, rows)]
        return lambda fields, rows: [join((_PRESENT, *cells)) for cells in by_row(fields, rows)]

    def framed(self, structs: Sequence[bytes]) -> list[bytes]:
        head = self._head()
        return [head + struct for struct in structs]

    def payload_key(self, name: str) -> bytes:
        return b""

    def envelope(self, layout: LogLayout, options: OutputConfig, now: int, clock: bool) -> Envelope:
        table = layout.description
        start = self._head() + _string(__version__) + _string("scylla") + _string(options.topic_prefix)
        behind = _string(table.keyspace) + _NULL + _PRESENT
        middles = {text: _DEFAULT_FIRST + _string(text) + behind for text in SNAPSHOT_TEXTS}
        names = _string(table.keyspace) + _string(table.name)
        times = _PRESENT + long_bytes(now // 1000) + _PRESENT + long_bytes(now) if clock else _NULL + _NULL
        made = _PRESENT + long_bytes(now // 1_000_000) + _NULL + times
        ends = {kind: _PRESENT + _string(kind) + made for kind in OPERATIONS}
        join = b"".join

        def envelope(change: Change, times: tuple[int, int, int], before: bytes, after: bytes) -> bytes:
            ms, us, ns = map(long_bytes, times)
            middle, end = middles[change.snapshot], ends[change.kind]
            return join((start, ms, middle, us, _PRESENT, ns, names, before, after, end))

        def with_metadata(change: Change, times: tuple[int, int, int], before: bytes, after: bytes) -> bytes:
            stream, time, *numbers = metadata_of(change).values()
            said = (_PRESENT, _string(stream), _PRESENT, _string(time), *map(_number, numbers))
            return envelope(change, times, join((*said, before)), after)

        return with_metadata if options.metadata else envelope


def _text(raw: bytes) -> bytes:
    if not raw.isascii():
        # Only to see whether it is UTF-8: what is not has no record.
        raw.decode()
    return long_bytes(len(raw)) + raw


def _number(value: int | None) -> bytes:
    return _NULL if value is None else _PRESENT + long_bytes(value)


def _string(text: str) -> bytes:
    return _text(text.encode())
