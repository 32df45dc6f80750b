"""Tables of ScyllaDB with their landed doubles, which are fed from the log without a broker.

In: a Spark session, a running server, a warehouse. Out: ``SourceTables``: CQL, landing, verdicts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from connector.changes import Change, changes_of
from connector.config import load
from connector.formats.encoder import Encoder
from connector.formats.record import Record
from connector.source.read_changes import ChangeReader
from connector.source.settings import ReadingSettings
from connector.table_name import TableName
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.config.source_settings import source_connection
from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import parse_definition
from spark_jobs.source.access import SourceAccess
from spark_jobs.source.access import source_access as access_of
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from spark_jobs.tables.registration import open_sink
from spark_jobs.verify.job import Limits, verify
from spark_jobs.verify.report import Verdict
from tests.servers.scylla import Scylla

_KAFKA = "127.0.0.1:1"
_JOB = {"name": "job", "bootstrap.servers": _KAFKA, "topic.prefix": "p", "warehouse": "unused", "spark.jars": "none"}
#: Of a batch: its table, stream and time.
Place = tuple[str, bytes, bytes]
RECORD = "key binary, value binary, topic string, partition int, offset bigint"
WITH_SOURCE = [
    pytest.mark.spark,
    pytest.mark.scylla,
    pytest.mark.any_scylla,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("no_broker", "interpreted", "planned_once"),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]
"""What tests are marked with that compare landed tables with their source."""
AT_ONCE = Limits(wait_s=0, confidence_ms=0)
ANY_FORMAT = "iceberg"
"""Of tests that are about no format. Before a query of a Delta table Spark runs jobs over the table's log, which for a
handful of rows takes longer than the rest; for Iceberg's it reads a few files. What formats do is asked of both."""


@contextmanager
def connected(scylla: Scylla) -> Iterator[Session]:
    cluster = scylla.cluster()
    try:
        session = cluster.connect()
        # Timestamps of the test's own clock would be too old for a short confidence window when the machine is busy.
        session.use_client_timestamp = False
        yield session
    finally:
        cluster.shutdown()


def source_access(scylla: Scylla) -> SourceAccess:
    """How Spark's executors reach it."""
    connection = source_connection(load_settings({**_JOB, "tables": ["ks.t"], **scylla.properties()}).values)
    assert connection is not None
    return access_of(connection.but(request_timeout_ms=60_000))


