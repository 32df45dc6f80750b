"""A backfill beside a job that lands: what is read is taken up between the changes, and nobody has to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from cassandra.cluster import Session
from pyspark.sql import DataFrame, SparkSession

from connector.errors import LandingError
from connector.table_name import TableName
from embedded.kafka import EmbeddedKafka
from spark_jobs.jobs import backfilling
from spark_jobs.jobs.backfilling import Filled, Filling, backfill
from spark_jobs.land import land
from spark_jobs.stream import table_stream
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.lease import job_lease
from spark_jobs.tables.notes import Known
from spark_jobs.tables.parcels import Parcels
from spark_jobs.tables.published_table import PublishedTable, Stand
from spark_jobs.tables.registration import open_sink
from tests.servers.patience import seldom, until
from tests.servers.scylla import Scylla
from tests.spark_jobs.landing_feed import create_topics, produce
from tests.spark_jobs.source_tables import ANY_FORMAT, WITH_SOURCE, SourceTables, equal

pytestmark = [pytest.mark.timeout(1800), *WITH_SOURCE, pytest.mark.kafka]
PARTITIONS = 40


class Beside(SourceTables):
    """A table with rows from before its log, its topics, and the job that lands them."""

    def __init__(
        self, spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str, servers: str, sink: str
    ) -> None:
        self.name = f"{keyspace}.t"
        super().__init__(spark, scylla, warehouse, [self.name], sink)
        self.cql = cql
        self.table = TableName(keyspace, "t")
        self.servers, self.schemas = servers, f"{keyspace}.schemas"
        self.settings = self.configured(
            warehouse,
            **{
                "name": keyspace,
                "bootstrap.servers": servers,
                "schema.topic": self.schemas,
                "trigger.interval.ms": 100,
                "publish.interval.ms": 0,
            },
        )
        self.progress = Progress()
        self._fed = 0
        cql.execute("CREATE TABLE t (p int, c int, s int static, v int, e set<int>, PRIMARY KEY (p, c))")
        for p in range(PARTITIONS):
            cql.execute(f"INSERT INTO t (p, c, s, v, e) VALUES ({p}, 1, {p}, {p}, {{1, 2}})")
        cql.execute("INSERT INTO t (p, c, v) VALUES (1, 2, 3) USING TTL 100000")
        cql.execute("ALTER TABLE t WITH cdc = {'enabled': true}")

    def feed(self, *statements: str) -> None:
        """Some writes, and what the connector makes of them."""
        for statement in statements:
            self.cql.execute(statement)
        definitions, written = self.read([self.name])
        values = [(record.topic, record.value) for _, record in written]
        if not self._fed:
            create_topics(self.servers, [self.schemas, f"p.{self.name}", f"p.{self.name}.range-deletes"])
        schema = [(self.schemas, definitions[self.name].encode())]
        produce(self.servers, [*(schema if not self._fed else []), *values[self._fed :]])
        self._fed = len(values)

    @contextmanager
    def landing(self) -> Iterator[threading.Event]:
        """A job that lands meanwhile, until the event is set."""
        stop, statuses = threading.Event(), list[int]()
        job = threading.Thread(
            target=lambda: statuses.append(land(self.settings, False, self.progress, stop, session=self.spark))
        )
        landed = self.progress.of(self.name)
        before = landed.rows
        job.start()
        try:
            until(lambda: landed.rows > before or not job.is_alive(), 120, "the first batch", step=seldom)
            yield stop
        finally:
            stop.set()
            job.join(120)
        assert statuses == [0] and not landed.failures, self.progress.text()

    def caught_up(self) -> None:
        until(lambda: self.progress.of(self.name).rows >= self._fed, 120, "all changes", step=seldom)

    def backfill(self) -> Filled:
        (done,) = backfill(self.spark, self.settings, self.access)
        return done

    def known(self) -> Known:
        known = self.landed(self.name).known()
        assert known is not None
        return known

    def filling(self) -> Filling:
        sink = open_sink(self.spark, self.settings.session_config())
        return Filling(self.spark, sink, self.settings, self.access, skip_lists=False)

    def interrupted(self, patch: pytest.MonkeyPatch, part: int, at: Callable[[], None]) -> None:
        """From now on something happens before a part is read."""
        read, parts = backfilling.read_source, list[Any]()

        def reading(*arguments: Any) -> DataFrame:
            parts.append(arguments)
            if len(parts) == part:
                at()
            return read(*arguments)

        patch.setattr(backfilling, "read_source", reading)
        # In two parts each has rows of the few partitions.
        patch.setattr(backfilling, "_SPANS", 2)


@pytest.fixture
def beside(
    spark: SparkSession,
    scylla: Scylla,
    cql: Session,
    keyspace: str,
    warehouse: str,
    kafka: EmbeddedKafka,
    request: pytest.FixtureRequest,
) -> Iterator[Beside]:
    """In the format that a test asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_stream, "_LOOKED_FOR_S", 0.5)
        yield Beside(
            spark, scylla, cql, keyspace, warehouse, kafka.bootstrap_servers, getattr(request, "param", ANY_FORMAT)
        )


