"""Columns, structs and envelopes as JSON text.

In: raw cells. Out: bytes, the same as ``to_json`` makes of a plan's values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import orjson

from connector import __version__
from connector.changes import Change, ColumnPlace, LogLayout
from connector.config import OutputConfig
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
from connector.formats.json_converter import as_jackson, java_number, to_json
from connector.formats.plan import metadata_of
from connector.formats.record import Schema
from connector.values import NativeType, RenderingRules, column_renderer, is_plain, java_double

_unpack_double = struct.Struct(">d").unpack
_NULL = b"null"
_NULL_CELL = b'{"value":null}'
#: What is the value, of bytes that are a cell, and of others.
_IN_CELL, _BARE = slice(len(b'{"value":'), -1), slice(None)


class JsonColumns:
    """One side of the records of a topic; ``head`` and ``tail`` stand around its texts."""

    null = _NULL

    def __init__(self, head: bytes, tail: bytes, rules: RenderingRules) -> None:
        self._head, self._tail = head, tail
        self._rules = rules

    def column(self, place: ColumnPlace, in_cell: bool) -> Column:
        at, deleted_at = place.value, place.deleted if in_cell else None
        assert at is not None, "a layout has the columns of its page"
        shape = b'{"value":%b}' if in_cell else b"%b"
        name = place.column.type.name if isinstance(place.column.type, NativeType) else ""
        if name in INTEGERS:
            unpack, integer = struct.Struct(INTEGERS[name]).unpack, shape.replace(b"%b", b"%d")
            return lambda rows: [
                absent(row, deleted_at, _NULL_CELL, _NULL) if (raw := row[at]) is None else integer % unpack(raw)
                for row in rows
            ]
        if name == "text":
            dumps = orjson.dumps
            return lambda rows: [
                absent(row, deleted_at, _NULL_CELL, _NULL) if (raw := row[at]) is None else shape % dumps(raw.decode())
                for row in rows
            ]
        if name == "double":
            return lambda rows: [
                absent(row, deleted_at, _NULL_CELL, _NULL) if (raw := row[at]) is None else shape % _double(raw)
                for row in rows
            ]
        render = usual(column_renderer(place.column.type, self._rules), in_cell)
        return lambda rows: [
            absent(row, deleted_at, _NULL_CELL, _NULL) if (raw := row[at]) is None else shape % to_json(render(raw))
            for row in rows
        ]

    def written(self, schema: Schema) -> Written:
        return lambda values: [_NULL if value is None else to_json(value) for value in values]

    def join(self, names: Sequence[str], optional: bool) -> Join:
        shape = b"{" + b",".join(_literal(name) + b":%b" for name in names) + b"}"
        return lambda fields, rows: [shape % cells for cells in by_row(fields, rows)]

    def join_written(self, names: Sequence[str], always: frozenset[str], in_cells: frozenset[str]) -> Join:
        """Structs without what nobody wrote, but for what is ``always`` there; some are taken out of their cells."""
        members = [
            (orjson.dumps(name) + b":", name in always, _IN_CELL if name in in_cells else _BARE) for name in names
        ]
        join = b",".join

        def structs(fields: Sequence[list[bytes]], rows: int) -> list[bytes]:
            shown = [
                [name + cell[inside] if always or cell != _NULL else b"" for cell in cells]
                for (name, always, inside), cells in zip(members, fields, strict=True)
            ]
            return [b"{" + join(filter(None, row)) + b"}" for row in by_row(shown, rows)]

        return structs

    def framed(self, structs: Sequence[bytes]) -> list[bytes]:
        head, tail = self._head, self._tail
        return [head + as_jackson(text) + tail for text in structs]

    def payload_key(self, name: str) -> bytes:
        return b"," + orjson.dumps(name) + b":"

    def envelope(self, layout: LogLayout, options: OutputConfig, now: int, clock: bool) -> Envelope:
        head, tail = self._head, self._tail
        sources = {text: _source(layout, options, text) for text in SNAPSHOT_TEXTS}
        us, ns = (b"%d" % (now // 1000), b"%d" % now) if clock else (_NULL, _NULL)
        ends = {
            kind: b',"op":"%b","ts_ms":%d,"transaction":null,"ts_us":%b,"ts_ns":%b}'
            % (kind.encode(), now // 1_000_000, us, ns)
            + tail
            for kind in OPERATIONS
        }

        def envelope(change: Change, times: tuple[int, int, int], before: bytes, after: bytes) -> bytes:
            return head + as_jackson(sources[change.snapshot] % (*times, before, after)) + ends[change.kind]

        def with_metadata(change: Change, times: tuple[int, int, int], before: bytes, after: bytes) -> bytes:
            more = orjson.dumps(metadata_of(change))[1:-1]
            return head + as_jackson(sources[change.snapshot] % (*times, more, before, after)) + ends[change.kind]

        return with_metadata if options.metadata else envelope


def _source(layout: LogLayout, options: OutputConfig, snapshot: str) -> bytes:
    table = layout.description
    names = (__version__, options.topic_prefix, table.keyspace, table.keyspace, table.name)
    version, prefix, db, keyspace, name = (_literal(each) for each in names)
    return b"".join((
        b'{"source":{"version":', version, b',"connector":"scylla","name":', prefix,
        b',"ts_ms":%d,"snapshot":', _literal(snapshot), b',"db":', db, b',"sequence":null,"ts_us":%d,"ts_ns":%d',
        b',"keyspace_name":', keyspace, b',"table_name":', name, b",%b" if options.metadata else b"",
        b'},"before":%b,"after":%b',
    ))  # fmt: skip


def _literal(text: str) -> bytes:
    """A JSON text as it stands in a template."""
    return orjson.dumps(text).replace(b"%", b"%%")


def _double(raw: bytes) -> bytes:
    (value,) = _unpack_double(raw)
    return orjson.dumps(value) if is_plain(value) else orjson.dumps(java_number(java_double(value)))
