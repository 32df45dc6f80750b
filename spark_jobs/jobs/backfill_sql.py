"""Rows of the source as changelog rows: one per write time and TTL that a row has cells of.

In: the reader's frame and a ``Layout``. Out: a frame with the changelog's columns, values that no reader's type can
hold as dead letters.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from connector.values import CqlType
from spark_jobs.decode import not_fitting
from spark_jobs.model import (
    DEAD,
    ROW,
    TTL,
    DeadReason,
    Layout,
    as_recorded,
    bucket_of,
    changelog_columns,
    key_columns,
    quoted,
    reason_sql,
    struct_of,
    ttl_of,
)
from spark_jobs.named_frames import over_frame
from spark_jobs.source import ReadPlan, end_name, source_keys

LOWEST = -(2**63) + 1
"""Below every time that a write can have; the number below it stands for the base time in the state."""
_ROWS = "scylla_cdc_source_rows"


def lowest_time(layout: Layout, not_before: int | None = None) -> int:
    """The time of what the source tells none of: nothing that is not newer than the table's truncation, or than the
    dropping of a column of the same name, exists."""
    return max([LOWEST, *(time + 1 for time in (layout.not_before, not_before) if time is not None)])


def change_rows(rows: DataFrame, layout: Layout, plan: ReadPlan, segment: int) -> DataFrame:
    """The changelog rows of source rows."""
    lowest = lowest_time(layout)
    timed = {part.name for part in plan.parts if part.what == "time"}
    columns = ["kind", *source_keys(layout)]
    ended = _row_end(plan)
    # Not at_row, which is what a column named row has.
    columns.append(f"CASE WHEN kind = {ROW} THEN {_written(f'{lowest}L', ended)} END AS row_at")
    times = ["row_at"]
    made: dict[str, str] = {}
    for cell in plan.cells:
        stored, least = cell.stored, lowest_time(layout, cell.not_before)
        written = _written(f"{least}L", "NULL" if cell.static else ended)
        if stored.time in timed:
            written = _written(f"greatest({quoted(stored.time)}, {least}L)", quoted(end_name(stored)))
        when = quoted(f"at_{stored.physical}")
        columns.append(f"CASE WHEN {quoted(stored.value)} IS NOT NULL THEN {written} END AS {when}")
        fields = [("v", quoted(stored.value))]
        if stored.tie:
            fields.append(("x", quoted(stored.tie)))
        columns.append(f"{struct_of(fields)} AS {quoted('cell_' + stored.physical)}")
        times.append(when)
        made[stored.value] = f"CASE WHEN {when} <=> at THEN {quoted('cell_' + stored.physical)} END"
    for part in plan.elements:
        name, when = quoted(part.stored.elements), quoted(f"at_{part.stored.physical}")
        written = _written(f"{lowest_time(layout, part.not_before)}L", "NULL" if part.static else ended)
        columns.append(f"CASE WHEN {name} IS NOT NULL THEN {written} END AS {when}")
        columns.append(name)
        times.append(when)
        made[part.stored.elements] = f"CASE WHEN {when} <=> at THEN {struct_of([('o', 'false'), ('e', name)])} END"
    columns.append(f"coalesce({' OR '.join(_unfit(layout, plan)) or 'false'}, false) AS unfit")
    distinct = f"array_distinct(filter(array({', '.join(times)}), t -> t IS NOT NULL))"
    # One dead letter for a row, however many times its cells were written at.
    exploded = f"explode(CASE WHEN unfit THEN array({_written(f'{lowest}L', 'NULL')}) ELSE {distinct} END) AS at"
    written = f"SELECT *, {exploded} FROM (SELECT {', '.join(columns)} FROM {_ROWS}) AS source"
    final = [
        f"{_final(layout, name, kind, segment, lowest, made)} AS {quoted(name)}"
        for name, kind in changelog_columns(layout).items()
    ]
    return over_frame(rows, _ROWS, f"SELECT {', '.join(final)} FROM ({written}) AS written")


def _written(time: str, end: str) -> str:
    """When something was written, and with which TTL."""
    return struct_of([("t", time), ("l", f"CAST({ttl_of(time, end)} AS bigint)")])


def _row_end(plan: ReadPlan) -> str:
    """The second in which the last cell of a row ends, where all that tell it do.

    A SELECT does not tell the TTL of what has none of its own: the row as such, and what is in its collections. They
    were most likely written with its cells.
    """
    told = {part.name for part in plan.parts if part.what == "end"}
    cells = [cell.stored for cell in plan.cells if not cell.static and end_name(cell.stored) in told]
    if not cells:
        return "NULL"
    found = [
        f"CASE WHEN {quoted(s.value)} IS NOT NULL THEN {struct_of([('e', quoted(end_name(s)))])} END" for s in cells
    ]
    ends = f"array_compact(array({', '.join(found)}))"
    return f"CASE WHEN forall({ends}, x -> x.e IS NOT NULL) THEN array_max(transform({ends}, x -> x.e)) END"


def _final(layout: Layout, name: str, kind: str, segment: int, lowest: int, made: dict[str, str]) -> str:
    key = struct_of([(key.name, quoted(key.value)) for key in layout.keys])
    fixed = {
        "segment": f"CASE WHEN unfit THEN {DEAD} ELSE {segment} END",
        "bucket": bucket_of(layout),
        "kind": "kind",
        "op": f"CASE WHEN kind = {ROW} AND at.t = {lowest}L THEN 'c' ELSE 'u' END",
        "ts": "at.t",
        TTL: "at.l",
        "landed_at": "current_timestamp()",
        "reason": reason_sql(("unfit", DeadReason.OUT_OF_RANGE)),
        "raw_key": f"CASE WHEN unfit THEN CAST(to_json({key}) AS binary) END",
    }
    if name in key_columns(layout):
        return quoted(name)
    return fixed.get(name) or f"CAST({made.get(name, 'NULL')} AS {kind})"


def _unfit(layout: Layout, plan: ReadPlan) -> list[str]:
    """Conditions under which a row has a value that the reader's type cannot hold."""
    found: list[str] = []
    for key in layout.keys:
        found += _not_fitting(key.type, quoted(key.value), layout.declared.get(key.name))
    for cell in plan.cells:
        declared = layout.declared.get(cell.column) if cell.field is None else None
        found += _not_fitting(cell.stored.type, quoted(cell.stored.value), declared)
    for part in plan.elements:
        inner = [(part.key_type, "e.k"), (part.value_type, "e.v")]
        texts = [text for kind, sql in inner if kind is not None for text in _not_fitting(kind, sql)]
        if texts:
            found.append(f"exists({quoted(part.stored.elements)}, e -> {' OR '.join(texts)})")
    return found


def _not_fitting(type_: CqlType, stored: str, declared: str | None = None) -> list[str]:
    return not_fitting(type_, as_recorded(type_, stored), declared)
