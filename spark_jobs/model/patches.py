"""Changelog and state rows in one common shape, the *patch*: a row's effect on each part of a key.

In: a ``Layout`` and the SQL of a relation. Out: SQL of patches. Every cell of a patch is a struct whose natural order
is ScyllaDB's: write time, then deletes before live values, then the tie key. So ``max`` folds, nothing else.
Cells that cannot exist (older than their column, or than the table's truncation) are left out here.
"""

from __future__ import annotations

from spark_jobs.model.changelog import MARKER_TTL, TTL
from spark_jobs.model.landed_types import adapted, order_is_stored, order_is_value, order_key
from spark_jobs.model.landed_types import tie_fields as tie_of
from spark_jobs.model.layout import Cell, Elements, Layout, Stored
from spark_jobs.model.names import greatest, quoted, struct_of

PARTITION, ROW = 1, 2

SAME_TIME = "CAST('-9223372036854775808' AS bigint)"
"""In a state's time column: the row's base time. ScyllaDB reserves this number, no write can have it."""


def key_columns(layout: Layout) -> list[str]:
    """The physical key columns: each value, and its identity where that is another column."""
    found: list[str] = []
    for key in layout.keys:
        found.append(key.value)
        if key.identity != key.value:
            found.append(key.identity)
    return found


def partition_keys(layout: Layout) -> list[str]:
    """The physical columns of the partition's key."""
    return [name for key in layout.partition for name in (key.value, key.identity)]


def ended_change(after_s: int, by_s: int) -> str:
    """Whether what a changelog row has written ended between two seconds."""
    return f"{TTL} IS NOT NULL AND {_END} > {after_s}L AND {_END} <= {by_s}L"


def ended_rows(layout: Layout, source: str, after_s: int, by_s: int) -> str:
    """State rows of which something ended between two seconds."""
    kept = [stored for cell in layout.cells for stored in (cell.stored, *cell.older)]
    kept += [stored for part in layout.elements for stored in (part.stored, *part.older)]
    parts = [MARKER_TTL, *(quoted(stored.ttl) for stored in kept)]
    found = ["marker.e", *(f"{quoted(cell.name)}.e" for cell in layout.cells)]
    ends = f"array({', '.join(found)})"
    for part in layout.elements:
        ends = f"concat({ends}, coalesce(transform({quoted(part.stored.elements)}, e -> e.e), array()))"
    # Most rows of most tables need not be looked at more closely.
    some = f"SELECT * FROM ({source}) AS source WHERE {' OR '.join(f'{name} IS NOT NULL' for name in parts)}"
    return (
        f"SELECT * FROM ({state_patch(layout, some)}) AS patch "
        f"WHERE exists({ends}, x -> x > {after_s}L AND x <= {by_s}L)"
    )


def _keys(layout: Layout) -> list[str]:
    """The key columns of rows, also of those from when a key's type was stored elsewhere."""
    columns: list[str] = []
    for key in layout.keys:
        name = quoted(key.value)
        values = [name, *(adapted(old.type, key.type, quoted(old.value)) or "NULL" for old in key.follows)]
        columns.append(_first(values))
        if key.identity != key.value:
            same = [quoted(place.identity) for place in (key, *key.follows)]
            columns.append(_first(same))
    return columns


def _first(names: list[str]) -> str:
    """The first that is not null, by the name of the first."""
    return names[0] if len(names) == 1 else f"coalesce({', '.join(names)}) AS {names[0]}"


def identities(layout: Layout, partition_only: bool = False) -> list[str]:
    keys = layout.partition if partition_only else layout.keys
    return [key.identity for key in keys]


def bucket_of(layout: Layout) -> str:
    """The part of the table that a partition's rows are in."""
    partition = ", ".join(map(quoted, identities(layout, partition_only=True)))
    return f"CAST(pmod(hash({partition}), {layout.buckets}) AS int)"


