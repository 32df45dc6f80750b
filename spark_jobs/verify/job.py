"""Compares landed tables with their source, cell by cell, as a Spark job.

In: settings, access to the source, limits. Out: one ``Verdict`` per table. A row that differs is looked at again once
landing has passed what was in the topics: only what differs while neither side changes is a difference, what goes on
changing is counted as moving. Nothing but the first differences comes to the driver.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.config import Settings
from spark_jobs.model import DEAD
from spark_jobs.sinks import FORMATS
from spark_jobs.source import SourceAccess, reading_tasks, time_to_live
from spark_jobs.stream import Topics, one_line
from spark_jobs.tables import (
    BACKFILL,
    LAND,
    Folder,
    LandedTable,
    PublishedTable,
    holds,
    leases,
    open_publisher,
    open_sink,
    unpublishable,
)
from spark_jobs.verify.report import Verdict
from spark_jobs.verify.round import Rounds

_LOOK_S = 0.5
_TABLES_AT_ONCE = 4
_FILLING = frozenset((LAND, BACKFILL))
"""What brings rows that are not there yet. Other holders of the job's lease only rearrange those that are."""


@dataclass(frozen=True)
class Limits:
    """``first``: so many differences of a table are listed; all are counted."""

    rounds: int = 5
    wait_s: float = 30.0
    confidence_ms: int = 30_000
    first: int = 100


@dataclass(frozen=True)
class _Waited:
    """``last``: landing will not get further, so the next reading is the last."""

    last: bool
    behind: int | None
    note: str | None = None


def verify(
    session: SparkSession,
    settings: Settings,
    access: SourceAccess,
    tables: Sequence[TableName] = (),
    limits: Limits | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Verdict]:
    """Compares the tables (all that are configured, if none is named), some of them at once."""
    chosen = list(tables) or list(settings.tables)
    with access.connected():
        # Whoever cannot be reached at all is told once, not per table.
        pass
    stop = threading.Event()
    work = [_Comparison(session, settings, access, table, limits or Limits(), say, stop) for table in chosen]
    with ThreadPoolExecutor(min(len(chosen), _TABLES_AT_ONCE)) as pool:
        try:
            return list(pool.map(_Comparison.verdict, work))
        finally:
            stop.set()


