"""Landed tables in Delta Lake's format, by the JVM implementation.

In: a session and the warehouse's folder. Out: a ``Sink``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.java_objects import file_system, hadoop_path
from spark_jobs.model import quoted
from spark_jobs.sinks.delta_files import (
    data_files,
    extent,
    forget_commits,
    give_properties,
    is_conflict,
    is_table,
    partitioned_by,
    property_list,
)
from spark_jobs.sinks.delta_published import RESERVED, DeltaPublisher, feedless
from spark_jobs.sinks.sink import LostRaceError, TableFormat, portion, retried

log = logging.getLogger(__name__)

_PROPERTIES = {
    "delta.checkpointInterval": "50",
    # Nobody reads the past of these: a commit each second would leave a month of them. Delta keeps whole days, where
    # nobody asks for less.
    "delta.logRetentionDuration": "interval 24 hours",
    "delta.deletedFileRetentionDuration": "interval 24 hours",
}
_INTERNAL = "_landing"
_INDEXED = "delta.dataSkippingStatsColumns"
_SKIPPED_BY = ("ts", "kafka_ms")
"""Columns by whose bounds files of changes can be skipped."""
_BOUNDED = frozenset(("tinyint", "smallint", "int", "bigint", "date", "timestamp", "string"))
"""Types that Delta keeps bounds of, and whose order there is that of their values."""
_ROWS_PER_FILE = 200_000
_COMMITS_KEPT_MS = 3 * 3_600_000
"""Whoever commits needs those since it began."""
_FORGET_EVERY = 500


class DeltaSink:
    """See ``Sink``. A commit that loses against another writer's is tried again: none depends on what it read."""

    def __init__(self, session: SparkSession, warehouse: str) -> None:
        self.session = session
        self.warehouse = warehouse
        self._appends = Counter[str]()

    def path(self, table: str) -> str:
        """Aside from the published tables: whoever vacuums those removes what is below them and not theirs."""
        return f"{self.warehouse}/{_INTERNAL}/{table}"

    def relation(self, table: str) -> str:
        return quoted("delta", self.path(table))

    def exists(self, table: str) -> bool:
        folder, former = self.path(table), f"{self.warehouse}/{table}"
        if is_table(self.session, folder):
            return True
        if not is_table(self.session, former):
            return False
        # Where versions before the published tables had it.
        place, before = (hadoop_path(self.session, path) for path in (folder, former))
        files = file_system(self.session, place)
        files.mkdirs(place.getParent())
        return bool(files.rename(before, place))

    def prepare(self, table: str, columns: Mapping[str, str], partition_by: str, sorted_by: Sequence[str] = ()) -> None:
        bounded = [name for name in (*_SKIPPED_BY, *sorted_by) if columns.get(name) in _BOUNDED]
        # Delta reads the list as SQL: of a later place of a key, as k_p0$v2, it would take the name up to the $.
        named = ",".join(name if name.isidentifier() else quoted(name) for name in bounded)
        if not self.exists(table):
            described = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
            indexed = {_INDEXED: named} if named else {"delta.dataSkippingNumIndexedCols": "0"}
            self.session.sql(
                f"CREATE TABLE IF NOT EXISTS {self.relation(table)} ({described}) USING delta "
                f"PARTITIONED BY ({quoted(partition_by)}) TBLPROPERTIES ({property_list({**_PROPERTIES, **indexed})})"
            )
            return
        relation = self.relation(table)
        present = set(self.session.table(relation).columns)
        missing = [f"{quoted(name)} {kind}" for name, kind in columns.items() if name not in present]
        if missing:
            added = f"ALTER TABLE {relation} ADD COLUMNS ({', '.join(missing)})"
            retried(lambda: self.session.sql(added), is_conflict)
        wanted = {**_PROPERTIES, **({_INDEXED: named} if named else {})}
        retried(lambda: give_properties(self.session, self.path(table), wanted), is_conflict)

    def append(self, table: str, frame: DataFrame) -> None:
        retried(lambda: frame.write.format("delta").mode("append").save(self.path(table)), is_conflict)
        self._appends[table] += 1
        if self._appends[table] % _FORGET_EVERY == 0:
            self._forget(table)

    def _forget(self, table: str) -> None:
        """What was asked for is committed: an error here must not make it seem as if it were not. Delta's own cleaning
        passes its errors over as well; what it leaves goes the next time."""
        try:
            forget_commits(self.session, self.path(table), _COMMITS_KEPT_MS)
        except Exception as error:
            log.warning("%s: old commits stay in its log for now: %s", table, str(error).partition("\n")[0])

    def replace_buckets(self, table: str, frame: DataFrame) -> None:
        writer = frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer = writer.option("maxRecordsPerFile", str(_ROWS_PER_FILE))
        try:
            writer.save(self.path(table))
        except Exception as error:
            if is_conflict(error):
                raise LostRaceError(f"{table}: {str(error).splitlines()[0]}") from error
            raise

    def delete(self, table: str, condition: str) -> None:
        retried(lambda: self.session.sql(f"DELETE FROM {self.relation(table)} WHERE {condition}"), is_conflict)

    def compact(self, table: str, after: int | None = None, through: int | None = None) -> int | None:
        parts, more = portion(self._sized(table), after, through)
        if parts:
            part = quoted(partitioned_by(self.session, self.path(table)))
            text = f"OPTIMIZE {self.relation(table)} WHERE {part} BETWEEN {parts[0]} AND {parts[-1]}"
            retried(lambda: self.session.sql(text), is_conflict)
        return parts[-1] if more else None

    def vacuum(self, table: str, older_than_ms: int) -> None:
        hours = max(older_than_ms, 0) / 3_600_000
        check = "spark.databricks.delta.retentionDurationCheck.enabled"
        before = self.session.conf.get(check, "true")
        self.session.conf.set(check, "false")
        try:
            self.session.sql(f"VACUUM {self.relation(table)} RETAIN {hours} HOURS")
        finally:
            self.session.conf.set(check, str(before))
        # A job that ends before it has appended so much leaves it to this.
        self._forget(table)

    def sizes(self, table: str) -> Mapping[int, int]:
        found = Counter[int]()
        # Summed up here: of Spark's time the sum took half, and each query of the table lists all files as well.
        for part, size in self._sized(table):
            found[part] += size
        return dict(found)

    def _sized(self, table: str) -> list[tuple[int, int]]:
        """Of each file its partition and its bytes."""
        part = "CAST(map_values(partitionValues)[0] AS int) AS part"
        return [
            (row["part"], row["size"])
            for row in data_files(self.session, self.path(table)).selectExpr(part, "size").collect()
        ]

    def files(self, table: str) -> tuple[int, int]:
        return extent(self.session, self.path(table))


FORMAT = TableFormat(
    name="delta",
    jar_sets=("spark",),
    settings={
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        # Beside each commit a list of all files, which this Delta never reads.
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
    },
    needs_class="org.apache.spark.sql.delta.DeltaLog",
    coordinate="io.delta:delta-spark_4.0_2.13:4.4.0",
    open=DeltaSink,
    publisher=DeltaPublisher,
    reserved=RESERVED,
    feedless=feedless,
)