def changes_patch(layout: Layout, source: str) -> str:
    """Patches of changelog rows: one time per row, tombstones of collections one microsecond before it."""
    columns = ["bucket", "kind", *_keys(layout)]
    columns += [f"ts AS {quoted('s_' + key.place)}" for key in layout.keys if key.many_spellings]
    inserted = struct_of([("t", "ts"), ("e", _END)]) if layout.expiring else "ts"
    columns.append(f"CASE WHEN op = 'c' THEN {inserted} END AS marker")
    columns.append("CASE WHEN op = 'd' THEN ts END AS deleted")
    if layout.clustering:
        bound = struct_of([("i", quoted(layout.bounds)), ("t", "ts")])
        columns.append(f"CASE WHEN op = 'r' THEN array({bound}) END AS ranges")
    for cell in layout.cells:
        terms = [_changed_cell(layout, cell, stored) for stored in (cell.stored, *cell.older)]
        columns.append(f"{greatest([term for term in terms if term])} AS {quoted(cell.name)}")
    for _, stored in layout.user_types:
        columns.append(f"CASE WHEN {quoted(stored.tombstone)} THEN ts - 1 END AS {quoted(stored.tombstone)}")
    for part in layout.elements:
        overwrites = " OR ".join(
            f"coalesce({quoted(stored.elements)}.o, false)" for stored in (part.stored, *part.older)
        )
        columns.append(f"CASE WHEN {overwrites} THEN ts - 1 END AS {quoted(part.stored.tombstone)}")
        columns.append(f"{_elements(layout, part, timed=False)} AS {quoted(part.stored.elements)}")
    return f"SELECT {', '.join(columns)} FROM ({source}) AS changes WHERE {_exists(layout)}"


def state_patch(layout: Layout, source: str) -> str:
    """Patches of state rows: times are the row's base time unless the cell has its own."""
    columns = ["bucket", "kind", *_keys(layout)]
    for key in layout.keys:
        if key.many_spellings:
            spelled = [quoted("s_" + place.place) for place in (key, *key.follows)]
            columns.append(_first(spelled))
    columns += [_kept_marker(layout), "deleted"]
    if layout.clustering:
        columns.append(f"{quoted(layout.ranges)} AS ranges")
    for cell in layout.cells:
        terms = [_kept_cell(layout, cell, stored) for stored in (cell.stored, *cell.older)]
        columns.append(f"{greatest([term for term in terms if term])} AS {quoted(cell.name)}")
    columns += [quoted(stored.tombstone) for _, stored in layout.user_types]
    for part in layout.elements:
        tombs = [quoted(stored.tombstone) for stored in (part.stored, *part.older)]
        columns.append(f"{greatest(tombs)} AS {quoted(part.stored.tombstone)}")
        columns.append(f"{_elements(layout, part, timed=True)} AS {quoted(part.stored.elements)}")
    return f"SELECT {', '.join(columns)} FROM ({source}) AS kept WHERE kind IN ({PARTITION}, {ROW})"


def _exists(layout: Layout) -> str:
    found = [f"kind IN ({PARTITION}, {ROW})"]
    if layout.not_before is not None:
        found.append(f"ts > {layout.not_before}L")
    if (created := layout.definition.created_ms) is not None:
        found.append(f"(kafka_ms IS NULL OR kafka_ms >= {created}L)")
    return " AND ".join(found)


def end_of(time: str, ttl: str) -> str:
    """The second in which what was written ends. A write tells its TTL, and by its time when that began."""
    return f"({time} div 1000000 + {ttl})"


def ttl_of(time: str, end: str) -> str:
    """What `end_of` is made of, to be kept: of most rows of a table it is the same number."""
    return f"({end} - {time} div 1000000)"


_END = end_of("ts", TTL)


def _kept_marker(layout: Layout) -> str:
    if not layout.expiring:
        return "marker"
    kept = struct_of([("t", "marker"), ("e", end_of("marker", MARKER_TTL))])
    return f"CASE WHEN marker IS NOT NULL THEN {kept} END AS marker"


def _cell_struct(stored: Stored, time: str, value: str, tie: str | None, adapt: str, end: str | None) -> str:
    """A cell as the one comparator sees it: later wins, then the delete, then what ends, and of that what ends later,
    then the greater tie key."""
    ending = [("e", end)] if end is not None else []
    fields = [("t", time), ("d", _is_delete(value, end)), *ending, *tie_of(stored.type, adapt, tie), ("v", adapt)]
    return struct_of(fields)


def _is_delete(value: str, end: str | None) -> str:
    """What ended may have lost its value, but it goes on being what was written."""
    return f"{value} IS NULL" if end is None else f"({value} IS NULL AND {end} IS NULL)"


