"""The simulated ScyllaDB's tables as bytes: rows of logs, options and columns as its own tables have them.

In: rows of the world, names of columns. Out: cells, and the driver's types of them.
"""

from __future__ import annotations

import struct
from typing import Any

from tests.simulation.source_world import Row, Table

_INSERT = b"\x02"
_TRUE = b"\x01"


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
    }


def cdc_options(table: Table) -> bytes:
    given = {"enabled": "true", "preimage": "false", "postimage": "false", "delta": "full", "ttl": str(table.ttl)}
    texts = b"".join(struct.pack("<I", len(each)) + each.encode() for pair in given.items() for each in pair)
    return struct.pack("<I", len(given)) + texts


def log_rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"column_name": name, "kind": "regular", "position": -1, "type": kind.cql_parameterized_type()}
        for name, kind in columns.items()
    ]
