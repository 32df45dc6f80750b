"""Keeps landed tables small: merged changes go when no reader needs them, small files become large ones.

In: settings. Out: what was (or, as a dry run, would be) done per table. It adds no rows and holds no lease: landing may
go on meanwhile, and a commit that loses against one of landing's is tried again. Whole segments go, never single
changes, and only those that the state's mark covers; positions keep their newest row, letters and definitions stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.landed_table import LandedTable
from spark_jobs.layout import POSITIONS
from spark_jobs.names import literal
from spark_jobs.registration import open_sink
from spark_jobs.settings import Settings

VACUUM_FLOOR_MS = 3_600_000
"""A batch that landing writes at this moment has files that no commit names yet: young files are never deleted."""


@dataclass(frozen=True)
class Upkeep:
    """What upkeep means for one table. ``segments`` are the merged ones that are older than the readers' grace."""

    table: str
    segments: tuple[int, ...]
    changes: int
    positions: int
    files_before: int
    files_after: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        return (
            f"{self.table}: {self.changes:,} merged changes of {len(self.segments)} segments and {self.positions:,} "
            f"old positions removed, {self.files_before:,} files became {self.files_after:,}"
        )


def maintain(session: SparkSession, settings: Settings, dry_run: bool = False) -> list[Upkeep]:
    """Upkeep of every configured table that has been landed."""
    sink = open_sink(session, settings.session_config())
    done: list[Upkeep] = []
    for table in settings.tables:
        landed = LandedTable(session, sink, table.keyspace, table.table)
        if landed.exists():
            done.append(_upkeep(landed, settings["reader.grace.ms"], dry_run))
    if not done:
        raise LandingError(f"nothing has been landed in {settings.warehouse} yet")
    return done


def _upkeep(landed: LandedTable, grace_ms: int, dry_run: bool) -> Upkeep:
    sink, session = landed.sink, landed.session
    log = sink.relation(landed.changelog)
    restored = landed.restore()
    limit = int(time.time() * 1000) - grace_ms
    old = session.sql(
        f"SELECT segment, count(*) AS changes FROM {log} WHERE segment > 0 AND segment <= {restored.mark} "
        f"GROUP BY segment HAVING unix_millis(max(landed_at)) < {limit} ORDER BY segment"
    ).collect()
    outdated = " OR ".join(
        f"(topic = {literal(topic)} AND partition = {number} AND offset < {offset})"
        for (topic, number), offset in sorted(restored.positions.items())
    )
    where = f"segment = {POSITIONS} AND ({outdated or 'false'})"
    counted = session.sql(f"SELECT count(*) AS rows FROM {log} WHERE {where}").first()
    assert counted is not None
    tables = (landed.changelog, landed.state)
    before = sum(sink.files(table)[0] for table in tables)
    if not dry_run:
        _purge(landed, [row["segment"] for row in old], where if counted["rows"] else None)
        for table in tables:
            sink.compact(table)
            sink.vacuum(table, max(grace_ms, VACUUM_FLOOR_MS))
    return Upkeep(
        table=landed.name,
        segments=tuple(row["segment"] for row in old),
        changes=sum(row["changes"] for row in old),
        positions=counted["rows"],
        files_before=before,
        files_after=before if dry_run else sum(sink.files(table)[0] for table in tables),
    )


def _purge(landed: LandedTable, segments: Iterable[int], positions: str | None) -> None:
    chosen = ", ".join(map(str, segments))
    if chosen:
        landed.sink.delete(landed.changelog, f"segment IN ({chosen})")
    if positions:
        landed.sink.delete(landed.changelog, positions)
