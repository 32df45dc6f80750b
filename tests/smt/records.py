"""Envelopes as the connector writes them, in both formats, with a schema and without."""

from __future__ import annotations

from typing import Any

from smt import Record, Schema, build_transform

TOPIC = "shop.ks.t"
KEY = {"ck": 2, "pk": 1}
SOURCE = {"connector": "scylla", "ts_ms": 5, "ts_us": 5001, "snapshot": None, "keyspace_name": "ks", "table_name": "t"}

_INT: Schema = {"type": "int32", "optional": True}
_TEXT: Schema = {"type": "string", "optional": True}


def struct(name: str, fields: dict[str, Schema], *, optional: bool) -> Schema:
    listed = [{**schema, "field": field} for field, schema in fields.items()]
    return {"type": "struct", "fields": listed, "optional": optional, "name": name}


def cell(column: str, inner: Schema) -> Schema:
    return struct(f"{TOPIC}.{column}.Cell", {"value": inner}, optional=True)


def row_schema(image: str, *, legacy: bool) -> Schema:
    columns = {
        "ck": _INT,
        "pk": _INT,
        "v": cell("v", _TEXT) if legacy else _TEXT,
        "w": cell("w", _INT) if legacy else _INT,
    }
    return struct(f"{TOPIC}.{image}", columns, optional=True)


SOURCE_SCHEMA = struct(
    "com.scylladb.cdc.debezium.connector",
    {
        "connector": {"type": "string", "optional": False},
        "ts_ms": {"type": "int64", "optional": False},
        "ts_us": {"type": "int64", "optional": True},
        "snapshot": {"type": "string", "optional": True, "name": "io.debezium.data.Enum", "default": "false"},
        "keyspace_name": {"type": "string", "optional": False},
        "table_name": {"type": "string", "optional": False},
    },
    optional=False,
)
TRANSACTION_SCHEMA = struct(
    "event.block",
    {"id": {"type": "string", "optional": False}, "total_order": {"type": "int64", "optional": False}},
    optional=True,
)


def envelope_schema(*, legacy: bool = True) -> Schema:
    fields = {
        "source": SOURCE_SCHEMA,
        "before": row_schema("Before", legacy=legacy),
        "after": row_schema("After", legacy=legacy),
        "op": _TEXT,
        "ts_ms": {"type": "int64", "optional": True},
        "transaction": TRANSACTION_SCHEMA,
    }
    return struct(f"{TOPIC}.Envelope", fields, optional=False)


LEGACY, ADVANCED = envelope_schema(), envelope_schema(legacy=False)
KEY_SCHEMA = struct(f"{TOPIC}.Key", {"ck": _INT, "pk": _INT}, optional=False)


def envelope(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    return {"source": SOURCE, "before": before, "after": after, "op": op, "ts_ms": 9, "transaction": None}


def record(
    op: str,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    *,
    schema: Schema | None = None,
    key: Any = KEY,
    headers: list[tuple[str, Any]] | None = None,
) -> Record:
    key_schema = KEY_SCHEMA if schema else None
    return Record(TOPIC, key, envelope(op, before, after), headers or [], key_schema, schema)


TOMBSTONE = Record(TOPIC, KEY, None, [], None, None)

#: Legacy: v set to 3, w untouched; v set to null; a delete without preimage.
INSERT = ("c", None, {"ck": 2, "pk": 1, "v": {"value": "3"}, "w": None})
SET_NULL = ("u", None, {"ck": 2, "pk": 1, "v": {"value": None}, "w": None})
DELETE = ("d", {"ck": 2, "pk": 1, "v": None, "w": None}, None)

JAVA = "com.scylladb.cdc.debezium.connector.transforms.ScyllaExtractNewRecordState"


def run(type_name: str, options: dict[str, str], *records: Record) -> list[Record]:
    """What comes out for the records, without those that are dropped."""
    transform = build_transform(type_name, options)
    return [found for one in records if (found := transform(one)) is not None]


def values(type_name: str, options: dict[str, str], *records: Record) -> list[Any]:
    return [found.value for found in run(type_name, options, *records)]
