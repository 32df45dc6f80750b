"""A table that is snapshotted and landed equals the source: nothing is read from it a second time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from embedded.kafka import EmbeddedKafka
from spark_jobs.config.settings import load_settings
from spark_jobs.fold.fold import NOW
from spark_jobs.land import land
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.registration import open_sink, register_landed
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, cql, seldom, until
from tests.worker.snapshot_source import SNAPSHOT, Changes, all_delivered, old_table, snapshot_ended

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("planned_once", "interpreted"),
]

LONG_S = 5000
ENDING = (
    "INSERT INTO {table} (pk, ck, v) VALUES (100, 1, 'stays')",
    "UPDATE {table} USING TTL {long} SET n = 1 WHERE pk = 100 AND ck = 1",
    "INSERT INTO {table} (pk, ck, v, n) VALUES (100, 2, 'goes', 2) USING TTL {long}",
    "UPDATE {table} USING TTL {long} SET v = 'goes' WHERE pk = 100 AND ck = 3",
    "UPDATE {table} SET m = {{'stays': 1}} WHERE pk = 100 AND ck = 3",
    "INSERT INTO {table} (pk, ck, v, n) VALUES (100, 4, 'goes', 2) USING TTL {long}",
    "UPDATE {table} USING TTL 900000 SET n = 3 WHERE pk = 100 AND ck = 4",
    "INSERT INTO {table} (pk, s) VALUES (100, 'goes') USING TTL {long}",
)
ENDING_NOW = [
    (100, 1, "goes", "stays", 1),
    (100, 2, "goes", "goes", 2),
    (100, 3, "goes", "goes", None),
    (100, 4, "goes", "goes", 3),
]
ENDING_LATER = [(100, 1, None, "stays", None), (100, 3, None, None, None), (100, 4, None, None, 3)]


def test_what_was_there_before_the_log_is_landed_with_what_changed_meanwhile(
    spark: SparkSession,
    spark_config: dict[str, Any],
    scylla: Scylla,
    kafka: EmbeddedKafka,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    with cql(scylla) as session:
        table = old_table(scylla, session, unique("snapped").replace("-", "_"), True, partitions=30)
        for text in ENDING:
            session.execute(text.format(table=table, long=LONG_S))
        # A row of the snapshot counts as inserted: one that lives by its values alone would outlive them.
        changes = Changes(session, table, 30, seed=2, nulls=False)
        changes.start()
        settings = {**SNAPSHOT, "cdc.range.deletes": "topic", "tasks.max": "1"}
        service = Service(tmp_path, scylla, kafka.bootstrap_servers, unique("snapped"), [table], settings)
        try:
            service.start()
            until(lambda: snapshot_ended(service), 120, "the end of the snapshot", step=seldom)
            changes.finish()
            until(lambda: all_delivered(service, session, table), 90, "all changes", step=seldom)
            service.settled()
        finally:
            service.close()
        config = {
            **{name: value for name, value in spark_config.items() if name != "warehouse"},
            "name": service.name,
            "bootstrap.servers": kafka.bootstrap_servers,
            "topic.prefix": service.name,
            "tables": [table],
            "value.converter.schemas.enable": False,
            "warehouse": str(tmp_path / "warehouse"),
        }
        progress = Progress()
        assert land(load_settings(config), True, progress, session=spark) == 0, progress.text()
        assert not progress.of(table).dead, progress.text()
        register_landed(spark, config)
        landed = spark.sql(f"SELECT pk, ck, s, v, n, m FROM {table}").collect()
        source = session.execute(f"SELECT pk, ck, s, v, n, m FROM {table}")
        shown = sorted(((*row[:5], dict(row[5] or {})) for row in landed), key=repr)
        assert shown == sorted(((*row[:5], dict(row[5] or {})) for row in source), key=repr)
        assert len(shown) > 50
        landed_table = LandedTable(spark, open_sink(spark, load_settings(config).session_config()), *table.split("."))
        assert ending(spark, landed_table, NOW) == ENDING_NOW
        assert ending(spark, landed_table, f"{NOW} + {LONG_S}") == ENDING_LATER


def ending(spark: SparkSession, table: LandedTable, now: str) -> list[tuple[Any, ...]]:
    known = table.known()
    assert known is not None
    shown = spark.sql(table.view_text(known.layout(), now)).where("pk >= 100").select("pk", "ck", "s", "v", "n")
    return sorted((tuple(row) for row in shown.collect()), key=repr)
