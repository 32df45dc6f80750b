"""What a plain simulated table is, as far as somebody has heard by a time: columns that are added, one that is dropped
and added again, a column of the key that gets another name.

In: a table, a row of its log, until when (ms) a node has heard of changes. Out: columns as the server's own tables have
them, the cells that such a node shows. What was written to a column before it was dropped is gone for whoever has heard
of that, and of another type than it had once for whoever has not heard of its return; by its new name a column of the
key has nothing from before, by its former one nothing from after.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from connector.errors import SourceError
from tests.simulation.base_rows import OF_EVERY_LOG, Selection, driver_type
from tests.simulation.base_world import DROPPED
from tests.simulation.source_bytes import log_row
from tests.simulation.source_world import Row, Table

# The log's columns count as dropped for so much longer than they are.
_AHEAD_MS = 5_000
_WORD = re.compile(r"\w+")


def key_column(table: Table, heard: float) -> str:
    return table.clustering[0] if table.renamed is None or heard < table.renamed else "c2"


def key_cell(table: Table, cell: bytes | None) -> bytes | None:
    """What a table has in its clustering column in the place of a number: texts of them are in the same order."""
    if cell is None or table.clustering[1] == "int":
        return cell
    return b"%02d" % int.from_bytes(cell, "big")


def number_cell(table: Table, cell: bytes) -> bytes:
    """The other way round; an error where it is of another type."""
    is_text = table.clustering[1] == "text"
    if len(cell) != (2 if is_text else 4):
        raise SourceError(f"Validation failed for {table.clustering[1]}")
    return struct.pack(">i", int(cell)) if is_text else cell


def selection(table: Table, heard: float, columns: list[str], where: str, values: Sequence[Any]) -> Selection:
    """What is asked of a table by the names that its columns have, in those that they have here."""
    name = key_column(table, heard)
    wrong = {"ck", "c2", "c3"} - {name}
    if wrong & {*columns, *_WORD.findall(where)}:
        raise SourceError(f"Undefined column name {', '.join(wrong & {*columns, *_WORD.findall(where)})}")
    if name in _WORD.findall(where):
        values = [*values[:-1], number_cell(table, values[-1])]
    ours = ["ck" if each == name else each for each in columns]
    return Selection(ours, _WORD.sub(lambda word: "ck" if word[0] == name else word[0], where), values)


def shown(table: Table, asked: Selection, rows: Sequence[tuple[bytes | None, ...]]) -> list[tuple[bytes | None, ...]]:
    """Rows as the table has them."""
    at = asked.what.index("ck")
    return [(*row[:at], key_cell(table, row[at]), *row[at + 1 :]) for row in rows]


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
        key_column(table, heard): table.clustering[1],
        "pk": "int",
        **regular,
    }
    return {name: driver_type(type_) for name, type_ in found.items()}


def base_columns(table: Table, heard: float) -> list[dict[str, Any]]:
    kinds = [("pk", "partition_key", 0, "int"), (key_column(table, heard), "clustering", 0, table.clustering[1])]
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
        gone.append((*table.clustering, renamed))
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
    key = key_cell(table, found.pop("ck", None))
    if key is not None and key_column(table, row.ms) == key_column(table, heard):
        found[key_column(table, heard)] = key
    if row.logged is not None:
        if again is not None and not again.is_shown(row.ms, heard):
            found.pop(DROPPED, None)
            found.pop(f"cdc$deleted_{DROPPED}", None)
        return found
    found |= {name: _raw(value) for name, value in written(table, row).items()}
    if again is not None and not again.is_shown(row.ms, heard):
        found.pop(DROPPED, None)
    return found


def _raw(value: str | int) -> bytes:
    return struct.pack(">i", value) if isinstance(value, int) else value.encode()


def _moment(ms: float) -> datetime:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=round(ms))).replace(tzinfo=None)
