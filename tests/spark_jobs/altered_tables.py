"""Tables that are altered while they are written to, with everything that the connector has written of them.

In: a running server and a warehouse. Out: ``Altered``: it executes statements, lets the connector read between them and
lands what there is whenever it is asked, each record by the version that it was made by. With ``rnd`` records come
late, twice and in no order.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import patch

from cassandra import InvalidRequest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from connector.changes import changes_of
from connector.formats.record import Record
from connector.formats.table_schemas import CELL_TTLS as CELL_TTLS_HEADER
from connector.table_name import TableName
from spark_jobs.decode.record_versions import CELL_TTLS, MADE_BY
from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import TableDefinition, parse_definition
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.stream.moving_keys import move_keys
from spark_jobs.tables import published_table
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.landing_plan import check_landed, plan_table
from spark_jobs.tables.publishable import unpublishable
from spark_jobs.tables.published_table import PublishedTable
from spark_jobs.tables.registration import open_publisher
from tests.servers.patience import until
from tests.servers.scylla import Scylla
from tests.spark_jobs.snapshot_records import snapshotted
from tests.spark_jobs.source_tables import ANY_FORMAT, RECORD, Place, SourceTables, tells_ttl

LATE, TWICE = 0.2, 0.2
_METADATA = {"cdc.include.metadata": "true"}


class Altered(SourceTables):
    """Tables with everything that the connector has written of them: ``step`` alters, ``catch_up`` lands."""

    def __init__(
        self,
        spark: SparkSession,
        scylla: Scylla,
        cql: Session,
        keyspace: str,
        warehouse: str,
        names: Iterable[str],
        rnd: random.Random | None = None,
        sink: str = ANY_FORMAT,
    ) -> None:
        super().__init__(spark, scylla, warehouse, [f"{keyspace}.{name}" for name in names], sink)
        self.rnd = rnd
        self.cql = cql
        self.keyspace = keyspace
        self.versions: dict[str, list[TableDefinition]] = defaultdict(list)
        self.written: dict[str, list[Record]] = defaultdict(list)
        self.all: dict[str, list[Record]] = defaultdict(list)
        self._passed: set[Place] = set()
        self._publications = 0

    def step(self, statements: Iterable[str]) -> None:
        """Some statements, and what the connector writes of them."""
        for statement in statements:
            until(lambda: self._taken(statement), 60, statement)  # noqa: B023  (called at once)
        asked = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
        there = {f"{self.keyspace}.{row.table_name}" for row in self.cql.execute(asked, [self.keyspace])}
        names = [name for name in self.names if name in there]
        # A log has lost what the columns held that are altered since: the connector has read it before.
        definitions, written = self.read(names, self._passed, **_METADATA)
        for name in names:
            version = parse_definition(definitions[name])
            if version not in self.versions[name]:
                self.versions[name].append(version)
        for change, record in written:
            self.written[change.table.full_name].append(record)
            self.all[change.table.full_name].append(record)
        self._passed.update((change.table.full_name, change.stream_id, change.time) for change, _ in written)

    def snapshot(self, name: str) -> None:
        """The rows of a table, among what the connector writes of it."""
        self.step(())
        at_us = self.scylla.now_us()
        until(lambda: self.scylla.now_us() > at_us, 5, "a moment behind all writes")
        encoder = self.encoder([name], **_METADATA)
        rows = snapshotted(self.scylla.settings(request_timeout=60), TableName(*name.split(".")), at_us)
        made = [record for batch in rows for change in changes_of(batch) for record in encoder.encode(change)]
        self.written[name] += made
        self.all[name] += made

    def _taken(self, statement: str) -> bool:
        try:
            self.cql.execute(statement)
        except InvalidRequest as error:
            # A column may come back some seconds after it went.
            if "dropped too recently" not in str(error):
                raise
            return False
        return True

    def catch_up(self, names: Iterable[str] = (), merge: bool = True, all_of_it: bool = True) -> None:
        """Lands what was written since the last time, and was late then."""
        for name in names or self.names:
            if versions := self.versions[name]:
                records, self.written[name] = self._arriving(self.written[name], all_of_it)
                self._land(self.landed(name), versions, records, merge)

    def _arriving(self, records: list[Record], all_of_it: bool) -> tuple[list[Record], list[Record]]:
        """What lands now, and what is late."""
        if self.rnd is None:
            return records, []
        arriving = records + self.rnd.sample(records, int(TWICE * len(records)))
        self.rnd.shuffle(arriving)
        late = 0 if all_of_it else int(LATE * len(arriving))
        return arriving[late:], arriving[:late]

    def publish(self) -> list[str]:
        """Brings the tables that others read to what has landed, and names them. Every second time as if more had
        changed than can be told in few words."""
        publisher = open_publisher(self.spark, self.settings.session_config())
        assert publisher is not None
        names: list[str] = []
        self._publications += 1
        for at, name in enumerate(self.names, self._publications):
            landed = self.landed(name)
            published, restored = PublishedTable(publisher, landed), landed.restore()
            known, form = restored.known, FORMATS[self.settings.sink]
            if known is not None and unpublishable(known.definitions[-1], form) is None:
                with patch.object(published_table, "_MOST_NEAR", published_table._MOST_NEAR if at % 2 else 0):
                    published.publish(known, published.stand(), restored.segment - 1, {})
                names.append(name)
        return names

    def again(self) -> None:
        """Lands all of it once more, as a rebuild does."""
        for name in self.names:
            landed = self.landed(name)
            if (known := landed.known()) is not None:
                landed.prepare(replace(known, sequence=known.sequence + 1, lineage=known.lineage + 1))
                landed.forget()
            self.written[name] = list(self.all[name])
        self.catch_up()

    def _land(self, landed: LandedTable, versions: list[TableDefinition], records: list[Record], merge: bool) -> None:
        restored = landed.restore()
        plan = plan_table(self.settings, TableName(landed.keyspace, landed.table), versions, restored.known)
        segment, mark = restored.segment, restored.mark
        if not (records or plan.changed or (merge and restored.unmerged)):
            return
        if plan.recreated:
            landed.clear(segment)
            mark, segment = segment, segment + 1
        before = restored.known
        if (
            not plan.recreated
            and before is not None
            and check_landed(TableName(*landed.name.split(".")), before, plan.known)
        ):
            landed.merge(before.layout(), segment, mark)
            mark, segment = segment, segment + 1
            move_keys(landed, before.layout(), plan.known.layout())
        layout = landed.prepare(plan.known) if plan.changed else plan.known.layout()
        register_functions(self.spark, layout)
        rows = [
            (None, bytearray(each.value or b""), each.topic, 0, at, [(n, bytearray(t or b"")) for n, t in each.headers])
            for at, each in enumerate(records)
        ]
        batch = self.spark.createDataFrame(rows, f"{RECORD}, headers array<struct<key:string,value:binary>>")
        batch = batch.selectExpr("*", "current_timestamp() AS timestamp", MADE_BY, CELL_TTLS)
        landed.append(decoded_json(batch, layout, segment, f"p.{landed.name}.range-deletes"))
        if not plan.known.expiring and any(map(_tells_ttl, records)):
            layout = landed.expect_ends(layout)
        if merge:
            landed.merge(layout, segment, mark)


def _tells_ttl(record: Record) -> bool:
    return tells_ttl(record.value) or any(name == CELL_TTLS_HEADER for name, _ in record.headers)
