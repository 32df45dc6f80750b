"""Reading a log through a driver and showing its rows as the case files write them.

Comes in: a driver session and a log table. Goes out: `ShownRow`s, in the order of time and number; values as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from tests.embedded.scylla.cdc_model import PAST

UUID_EPOCH = 0x01B21DD213814000
REFERENCE_US = 1_262_304_000_000_000
"""The start of 2010, at which the times of prepended elements are mirrored."""
_FIXED = {"cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$ttl", "cdc$end_of_batch"}


class ShownRow(NamedTuple):
    """`time` in microseconds since some base; `columns` without those of every log, and without nulls."""

    time: int
    number: int
    operation: int
    ttl: int | None
    end: bool | None
    columns: dict[str, str]


def show(column: str, value: Any) -> str:
    """`{k: v}`, `{a, b}`, `(a, b)`, `'text'`, `true`; timeuuid keys of a list as k1, k2, … in their order."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, Mapping):
        items = list(value.items())
        if items and hasattr(items[0][0], "hex"):
            items = [(f"k{at}", each) for at, (_, each) in enumerate(items, 1)]
        return "{" + ", ".join(f"{key}: {show(column, each)}" for key, each in items) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(show(column, each) for each in value) + ")"
    if hasattr(value, "__iter__") and not isinstance(value, bytes):
        return "{" + ", ".join(show(column, each) for each in value) + "}"
    return str(value)


def log_rows(session: Any, table: str, base: int, *, since: int | None = None) -> list[ShownRow]:
    """The log's rows with a time of `since` or later."""
    rows = []
    for row in session.execute(f"SELECT * FROM {table}_scylla_cdc_log"):
        values = row._asdict() if hasattr(row, "_asdict") else dict(row)
        ticks = values["cdc$time"].time - UUID_EPOCH
        assert ticks % 10 == 0, "a cdc$time is a whole microsecond"
        micros = ticks // 10
        if since is not None and micros < since:
            continue
        columns = {
            name: show(name, value) for name, value in values.items() if name not in _FIXED and value is not None
        }
        rows.append(
            ShownRow(
                micros - base,
                values["cdc$batch_seq_no"],
                values["cdc$operation"],
                values["cdc$ttl"],
                values["cdc$end_of_batch"],
                columns,
            )
        )
    return sorted(rows, key=lambda row: (row.time, row.number))


def list_position(key: UUID, base: int) -> tuple[int, int]:
    """A list element's position as the model has it."""
    micros, tick = divmod(key.time - UUID_EPOCH, 10)
    time = micros - base if micros > REFERENCE_US else PAST - (2 * REFERENCE_US - micros - base)
    return time, tick << 14 | ((key.int >> 48 & 0x3FFF) ^ 0x80)
