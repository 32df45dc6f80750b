"""The landing job: all tables of a configuration, each by a query of its own, until stopped or once.

In: ``Settings``. Out: an exit status, and a summary. A table that fails is reported, tried again with growing pauses,
and ends no other. Also runs by itself: ``spark-submit spark_jobs/land.py LANDING.json [--once]``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from tempfile import gettempdir

from pyspark.sql import SparkSession

from connector.errors import CdcError, ConfigurationError, LandingError
from connector.pauses import doubled
from connector.secrets import filtered, scrub
from connector.stop_signals import ENDING, stopped_by
from spark_jobs.config import Settings, described_tables, load_settings
from spark_jobs.ending import Ending
from spark_jobs.session import needing_spark, require_class, require_spark, start_session, why_ended
from spark_jobs.stream import Progress, SchemaTopic, TableStream, Topics, one_line, with_room
from spark_jobs.tables import Lease, backfills, job_lease, open_sink

ATTEMPTS_ONCE = 3
_FIRST_PAUSE_S = 0.5
_POLL_S, _ASKED_S = 0.1, 0.003
"""How often queries are looked at: each is asked in Java, for 0.1 ms of a core. Of some hundred tables that, ten
times a second, would be as much as all that they do while nothing is written."""
_BESIDE_AT_ONCE = 2
_PUBLISHING, _TAKING_UP = "publishing", "landing what a backfill has read"
_BACKFILL_S = 5.0
"""How often it is looked whether a backfill is under way."""


class _Landing:
    """One table's stream with its failures."""

    def __init__(self, stream: TableStream) -> None:
        self.stream = stream
        self.failures = 0
        self.retry_at: float | None = None
        self.done = False
        self.beside: Future[None] | None = None
        self.what = ""

    def begin(self, pool: ThreadPoolExecutor, what: str, work: Callable[[], None]) -> None:
        """Something that is done beside landing, where there is room for it."""
        # In this order: the work may say more closely what it is.
        self.what = what
        self.beside = pool.submit(work)

    def finish(self) -> None:
        """All that is left to be done when the topics are at their ends."""
        if self.stream.may_have_parcels:
            self.what = _TAKING_UP
            self.stream.take_up()
        self.what = _PUBLISHING
        self.stream.publish(now=True)

    @property
    def waits(self) -> bool:
        """Whether something is still to be done for it."""
        under_way = self.retry_at is not None or self.beside is not None or self.stream.query is not None
        return not self.done and under_way


def land(
    settings: Settings,
    once: bool,
    progress: Progress,
    stop: threading.Event | None = None,
    session: SparkSession | None = None,
) -> int:
    """Lands until ``stop`` is set, or (``once``) until every table reached its topics' present ends. 0 or 1."""
    stop = stop or threading.Event()
    ending = Ending(stop, progress.note)
    # A session that somebody else has made is not this job's to end.
    with ending if session is None else contextlib.nullcontext():
        try:
            session = session or start_session(settings.session_config())
            with needing_spark(session):
                return _land(settings, once, progress, stop, session, ending)
        except LandingError:
            # Who ends a whole group of processes, as systemd does, ends Spark as well.
            spark_ended = ending.gave_up or (session is not None and why_ended(session) is not None)
            if not stop.is_set() or not spark_ended:
                raise
    progress.done()
    # Whoever wanted it to land once has not got that; whoever wanted a job to end, has.
    return int(once)


def _land(
    settings: Settings,
    once: bool,
    progress: Progress,
    stop: threading.Event,
    session: SparkSession,
    ending: Ending,
) -> int:
    require_class(
        session,
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.2",
    )
    described = described_tables(settings)
    sink = open_sink(session, settings.session_config())
    topics = Topics(session, settings.kafka())
    lease = job_lease(session, settings)
    with contextlib.closing(topics), lease:
        schemas = SchemaTopic(topics, settings.schema_topic)
        landings = [
            _Landing(
                TableStream(
                    session=session,
                    sink=sink,
                    settings=settings,
                    table=table,
                    topics=topics,
                    schemas=schemas,
                    lease=lease,
                    progress=progress,
                    described=described,
                )
            )
            for table in settings.tables
        ]
        job = _Job(landings, settings, progress, lease, once=once)
        with ThreadPoolExecutor(min(len(landings), 8)) as pool:
            list(pool.map(job.start, landings))
        ending.started()
        try:
            with _beside() as pool:
                job.watch(stop, pool)
        finally:
            for landing in landings:
                landing.stream.stop()
                landing.stream.clean()
    progress.done()
    left = [landing.stream.name for landing in landings if not landing.done] if once else []
    if left and stop.is_set():
        progress.note(f"asked to end before all of these had landed: {', '.join(left)}")
    return int(bool(left))


@contextlib.contextmanager
def _beside() -> Iterator[ThreadPoolExecutor]:
    """Publishes and keeps house. What waits for its turn at the end, of many tables, is the next start's."""
    pool = ThreadPoolExecutor(_BESIDE_AT_ONCE)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


