"""The whole way of random tables: ScyllaDB, the connector, Kafka, landing; then `SELECT *` against the landed views.

In: servers, a Spark session, a seed. Out: an error at the first difference. Writes are of every kind and often at equal
times; then tables and types are altered while the connector runs, its worker is killed, and landing forgets its
checkpoint.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cassandra import InvalidRequest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from connector.source.pages import RawProtocolHandler, raw_rows
from connector.worker.state import State
from connector.worker.status_document import ServiceStatus
from embedded.demo.service import has_passed
from spark_jobs.config.settings import load_settings
from spark_jobs.land import land
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.registration import register_landed
from tests.servers.scylla import Scylla
from tests.spark_jobs.landed_comparison import differences, landed_rows, source_rows
from tests.spark_jobs.random_tables import RandomTable
from tests.worker.harness import Service, until


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


def invented(seed: int, keyspace: str, names: Sequence[str]) -> list[tuple[RandomTable, list[str]]]:
    """Tables of a seed, with the statements that make them; they share their source of randomness."""
    rnd = random.Random(seed)
    tables = [RandomTable(rnd, keyspace, name) for name in names]
    return [(table, table.invent()) for table in tables]


def whole_way(
    scylla: Scylla,
    spark: SparkSession,
    spark_config: dict[str, Any],
    kafka: str,
    unique: Callable[[str], str],
    folder: Path,
    seed: int,
    names: Sequence[str],
    writes: int,
) -> tuple[int, int]:
    """``writes``: statements for each table, before it is altered. How many rows were compared then, and in the end."""
    cluster = scylla.cluster(row_factory=raw_rows)
    try:
        session = cluster.connect()
        session.client_protocol_handler = RawProtocolHandler
        session.default_fetch_size = None
        keyspace = unique("whole").replace("-", "_")
        session.execute(scylla.keyspace_ddl(keyspace, tablets=True))
        made = invented(seed, keyspace, names)
        for _, statements in made:
            for statement in statements:
                session.execute(statement)
        tables = [table for table, _ in made]
        return _there_and_back(scylla, session, spark, spark_config, kafka, unique("whole"), folder, tables, writes)
    finally:
        cluster.shutdown()


def _there_and_back(
    scylla: Scylla,
    session: Session,
    spark: SparkSession,
    spark_config: dict[str, Any],
    kafka: str,
    name: str,
    folder: Path,
    tables: list[RandomTable],
    writes: int,
) -> tuple[int, int]:
    names = [f"{table.keyspace}.{table.name}" for table in tables]
    service = Service(
        folder,
        scylla,
        kafka,
        name,
        names,
        {"cdc.include.collections": "delta", "cdc.range.deletes": "topic", "scylla.confidence.window.size": "5000"},
    )
    whole = Whole(scylla, session, spark, service, tables)
    whole.config = {
        **{name: value for name, value in spark_config.items() if name != "warehouse"},
        "name": "whole",
        "bootstrap.servers": kafka,
        "topic.prefix": service.name,
        "tables": names,
        "value.converter.schemas.enable": False,
        "warehouse": str(folder / "warehouse"),
        "state.buckets": 2,
    }
    whole.write(writes)
    try:
        run = service.start("--http-port", "0")
        whole.drain()
        whole.land(**{"merge.every.rows": 2 * writes // 3 + 1, "max.offsets.per.trigger": 4 * writes // 3 + 1})
        before = whole.compare()
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
        return before, whole.compare()
    finally:
        service.close()
