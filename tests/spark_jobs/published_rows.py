"""A published table as it is read without Spark, in the form in which it is compared with the model.

In: a table's folder. Out: its rows by delta-rs or PyIceberg, both by way of Arrow.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from tests.spark_jobs.history_comparison import same
from tests.spark_jobs.history_model import TableModel
from tests.spark_jobs.history_records import CLUSTERING, COLUMNS


def read_elsewhere(folder: str, sink: str) -> pyarrow.Table:
    """As delta-rs reads it, or PyIceberg without a catalog."""
    if sink == "delta":
        return pyarrow.table(DeltaTable(folder).scan())
    return StaticTable.from_metadata(folder).scan().to_arrow()


def read_rows(folder: str, sink: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_elsewhere(folder, sink).to_pylist()
    if sink == "delta":
        return rows
    # PyIceberg shows a null map of structs as an empty one. One that is not frozen is never empty.
    return [{**row, "mf": row["mf"] or None} for row in rows]


def published_rows(folder: str, sink: str) -> dict[Any, Any]:
    """As `landed_rows` has those of a view."""
    order = TableModel([(kind, desc) for _, kind, desc in CLUSTERING], COLUMNS).order
    found: dict[Any, Any] = {}
    for row in read_rows(folder, sink):
        assert set(row) == {"h", "p", "c", "d", *(column.name for column in COLUMNS)}, "business columns, no others"
        place = None if row["c"] is None else order((Decimal(row["c"]), uuid.UUID(row["d"])))
        key = ((row["h"], repr(row["p"])), place)
        assert key not in found, f"{key} is there twice"
        found[key] = {column.name: same(column.type, _plain(row[column.name])) for column in COLUMNS}
    return found


def _plain(value: Any) -> Any:
    """Fields without their names, and a time as the number that was written."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
    if isinstance(value, dict):
        return [_plain(part) for part in value.values()]
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
