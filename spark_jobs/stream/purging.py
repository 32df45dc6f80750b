"""Forgetting deletes: a tombstone that nothing older can follow any more goes, and all that it covers goes with it.

In: a landed table's state and a time. Out: the state's buckets written anew, in one commit. What a tombstone covers is
removed first, so the rows that a reader sees stay the same; a change that is older and comes later would appear again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from connector.errors import LandingError
from spark_jobs.fold import NEVER, compacted, partition_columns, parts, range_cover
from spark_jobs.model import (
    DEAD,
    PARTITION,
    ROW,
    WAITING,
    Layout,
    greatest,
    key_columns,
    quoted,
    reasons_sql,
    state_patch,
    struct_of,
)
from spark_jobs.stream.kafka_topics import Offsets
from spark_jobs.tables import LandedTable, Restored


class OtherColumnsError(LandingError):
    """The job that lands has given the table other columns, or keys, since it was looked at: nothing was changed."""


@dataclass(frozen=True)
class Limit:
    """Tombstones up to ``time_us`` may go; None if none may, then ``why``. What was written up to then and has ended
    by itself is one as well, from the second ``ended_s`` on: whoever still has to hear of its end has heard of it."""

    time_us: int | None
    why: str = ""
    ended_s: int = 0


def purge_limit(
    landed: LandedTable, restored: Restored, ends: Offsets, begins: Offsets, oldest_us: int, ended_s: int = 0
) -> Limit:
    """How far tombstones may go: nothing unmerged, waiting or unread may be older than one that goes."""
    if (place := unread(restored, ends, begins)) is not None:
        return Limit(None, f"{place[0]}, partition {place[1]} is not landed to its end")
    log = landed.sink.relation(landed.changelog)
    waiting = f"segment = {DEAD} AND {reasons_sql(WAITING)}"
    row = landed.session.sql(
        f"SELECT count_if(ts IS NULL) AS timeless, min(ts) AS first FROM {log} "
        f"WHERE ({waiting}) OR (segment > {restored.mark} AND ts IS NOT NULL)"
    ).first()
    assert row is not None
    if row["timeless"]:
        return Limit(None, "dead letters of unknown time wait for a definition or a schema")
    return Limit(oldest_us if row["first"] is None else min(oldest_us, row["first"] - 1), ended_s=ended_s)


def unread(restored: Restored, ends: Offsets, begins: Offsets) -> tuple[str, int] | None:
    """A partition that is not landed up to the end given; None if all are."""
    behind = [place for place, end in ends.items() if restored.positions.get(place, begins.get(place, 0)) < end]
    return min(behind, default=None)


def tombstones(landed: LandedTable, layout: Layout, limit_us: int, ended_s: int = 0) -> dict[int, int]:
    """How many tombstones would go, by bucket."""
    patch = state_patch(layout, landed.state.rows(layout))
    rows = landed.session.sql(
        f"SELECT bucket, sum({_counted(layout, limit_us, ended_s)}) AS found FROM ({patch}) AS patch GROUP BY bucket"
    ).collect()
    return {row["bucket"]: row["found"] for row in rows if row["found"]}


def purge(landed: LandedTable, layout: Layout, limit_us: int, ended_s: int = 0) -> int:
    """Writes the state anew if it holds such tombstones; returns how many went. ``OtherColumnsError`` if the table's
    layout is another one by now: what is written by this one would lack what the new one has."""
    noted, layout = layout, layout.merging or layout
    found = sum(tombstones(landed, layout, limit_us, ended_s).values())
    if not found:
        return 0
    text = compacted(layout, purged(layout, landed.state.folded_text(layout), limit_us, ended_s), f"{ended_s}L")

    def made() -> DataFrame:
        rows = landed.session.sql(text)
        # Asked when it is settled which rows these are: definitions are noted before anything is merged by them.
        if (known := landed.known()) is None or known.layout() != noted:
            raise OtherColumnsError(f"{landed.name} got another definition meanwhile")
        return rows

    landed.state.rewrite(layout, made)
    return found


def purged(layout: Layout, patch: str, limit_us: int, ended_s: int = 0) -> str:
    """Patches without what is covered, and without the tombstones up to the limit; rows that then say nothing go."""
    cover, source = "deleted", patch
    if layout.clustering:
        over = f"OVER (PARTITION BY {', '.join(map(quoted, partition_columns(layout)))})"
        carried = struct_of([("d", "deleted"), ("r", "ranges")])
        spread = f"SELECT *, max(CASE WHEN kind = {PARTITION} THEN {carried} END) {over} AS p FROM ({patch}) AS patch"
        covers = f"CASE WHEN kind = {ROW} THEN greatest(deleted, p.d, {range_cover(layout)}) ELSE deleted END"
        cover, source = "covered", f"SELECT *, {covers} AS covered FROM ({spread}) AS spread"
    columns = ["bucket", "kind", *map(quoted, key_columns(layout))]
    columns += [quoted("s_" + key.place) for key in layout.keys if key.many_spellings]
    inserted = f"{layout.marker_time} > coalesce({cover}, {NEVER})"
    if layout.expiring:
        inserted += f" AND NOT {_marker_goes(limit_us, ended_s)}"
    columns.append(f"CASE WHEN {inserted} THEN marker END AS marker")
    columns.append(f"CASE WHEN deleted > {limit_us}L THEN deleted END AS deleted")
    if layout.clustering:
        columns.append(f"nullif(filter(ranges, r -> r.t > {limit_us}L), array()) AS ranges")
    for cell in layout.cells:
        name = quoted(cell.name)
        covers = greatest([cover, *([quoted(cell.tombstone)] if cell.tombstone else [])])
        kept = f"{name}.t > coalesce({covers}, {NEVER}) AND NOT {_goes(layout, name, limit_us, ended_s)}"
        columns.append(f"CASE WHEN {kept} THEN {name} END AS {name}")
    for _, stored in layout.user_types:
        columns.append(_tombstone(stored.tombstone, cover, limit_us))
    for part in layout.elements:
        name, tomb = quoted(part.stored.elements), quoted(part.stored.tombstone)
        kept = f"e.t > coalesce(greatest({cover}, {tomb}), {NEVER}) AND NOT {_goes(layout, 'e', limit_us, ended_s)}"
        columns += [_tombstone(part.stored.tombstone, cover, limit_us)]
        columns.append(f"nullif(filter({name}, e -> {kept}), array()) AS {name}")
    said = " OR ".join(f"{quoted(name)} IS NOT NULL" for name in parts(layout))
    return f"SELECT * FROM (SELECT {', '.join(columns)} FROM ({source}) AS source) AS purged WHERE {said}"


def _tombstone(name: str, cover: str, limit_us: int) -> str:
    column = quoted(name)
    return f"CASE WHEN {column} > greatest({limit_us}L, {cover}) THEN {column} END AS {column}"


def _goes(layout: Layout, what: str, limit_us: int, ended_s: int) -> str:
    """Whether a cell or element is a tombstone that may go."""
    dead = f"coalesce({what}.e <= {ended_s}L, {what}.d)" if layout.expiring else f"{what}.d"
    return f"({dead} AND {what}.t <= {limit_us}L)"


def _marker_goes(limit_us: int, ended_s: int) -> str:
    return f"coalesce(marker.e <= {ended_s}L AND marker.t <= {limit_us}L, false)"


def _counted(layout: Layout, limit_us: int, ended_s: int) -> str:
    """The number of tombstones up to the limit in one patch."""
    single = ["deleted", *(stored.tombstone for _, stored in layout.user_types)]
    single += [part.stored.tombstone for part in layout.elements]
    terms = [f"int(coalesce({quoted(name)} <= {limit_us}L, false))" for name in single]
    for cell in layout.cells:
        terms.append(f"int(coalesce({_goes(layout, quoted(cell.name), limit_us, ended_s)}, false))")
    if layout.expiring:
        terms.append(f"int({_marker_goes(limit_us, ended_s)})")
    if layout.clustering:
        terms.append(f"coalesce(size(filter(ranges, r -> r.t <= {limit_us}L)), 0)")
    for part in layout.elements:
        name = quoted(part.stored.elements)
        terms.append(f"coalesce(size(filter({name}, e -> {_goes(layout, 'e', limit_us, ended_s)})), 0)")
    return " + ".join(terms)
