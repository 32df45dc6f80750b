"""A row of a snapshot as the writes that would have made it: one for all that stays, one for each TTL of a cell.

In: the header that says what is left of some cells of a record, as the column ``cell_ttls``. Out: SQL. A part is null
for records without that header; ``more`` is false of the first part of the others, which has the row as such, nulls and
collections, and true of the rest, each of which has the cells with ``ttl``. Of a record that cannot be landed the
first part is its dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.model import Layout, Stored, literal, quoted, struct_of

_PART = "struct<more:boolean,ttl:bigint,ttls:map<string,bigint>>"
NO_PART = f"CAST(NULL AS {_PART})"


def parts_of(parsers: Sequence[tuple[str, str]]) -> str:
    """An array of what the parsers make of a record, once for each of its parts."""
    ttls = "from_json(cell_ttls, 'map<string,bigint>')"
    first = f"array(CAST(named_struct('more', false, 'ttl', NULL, 'ttls', {ttls}) AS {_PART}))"
    more = f"named_struct('more', true, 'ttl', ttl, 'ttls', {ttls})"
    rest = f"transform(array_distinct(map_values({ttls})), ttl -> CAST({more} AS {_PART}))"
    return f"transform(concat({first}, coalesce({rest}, array())), part -> {struct_of([*parsers, ('part', 'part')])})"


def in_part(column: str, stored: Stored, source: str) -> str:
    """``source``, of a column of the record, where that is in the part; null elsewhere."""
    mine = "part.more IS NULL OR NOT part.more"
    if stored.role == "cell":
        own = f"coalesce(element_at(part.ttls, {literal(column)}), -1)"
        mine = f"part.more IS NULL OR {own} = CASE WHEN part.more THEN part.ttl ELSE -1 END"
    return f"CASE WHEN {mine} THEN {source} END"


def ttl_of_part(layout: Layout) -> str:
    """Of the first part: none, unless every value of its row is in another one. No SELECT tells how long a row lives
    by itself, so it ends with the last of them."""
    regular = [(column.name, stored) for column, stored in layout.recorded if column.kind == "regular"]
    ends = [f"element_at(part.ttls, {literal(name)}) IS NOT NULL" for name, _ in regular]
    stays = [text for name, stored in regular for text in _stays(layout, name, stored)]
    all_end = f"({' OR '.join(ends) or 'false'}) AND NOT ({' OR '.join(stays) or 'false'})"
    first = f"CASE WHEN {all_end} THEN array_max(map_values(part.ttls)) END"
    own = "CASE WHEN e.source.ttl > 0 THEN CAST(e.source.ttl AS bigint) END"
    return f"CASE WHEN part.more IS NULL THEN {own} WHEN part.more THEN part.ttl ELSE {first} END"


def _stays(layout: Layout, column: str, stored: Stored) -> list[str]:
    """Conditions under which a column has a value whose TTL nobody told."""
    value = f"e.after.{quoted(column)}.value"
    if stored.role == "cell":
        return [f"({value} IS NOT NULL AND element_at(part.ttls, {literal(column)}) IS NULL)"]
    if stored.role == "elements":
        return [f"coalesce(size({value}.elements) > 0, false)"]
    return [
        f"coalesce({value}.elements.{quoted(name)}.value IS NOT NULL, false)" for name, _ in layout.field_cells(stored)
    ]