class _Comparison:
    """One table."""

    def __init__(
        self,
        session: SparkSession,
        settings: Settings,
        access: SourceAccess,
        table: TableName,
        limits: Limits,
        say: Callable[[str], None],
        stop: threading.Event,
    ) -> None:
        self._session = session
        self._settings = settings
        self._table = table
        self._limits = limits
        self._say = say
        self._stop = stop
        sink = open_sink(session, settings.session_config())
        self._landed = LandedTable(session, sink, table.keyspace, table.name)
        self._rounds = Rounds(session, settings, access, table, self._landed, reading_tasks(session, settings))
        self._result = Verdict(str(table))

    def verdict(self) -> Verdict:
        """Never raises: a table that cannot be compared does not keep the others from it."""
        try:
            self._compare()
        except Exception as error:
            self._cannot(one_line(error))
        return self._result

    def _cannot(self, problem: str) -> None:
        self._result.problem = problem
        self._result.differences = max(self._result.differences, 1)

    def _compare(self) -> None:
        result, limits = self._result, self._limits
        done = self._rounds.read(None)
        result.rounds = 1
        result.source_rows, result.landed_rows = done.source_rows, done.landed_rows
        result.read_twice = done.read_twice
        while result.rounds < limits.rounds and not done.equal:
            self._say(f"{self._table}: {done.differing:,} rows differ; {_outlook(self._holder(), limits)}")
            waited = self._wait()
            result.behind = waited.behind
            if waited.note is not None:
                result.notes = [waited.note]
            done = self._rounds.read(done)
            result.rounds += 1
            # Otherwise a change may still be on its way: the connector needs longer than its confidence window.
            if waited.last:
                break
        result.skipped = done.skipped
        result.moving = done.moving
        result.differences = done.found + len(done.columns)
        result.first = [*done.columns, *done.first(limits.first)][: limits.first] if result.differences else []
        result.dead_letters = self._dead_letters()
        self._compare_published()
        if done.known.incomplete is not None:
            result.notes.append(f"it is incomplete: {done.known.incomplete}; backfill completes it")
        unaware = result.differences and not done.known.expiring
        if unaware and time_to_live(self._rounds.access, self._table):
            result.notes.append(
                "it has default_time_to_live, which its records do not tell: what ended in the source is landed for "
                "ever; set cdc.include.metadata=true"
            )

    def _compare_published(self) -> None:
        """What others read, against what has landed; said where it is behind, which is no difference."""
        publisher = open_publisher(self._session, self._settings.session_config())
        if publisher is None or publisher.schema(self._landed.folder) is None:
            return
        published, restored = PublishedTable(publisher, self._landed), self._landed.restore()
        stand, known = published.stand(), restored.known
        form = FORMATS[self._settings.sink]
        if known is not None and (why := unpublishable(known.definitions[-1], form)) is not None:
            self._result.notes.append(f"the published table is not kept up any more: {why}")
            return
        if stand is None or known is None or published.is_behind(known, stand):
            self._result.notes.append("the published table is behind what has landed, so it was not compared")
            return
        differing = published.differences(known, stand)
        if differing and published.stand() == stand and self._landed.restore() == restored:
            self._result.differences += differing
            self._result.notes.append(f"the published table differs from what has landed in {differing:,} rows")

    def _wait(self) -> _Waited:
        """Until landing has passed what the topics hold once the confidence window is over, or gets no further."""
        wanted = self._settings.topics_of(self._table)
        try:
            topics = Topics(self._session, self._settings.kafka())
        except LandingError as error:
            return _Waited(True, None, f"landing's progress is unknown: {error}")
        with contextlib.closing(topics):
            try:
                return self._wait_for(topics, wanted)
            except LandingError as error:
                return _Waited(True, None, f"landing's progress is unknown: {error}")

    def _wait_for(self, topics: Topics, wanted: Sequence[str]) -> _Waited:
        if self._holder() in _FILLING:
            self._stop.wait(self._limits.confidence_ms / 1000)
        ends = topics.offsets(wanted)
        stood, since = None, time.monotonic()
        while True:
            positions = self._landed.restore().positions
            behind = sum(max(end - positions.get(place, 0), 0) for place, end in ends.items())
            fills = self._holder() in _FILLING
            if not behind and fills:
                return _Waited(False, 0)
            if positions != stood:
                stood, since = positions, time.monotonic()
            if not fills or self._stop.is_set() or time.monotonic() - since >= self._limits.wait_s:
                return _Waited(True, behind)
            self._stop.wait(_LOOK_S)

    @cached_property
    def _leases(self) -> Folder:
        return leases(self._session, self._settings)

    def _holder(self) -> str | None:
        """What is done to the warehouse at this moment."""
        return holds(self._leases, self._settings.name)

    def _dead_letters(self) -> int:
        log = self._landed.sink.relation(self._landed.changelog)
        row = self._session.sql(
            f"SELECT count(*) AS letters FROM {log} WHERE segment = {DEAD} AND reason IS NOT NULL"
        ).first()
        assert row is not None
        return int(row["letters"])


def _outlook(holder: str | None, limits: Limits) -> str:
    """What becomes of rows that differ, and for whom and how long is waited before that.

    >>> print(_outlook("land", Limits()))
    they are looked at again in 30 s or more, when land has passed what the topics hold, or has not gone on for 30 s
    >>> print(_outlook("rebuild", Limits()))
    they are looked at once more: rebuild is at work, and nothing lands
    >>> print(_outlook(None, Limits()))
    they are looked at once more: nothing lands
    """
    if holder in _FILLING:
        confidence, patience = limits.confidence_ms / 1000, limits.wait_s
        passed = f"when {holder} has passed what the topics hold, or has not gone on for {patience:g} s"
        return f"they are looked at again in {confidence:g} s or more, {passed}"
    at_work = "" if holder is None else f"{holder or 'somebody'} is at work, and "
    return f"they are looked at once more: {at_work}nothing lands"