class _Job:
    """The tables of a job, looked at in turn: what failed is started again, what is due is done beside landing."""

    def __init__(
        self, landings: Sequence[_Landing], settings: Settings, progress: Progress, lease: Lease, *, once: bool
    ) -> None:
        self._landings = landings
        self._settings = settings
        self._progress = progress
        self._lease = lease
        self._once = once

    def start(self, landing: _Landing) -> None:
        try:
            landing.retry_at = None
            landing.stream.start(self._once)
        except Exception as error:
            # A table that fails is tried again; without Spark no table can be.
            require_spark(landing.stream.session)
            self.failed(landing, one_line(error))

    def failed(self, landing: _Landing, why: str) -> None:
        if landing.stream.landed and not self._once:
            # What fails now is something else than what failed before it.
            landing.failures = 0
        landing.stream.landed = False
        landing.failures += 1
        settings = self._settings
        local = settings.passed_on.get("spark.local.dir", gettempdir()).split(",")
        why = with_room(why, [settings.warehouse, settings.checkpoint, *local])
        table = self._progress.of(landing.stream.name)
        table.failures += 1
        table.last_error = why
        pause = doubled(_FIRST_PAUSE_S, landing.failures, settings.retry_backoff_max_ms / 1000)
        if self._once and landing.failures >= ATTEMPTS_ONCE:
            self._progress.note(f"{landing.stream.name} failed: {why}")
            return
        self._progress.note(f"{landing.stream.name} failed, trying again in {pause:g} s: {why}")
        landing.retry_at = time.monotonic() + pause

    def watch(self, stop: threading.Event, pool: ThreadPoolExecutor) -> None:
        """Until ``stop`` is set, or nothing is left to be done."""
        filling, looked = False, time.monotonic() - _BACKFILL_S
        while not stop.is_set():
            if time.monotonic() >= looked + _BACKFILL_S:
                session = self._landings[0].stream.session
                filling, looked = _is_filled(session, self._settings), time.monotonic()
            if self._lease.lost:
                # Not a failure of a table: nothing that this process tried again could succeed.
                self._lease.check()
            for landing in self._landings:
                if not landing.done:
                    self._look_at(landing, filling, pool)
            if self._once and not any(item.waits for item in self._landings):
                return
            stop.wait(max(_POLL_S, _ASKED_S * len(self._landings)))

    def _look_at(self, landing: _Landing, filling: bool, pool: ThreadPoolExecutor) -> None:
        stream = landing.stream
        if landing.beside is not None:
            if landing.beside.done():
                self._done_beside(landing, landing.beside.exception())
        elif landing.retry_at is not None:
            if time.monotonic() >= landing.retry_at:
                self.start(landing)
        elif stream.ended() and stream.query is not None:
            self._ended(landing, pool)
        elif stream.wants_parcels(filling):
            landing.begin(pool, _TAKING_UP, stream.take_up)
        elif stream.wants_publishing:
            landing.begin(pool, _PUBLISHING, stream.publish)
        elif stream.wants_housekeeping:
            landing.begin(pool, "upkeep", stream.keep_house)

    def _done_beside(self, landing: _Landing, error: BaseException | None) -> None:
        landing.beside = None
        table = self._progress.of(landing.stream.name)
        table.beside.pop(landing.what, None)
        if error is not None and self._once:
            self.failed(landing, f"{landing.what} failed: {one_line(error)}")
        elif error is not None:
            # Landing goes on meanwhile; the next interval tries again.
            table.beside[landing.what] = one_line(error)
            self._progress.note(f"{landing.stream.name}: {landing.what} failed, trying again: {one_line(error)}")
        elif landing.stream.query is None:
            landing.done = True
            table.last_error = None

    def _ended(self, landing: _Landing, pool: ThreadPoolExecutor) -> None:
        """A query, as it does at the topics' ends, or where it fails."""
        why = landing.stream.failure()
        landing.stream.clean()
        landing.stream.query = None
        if why is not None:
            self.failed(landing, why)
        else:
            landing.begin(pool, _PUBLISHING, landing.finish)


def _is_filled(session: SparkSession, settings: Settings) -> bool:
    try:
        return backfills(session, settings)
    except Exception:
        # A folder that cannot be read for a moment ends no job. Where it lasts, the lease is lost, and says so.
        require_spark(session)
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """For ``spark-submit``; the command line of the product has its own."""
    parser = argparse.ArgumentParser(prog="land.py")
    parser.add_argument("config")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(arguments)
    sys.stderr = filtered(sys.stderr)
    progress = Progress(as_json=args.json)
    try:
        with stopped_by(*ENDING) as stop:
            status = land(load_settings(args.config), args.once, progress, stop)
    except ConfigurationError as error:
        print(scrub(str(error)), file=sys.stderr)
        return 2
    except CdcError as error:
        print(scrub(str(error)), file=sys.stderr)
        return 1
    print(json.dumps(progress.summary()) if args.json else progress.text())
    return status


if __name__ == "__main__":
    sys.exit(main())
