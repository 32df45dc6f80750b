"""The way of one table from its topics on a broker to a landed table in a warehouse of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.land import land
from spark_jobs.stream.progress import Progress
from spark_jobs.tables.registration import register_landed
from tests.spark_jobs.landing_feed import create_topics, produce, schema_record

TABLE = "pk partition_key int; ck clustering int; s static text; v regular text; m regular map<text, int>"


class Way:
    """One table's topics on the shared broker, and a warehouse."""

    def __init__(self, servers: str, prefix: str, folder: Path, config: dict[str, Any]) -> None:
        self.servers = servers
        self.prefix = prefix
        self.data = f"{prefix}.ks.t"
        self.config: dict[str, Any] = {
            **{name: value for name, value in config.items() if name != "warehouse"},
            "name": prefix,
            "bootstrap.servers": servers,
            "topic.prefix": prefix,
            "tables": ["ks.t"],
            "value.converter.schemas.enable": False,
            # Only tests of it publish: it takes as long as landing.
            "publish.interval.ms": 0,
            "warehouse": str(folder / "warehouse"),
        }
        create_topics(servers, [f"{prefix}.schemas", self.data, f"{self.data}.range-deletes"])
        self.schema(schema_record("ks", "t", TABLE))

    def schema(self, record: bytes) -> None:
        produce(self.servers, [(f"{self.prefix}.schemas", record)])

    def settings(self, **more: Any) -> Settings:
        return load_settings({**self.config, **more})

    def land(self, spark: SparkSession, **more: Any) -> Progress:
        progress = Progress()
        assert land(self.settings(**more), True, progress, session=spark) == 0, progress.text()
        return progress

    def rows(self, spark: SparkSession) -> list[tuple[Any, ...]]:
        register_landed(spark, self.config)
        return sorted((tuple(row) for row in spark.table("ks.t").collect()), key=repr)


def is_batch(frame: DataFrame) -> bool:
    """Whether what is appended to a changelog are records of topics."""
    return {"bucket", "offset"} <= set(frame.columns)
