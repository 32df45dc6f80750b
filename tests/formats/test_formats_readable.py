"""What the ``read`` command prints of a batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connector.changes import Row
from connector.errors import PoisonRow
from connector.formats.readable import batch_document
from connector.values.types import UserType, native
from tests.formats.rows import STREAM, TIME, Log, table

U = UserType("ks", "u", (("a", native("int")),))
LOG = Log(
    table({"pk": "int", "ck": "int", "v": "text", "m": "map<int, u>", "b": "blob"}, clustering=("ck",), types={"u": U})
)


def document(*rows: Row, raw: bool = False) -> Any:
    made = batch_document(LOG.batch(*rows), raw)
    assert json.loads(json.dumps(made)) == made
    return made


def test_a_batch() -> None:
    shown = document(
        LOG.row(0, 0, deleted=("v",), pk=1, ck=2, m=[(1, (5,))]),
        LOG.row(1, 1, ttl=9, deleted=("b",), removed={"m": [1]}, pk=1, ck=2, v="x"),
        LOG.row(9, 2, True, pk=1, ck=2, v="x"),
    )
    assert {name: shown[name] for name in ("keyspace_name", "table_name", "stream_id", "time")} == {
        "keyspace_name": "ks",
        "table_name": "t",
        "stream_id": STREAM.hex(),
        "time": str(TIME),
    }
    assert shown["timestamp_us"] == (TIME.time - 0x01B21DD213814000) // 10
    assert shown["changes"] == [
        {
            "op": "u",
            "operation": 1,
            "batch_seq_no": 1,
            "ttl": 9,
            "key": {"pk": 1, "ck": 2},
            "columns": {"b": None, "m": {"mode": "modify", "elements": [{"key": 1, "value": None}]}, "v": "x"},
            "before": {"ck": 2, "m": [{"key": 1, "value": {"a": 5}}], "pk": 1, "v": None},
            "after": {"ck": 2, "pk": 1, "v": "x"},
        }
    ]
    assert "rows" not in shown


def test_deletes_of_several_rows() -> None:
    shown = document(LOG.row(5, 0, pk=1, ck=2), LOG.row(7, 1, pk=1), LOG.row(4, 2, True, pk=1))
    assert shown["changes"] == [
        {
            "op": "range",
            "operation": 5,
            "batch_seq_no": 0,
            "ttl": None,
            "key": {"pk": 1},
            "start": {"values": [2], "inclusive": True},
            "end": {"values": [], "inclusive": True},
        },
        {"op": "partition", "operation": 4, "batch_seq_no": 2, "ttl": None, "key": {"pk": 1}},
    ]


def test_raw_rows() -> None:
    shown = document(LOG.row(1, 3, True, removed={"m": [7]}, pk=1, ck=2, b=b"\xca"), raw=True)
    assert shown["rows"] == [
        {
            "cdc$stream_id": STREAM.hex(),
            "cdc$time": str(TIME),
            "cdc$batch_seq_no": 3,
            "b": "yg==",
            "cdc$deleted_elements_m": [7],
            "cdc$end_of_batch": True,
            "cdc$operation": 1,
            "ck": 2,
            "pk": 1,
        }
    ]


def test_what_cannot_be_read_is_poison() -> None:
    with pytest.raises(PoisonRow, match="column v"):
        document(LOG.row(1, 0, True, raw={"v": b"\xff"}, pk=1, ck=2))


def test_numbers_and_blobs_are_as_in_records() -> None:
    log = Log(table({"pk": "blob", "f": "float", "d": "double", "v": "vector<float, 2>"}))
    row = log.row(2, 0, True, pk=b"\xca", f=0.1, d=float("nan"), v=[0.1, float("inf")])
    (change,) = batch_document(log.batch(row))["changes"]
    assert change["key"] == {"pk": "yg=="}
    assert change["columns"] == {"d": "NaN", "f": 0.1, "v": [0.1, "Infinity"]}
