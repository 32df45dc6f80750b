"""The whole way: random tables in ScyllaDB, the connector, Kafka, landing; then `SELECT *` against the landed views.

Tables have every kind of type and odd names, writes are of every kind and often at equal times; then tables and types
are altered while the connector runs, its worker is killed, and landing forgets its checkpoint.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from connector.source.pages import RawProtocolHandler, raw_rows
from connector.worker.state import State
from connector.worker.status_document import ServiceStatus
from embedded.demo.service import has_passed
from embedded.kafka import EmbeddedKafka
from spark_jobs.config.settings import load_settings
from spark_jobs.land import land
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.registration import register_landed
from tests.servers.scylla import Scylla
from tests.spark_jobs.landed_comparison import differences, landed_rows, source_rows
from tests.spark_jobs.random_tables import RandomTable
from tests.worker.harness import Service, until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.any_scylla,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("interpreted"),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]


class Whole:
    """Tables of one keyspace on their way to a warehouse."""

    def __init__(
        self, scylla: Scylla, session: Session, spark: SparkSession, service: Service, tables: list[RandomTable]
    ) -> None:
        self.scylla = scylla
        self.session, self.spark, self.service, self.tables = session, spark, service, tables
        self.config: dict[str, Any] = {}

    def write(self, count: int) -> None:
        """Statements that the server refuses are part of the game: an index beyond a list's end, an empty key."""
        for _ in range(count):
            for table in self.tables:
                try:
                    self.session.execute(table.statement(self.scylla.now_us()))
                except InvalidRequest:
                    continue

    def drain(self) -> None:
        now = self.scylla.now_ms() + 100

        def passed() -> bool:
            try:
                _, text = self.service.get("/status")
            except OSError:
                return False
            status = ServiceStatus.model_validate_json(text)
            tables = [table for each in status.workers for table in each.tables.values()]
            assert not (failed := [table.error for table in tables if table.state is State.FAILED]), failed
            return has_passed(status, now)

        until(passed, 180, "the connector's way through the log")
        self.service.settled()

    def land(self, **more: Any) -> None:
        progress = Progress()
        settings = load_settings({**self.config, **more})
        assert land(settings, True, progress, session=self.spark) == 0, progress.text()
        assert not any(progress.of(name).dead for name in self.config["tables"]), progress.text()

    def compare(self) -> int:
        """How many rows are the same on both sides; any difference is an error."""
        register_landed(self.spark, self.config)
        count = 0
        for table, name in zip(self.tables, self.config["tables"]):
            partition, clustering = [each[0] for each in table.partition], [each[0] for each in table.clustering]
            columns = table.columns()
            landed = landed_rows(self.spark, name, columns, partition, clustering)
            (page,) = self.session.execute(f"SELECT * FROM {table.full}")._current_rows
            source = source_rows(page, columns, partition, clustering)
            assert not (found := differences(source, landed)), (name, len(found), found[:3])
            count += len(source)
        return count


def test_random_tables_land_as_the_source_shows_them(
    spark: SparkSession,
    spark_config: dict[str, Any],
    scylla: Scylla,
    kafka: EmbeddedKafka,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    scylla.require("vector")
    cluster = scylla.cluster(row_factory=raw_rows)
    try:
        session = cluster.connect()
        session.client_protocol_handler = RawProtocolHandler
        session.default_fetch_size = None
        _whole_way(session, spark, spark_config, scylla, kafka, unique, tmp_path)
    finally:
        cluster.shutdown()


def _whole_way(
    session: Session,
    spark: SparkSession,
    spark_config: dict[str, Any],
    scylla: Scylla,
    kafka: EmbeddedKafka,
    unique: Callable[[str], str],
    folder: Path,
) -> None:
    keyspace, rnd = unique("whole").replace("-", "_"), random.Random(7)
    session.execute(scylla.keyspace_ddl(keyspace, tablets=True))
    tables = [RandomTable(rnd, keyspace, name) for name in ("t0", "T1", "t2")]
    for table in tables:
        for statement in table.invent():
            session.execute(statement)
    names = [f"{table.keyspace}.{table.name}" for table in tables]
    service = Service(
        folder,
        scylla,
        kafka.bootstrap_servers,
        unique("whole"),
        names,
        {"cdc.include.collections": "delta", "cdc.range.deletes": "topic", "scylla.confidence.window.size": "5000"},
    )
    whole = Whole(scylla, session, spark, service, tables)
    whole.config = {
        **{name: value for name, value in spark_config.items() if name != "warehouse"},
        "name": "whole",
        "bootstrap.servers": kafka.bootstrap_servers,
        "topic.prefix": service.name,
        "tables": names,
        "value.converter.schemas.enable": False,
        "warehouse": str(folder / "warehouse"),
        "state.buckets": 2,
    }
    whole.write(150)
    try:
        run = service.start("--http-port", "0")
        whole.drain()
        whole.land(**{"merge.every.rows": 100, "max.offsets.per.trigger": 200})
        assert whole.compare() > 10
        for table in tables:
            for what in ("add", "field"):
                for statement in table.alteration(what):
                    session.execute(statement)
            whole.write(10)
        os.kill(service.workers(run)[0], signal.SIGKILL)
        whole.write(40)
        whole.drain()
        shutil.rmtree(load_settings(whole.config).checkpoint)
        whole.land()
        assert whole.compare() > 10
    finally:
        service.close()
