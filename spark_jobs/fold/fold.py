"""The fold: patches of one key become one patch, and a folded table becomes state rows.

In: SQL of patches. Out: SQL of one patch per key (``folded``), and of the state rows that store it (``compacted``). The
fold is ``max`` of comparable structs per cell and per element, so it is commutative, associative and idempotent: order,
duplicates, replays and batch cuts cannot change its result. State and changelog are folded by the same text.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.model import (
    MARKER_TTL,
    SAME_TIME,
    Layout,
    greatest,
    identities,
    kept_element_fields,
    key_columns,
    quoted,
    struct_of,
    ttl_of,
)

NEVER = SAME_TIME
"""Smaller than every write time."""
NOW = "unix_seconds(current_timestamp())"
"""When a reader looks: what ends by then is not there."""
_CERTAIN_S = 3600
"""After so long no clock of any reader is behind an end, and what ended can be forgotten."""


def certainly_ended(newest_us: int) -> str:
    """The second up to which what has ended can be forgotten, where something was written at this time by now: this
    machine's clock may be ahead, and then it is not one that writers had."""
    return f"least({NOW}, {newest_us // 1_000_000}L) - {_CERTAIN_S}"


def partition_columns(layout: Layout) -> list[str]:
    """What rows of one partition have in common: brought together by these, fold and view need one shuffle, and one
    sort. Spark sorts in this order, which is cheap where the first column tells most rows apart, as no bucket does."""
    return [*identities(layout, partition_only=True), "bucket"]


def has_not_ended(layout: Layout, what: str, now: str | None) -> str:
    """Of a marker, cell or element: whether its TTL leaves it alive; as the last part of a condition."""
    return f" AND coalesce({what}.e > {now}, true)" if layout.expiring and now is not None else ""


def folded(layout: Layout, patches: Sequence[str], distribute_by: Sequence[str] = ()) -> str:
    """One patch per key. Whatever the row's own delete or a collection's tombstone covers is gone from it.

    ``distribute_by`` names key columns to bring rows together by, once for this fold and for what follows.
    """
    united = " UNION ALL ".join(f"({patch})" for patch in patches)
    if distribute_by:
        united = f"SELECT * FROM ({united}) AS spread DISTRIBUTE BY {', '.join(map(quoted, distribute_by))}"
    by = list(map(quoted, [*partition_columns(layout), "kind", *(key.identity for key in layout.clustering)]))
    columns = [*by, *_gathered(layout)]
    grouped = f"SELECT {', '.join(columns)} FROM ({united}) AS united GROUP BY {', '.join(by)}"
    return _normal(layout, grouped)


def folded_so_far(layout: Layout, patch: str, over: str) -> str:
    """Each patch together with those before it, as the window ``over`` says; it holds one key's patches."""
    columns = ["bucket", "kind", *map(quoted, identities(layout)), *_gathered(layout, f" OVER {over}")]
    return _normal(layout, f"SELECT {', '.join(columns)} FROM ({patch}) AS patch")


def _gathered(layout: Layout, over: str = "") -> list[str]:
    """Everything that the patches of a key say, one aggregate for each part."""
    columns: list[str] = []
    for key in layout.keys:
        value, name = quoted(key.value), quoted("s_" + key.place)
        if key.many_spellings:
            first = f"min({struct_of([('t', name), ('v', value)])}){over}"
            columns.append(f"CASE WHEN min({name}){over} IS NOT NULL THEN {first} END AS {quoted('f_' + key.place)}")
        elif key.identity != key.value:
            columns.append(f"any_value({value}, true){over} AS {value}")
    columns += [f"max(marker){over} AS marker", f"max(deleted){over} AS deleted"]
    if layout.clustering:
        columns.append(f"sort_array(flatten(collect_list(ranges){over})) AS ranges")
    columns += [f"max({quoted(cell.name)}){over} AS {quoted(cell.name)}" for cell in layout.cells]
    for stored in _tombstones(layout):
        columns.append(f"max({quoted(stored)}){over} AS {quoted(stored)}")
    for part in layout.elements:
        name = quoted(part.stored.elements)
        columns.append(f"sort_array(flatten(collect_list({name}){over})) AS {name}")
    return columns


def parts(layout: Layout) -> list[str]:
    """The columns of a patch that say something, beside those of its key."""
    columns = ["marker", "deleted", *(["ranges"] if layout.clustering else [])]
    columns += [cell.name for cell in layout.cells] + _tombstones(layout)
    return columns + [part.stored.elements for part in layout.elements]


def _tombstones(layout: Layout) -> list[str]:
    return [stored.tombstone for _, stored in layout.user_types] + [part.stored.tombstone for part in layout.elements]


