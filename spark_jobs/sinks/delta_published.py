"""The tables that others read: business columns and nothing else, in Delta Lake's format.

In: a session and the warehouse's folder. Out: a ``Publisher``. They use no feature of Delta's that readers outside of
Spark may lack (deletion vectors, column mapping), but where a column's name asks for it; they have a change data feed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_jobs.model import literal, quoted
from spark_jobs.sinks.sink import note_text, noted_in, retried

_NAMES_TO_MAP = set(" ,;{}()\n\t=")
"""Characters that Delta takes in a column's name only with column mapping."""
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_COMMITS_LOOKED_AT = 200
_LEAST_BYTES, _MOST_BYTES = 256 << 10, 128 << 20


class DeltaPublisher:
    """See ``Publisher``. Settings of a commit are those of a session that nobody else has."""

    def __init__(self, session: SparkSession, warehouse: str) -> None:
        jsession: Any = session._jsparkSession
        self.session = SparkSession(session.sparkContext, jsession.cloneSession())
        self.warehouse = warehouse
        # What is merged is made of tables that are being written: it is made once.
        self.session.conf.set("spark.databricks.delta.merge.materializeSource", "all")

    def relation(self, table: str) -> str:
        return quoted("delta", f"{self.warehouse}/{table}")

    def schema(self, table: str) -> StructType | None:
        jvm: Any = self.session._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{self.warehouse}/{table}/_delta_log")
        if not path.getFileSystem(self.session._jsc.hadoopConfiguration()).exists(path):
            return None
        return self.session.table(self.relation(table)).schema

    def stored(self, schema: StructType) -> StructType:
        return schema

    def note(self, table: str) -> Mapping[str, Any] | None:
        found = self.session.sql(f"DESCRIBE HISTORY {self.relation(table)} LIMIT {_COMMITS_LOOKED_AT}")
        rows = found.where("userMetadata IS NOT NULL").select("userMetadata").orderBy("version", ascending=False)
        return next((noted for row in rows.take(10) if (noted := noted_in(row[0])) is not None), None)

    def replace(self, table: str, frame: DataFrame, note: Mapping[str, Any], indexed: int, rows_per_file: int) -> None:
        properties = {
            **_properties(_names(frame.schema)),
            # Of other columns the bounds are never asked for, and dates beyond the year 9999 some readers cannot parse.
            "delta.dataSkippingNumIndexedCols": str(indexed),
        }
        defaults = {name.replace("delta.", _DEFAULTS, 1): value for name, value in properties.items()}
        if self.schema(table) is not None:
            self._set(table, properties)
        for name, value in defaults.items():
            self.session.conf.set(name, value)
        try:
            writer = frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            writer = writer.option("userMetadata", note_text(note)).option("maxRecordsPerFile", str(rows_per_file))
            writer.save(f"{self.warehouse}/{table}")
        finally:
            for name in defaults:
                self.session.conf.unset(name)

    def widen(self, table: str, columns: StructType) -> None:
        self._set(table, _properties(_names(columns) + (self.schema(table) or columns).names))
        added = self.session.createDataFrame([], columns).write.format("delta").mode("append")
        added.option("mergeSchema", "true").save(f"{self.warehouse}/{table}")

    def _set(self, table: str, properties: Mapping[str, str]) -> None:
        """Gives an existing table the properties that it has not."""
        rows = self.session.sql(f"SHOW TBLPROPERTIES {self.relation(table)}").collect()
        there = {row["key"]: row["value"] for row in rows}
        wanted = {name: value for name, value in properties.items() if there.get(name) != value}
        if wanted:
            text = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in wanted.items())
            self.session.sql(f"ALTER TABLE {self.relation(table)} SET TBLPROPERTIES ({text})")

    def merge(
        self, table: str, frame: DataFrame, on: str, columns: Sequence[str], gone: str, note: Mapping[str, Any]
    ) -> None:
        self.session.conf.set("spark.databricks.delta.commitInfo.userMetadata", note_text(note))
        frame.createOrReplaceTempView("scylla_cdc_published")
        names = [quoted(name) for name in columns]
        pairs = ", ".join(f"t.{name} = s.{name}" for name in names)
        try:
            retried(
                lambda: self.session.sql(
                    f"MERGE INTO {self.relation(table)} AS t USING scylla_cdc_published AS s ON {on} "
                    f"WHEN MATCHED AND s.{quoted(gone)} THEN DELETE WHEN MATCHED THEN UPDATE SET {pairs} "
                    f"WHEN NOT MATCHED AND NOT s.{quoted(gone)} THEN INSERT ({', '.join(names)}) "
                    f"VALUES ({', '.join(f's.{name}' for name in names)})"
                ),
                lambda error: "DELTA_CONCURRENT" in str(error),
            )
        finally:
            self.session.catalog.dropTempView("scylla_cdc_published")
            self.session.conf.unset("spark.databricks.delta.commitInfo.userMetadata")

    def enroll(self, table: str, name: str) -> None:
        schema = name.rpartition(".")[0]
        self.session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        place = literal(f"{self.warehouse}/{table}")
        self.session.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {place}")

    def compact(self, table: str) -> None:
        """Files stay small enough that a change rewrites a small part of a large table."""
        row = self.session.sql(f"DESCRIBE DETAIL {self.relation(table)}").select("sizeInBytes").first()
        size = min(max((row[0] if row else 0) // 1000, _LEAST_BYTES), _MOST_BYTES)
        for name in ("minFileSize", "maxFileSize"):
            self.session.conf.set(f"spark.databricks.delta.optimize.{name}", str(size))
        retried(
            lambda: self.session.sql(f"OPTIMIZE {self.relation(table)}"), lambda error: "DELTA_CONCURRENT" in str(error)
        )

    def vacuum(self, table: str, older_than_ms: int) -> None:
        self.session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self.session.sql(f"VACUUM {self.relation(table)} RETAIN {older_than_ms / 3_600_000} HOURS")


def _properties(names: Sequence[str]) -> dict[str, str]:
    """What a table with columns and fields of these names must be."""
    found = {"delta.enableChangeDataFeed": "true"}
    if any("`" in name for name in names):
        # Delta's own merge fails to spell such a name while it writes the feed.
        found["delta.enableChangeDataFeed"] = "false"
    if _NAMES_TO_MAP & {char for name in names for char in name}:
        found["delta.columnMapping.mode"] = "name"
    return found


def _names(schema: StructType) -> list[str]:
    """Names of columns, and of all fields inside of them."""
    found: list[str] = []

    def look(part: Any) -> None:
        if isinstance(part, dict):
            if "fields" in part:
                found.extend(field["name"] for field in part["fields"])
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(json.loads(schema.json()))
    return found
