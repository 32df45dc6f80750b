"""The columns of the changelog and of the state, in DDL.

In: a ``Layout``. Out: column names with Spark types, in order. Dead letters, positions and definitions are rows of the
changelog too, in segments of their own, so that one commit holds a batch and everything it implies.
"""

from __future__ import annotations

from spark_jobs.model.landed_types import stored_type
from spark_jobs.model.layout import Key, Layout, Stored

TTL = "ttl"
"""The changelog's column of the seconds after which what was written ends; null where it stays."""
MARKER_TTL = "marker_ttl"
"""The same of a state row's insert. A state has it, and one for each cell, once anything was written with a TTL."""
MARKED_POSITIONS = "positions"
"""The state's column that says, beside the mark, how far the topics are folded into it."""


def noted_headers() -> str:
    """What a dead letter notes of its record's headers: the version, and behind it the TTLs, if there are any."""
    return "CASE WHEN cell_ttls IS NULL THEN made_by ELSE concat(coalesce(made_by, ' '), ' ', cell_ttls) END"


def headers_of(note: str) -> str:
    """The two columns of a batch that a dead letter's note was made of."""
    version = f"nullif(regexp_extract({note}, '^([^ ]* [^ ]*)', 1), ' ')"
    return f"nullif({version}, '') AS made_by, nullif(regexp_extract({note}, '^[^ ]* [^ ]* (.*)$', 1), '') AS cell_ttls"


def changelog_columns(layout: Layout) -> dict[str, str]:
    """The changelog: what a row is about, where it came from, the key, and the cells that the record touched."""
    columns = {
        "segment": "int",
        "bucket": "int",
        "kind": "int",
        "op": "string",
        "ts": "bigint",
        TTL: "bigint",
        "kafka_ms": "bigint",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "landed_at": "timestamp",
        "reason": "string",
        "note": "string",
        "raw_key": "binary",
        "raw_value": "binary",
    }
    columns.update(_keys(layout))
    if layout.clustering:
        columns[layout.bounds] = layout.range_type
    for stored in layout.physical:
        if stored.role == "cell":
            tie = ",x:binary" if stored.tie else ""
            columns[stored.value] = f"struct<v:{stored_type(stored.type)}{tie}>"
        elif stored.role == "fields":
            columns[stored.tombstone] = "boolean"
        else:
            columns[stored.elements] = f"struct<o:boolean,e:array<{stored.element_type(timed=False)}>>"
    return columns


def state_columns(layout: Layout) -> dict[str, str]:
    """The state: one row per clustering row and per partition, and the row that holds the mark and its positions."""
    columns = {"bucket": "int", "kind": "int", "mark": "int", MARKED_POSITIONS: "string"}
    columns.update(_keys(layout))
    for key in _places(layout):
        if key.many_spellings:
            columns[f"s_{key.place}"] = "bigint"
    columns.update({"base": "bigint", "marker": "bigint", "deleted": "bigint"})
    if layout.expiring:
        columns[MARKER_TTL] = "bigint"
    if layout.clustering:
        columns[layout.ranges] = f"array<struct<i:{layout.range_type},t:bigint>>"
    for stored in layout.physical:
        columns.update(_state_columns(stored))
        if layout.expiring and stored.role != "fields":
            columns[stored.ttl] = "bigint" if stored.role == "cell" else "array<bigint>"
    return columns


def _state_columns(stored: Stored) -> dict[str, str]:
    if stored.role == "fields":
        return {stored.tombstone: "bigint"}
    if stored.role == "elements":
        return {
            stored.tombstone: "bigint",
            stored.elements: f"array<{stored.element_type(timed=True)}>",
        }
    columns = {stored.value: stored_type(stored.type), stored.time: "bigint"}
    if stored.tie:
        columns[stored.tie] = "binary"
    return columns


def _keys(layout: Layout) -> dict[str, str]:
    columns: dict[str, str] = {}
    for key in _places(layout):
        columns[key.value] = stored_type(key.type)
        if key.identity != key.value:
            columns[key.identity] = key.identity_type
    return columns


def _places(layout: Layout) -> list[Key]:
    return [place for key in layout.keys for place in (key, *key.follows)]
