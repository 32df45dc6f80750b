"""What a plain simulated table is, as far as somebody has heard by a time: columns that are added, one that is dropped
and added again, a column of the key that gets another name.

In: a table, a row of its log, until when (ms) a node has heard of changes. Out: columns as the server's own tables have
them, the cells that such a node shows. What was written to a column before it was dropped is gone for whoever has heard
of that, and of another type than it had once for whoever has not heard of its return; by its new name a column of the
key has nothing from before, by its former one nothing from after.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.simulation.base_rows import OF_EVERY_LOG, driver_type
from tests.simulation.base_world import DROPPED
from tests.simulation.source_bytes import log_row
from tests.simulation.source_world import Row, Table

# The log's columns count as dropped for so much longer than they are.
_AHEAD_MS = 5_000


def key_column(table: Table, heard: float) -> str:
    return "ck" if table.renamed is None or heard < table.renamed else "c2"


def regular_columns(table: Table, heard: float) -> dict[str, str]:
    """With their types."""
    return {"v": "text"} | changed_columns(table, heard)


def changed_columns(table: Table, heard: float) -> dict[str, str]:
    """Those that are not always there, with their types."""
    found = {name: "text" for name, added in table.columns.items() if added <= heard}
    if (again := table.again) is not None:
        if heard < again.dropped:
            found[DROPPED] = again.type_before
        elif heard >= again.added:
            found[DROPPED] = "text"
    return found


def log_columns(table: Table, heard: float) -> dict[str, Any]:
    """With the driver's types."""
    regular = regular_columns(table, heard)
    found = {
        **OF_EVERY_LOG,
        **{f"cdc$deleted_{name}": "boolean" for name in regular},
        key_column(table, heard): "int",
        "pk": "int",
        **regular,
    }
    return {name: driver_type(type_) for name, type_ in found.items()}


def base_columns(table: Table, heard: float) -> list[dict[str, Any]]:
    kinds = [("pk", "partition_key", 0, "int"), (key_column(table, heard), "clustering", 0, "int")]
    kinds += [(name, "regular", -1, type_) for name, type_ in regular_columns(table, heard).items()]
    return [
        {"column_name": name, "kind": kind, "position": at, "type": type_, "clustering_order": "asc"}
        for name, kind, at, type_ in kinds
    ]


def dropped_columns(table: Table, heard: float, of_log: bool) -> list[dict[str, Any]]:
    again, renamed = table.again, table.renamed
    gone: list[tuple[str, str, float]] = []
    if again is not None and again.dropped <= heard:
        gone = [(DROPPED, again.type_before, again.dropped)]
        if of_log:
            gone.append((f"cdc$deleted_{DROPPED}", "boolean", again.dropped))
    if of_log and renamed is not None and renamed <= heard:
        gone.append(("ck", "int", renamed))
    ahead = _AHEAD_MS if of_log else 0
    return [{"column_name": name, "type": type_, "dropped_time": _moment(at + ahead)} for name, type_, at in gone]


def written(table: Table, row: Row) -> dict[str, str | int]:
    """What a row's write gave each column that was there then, beside those of the key."""
    found: dict[str, str | int] = dict.fromkeys(regular_columns(table, row.ms), row.text)
    if (again := table.again) is not None and row.ms < again.dropped and again.type_before == "int":
        found[DROPPED] = int(row.text)
    return found


def cells(table: Table, row: Row, heard: float) -> dict[str, bytes | None]:
    """As a node shows them that has heard until then."""
    found = log_row(row)
    again = table.again
    if row.logged is not None:
        if again is not None and not again.is_shown(row.ms, heard):
            found.pop(DROPPED, None)
            found.pop(f"cdc$deleted_{DROPPED}", None)
        return found
    key = found.pop("ck")
    if key_column(table, row.ms) == key_column(table, heard):
        found[key_column(table, heard)] = key
    found |= {name: _raw(value) for name, value in written(table, row).items()}
    if again is not None and not again.is_shown(row.ms, heard):
        found.pop(DROPPED, None)
    return found


def _raw(value: str | int) -> bytes:
    return struct.pack(">i", value) if isinstance(value, int) else value.encode()


def _moment(ms: float) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=round(ms))).replace(tzinfo=None)