def _normal(layout: Layout, grouped: str) -> str:
    """Keeps the newest of each element and drops what the row itself says is deleted."""
    columns = ["bucket", "kind"]
    for key in layout.keys:
        if key.many_spellings:
            first = quoted("f_" + key.place)
            columns += [
                f"{first}.v AS {quoted(key.value)}",
                quoted(key.identity),
                f"{first}.t AS {quoted('s_' + key.place)}",
            ]
        else:
            columns.append(quoted(key.value))
            if key.identity != key.value:
                columns.append(quoted(key.identity))
    inserted = f"{layout.marker_time} > coalesce(deleted, {NEVER})"
    columns += [f"CASE WHEN {inserted} THEN marker END AS marker", "deleted"]
    if layout.clustering:
        newest = newest_of("ranges", f"r.t > coalesce(deleted, {NEVER})", "r")
        columns.append(f"CASE WHEN size(ranges) > 0 THEN {newest} END AS ranges")
    for cell in layout.cells:
        covers = ["deleted", *([quoted(cell.tombstone)] if cell.tombstone else [])]
        name = quoted(cell.name)
        alive = f"{name}.t > coalesce({greatest(covers)}, {NEVER})"
        columns.append(f"CASE WHEN {alive} THEN {name} END AS {name}")
    columns += [f"{_newer(quoted(name), ['deleted'])} AS {quoted(name)}" for name in _tombstones(layout)]
    for part in layout.elements:
        name, tomb = quoted(part.stored.elements), quoted(part.stored.tombstone)
        alive = f"r.t > coalesce(greatest(deleted, {tomb}), {NEVER})"
        columns.append(f"CASE WHEN size({name}) > 0 THEN {newest_of(name, alive, 'r')} END AS {name}")
    return f"SELECT {', '.join(columns)} FROM ({grouped}) AS grouped"


def newest_of(array: str, condition: str, name: str) -> str:
    """Of a sorted array of structs, the last with each identity ``i`` that also meets ``condition``."""
    return (
        f"filter({array}, ({name}, n) -> (n = size({array}) - 1 OR get({array}, n + 1).i <> {name}.i) AND {condition})"
    )


def _newer(time: str, covers: list[str]) -> str:
    return f"CASE WHEN {time} > coalesce({greatest(covers)}, {NEVER}) THEN {time} END"


def compacted(layout: Layout, patch: str, ended: str | None = None) -> str:
    """State rows of folded patches: the row's greatest time once, and a time of its own only where a cell differs.

    What ended up to this second is kept as a delete with its end; None where its value is still asked for.
    """
    times = [layout.marker_time, *(f"{quoted(cell.name)}.t" for cell in layout.cells)]
    based = f"SELECT *, {greatest(times)} AS base FROM ({patch}) AS patch"

    def unless_ended(what: str, value: str) -> str:
        alive = has_not_ended(layout, what, ended)
        return f"CASE WHEN true{alive} THEN {value} END" if alive else value

    columns = ["bucket", "kind", *map(quoted, key_columns(layout))]
    columns += [quoted("s_" + key.place) for key in layout.keys if key.many_spellings]
    columns += ["base", f"{layout.marker_time} AS marker", "deleted"]
    if layout.expiring:
        columns.append(f"{ttl_of('marker.t', 'marker.e')} AS {MARKER_TTL}")
    if layout.clustering:
        columns.append(f"ranges AS {quoted(layout.ranges)}")
    for cell in layout.cells:
        name = quoted(cell.name)
        time = f"CASE WHEN {name} IS NULL THEN NULL WHEN {name}.t = base THEN {SAME_TIME} ELSE {name}.t END"
        value = unless_ended(name, f"{name}.v")
        columns += [f"{value} AS {quoted(cell.stored.value)}", f"{time} AS {quoted(cell.stored.time)}"]
        if cell.stored.tie:
            columns.append(f"{unless_ended(name, f'{name}.x')} AS {quoted(cell.stored.tie)}")
        if layout.expiring:
            columns.append(f"{ttl_of(f'{name}.t', f'{name}.e')} AS {quoted(cell.stored.ttl)}")
    columns += [quoted(name) for name in _tombstones(layout)]
    for part in layout.elements:
        name = quoted(part.stored.elements)
        kept = struct_of(
            (field, unless_ended("e", text) if field in ("v", "x") else text)
            for field, text in kept_element_fields(part, "e")
        )
        columns.append(f"transform({name}, e -> {kept}) AS {name}")
        if layout.expiring:
            columns.append(f"transform({name}, e -> {ttl_of('e.t', 'e.e')}) AS {quoted(part.stored.ttl)}")
    return f"SELECT {', '.join(columns)} FROM ({based}) AS based"
