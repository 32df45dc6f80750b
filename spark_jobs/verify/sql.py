"""The comparison of source and landed table, as expressions: both sides in one shape, joined by ScyllaDB's identities.

In: a ``Layout`` and the reader's plan. Out: SQL of each side (keys, values, times, a signature that changes when the
side does), of the condition that joins them, and of the differences in a joined row.
"""

from __future__ import annotations

from connector.values import CqlType, ListType, MapType, NativeType
from spark_jobs.decode import not_fitting, shown_as
from spark_jobs.fold import NOW, living_rows
from spark_jobs.model import (
    PARTITION,
    ROW,
    Cell,
    Elements,
    Layout,
    as_recorded,
    element_key,
    greatest,
    identities,
    is_minus_zero,
    key_columns,
    literal,
    order_key,
    quoted,
    struct_of,
)
from spark_jobs.source import ReadPlan, source_keys

CELL, MISSING, EXTRA = "cell", "missing row", "extra row"

_FLOATING = ("float", "double")
_CLOCKS_S = 60
"""So far the clocks of the source's servers and of this machine may be apart."""
_AS_JSON = "map('ignoreNullFields', 'false')"


def source_side(layout: Layout, plan: ReadPlan) -> list[str]:
    """What to select from the reader's frame."""
    columns = ["kind", *source_keys(layout)]
    timed = {part.name for part in plan.parts if part.what == "time"}
    for cell in plan.cells:
        columns.append(f"{quoted(cell.stored.value)} AS {_value(cell)}")
        time = quoted(cell.stored.time) if cell.stored.time in timed else "CAST(NULL AS bigint)"
        columns.append(f"{time} AS {_time(cell)}")
    for part in plan.elements:
        order = "CAST(NULL AS string)"
        if not isinstance(part.type, ListType):
            order = order_key(part.key_type, "e.k", "e.b")
        shown = struct_of([("i", order), ("k", "e.k"), ("v", "e.v")])
        columns.append(f"transform({quoted(part.stored.elements)}, e -> {shown}) AS {_value(part)}")
        columns.append(f"CAST(NULL AS bigint) AS {_time(part)}")
    return columns


def landed_side(layout: Layout, plan: ReadPlan, patch: str) -> str:
    """The landed rows and the partitions that may have statics, over folded patches.

    Those that are not there are among them as well (``there``), with what is known of their end: a row that is written
    and deleted over and over must not look as if nothing had happened to it.
    """
    columns = ["kind", *map(quoted, key_columns(layout)), f"{layout.marker_time} AS marker", "visible AS there"]
    columns += [f"{_ends(layout, plan)} AS ends", f"{_ending(layout, plan)} AS ending"]
    for cell in plan.cells:
        columns.append(f"{quoted('w_' + cell.stored.physical)} AS {_value(cell)}")
        columns.append(f"{quoted(cell.name)}.t AS {_time(cell)}")
    for part in plan.elements:
        living = quoted(f"w_{part.stored.physical}")
        order = "CAST(NULL AS string)" if isinstance(part.type, ListType) else "e.i"
        shown = struct_of([("i", order), ("k", element_key(part, "e")), ("v", "e.v")])
        columns.append(f"transform({living}, e -> {shown}) AS {_value(part)}")
        columns.append(f"array_max(transform({living}, e -> e.t)) AS {_time(part)}")
    kinds = f"{ROW}, {PARTITION}" if layout.clustering and layout.has_statics else f"{ROW}"
    return f"SELECT {', '.join(columns)} FROM ({living_rows(layout, patch)}) AS living WHERE kind IN ({kinds})"


def _ends(layout: Layout, plan: ReadPlan) -> str:
    """A number that changes with every delete of the row, or of what is in its collections, that takes effect."""
    times = [f"CASE WHEN kind = {ROW} THEN covered ELSE deleted END" if layout.clustering else "deleted"]
    times += [quoted(stored.tombstone) for _, stored in layout.user_types]
    for part in plan.elements:
        times += [quoted(part.stored.tombstone), f"array_max(transform({quoted(part.stored.elements)}, e -> e.t))"]
    return f"xxhash64({', '.join(times)})"


