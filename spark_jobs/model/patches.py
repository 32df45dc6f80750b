"""Changelog and state rows in one common shape, the *patch*: a row's effect on each part of a key.

In: a ``Layout`` and the SQL of a relation. Out: SQL of patches. Every cell of a patch is a struct whose natural order
is ScyllaDB's: write time, then deletes before live values, then the tie key. So ``max`` folds, nothing else.
Cells that cannot exist (older than their column, or than the table's truncation) are left out here.
"""

from __future__ import annotations

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


def changes_patch(layout: Layout, source: str) -> str:
    """Patches of changelog rows: one time per row, tombstones of collections one microsecond before it."""
    columns = ["bucket", "kind", *_keys(layout)]
    columns += [f"ts AS {quoted('s_' + key.place)}" for key in layout.keys if key.many_spellings]
    columns.append("CASE WHEN op = 'c' THEN ts END AS marker")
    columns.append("CASE WHEN op = 'd' THEN ts END AS deleted")
    if layout.clustering:
        bound = struct_of([("i", quoted(layout.bounds)), ("t", "ts")])
        columns.append(f"CASE WHEN op = 'r' THEN array({bound}) END AS ranges")
    for cell in layout.cells:
        terms = [_changed_cell(cell, stored) for stored in (cell.stored, *cell.older)]
        columns.append(f"{greatest([term for term in terms if term])} AS {quoted(cell.name)}")
    for _, stored in layout.user_types:
        columns.append(f"CASE WHEN {quoted(stored.tombstone)} THEN ts - 1 END AS {quoted(stored.tombstone)}")
    for part in layout.elements:
        overwrites = " OR ".join(
            f"coalesce({quoted(stored.elements)}.o, false)" for stored in (part.stored, *part.older)
        )
        columns.append(f"CASE WHEN {overwrites} THEN ts - 1 END AS {quoted(part.stored.tombstone)}")
        columns.append(f"{_elements(part, timed=False)} AS {quoted(part.stored.elements)}")
    return f"SELECT {', '.join(columns)} FROM ({source}) AS changes WHERE {_exists(layout)}"


def state_patch(layout: Layout, source: str) -> str:
    """Patches of state rows: times are the row's base time unless the cell has its own."""
    columns = ["bucket", "kind", *_keys(layout)]
    for key in layout.keys:
        if key.many_spellings:
            spelled = [quoted("s_" + place.place) for place in (key, *key.follows)]
            columns.append(_first(spelled))
    columns += ["marker", "deleted"]
    if layout.clustering:
        columns.append(f"{quoted(layout.ranges)} AS ranges")
    for cell in layout.cells:
        terms = [_kept_cell(cell, stored) for stored in (cell.stored, *cell.older)]
        columns.append(f"{greatest([term for term in terms if term])} AS {quoted(cell.name)}")
    columns += [quoted(stored.tombstone) for _, stored in layout.user_types]
    for part in layout.elements:
        tombs = [quoted(stored.tombstone) for stored in (part.stored, *part.older)]
        columns.append(f"{greatest(tombs)} AS {quoted(part.stored.tombstone)}")
        columns.append(f"{_elements(part, timed=True)} AS {quoted(part.stored.elements)}")
    return f"SELECT {', '.join(columns)} FROM ({source}) AS kept WHERE kind IN ({PARTITION}, {ROW})"


def _exists(layout: Layout) -> str:
    found = [f"kind IN ({PARTITION}, {ROW})"]
    if layout.not_before is not None:
        found.append(f"ts > {layout.not_before}L")
    if (created := layout.definition.created_ms) is not None:
        found.append(f"(kafka_ms IS NULL OR kafka_ms >= {created}L)")
    return " AND ".join(found)


def cell_struct(stored: Stored, time: str, value: str, tie: str | None, adapt: str) -> str:
    """A cell as the one comparator sees it: later wins, then the delete, then the greater tie key."""
    fields = [("t", time), ("d", f"{value} IS NULL"), *tie_of(stored.type, adapt, tie), ("v", adapt)]
    return struct_of(fields)


def _changed_cell(cell: Cell, stored: Stored) -> str | None:
    source = quoted(stored.value)
    tie = f"{source}.x" if stored.tie else None
    value = adapted(stored.type, cell.stored.type, f"{source}.v", tie=tie)
    if value is None:
        return None
    made = cell_struct(cell.stored, "ts", f"{source}.v", _tie_for(cell, stored, tie), value)
    return f"CASE WHEN {source} IS NOT NULL{_after(cell.not_before, 'ts')} THEN {made} END"


def _kept_cell(cell: Cell, stored: Stored) -> str | None:
    source, own = quoted(stored.value), quoted(stored.time)
    tie = quoted(stored.tie) if stored.tie else None
    value = adapted(stored.type, cell.stored.type, source, tie=tie)
    if value is None:
        return None
    time = f"CASE WHEN {own} = {SAME_TIME} THEN base ELSE {own} END"
    made = cell_struct(cell.stored, time, source, _tie_for(cell, stored, tie), value)
    return f"CASE WHEN {own} IS NOT NULL{_after(cell.not_before, f'({time})')} THEN {made} END"


def _tie_for(cell: Cell, stored: Stored, tie: str | None) -> str | None:
    """A type that needs a stored tie may have grown out of one that does not: then only equal times would notice."""
    if cell.stored.tie and tie is None:
        return "CAST(NULL AS binary)"
    return tie


def _after(not_before: int | None, time: str) -> str:
    return "" if not_before is None else f" AND {time} > {not_before}L"


def _elements(part: Elements, timed: bool) -> str:
    """All elements of a row as comparable structs: identity, time, removed, tie, value, key as spelled."""
    arrays = [text for stored in (part.stored, *part.older) if (text := _element_array(part, stored, timed))]
    if len(arrays) == 1:
        return arrays[0]
    return f"concat({', '.join(f'coalesce({text}, array())' for text in arrays)})"


def _element_array(part: Elements, stored: Stored, timed: bool) -> str | None:
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
    fields = [("i", order_key(part.key_type, key, "e.b")), ("t", time), ("d", "e.v IS NULL"), *ties, ("v", value)]
    if not order_is_value(part.key_type):
        fields.append(("k", key))
    source = quoted(stored.elements) if timed else f"{quoted(stored.elements)}.e"
    if part.not_before is not None:
        if timed:
            source = f"filter({source}, e -> e.t > {part.not_before}L)"
        else:
            source = f"CASE WHEN ts > {part.not_before}L THEN {source} END"
    return f"transform({source}, e -> {struct_of(fields)})"


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
