"""The tables that others read: business columns and nothing else, in Apache Iceberg's format.

In: a session and the warehouse's folder. Out: a ``Publisher``. ``ks/t`` is the table ``ks.t`` of the catalog that the
sink writes to, so whoever knows that catalog finds it. Changes are merged on read: small files of rows and of deleted
positions, which are made large ones now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, ByteType, DataType, IntegerType, MapType, ShortType, StructField, StructType

from spark_jobs.model import literal
from spark_jobs.sinks.iceberg import IcebergSink
from spark_jobs.sinks.sink import NOTE, LostRaceError, TableFormat, merge_text, note_text, noted_in

_SNAPSHOT_PROPERTY = f"spark.sql.iceberg.snapshot-property.{NOTE}"
_SOURCE = "scylla_cdc_published"
_PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "commit.retry.num-retries": "20",
}
_NOTES_LOOKED_AT = 20
_TURN = "turn"
_TIDIED_EVERY = 64
"""Publications leave a few small files each."""


class IcebergPublisher:
    """See ``Publisher``. Settings of a commit are those of a session that nobody else has."""

    def __init__(self, session: SparkSession, warehouse: str) -> None:
        jsession: Any = session._jsparkSession
        self.session = SparkSession(session.sparkContext, jsession.cloneSession())
        self._sink = IcebergSink(self.session, warehouse)
        self._since: dict[str, int] = {}

    def relation(self, table: str) -> str:
        return self._sink.relation(table)

    def schema(self, table: str) -> StructType | None:
        return self.session.table(self.relation(table)).schema if self._sink.exists(table) else None

    def stored(self, schema: StructType) -> StructType:
        """Iceberg has no integers of less than 32 bits."""
        stored = _wide(schema)
        assert isinstance(stored, StructType)
        return stored

    def note(self, table: str) -> Mapping[str, Any] | None:
        rows = self.session.sql(
            f"SELECT summary[{literal(NOTE)}] AS note FROM {self.relation(table)}.snapshots "
            f"WHERE summary[{literal(NOTE)}] IS NOT NULL ORDER BY committed_at DESC, note DESC"
        ).take(_NOTES_LOOKED_AT)
        return next((noted for row in rows if (noted := noted_in(row["note"])) is not None), None)

    def turn(self, table: str) -> int:
        noted = self.note(table) if self._sink.exists(table) else None
        found = {} if noted is None else noted
        return found[_TURN] if isinstance(found.get(_TURN), int) else 0

    def replace(
        self, table: str, frame: DataFrame, note: Mapping[str, Any], indexed: int, rows_per_file: int, turn: int
    ) -> None:
        self._sink.in_namespace(table)
        writer = frame.to(self.stored(frame.schema)).writeTo(self.relation(table)).using("iceberg")
        for name, value in _PROPERTIES.items():
            writer = writer.tableProperty(name, value)
        self._noting(table, note, turn, writer.createOrReplace)

    def widen(self, table: str, columns: StructType) -> None:
        jvm: Any = self.session._jvm
        added = jvm.org.apache.spark.sql.types.DataType.fromJson(self.stored(columns).json()).toDDL()
        self._sink.changed(table, lambda: self.session.sql(f"ALTER TABLE {self.relation(table)} ADD COLUMNS ({added})"))

    def merge(
        self,
        table: str,
        frame: DataFrame,
        on: str,
        columns: Sequence[str],
        gone: str,
        note: Mapping[str, Any],
        turn: int,
    ) -> None:
        frame.createOrReplaceTempView(_SOURCE)
        text = merge_text(self.relation(table), _SOURCE, on, columns, gone)
        try:
            self._noting(table, note, turn, lambda: self.session.sql(text))
        finally:
            self.session.catalog.dropTempView(_SOURCE)

    def enroll(self, table: str, name: str) -> None:
        """It is in the catalog that the sink writes to."""

    def tidy(self, table: str) -> None:
        self._since[table] = self._since.get(table, 0) + 1
        if self._since[table] >= _TIDIED_EVERY:
            self._since[table] = 0
            self._sink.compact(table)

    def compact(self, table: str) -> None:
        self._sink.compact(table)

    def vacuum(self, table: str, older_than_ms: int) -> None:
        self._sink.vacuum(table, older_than_ms)

    def _noting(self, table: str, note: Mapping[str, Any], turn: int, write: Callable[[], Any]) -> None:
        def in_turn() -> None:
            # On a local file system nobody else can write between the two.
            if self.turn(table) >= turn:
                raise LostRaceError(f"{table} was published by another job meanwhile")
            write()

        self.session.conf.set(_SNAPSHOT_PROPERTY, note_text({**note, _TURN: turn}))
        try:
            self._sink.changed(table, in_turn)
        finally:
            self.session.conf.unset(_SNAPSHOT_PROPERTY)


def _wide(kind: DataType) -> DataType:
    if isinstance(kind, ByteType | ShortType):
        return IntegerType()
    if isinstance(kind, ArrayType):
        return ArrayType(_wide(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_wide(kind.keyType), _wide(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, _wide(each.dataType), each.nullable) for each in kind])
    return kind


FORMAT = TableFormat(
    name="iceberg",
    jar_sets=("spark", "iceberg"),
    settings={},
    needs_class="org.apache.iceberg.spark.SparkCatalog",
    coordinate="org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    open=IcebergSink,
    publisher=IcebergPublisher,
)
