"""Legacy records as JSON text straight from raw cells, a column of many rows at a time.

In: changes of one layout without pre-images. Out: the bytes of their keys and values, equal byte for byte to what
``legacy_plan`` and ``JsonConverter`` make of each. Those are the reference: they serve whenever this does not. It has
no form for other options (``legacy_text`` is None), and raises at a cell that is not as cells usually are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import orjson

from connector import __version__
from connector.changes import Change, LogLayout, Row
from connector.changes.batch import timestamp_us
from connector.changes.change import TRUE
from connector.changes.layout import ColumnPlace
from connector.config.connector_config import OutputConfig
from connector.formats.json_converter import JsonConverter, as_jackson, java_number, to_json
from connector.formats.legacy import has_legacy_form
from connector.formats.plan import TablePlan, nanoseconds, rules_of
from connector.values.floats import is_plain, java_double
from connector.values.rendering import RenderingRules, renderer
from connector.values.types import NativeType

#: From rows to the JSON text of one column's field in each.
Column = Callable[[Sequence[Row]], list[bytes]]
#: From changes and the time now in nanoseconds to key and value of each.
LegacyText = Callable[[Sequence[Change], int], list[tuple[bytes, bytes]]]

_INTEGERS = {"tinyint": ">b", "smallint": ">h", "int": ">i", "bigint": ">q", "timestamp": ">q"}
_unpack_double = struct.Struct(">d").unpack
_NULL = b"null"
_NULL_CELL = b'{"value":null}'


def legacy_text(layout: LogLayout, options: OutputConfig, plan: TablePlan) -> LegacyText | None:
    """The callable for a table, or None where the options ask for more than the plain form."""
    converters = (options.key_converter, options.value_converter)
    if options.format != "legacy" or options.transforms or options.metadata or options.collections == "delta":
        return None
    if any(each.kind != "json" or not each.replace_null_with_default for each in converters):
        return None
    key_head, key_tail = JsonConverter(options.key_converter).frame(plan.key_schema)
    head, tail = JsonConverter(options.value_converter).frame(plan.value_schema)
    places = [place for place in layout.places if has_legacy_form(place.column.type)]
    columns = [_column(place, rules_of(options)) for place in places]
    keys = [at for at, place in enumerate(places) if place.column.is_key]
    key_shape, row_shape = _shape([places[at] for at in keys]), _shape(places)
    envelope = _envelope(layout, options)

    def texts(changes: Sequence[Change], now: int) -> list[tuple[bytes, bytes]]:
        rows = [change.row for change in changes]
        fields = [column(rows) for column in columns]
        written = [row_shape % cells for cells in zip(*fields)]
        key_texts = [as_jackson(key_shape % cells) for cells in zip(*(fields[at] for at in keys))]
        clock = (now // 1_000_000, now // 1000, now)
        values = []
        for change, row in zip(changes, written):
            us = timestamp_us(change.batch.time)
            # Java divides towards zero: it shows before 1970 only.
            ms = us // 1000 if us >= 0 else -(-us // 1000)
            before, after, op = (row, _NULL, b"d") if change.kind == "d" else (_NULL, row, change.kind.encode())
            values.append(head + as_jackson(envelope % (ms, us, nanoseconds(ms), before, after, op, *clock)) + tail)
        return list(zip((key_head + key + key_tail for key in key_texts), values, strict=True))

    return texts if keys else None


def _envelope(layout: LogLayout, options: OutputConfig) -> bytes:
    table = layout.description
    names = (__version__, options.topic_prefix, table.keyspace, table.keyspace, table.name)
    version, prefix, db, keyspace, name = (_literal(each) for each in names)
    return b"".join((
        b'{"source":{"version":', version, b',"connector":"scylla","name":', prefix,
        b',"ts_ms":%d,"snapshot":"false","db":', db, b',"sequence":null,"ts_us":%d,"ts_ns":%d',
        b',"keyspace_name":', keyspace, b',"table_name":', name,
        b'},"before":%b,"after":%b,"op":"%b","ts_ms":%d,"transaction":null,"ts_us":%d,"ts_ns":%d}',
    ))  # fmt: skip


def _shape(places: Sequence[ColumnPlace]) -> bytes:
    return b"{" + b",".join(_literal(place.name) + b":%b" for place in places) + b"}"


def _literal(text: str) -> bytes:
    """A JSON text as it stands in a template."""
    return orjson.dumps(text).replace(b"%", b"%%")


def _column(place: ColumnPlace, rules: RenderingRules) -> Column:
    at, deleted_at = place.value, None if place.column.is_key else place.deleted
    assert at is not None, "a layout has the columns of its page"
    shape = b"%b" if place.column.is_key else b'{"value":%b}'
    name = place.column.type.name if isinstance(place.column.type, NativeType) else ""
    if name in _INTEGERS:
        unpack, integer = struct.Struct(_INTEGERS[name]).unpack, shape.replace(b"%b", b"%d")
        return lambda rows: [
            _absent(row, deleted_at) if (raw := row[at]) is None else integer % unpack(raw) for row in rows
        ]
    if name == "text":
        dumps = orjson.dumps
        return lambda rows: [
            _absent(row, deleted_at) if (raw := row[at]) is None else shape % dumps(raw.decode()) for row in rows
        ]
    if name == "double":
        return lambda rows: [
            _absent(row, deleted_at) if (raw := row[at]) is None else shape % _double(raw) for row in rows
        ]
    render = renderer(place.column.type, rules)
    return lambda rows: [
        _absent(row, deleted_at) if (raw := row[at]) is None else shape % to_json(render(raw)) for row in rows
    ]


def _double(raw: bytes) -> bytes:
    (value,) = _unpack_double(raw)
    return orjson.dumps(value) if is_plain(value) else orjson.dumps(java_number(java_double(value)))


def _absent(row: Row, deleted_at: int | None) -> bytes:
    return _NULL_CELL if deleted_at is not None and row[deleted_at] == TRUE else _NULL
