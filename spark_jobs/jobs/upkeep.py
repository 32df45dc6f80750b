"""Keeps landed tables small: merged changes go when no reader needs them, old deletes are forgotten, files made large.

In: settings. Out: what was (or, as a dry run, would be) done per table. It adds no rows, and holds no lease unless only
one process may write: landing may go on meanwhile, and a commit that loses against one of landing's is tried again.
Whole segments go, never single changes, and only those that the state's mark covers; positions keep their newest row,
letters and definitions stay. Deletes go when they are old and nothing that is unread, unmerged or waiting could be
older.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

from pyspark.sql import SparkSession

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.config import Settings
from spark_jobs.session import require_spark
from spark_jobs.sinks import FORMATS, compact_all
from spark_jobs.stream import (
    YOUNG_MS,
    Limit,
    OtherColumnsError,
    Topics,
    one_line,
    purge,
    purge_limit,
    tombstones,
    unread,
)
from spark_jobs.tables import (
    LAND,
    LandedTable,
    Parcels,
    PublishedTable,
    Restored,
    Stand,
    holds,
    leases,
    older_positions,
    open_publisher,
    open_sink,
    unpublishable,
    upkeep_lease,
)

_CATCH_UP_S, _LOOK_S = 30.0, 0.5


@dataclass(frozen=True)
class Upkeep:
    """What upkeep means for one table. ``segments`` are the merged ones that are older than the readers' grace."""

    table: str
    segments: tuple[int, ...]
    changes: int
    positions: int
    files_before: int
    files_after: int
    tombstones: int = 0
    tombstones_stay: str = ""
    problem: str | None = None
    """Why nothing of it was done, or not all."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        if self.problem is not None:
            return f"{self.table}: upkeep failed: {self.problem}"
        return (
            f"{self.table}: {self.changes:,} merged changes and {self.positions:,} "
            f"old positions removed, {self.tombstones:,} tombstones forgotten"
            f"{f' ({self.tombstones_stay})' if self.tombstones_stay else ''}, "
            f"{self.files_before:,} files became {self.files_after:,}"
        )


def maintain(
    session: SparkSession,
    settings: Settings,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> list[Upkeep]:
    """Upkeep of every configured table that has been landed. One that fails keeps no other from it. ``say`` is told
    what is being done."""
    with contextlib.nullcontext() if dry_run else upkeep_lease(session, settings) as lease:
        sink = open_sink(session, settings.session_config())
        done: list[Upkeep] = []
        for table in settings.tables:
            if lease is not None:
                lease.check()
            landed = LandedTable(session, sink, table.keyspace, table.name)
            try:
                if landed.exists():
                    done.append(_kept_up(landed, settings, table, dry_run, say))
            except Exception as error:
                # Without Spark no table can be kept up.
                require_spark(session)
                done.append(Upkeep(str(table), (), 0, 0, 0, 0, problem=one_line(error)))
    if not done:
        raise LandingError(f"nothing has been landed in {settings.warehouse} yet")
    return done


def _kept_up(
    landed: LandedTable, settings: Settings, table: TableName, dry_run: bool, say: Callable[[str], None]
) -> Upkeep:
    say(f"{table}: looking for what nobody needs any more …")
    published = _published(landed.session, settings, landed)
    stand = None if published is None else published.stand()
    restored, limit = _limit(landed, settings, table, stand, say)
    forgotten = 0
    try:
        forgotten = _forget(landed, restored, limit, dry_run)
    except OtherColumnsError as error:
        limit = Limit(None, str(error))
    if stand is not None and restored.known is not None and stand.lineage == restored.known.lineage:
        # What is merged is still to be published.
        restored = replace(restored, mark=min(restored.mark, stand.segment))
    if not dry_run:
        say(f"{table}: removing what nobody needs, and making larger files of small ones …")
    upkeep = _upkeep(landed, restored, settings.reader_grace_ms, settings.history_retention_ms, dry_run)
    if published is not None and not dry_run:
        say(f"{table}: the same of the published table …")
        published.compact()
        published.vacuum(max(settings.publish_retention_ms, YOUNG_MS))
    return replace(upkeep, tombstones=forgotten, tombstones_stay=limit.why)


def _published(session: SparkSession, settings: Settings, landed: LandedTable) -> PublishedTable | None:
    """The published double of the table, if there is one that is kept up."""
    publisher = open_publisher(session, settings.session_config(), settings.publish_retention_ms)
    if publisher is None or publisher.schema(landed.folder) is None:
        return None
    known = landed.known()
    if known is not None and unpublishable(known.definitions[-1], FORMATS[settings.sink]) is not None:
        # What it will never get must not be kept for it.
        return None
    return PublishedTable(publisher, landed)


def _limit(
    landed: LandedTable, settings: Settings, table: TableName, stand: Stand | None, say: Callable[[str], None]
) -> tuple[Restored, Limit]:
    """Where the table stands, and how far its tombstones may go. A job that lands is given time to reach what the
    topics hold now: where changes never stop, it never stands at their ends."""
    oldest = int(time.time() * 1000) - settings.tombstone_retention_ms
    ended_s = oldest // 1000 if stand is None else min(oldest // 1000, stand.at_s)
    names = settings.topics_of(table)
    if Parcels(landed).waiting():
        # What was read before a delete could land after that is forgotten.
        return landed.restore(), Limit(None, "a backfill is under way")
    try:
        with contextlib.closing(Topics(landed.session, settings.kafka())) as topics:
            ends, begins = topics.offsets(names), topics.offsets(names, beginning=True)
    except LandingError as error:
        return landed.restore(), Limit(None, str(error))
    lease = leases(landed.session, settings)
    deadline, waited = time.monotonic() + _CATCH_UP_S, False
    while True:
        restored = landed.restore()
        limit = purge_limit(landed, restored, ends, begins, oldest * 1000, ended_s)
        behind = unread(restored, ends, begins) is not None
        # Nobody else lands: what holds the lease may be this very upkeep.
        if not behind or holds(lease, settings.name) != LAND or time.monotonic() > deadline:
            return restored, limit
        if not waited:
            say(f"{table}: waiting for land, for {_CATCH_UP_S:g} s at most, to be able to forget deletes …")
            waited = True
        time.sleep(_LOOK_S)


def _forget(landed: LandedTable, restored: Restored, limit: Limit, dry_run: bool) -> int:
    """How many tombstones were, or would be, forgotten."""
    if restored.known is None or limit.time_us is None:
        return 0
    layout = restored.known.layout()
    if dry_run:
        return sum(tombstones(landed, layout, limit.time_us, limit.ended_s).values())
    return purge(landed, layout, limit.time_us, limit.ended_s)


def _upkeep(landed: LandedTable, restored: Restored, grace_ms: int, retention_ms: int | None, dry_run: bool) -> Upkeep:
    sink, session = landed.sink, landed.session
    log = sink.relation(landed.changelog)
    limit = int(time.time() * 1000) - grace_ms
    merged = session.sql(
        f"SELECT segment, count(*) AS changes, unix_millis(max(landed_at)) < {limit} AS old FROM {log} "
        f"WHERE segment > 0 AND segment <= {restored.mark} GROUP BY segment ORDER BY segment"
    ).collect()
    # From the first on, also where a clock was set: so is told whether any are gone.
    old = list(takewhile(lambda row: bool(row["old"]), merged))
    trimmed = 0
    if restored.known is not None and restored.known.history:
        # Its changes are the history.
        old = []
        if retention_ms is not None:
            layout = restored.known.layout()
            trimmed = landed.history.trim(layout, restored.mark, retention_ms, grace_ms, dry_run)
    where = older_positions(restored.positions)
    counted = session.sql(f"SELECT count(*) AS rows FROM {log} WHERE {where}").first()
    assert counted is not None
    tables = landed.folders()
    before = sum(sink.files(table)[0] for table in tables)
    if not dry_run:
        _purge(landed, [row["segment"] for row in old], where if counted["rows"] else None)
        for table in tables:
            # The state's files are as large as they should be, and sorted.
            if table != landed.state.table:
                compact_all(sink, table)
            sink.vacuum(table, max(grace_ms, YOUNG_MS))
    return Upkeep(
        table=landed.name,
        segments=tuple(row["segment"] for row in old),
        changes=trimmed + sum(row["changes"] for row in old),
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