class SourceTables:
    """Several tables of one keyspace; each landing reads the whole log again, which changes nothing."""

    def __init__(
        self, spark: SparkSession, scylla: Scylla, warehouse: str, names: Sequence[str], sink: str = ANY_FORMAT
    ) -> None:
        self.spark = spark
        self.scylla = scylla
        self.names = list(names)
        self.sink = sink
        self.settings = self.configured(warehouse)
        self.access = source_access(scylla)
        self.reading: dict[str, str] = {}
        self._segment = 0

    def configured(self, warehouse: str, **more: Any) -> Settings:
        return load_settings(
            {
                "name": "job",
                "bootstrap.servers": _KAFKA,
                "topic.prefix": "p",
                "schema.topic": "",
                "tables": self.names,
                "warehouse": warehouse,
                "sink": self.sink,
                "source.tasks": 2,
                "state.buckets": 2,
                "value.converter.schemas.enable": False,
                **self.scylla.properties(),
                **more,
            }
        )

    def landed(self, name: str, settings: Settings | None = None) -> LandedTable:
        settings = settings or self.settings
        sink = open_sink(self.spark, settings.session_config())
        return LandedTable(self.spark, sink, *name.split("."))

    def land(self, *names: str, merge: bool = True) -> None:
        """Everything that the tables' logs hold."""
        chosen = list(names) or self.names
        definitions, written = self.read(chosen, **self.reading)
        records: dict[str, list[tuple[str, bytearray]]] = defaultdict(list)
        for change, record in written:
            assert record.value is not None
            records[change.table.full_name].append((record.topic, bytearray(record.value)))
        self._segment += 1
        for name in chosen:
            landed = self.landed(name)
            restored = landed.restore()
            known = restored.known or Known((parse_definition(definitions[name]),), buckets=2)
            layout = landed.prepare(known)
            register_functions(self.spark, layout)
            rows = [(None, value, topic, 0, at) for at, (topic, value) in enumerate(records[name])]
            batch = self.spark.createDataFrame(rows, RECORD).selectExpr("*", "current_timestamp() AS timestamp")
            segment = restored.segment
            ranges = self.settings.names.range_deletes_topic(landed.keyspace, landed.table)
            landed.append(decoded_json(batch, layout, segment, ranges))
            if not known.expiring and any(map(tells_ttl, (value for _, value in records[name]))):
                layout = landed.expect_ends(layout)
            if merge:
                landed.merge(layout, segment, restored.mark)

    def read(
        self, names: Sequence[str], passed: Set[Place] = frozenset(), **more: str
    ) -> tuple[dict[str, str], list[tuple[Change, Record]]]:
        """The tables' definitions, and everything that the log holds as the connector writes it, but for what it has
        ``passed``."""
        encoder = self.encoder(names, **more)
        records: list[tuple[Change, Record]] = []
        reading = ReadingSettings(confidence_ms=self.scylla.confidence_ms(300), window_ms=1000)
        with ChangeReader(self.scylla.settings(request_timeout=60), names, reading=reading) as reader:
            described = {str(name): found.description for name, found in reader.tables.items()}
            for batch in reader:
                if (batch.layout.description.full_name, batch.stream_id, batch.time) in passed:
                    continue
                for change in changes_of(batch):
                    records += [(change, record) for record in encoder.encode(change)]
        definitions = {name: (encoder.schema_record(table).value or b"").decode() for name, table in described.items()}
        return definitions, records

    def encoder(self, names: Sequence[str], **more: str) -> Encoder:
        """What makes the records that landing wants of changes."""
        converter = "org.apache.kafka.connect.json.JsonConverter"
        config = {
            "name": "c",
            "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
            **self.scylla.properties(),
            "scylla.table.names": ",".join(names),
            "topic.prefix": "p",
            "cdc.include.collections": "delta",
            "cdc.range.deletes": "topic",
            "tombstones.on.delete": "false",
            "value.converter": converter,
            "value.converter.schemas.enable": "false",
            **more,
        }
        return Encoder(load(config, {"bootstrap.servers": _KAFKA, "group.id": "g"}).connector.output)

    def verify(
        self, *names: str, limits: Limits = AT_ONCE, settings: Settings | None = None, **more: Any
    ) -> list[Verdict]:
        chosen = [TableName(*name.split(".")) for name in names or self.names]
        return verify(self.spark, settings or self.settings, self.access, chosen, limits, **more)


def tells_ttl(record: bytes | None) -> bool:
    """Whether something of what a record writes will end. A question to the changelog costs more than to land it."""
    source = json.loads(record or b"{}").get("source") or {}
    return source.get("ttl") is not None


def equal(verdicts: Sequence[Verdict]) -> None:
    """Fails with what was found."""
    wrong = [line for verdict in verdicts if verdict.differences or verdict.moving for line in verdict.lines()]
    assert not wrong, "\n".join(wrong[:20])
    assert sum(verdict.source_rows for verdict in verdicts), "nothing was compared"


class Ends:
    """Topics that end where the test says."""

    def __init__(self, ends: dict[tuple[str, int], int], beginning: int = 0) -> None:
        self._ends = ends
        self._beginning = beginning

    def offsets(self, names: list[str], beginning: bool = False) -> dict[tuple[str, int], int]:
        return {place: self._beginning if beginning else end for place, end in self._ends.items() if place[0] in names}

    def read_from(self, topic: str, offset: int, end: int) -> list[tuple[int, str | None]]:
        return []

    def ids(self, names: list[str]) -> dict[str, str]:
        return {name: f"id of {name}" for name in names}

    def close(self) -> None:
        pass
