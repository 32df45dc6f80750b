"""The simulated ScyllaDB's tables as bytes: rows of logs, options and columns as its own tables have them.

In: rows of the world, names of columns. Out: cells, and the driver's types of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from cassandra import cqltypes

from tests.simulation.source_world import Row, Table

_INSERT = b"\x02"
_TRUE = b"\x01"


def plain_log_columns(regular: Sequence[str]) -> dict[str, Any]:
    found = {
        "cdc$stream_id": cqltypes.BytesType,
        "cdc$time": cqltypes.TimeUUIDType,
        "cdc$batch_seq_no": cqltypes.Int32Type,
        **{f"cdc$deleted_{name}": cqltypes.BooleanType for name in regular},
        "cdc$end_of_batch": cqltypes.BooleanType,
        "cdc$operation": cqltypes.ByteType,
        "cdc$ttl": cqltypes.LongType,
        "ck": cqltypes.Int32Type,
        "pk": cqltypes.Int32Type,
    }
    return found | dict.fromkeys(regular, cqltypes.UTF8Type)


def log_row(row: Row) -> dict[str, bytes | None]:
    pk, ck = row.key
    if row.logged is not None:
        return {
            "cdc$stream_id": row.stream,
            "cdc$time": row.time,
            "cdc$batch_seq_no": struct.pack(">i", row.number),
            "cdc$end_of_batch": _TRUE if row.last else None,
            "pk": struct.pack(">i", pk),
            **row.logged,
        }
    return {
        "cdc$stream_id": row.stream,
        "cdc$time": row.time,
        "cdc$batch_seq_no": struct.pack(">i", row.number),
        "cdc$end_of_batch": _TRUE if row.last else None,
        "cdc$operation": _INSERT,
        "pk": struct.pack(">i", pk),
        "ck": struct.pack(">i", ck),
        "v": row.text.encode(),
        "w": row.text.encode(),
    }


def cdc_options(table: Table) -> bytes:
    given = {"enabled": "true", "preimage": "false", "postimage": "false", "delta": "full", "ttl": str(table.ttl)}
    texts = b"".join(struct.pack("<I", len(each)) + each.encode() for pair in given.items() for each in pair)
    return struct.pack("<I", len(given)) + texts


def plain_base_rows(regular: Sequence[str]) -> list[dict[str, Any]]:
    kinds = [("pk", "partition_key", 0, "int"), ("ck", "clustering", 0, "int")]
    kinds += [(name, "regular", -1, "text") for name in regular]
    return [
        {"column_name": name, "kind": kind, "position": at, "type": type_, "clustering_order": "asc"}
        for name, kind, at, type_ in kinds
    ]


def log_rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"column_name": name, "kind": "regular", "position": -1, "type": kind.cql_parameterized_type()}
        for name, kind in columns.items()
    ]
