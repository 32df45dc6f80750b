"""The versions that a table's rows have had: what ``SELECT *`` would have shown at each write time.

In: a ``Layout``, the SQL of changelog rows, and of what is kept of older ones. Out: the SQL of the versions, each with
the time from which and up to which it holds. They are made from the changes whenever somebody asks, by the fold and
the rules of the view, so late changes, ties, deletes and replays need nothing of their own.

A version begins where something of the row, or of its partition, was written. Patches are therefore folded per key and
time, each is joined with those before it, and versions that show the same as the one before are one. Partition
deletes, ranges and statics are looked at where they were written in every row of the partition.
"""

from __future__ import annotations

from connector.errors import LandingError
from connector.values import ListType
from spark_jobs.fold.fold import NOW, folded, folded_so_far, parts
from spark_jobs.fold.view import any_value, living_rows, shown_columns, value_names
from spark_jobs.model import (
    PARTITION,
    ROW,
    Cell,
    Elements,
    Layout,
    TableDefinition,
    changes_patch,
    element_key,
    identities,
    key_columns,
    quoted,
    state_patch,
    struct_of,
)

VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"

EARLIEST = "unix_micros(TIMESTAMP '1900-01-01 00:00:00')"
LATEST = "unix_micros(TIMESTAMP '9999-12-31 23:59:59.999999')"
"""Write times outside of these are legal, but few programs can show them."""

_SO_FAR = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def check_names(definition: TableDefinition) -> None:
    """A table's own columns must leave the names of the history's columns free."""
    taken = {VALID_FROM, VALID_TO, IS_CURRENT} & {column.name.lower() for column in definition.columns}
    if taken:
        raise LandingError(f"{definition.name} cannot have a history: it has columns {', '.join(sorted(taken))}")


def versions(layout: Layout, changes: str, kept: str, horizon: str) -> str:
    """All versions of all rows. ``kept`` are state rows of what was written up to ``horizon``; null if nothing was."""
    patches = [
        changes_patch(layout, _dated(changes, f"greatest(ts, {horizon})")),
        state_patch(layout, _dated(kept, horizon)),
    ]
    patch = folded(layout, patches, identities(layout, partition_only=True))
    if layout.expiring:
        patch = _at_ends(layout, patch)
    if layout.clustering:
        patch = _at_partition_times(layout, patch)
    patch = folded_so_far(layout, patch, f"({_key(layout)} ORDER BY bucket.at {_SO_FAR})")
    over = f"({_partition(layout)} ORDER BY bucket.at {_SO_FAR})"
    rows = living_rows(layout, patch, "bucket.at div 1000000", over)
    if layout.has_statics:
        rows = _with_lonely_statics(layout, rows)
    elif layout.clustering:
        rows = f"SELECT * FROM ({rows}) AS rows WHERE kind = {ROW}"
    return _intervals(layout, rows)


def _dated(source: str, time: str) -> str:
    """Rows whose bucket carries their time: what groups by bucket keeps times apart."""
    bucket = struct_of([("b", "bucket"), ("at", time)])
    return f"SELECT * EXCEPT (bucket), {bucket} AS bucket FROM ({source}) AS dated"


def _partition(layout: Layout) -> str:
    return f"PARTITION BY bucket.b, {', '.join(map(quoted, identities(layout, partition_only=True)))}"


def _key(layout: Layout) -> str:
    return f"PARTITION BY bucket.b, kind, {', '.join(map(quoted, identities(layout)))}"


def _at_ends(layout: Layout, patch: str) -> str:
    """Adds, for every patch, patches that say nothing at the times when something of it has ended by now."""
    ends = [f"{quoted(cell.name)}.e" for cell in layout.cells]
    known = [f"array({', '.join(['marker.e', *ends])})"]
    for part in layout.elements:
        known.append(f"transform(coalesce({quoted(part.stored.elements)}, array()), e -> e.e)")
    past = f"filter(array_distinct(concat({', '.join(known)})), e -> e * 1000000 > bucket.at AND e <= {NOW})"
    times = f"concat(array(bucket.at), transform({past}, e -> e * 1000000))"
    spread = f"SELECT * FROM ({patch}) AS patch LATERAL VIEW explode({times}) AS at"
    return _said_once(layout, spread)


def _at_partition_times(layout: Layout, patch: str) -> str:
    """Adds, for every row, patches that say nothing at the times when its partition was written."""
    first = f"row_number() OVER ({_key(layout)} ORDER BY bucket.at) = 1 AS first"
    times = f"collect_list(CASE WHEN kind = {PARTITION} THEN bucket.at END) OVER ({_partition(layout)}) AS times"
    later = "concat(array(bucket.at), filter(times, t -> t > bucket.at))"
    spread = (
        f"SELECT * FROM (SELECT *, {first}, {times} FROM ({patch}) AS patch) AS patch "
        f"LATERAL VIEW explode(CASE WHEN first AND kind = {ROW} THEN {later} ELSE array(bucket.at) END) AS at"
    )
    return _said_once(layout, spread)