def _ending(layout: Layout, plan: ReadPlan) -> str:
    """Whether something of the row ends at about this time, so that two clocks may see it differently."""
    if not layout.expiring:
        return "false"
    ends = f"array({', '.join(['marker.e', *(f'{quoted(cell.name)}.e' for cell in plan.cells)])})"
    for part in plan.elements:
        ends = f"concat({ends}, coalesce(transform({quoted(part.stored.elements)}, e -> e.e), array()))"
    return f"coalesce(exists({ends}, e -> abs(e - {NOW}) <= {_CLOCKS_S}), false)"


def signed(plan: ReadPlan, extra: tuple[str, ...] = ()) -> str:
    """A column that changes when anything does that the side says about a row."""
    parts = [text for each in _compared(plan) for text in (_value(each), _time(each))]
    return f"xxhash64({', '.join(['kind', *extra, *parts])}) AS sig"


def join_condition(layout: Layout, left: str, right: str) -> str:
    names = ["kind", *identities(layout)]
    return " AND ".join(f"{left}.{quoted(name)} <=> {right}.{quoted(name)}" for name in names)


def joined_columns(layout: Layout, plan: ReadPlan) -> list[str]:
    """Of sides ``s`` (source) and ``l`` (landed): the key, both signatures, and the differences."""
    columns = ["coalesce(s.kind, l.kind) AS kind"]
    for name in key_columns(layout):
        columns.append(f"coalesce(s.{quoted(name)}, l.{quoted(name)}) AS {quoted(name)}")
    columns += ["s.sig AS s_sig", "l.sig AS l_sig", "coalesce(l.ending, false) AS ending"]
    return [*columns, f"{_differences(layout, plan)} AS found"]


def shown_key(layout: Layout) -> str:
    fields = [(key.name, as_recorded(key.type, quoted(key.value))) for key in layout.keys]
    return f"to_json({struct_of(fields)})"


def _differences(layout: Layout, plan: ReadPlan) -> str:
    both = _compared(plan)
    times = {side: greatest([f"{side}.{_time(each)}" for each in plan.cells]) for side in "sl"}
    times["l"] = greatest([times["l"], "l.marker"]) if plan.cells else "l.marker"
    missing = _found(MISSING, "", _whole(plan, "s"), "NULL", times["s"], "NULL")
    extra = _found(EXTRA, "", "NULL", _whole(plan, "l"), "NULL", times["l"])
    cells = {static: [_cell(layout, each) for each in both if each.static == static] for static in (False, True)}
    cells[False] += _misfits(layout)
    rows = f"array_compact(array({', '.join(cells[False])}))" if cells[False] else _none()
    statics = f"array_compact(array({', '.join(cells[True])}))" if cells[True] else _none()
    return (
        f"CASE WHEN coalesce(s.kind, l.kind) = {PARTITION} THEN {statics} "
        f"WHEN s.kind IS NULL THEN CASE WHEN l.there THEN array({extra}) ELSE {_none()} END "
        f"WHEN coalesce(l.there, false) THEN {rows} ELSE array({missing}) END"
    )


def _compared(plan: ReadPlan) -> list[Cell | Elements]:
    return [*plan.cells, *plan.elements]


def _none() -> str:
    return f"filter(array({_found(CELL, '', 'NULL', 'NULL', 'NULL', 'NULL')}), x -> false)"


def _cell(layout: Layout, each: Cell | Elements) -> str:
    same = f"{_comparable(each, 's')} <=> {_comparable(each, 'l')}"
    times = [f"{side}.{_time(each)}" for side in "sl"]
    landed = _shown(each, "l")
    declared = layout.declared.get(each.column)
    value = f"l.{_value(each)}"
    if isinstance(each, Cell) and declared is not None and (odd := not_fitting(each.stored.type, value, declared)):
        # What is stored is right, and readers see something else.
        misfit = " OR ".join(odd)
        seen = _as_json(shown_as(value, declared))
        same, landed = f"{same} AND NOT ({misfit})", f"CASE WHEN {misfit} THEN {seen} ELSE {landed} END"
    return f"CASE WHEN NOT ({same}) THEN {_found(CELL, _name(each), _shown(each, 's'), landed, *times)} END"