def _changed_cell(layout: Layout, cell: Cell, stored: Stored) -> str | None:
    source = quoted(stored.value)
    tie = f"{source}.x" if stored.tie else None
    value = adapted(stored.type, cell.stored.type, f"{source}.v", tie=tie)
    if value is None:
        return None
    end = f"CASE WHEN {source}.v IS NOT NULL THEN {_END} END" if layout.expiring else None
    made = _cell_struct(cell.stored, "ts", f"{source}.v", _tie_for(cell, stored, tie), value, end)
    return f"CASE WHEN {source} IS NOT NULL{_after(cell.not_before, 'ts')} THEN {made} END"


def _kept_cell(layout: Layout, cell: Cell, stored: Stored) -> str | None:
    source, own = quoted(stored.value), quoted(stored.time)
    tie = quoted(stored.tie) if stored.tie else None
    value = adapted(stored.type, cell.stored.type, source, tie=tie)
    if value is None:
        return None
    time = f"CASE WHEN {own} = {SAME_TIME} THEN base ELSE {own} END"
    end = end_of(f"({time})", quoted(stored.ttl)) if layout.expiring else None
    made = _cell_struct(cell.stored, time, source, _tie_for(cell, stored, tie), value, end)
    return f"CASE WHEN {own} IS NOT NULL{_after(cell.not_before, f'({time})')} THEN {made} END"


def _tie_for(cell: Cell, stored: Stored, tie: str | None) -> str | None:
    """A type that needs a stored tie may have grown out of one that does not: then only equal times would notice."""
    if cell.stored.tie and tie is None:
        return "CAST(NULL AS binary)"
    return tie


def _after(not_before: int | None, time: str) -> str:
    return "" if not_before is None else f" AND {time} > {not_before}L"


def _elements(layout: Layout, part: Elements, timed: bool) -> str:
    """All elements of a row as comparable structs: identity, time, removed, end, tie, value, key as spelled."""
    arrays = [text for stored in (part.stored, *part.older) if (text := _element_array(layout, part, stored, timed))]
    if len(arrays) == 1:
        return arrays[0]
    return f"concat({', '.join(f'coalesce({text}, array())' for text in arrays)})"


def _element_array(layout: Layout, part: Elements, stored: Stored, timed: bool) -> str | None:
    if type(stored.type) is not type(part.type):
        return None
    key = adapted(stored.element_key, part.key_type, "e.k")
    value: str | None = "e.v"
    value_type, old_value = part.value_type, stored.element_value
    ties: list[tuple[str, str]] = []
    if value_type is not None and old_value is not None:
        value = adapted(old_value, value_type, "e.v")
        if value is not None:
            ties = tie_of(value_type, value, "e.x")
    if key is None or value is None:
        return None
    time = "e.t" if timed else "ts"
    end: str | None = None
    if layout.expiring:
        # Without an element's own TTL the row's would be one of removed elements, too.
        end = end_of("e.t", f"get({quoted(stored.ttl)}, n)") if timed else f"CASE WHEN e.v IS NOT NULL THEN {_END} END"
    ending = [("e", end)] if end is not None else []
    identity = order_key(part.key_type, key, "e.b")
    fields = [("i", identity), ("t", time), ("d", _is_delete("e.v", end)), *ending, *ties, ("v", value)]
    if not order_is_value(part.key_type):
        fields.append(("k", key))
    made = struct_of(fields)
    if timed:
        found = f"transform({quoted(stored.elements)}, {'(e, n)' if ending else 'e'} -> {made})"
        return found if part.not_before is None else f"filter({found}, e -> e.t > {part.not_before}L)"
    source = f"{quoted(stored.elements)}.e"
    if part.not_before is not None:
        source = f"CASE WHEN ts > {part.not_before}L THEN {source} END"
    return f"transform({source}, e -> {made})"


def element_key(part: Elements, element: str) -> str:
    """The key of a folded element as it was spelled."""
    return f"{element}.i" if order_is_value(part.key_type) else f"{element}.k"


def kept_element_fields(part: Elements, element: str) -> list[tuple[str, str]]:
    """The fields of an element in the state: what cannot be computed again from key and value."""
    fields = [("k", element_key(part, element))]
    if order_is_stored(part.key_type):
        fields.append(("b", f"{element}.i"))
    fields += [("t", f"{element}.t"), ("v", f"{element}.v")]
    if part.tie_is_stored:
        fields.append(("x", f"{element}.x"))
    return fields