def _said_once(layout: Layout, spread: str) -> str:
    """Patches that are there at several times say what they say at their own one."""
    columns = [f"{struct_of([('b', 'bucket.b'), ('at', 'at')])} AS bucket", "kind"]
    columns += map(quoted, key_columns(layout))
    columns += [quoted("s_" + key.place) for key in layout.keys if key.many_spellings]
    columns += [f"CASE WHEN at = bucket.at THEN {name} END AS {name}" for name in map(quoted, parts(layout))]
    return f"SELECT {', '.join(columns)} FROM ({spread}) AS spread"


def _with_lonely_statics(layout: Layout, rows: str) -> str:
    """Rows, and at every time of a partition one row for its statics, visible while no other row of it is."""
    change = f"int(visible) - coalesce(lag(int(visible)) OVER ({_key(layout)} ORDER BY bucket.at), 0)"
    counted = f"SELECT *, CASE WHEN kind = {ROW} THEN {change} ELSE 0 END AS change FROM ({rows}) AS rows"
    nth = f"row_number() OVER ({_partition(layout)}, bucket.at ORDER BY kind) AS nth"
    peopled = f"sum(change) OVER ({_partition(layout)} ORDER BY bucket.at {_SO_FAR}) > 0 AS peopled"
    roles = f"filter(array(CASE WHEN kind = {ROW} THEN {ROW} END, CASE WHEN nth = 1 THEN {PARTITION} END), r -> r > 0)"
    spread = (
        f"SELECT * FROM (SELECT *, {nth}, {peopled} FROM ({counted}) AS counted) AS counted "
        f"LATERAL VIEW explode({roles}) AS role"
    )
    columns = ["bucket", "role AS kind", "p"]
    columns += [quoted(key.value) for key in layout.partition]
    columns += [quoted(key.identity) for key in layout.partition if key.identity != key.value]
    own = [key.value for key in layout.clustering]
    own += [key.identity for key in layout.clustering if key.identity != key.value]
    own += value_names(layout, static=False)
    columns += [f"CASE WHEN role = {ROW} THEN {name} END AS {name}" for name in map(quoted, own)]
    alone = f"NOT peopled AND ({any_value(layout, static=True, prefix='p.')})"
    columns.append(f"CASE WHEN role = {ROW} THEN visible ELSE {alone} END AS visible")
    return f"SELECT {', '.join(columns)} FROM ({spread}) AS spread"


def _intervals(layout: Layout, rows: str) -> str:
    """From states at times to versions that hold from one time to another."""
    after = f"OVER ({_key(layout)} ORDER BY bucket.at)"
    seen = f"SELECT *, CASE WHEN visible THEN to_json({_content(layout)}) END AS seen FROM ({rows}) AS rows"
    compared = f"SELECT *, lag(seen) {after} AS before FROM ({seen}) AS seen"
    changed = f"SELECT * FROM ({compared}) AS compared WHERE NOT (seen <=> before)"
    ended = f"SELECT *, lead(bucket.at) {after} AS ended FROM ({changed}) AS changed"
    columns = [
        *shown_columns(layout),
        f"{_timestamp('bucket.at')} AS {VALID_FROM}",
        f"{_timestamp('ended')} AS {VALID_TO}",
        f"ended IS NULL AS {IS_CURRENT}",
    ]
    return f"SELECT {', '.join(columns)} FROM ({ended}) AS shown WHERE seen IS NOT NULL"


def _timestamp(time: str) -> str:
    return f"CASE WHEN {time} IS NOT NULL THEN timestamp_micros(least(greatest({time}, {EARLIEST}), {LATEST})) END"


def _content(layout: Layout) -> str:
    """All that a reader sees of a row but its identity, without the times at which it was written."""
    fields = [(f"k{at}", quoted(key.value)) for at, key in enumerate(layout.clustering) if key.many_spellings]
    fields += [(f"c{at}", _value(cell)) for at, cell in enumerate(layout.cells) if not cell.hidden]
    fields += [(f"e{at}", _elements(part)) for at, part in enumerate(layout.elements) if not part.hidden]
    return struct_of([("x", "1"), *fields])


def _value(cell: Cell) -> str:
    return f"{'p.' if cell.static else ''}{quoted('w_' + cell.stored.physical)}"


def _elements(part: Elements) -> str:
    elements = f"{'p.' if part.static else ''}{quoted('w_' + part.stored.physical)}"
    shown = [("v", "e.v")]
    if not isinstance(part.type, ListType):
        shown.append(("k", element_key(part, "e")))
    return f"transform({elements}, e -> {struct_of(shown)})"