@pytest.mark.parametrize("beside", ["delta"], indirect=True)
def test_a_job_that_lands_takes_up_what_a_backfill_reads(beside: Beside) -> None:
    beside.feed("UPDATE t SET e = e - {1}, v = 7 WHERE p = 1 AND c = 1", "DELETE FROM t WHERE p = 2 AND c = 1")
    with beside.landing():
        assert beside.backfill().rows == PARTITIONS
        beside.feed("UPDATE t SET v = 8 WHERE p = 4 AND c = 1", "DELETE s FROM t WHERE p = 5")
        beside.caught_up()
    known = beside.known()
    assert (known.backfilled, known.filled_to, known.incomplete) == ((), None, None)
    assert known.expiring, "what has a TTL ends"
    equal(beside.verify())


@pytest.mark.usefixtures("no_broker")
def test_a_backfill_that_is_killed_goes_on_and_lands_by_itself_what_nobody_takes_up(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed() -> None:
        raise LandingError("it was killed")

    beside.land()
    landed = beside.landed(beside.name)
    parcels, job = Parcels(landed), job_lease(beside.spark, beside.settings)
    with job, monkeypatch.context() as patch, pytest.raises(LandingError, match="it was killed"):
        beside.interrupted(patch, 2, killed)
        beside.backfill()
    assert [parcel.number for parcel in parcels.waiting()] == [1]
    for p in range(3, PARTITIONS, 3):
        beside.cql.execute(f"DELETE FROM t WHERE p = {p}")
    beside.land()
    job = job_lease(beside.spark, beside.settings)
    with monkeypatch.context() as patch, job:
        patch.setattr(backfilling, "_AWAY_S", 0)
        beside.interrupted(patch, 1, job.release)
        again = beside.backfill()
    assert 0 < again.rows < PARTITIONS, "what was read before the interruption is not read again"
    assert not parcels.waiting() and beside.known().filled_to is None
    equal(beside.verify())

    known, filling = beside.known(), beside.filling()
    with job_lease(beside.spark, beside.settings) as lease:
        landed.prepare(replace(known, sequence=known.sequence + 1, incomplete="it lacks something"))
        filling.read_beside(beside.table, lease)
    published = Stand(known.lineage, landed.restore().segment + 2, ())
    with monkeypatch.context() as patch:
        patch.setattr(PublishedTable, "stand", lambda _: published)
        assert beside.backfill().rows == 0, "all of it is read"
    assert landed.mark() > published.segment, "nobody looks for more rows in what is published"
    known = beside.known()
    assert known.incomplete is None and not parcels.waiting()
    with job_lease(beside.spark, beside.settings) as lease:
        filling.read_beside(beside.table, lease)
        landed.prepare(replace(known, sequence=known.sequence + 1, lineage=known.lineage + 1))
        assert not filling.take_up(beside.table, lease), "they are of a table that is no more"
    assert not parcels.waiting()