def _misfits(layout: Layout) -> list[str]:
    """Of the key columns: what readers see is another value than the one that a row is found by."""
    found: list[str] = []
    for key in layout.keys:
        value, declared = f"l.{quoted(key.value)}", layout.declared.get(key.name)
        if declared is not None and (odd := not_fitting(key.type, value, declared)):
            source, landed = _as_json(f"s.{quoted(key.value)}"), _as_json(shown_as(value, declared))
            found.append(
                f"CASE WHEN {' OR '.join(odd)} THEN {_found(CELL, key.name, source, landed, 'NULL', 'NULL')} END"
            )
    return found


def _name(each: Cell | Elements) -> str:
    field = each.field if isinstance(each, Cell) else None
    return each.column if field is None else f"{each.column}.{field}"


def _found(what: str, column: str, source: str, landed: str, source_us: str, landed_us: str) -> str:
    return struct_of(
        [
            ("what", literal(what)),
            ("column", literal(column)),
            ("source", f"CAST({source} AS string)"),
            ("landed", f"CAST({landed} AS string)"),
            ("source_us", f"CAST({source_us} AS bigint)"),
            ("landed_us", f"CAST({landed_us} AS bigint)"),
        ]
    )


def _whole(plan: ReadPlan, side: str) -> str:
    fields = [(_name(each), _plain(each, side)) for each in _compared(plan) if not each.static]
    return f"to_json({struct_of(fields)})" if fields else "'{}'"


def _shown(each: Cell | Elements, side: str) -> str:
    value = f"{side}.{_value(each)}"
    return f"CASE WHEN {value} IS NOT NULL THEN {_as_json(_plain(each, side))} END"


def _plain(each: Cell | Elements, side: str) -> str:
    """What is shown of it, with the names that fields have in the source."""
    value = f"{side}.{_value(each)}"
    if isinstance(each, Cell):
        return as_recorded(each.stored.type, value)
    if isinstance(each.type, MapType):
        entry = [("key", as_recorded(each.type.key, "e.k")), ("value", as_recorded(each.type.value, "e.v"))]
        return f"transform({value}, e -> {struct_of(entry)})"
    element = "e.v" if isinstance(each.type, ListType) else "e.k"
    return f"transform({value}, e -> {as_recorded(each.type.element, element)})"


def _comparable(each: Cell | Elements, side: str) -> str:
    """Equal exactly where ScyllaDB sees no difference: elements by the comparator of their keys, values by bytes."""
    value = f"{side}.{_value(each)}"
    if isinstance(each, Cell):
        return _same(each.stored.type, value)
    if isinstance(each.type, ListType):
        return f"transform({value}, e -> {_same(each.type.element, 'e.v')})"
    fields = [("i", "e.i")]
    if each.value_type is not None:
        fields.append(("v", _same(each.value_type, "e.v")))
    return f"sort_array(transform({value}, e -> {struct_of(fields)}))"


def _same(type_: CqlType, value: str) -> str:
    """Spark takes -0.0 for 0.0; as text they are two, and NaN is equal to itself."""
    if isinstance(type_, NativeType):
        if type_.name in _FLOATING:
            return struct_of([("v", value), ("n", is_minus_zero(value))])
        return value
    return f"CASE WHEN {value} IS NOT NULL THEN {_as_json(value)} END"


def _as_json(value: str) -> str:
    return f"to_json({struct_of([('v', value)])}, {_AS_JSON})"


def _value(each: Cell | Elements) -> str:
    return quoted(f"value_{each.stored.physical}")


def _time(each: Cell | Elements) -> str:
    return quoted(f"time_{each.stored.physical}")
