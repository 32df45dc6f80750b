"""The rows a reader sees: business columns only, exactly what ``SELECT *`` of the source would give.

In: SQL of folded patches. Out: SQL of the visible rows. Here the deletes of other rows take effect: a partition's
delete and its ranges cover its clustering rows, a partition's statics show in each of its rows.
"""

from __future__ import annotations

from connector.values import MapType, SetType
from spark_jobs.fold.fold import NEVER, NOW, has_not_ended, partition_columns
from spark_jobs.model import (
    PARTITION,
    ROW,
    Cell,
    Column,
    Elements,
    Key,
    Layout,
    element_key,
    greatest,
    present,
    present_entries,
    quoted,
    struct_of,
)


def visible_rows(layout: Layout, patch: str, now: str | None = NOW) -> str:
    """The view's text over folded patches, as it is ``now``: at that second what has a TTL is alive or not."""
    rows = living_rows(layout, patch, now)
    if not layout.clustering:
        return _shown(layout, f"SELECT * FROM ({rows}) AS rows WHERE visible")
    if layout.has_statics:
        over = f"OVER (PARTITION BY {', '.join(map(quoted, partition_columns(layout)))})"
        rows = f"SELECT *, bool_or(kind = {ROW} AND visible) {over} AS peopled FROM ({rows}) AS rows"
        alone = any_value(layout, static=True)
        where = f"(kind = {ROW} AND visible) OR (kind = {PARTITION} AND NOT peopled AND ({alone}))"
    else:
        where = f"kind = {ROW} AND visible"
    return _shown(layout, f"SELECT * FROM ({rows}) AS rows WHERE {where}")


def living_rows(layout: Layout, patch: str, now: str | None = NOW, so_far: str | None = None) -> str:
    """Rows and partitions with what lives of each cell as ``w_…``: statics in the partitions' rows, and in ``p``.

    With patches of many times, ``so_far`` is the window of what a partition's rows have before them.
    """
    if not layout.clustering:
        return _with_values(layout, patch, now, static=False, cover="deleted")
    statics = _with_values(layout, patch, now, static=True, cover=f"CASE WHEN kind = {PARTITION} THEN deleted END")
    over = f"OVER (PARTITION BY {', '.join(map(quoted, partition_columns(layout)))})"
    carried = struct_of(
        [("d", "deleted"), ("r", "ranges"), *((name, quoted(name)) for name in value_names(layout, True))]
    )
    own = f"CASE WHEN kind = {PARTITION} THEN {carried} END"
    newest = f"max({own}) {over}" if so_far is None else f"last({own}, true) OVER {so_far}"
    spread = f"SELECT *, {newest} AS p FROM ({statics}) AS statics"
    cover = f"greatest(deleted, p.d, {range_cover(layout)})"
    covered = f"SELECT *, {cover} AS covered FROM ({spread}) AS spread"
    return _with_values(layout, covered, now, static=False, cover="covered")


def any_value(layout: Layout, static: bool, prefix: str = "") -> str:
    """Whether any cell of a kind lives."""
    return " OR ".join(f"{prefix}{quoted(name)} IS NOT NULL" for name in value_names(layout, static)) or "false"


def range_cover(layout: Layout) -> str:
    """The newest time of the partition's ranges that hold the row."""
    held = f"filter(p.r, r -> {_inside(layout, 'r.i.s', start=True)} AND {_inside(layout, 'r.i.e', start=False)})"
    return f"CASE WHEN size(p.r) > 0 THEN array_max(transform({held}, r -> r.t)) END"


def _inside(layout: Layout, bound: str, start: bool) -> str:
    """Whether the row lies on the inner side of a bound, column by column in storage order.

    Bounds come in storage order: in a descending column a range starts at its greater value.
    """
    condition = f"{bound}.i"
    for index in range(len(layout.clustering) - 1, -1, -1):
        key = layout.clustering[index]
        own, other = key.order_key(), f"{bound}.o.o{index}"
        sign = ">" if start != key.descending else "<"
        condition = (
            f"CASE WHEN {bound}.l <= {index} THEN {bound}.i WHEN {own} = {other} THEN {condition} "
            f"ELSE {own} {sign} {other} END"
        )
    return condition


def value_names(layout: Layout, static: bool) -> list[str]:
    names = [f"w_{cell.stored.physical}" for cell in layout.cells if cell.static == static]
    return names + [f"w_{part.stored.physical}" for part in layout.elements if part.static == static]


def _with_values(layout: Layout, patch: str, now: str | None, static: bool, cover: str) -> str:
    """Adds the living value of each cell and collection as ``w_…``, and for rows whether the row is visible."""
    added: list[str] = []
    for cell in layout.cells:
        if cell.static == static:
            added.append(f"{_living_value(layout, cell, cover, now)} AS {quoted('w_' + cell.stored.physical)}")
    for part in layout.elements:
        if part.static == static:
            added.append(f"{_living_elements(layout, part, cover, now)} AS {quoted('w_' + part.stored.physical)}")
    inner = f"SELECT {', '.join(['*', *added])} FROM ({patch}) AS patch"
    if static:
        return inner
    alive = [f"{quoted(name)} IS NOT NULL" for name in value_names(layout, False)]
    inserted = f"{layout.marker_time} > coalesce({cover}, {NEVER}){has_not_ended(layout, 'marker', now)}"
    visible = " OR ".join([f"coalesce({inserted}, false)", *alive])
    return f"SELECT *, ({visible}) AS visible FROM ({inner}) AS valued"


def _living_value(layout: Layout, cell: Cell, cover: str, now: str | None) -> str:
    """The cell's value if it is newer than everything that covers it and has not ended, else null."""
    covers = [cover, *([quoted(cell.tombstone)] if cell.tombstone else [])]
    name = quoted(cell.name)
    alive = f"{name}.t > coalesce({greatest(covers)}, {NEVER}){has_not_ended(layout, name, now)}"
    return f"CASE WHEN {alive} THEN {name}.v END"


def _living_elements(layout: Layout, part: Elements, cover: str, now: str | None) -> str:
    """The collection's living elements as stored structs, in order; null if there is none."""
    name, tomb = quoted(part.stored.elements), quoted(part.stored.tombstone)
    newer = f"e.t > coalesce(greatest({cover}, {tomb}), {NEVER})"
    alive = f"filter({name}, e -> {newer} AND NOT e.d{has_not_ended(layout, 'e', now)})"
    return f"nullif({alive}, array())"


def _shown(layout: Layout, rows: str) -> str:
    return f"SELECT {', '.join(shown_columns(layout))} FROM ({rows}) AS shown"


def shown_columns(layout: Layout) -> list[str]:
    """What a reader sees of living rows, each column by its name."""
    columns = [f"{_key_value(layout, key)} AS {quoted(key.name)}" for key in layout.keys]
    for kind in ("static", "regular"):
        for column in layout.definition.of_kind(kind):
            prefix = "p." if kind == "static" else ""
            columns.append(f"{_column_value(layout, column, prefix)} AS {quoted(column.name)}")
    return columns


def _key_value(layout: Layout, key: Key) -> str:
    return present(key.type, quoted(key.value), layout.declared.get(key.name))


def _column_value(layout: Layout, column: Column, prefix: str) -> str:
    declared = layout.declared.get(column.name)
    for part in layout.elements:
        if part.column == column.name:
            return _elements_value(part, f"{prefix}{quoted('w_' + part.stored.physical)}", declared)
    cells = [cell for cell in layout.cells if cell.column == column.name and not cell.hidden]
    values = [f"{prefix}{quoted('w_' + cell.stored.physical)}" for cell in cells]
    if len(cells) == 1 and cells[0].field is None:
        return present(column.type, values[0], declared)
    fields: list[tuple[str, str]] = []
    for cell, value in zip(cells, values):
        assert cell.field is not None
        fields.append((cell.field, present(cell.stored.type, value, declared)))
    alive = " OR ".join(f"{value} IS NOT NULL" for value in values)
    return f"CASE WHEN {alive} THEN {struct_of(fields)} END"


def _elements_value(part: Elements, elements: str, declared: str | None) -> str:
    key = element_key(part, "e")
    if isinstance(part.type, MapType):
        return present_entries(part.type, elements, key, "e.v", "e", declared, 1)
    if isinstance(part.type, SetType):
        return f"transform({elements}, e -> {present(part.type.element, key, declared, 1)})"
    return f"transform({elements}, e -> {present(part.type.element, 'e.v', declared, 1)})"
