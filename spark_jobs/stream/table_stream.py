"""The streaming query of one table: micro-batches of its two topics become appends, and now and then a merge.

In: a table, its topics and positions. Out: a running Structured Streaming query. Its checkpoint lives only as long as
the query: what was read is a row of the changelog, in the same commit as the rows, so each start begins from there.

The steps of a batch, and what a crash after each of them leaves:
1. Spark notes the batch's end offsets.                      Nothing landed: read again.
2. The schemas topic is read to its end, the table prepared. Nothing landed: read again.
3. One append: changes, dead letters, positions.             Landed whole: the next start begins after it.
4. Perhaps a merge, one commit with its mark.                Merged whole, or not at all and merged later.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.config import Settings
from spark_jobs.decode import CELL_TTLS, MADE_BY, PATIENCE_S, Registry, decoded_avro, decoded_json
from spark_jobs.functions import register_functions
from spark_jobs.java_objects import file_system, hadoop_path
from spark_jobs.model import DEAD, TTL, DeadReason, Layout, TableDefinition, quoted, reasons_sql
from spark_jobs.sinks import Sink
from spark_jobs.stream.declared_types import check_fitting
from spark_jobs.stream.ending_cells import EndingCells
from spark_jobs.stream.housekeeping import Housekeeping
from spark_jobs.stream.kafka_topics import Offsets, SchemaTopic, Topics
from spark_jobs.stream.letters import waiting_letters
from spark_jobs.stream.moving_keys import move_keys
from spark_jobs.stream.progress import Progress
from spark_jobs.stream.publishing import Publishing
from spark_jobs.stream.record_stream import batch_ends, record_stream
from spark_jobs.stream.table_topics import TableTopics
from spark_jobs.stream.telling import one_line, told
from spark_jobs.stream.unmerged import Unmerged
from spark_jobs.stream.versions import told_versions
from spark_jobs.tables import (
    Known,
    LandedTable,
    Lease,
    Parcel,
    Parcels,
    check_landed,
    check_rebuilt,
    notices,
    plan_table,
    uncompiled,
)

_LOOKED_FOR_S = 5.0
"""How often parcels of a backfill are looked for while one is under way."""
_FEW = 500
"""So many records are not worth that Spark compiles what it does with them."""


class TableStream:
    """One table being landed. ``start`` again after a failure begins from the table's own position."""

    def __init__(
        self,
        *,
        session: SparkSession,
        sink: Sink,
        settings: Settings,
        table: TableName,
        topics: Topics,
        schemas: SchemaTopic,
        lease: Lease,
        progress: Progress,
        described: Mapping[str, TableDefinition],
    ) -> None:
        self.session = session
        self.sink = sink
        self.settings = settings
        self.table = table
        self.topics = TableTopics(topics, settings, table)
        self.schemas = schemas
        self.lease = lease
        self.progress = progress
        self.described = described
        self.query: StreamingQuery | None = None
        #: Whether any records landed since somebody set it back.
        self.landed = False
        self._layout: Layout | None = None
        self._known: Known | None = None
        self._registry = Registry(settings.registry_urls, settings.passed_on)
        self._unmerged = Unmerged(settings)
        self._offsets_folder = ""
        self._said: set[str] = set()
        self._has_rows = False
        self._has_letters = False
        self._ends = EndingCells()
        self._housekeeping = Housekeeping(settings)
        self._filling = False
        self._looked_for = 0.0
        self._publishing = Publishing(session, settings, sink, table, lease, self._say)

    @property
    def name(self) -> str:
        return str(self.table)

    def start(self, once: bool) -> None:
        """Prepares the table and starts its query; with ``once`` it ends at the topics' present ends."""
        landed = self._landed(self.session)
        # A job that lands once tries a few times only; its letters wait for the next one.
        self._registry.patience_s = 0.0 if once else PATIENCE_S
        restored = landed.restore()
        self._known = restored.known
        self._ends.begin(counted=False)
        self._unmerged.begin(restored)
        self._has_rows, self._has_letters = restored.has_rows, restored.letters
        self._housekeeping.merged(restored.mark)
        partitions = self.topics.begin(restored)
        self._unmerged.segment = self._publishing.begin(restored)
        landed.widen()
        # A start after a failure does all that the one before it may not have come to.
        self._layout = None
        self._adopt(landed)
        if restored.ending:
            # The job may have ended between the two.
            self._expect_ends(landed)
        # Letters that a paused job lands late are read nowhere again.
        self._ends.begin(counted=not restored.letters)
        # Somebody may have read it while nobody landed.
        self._filling = Parcels(landed).exist()
        if self.topics.data not in partitions:
            raise LandingError(
                f"{self.table}: there is no topic {self.topics.data}; start the connector, or correct topic.prefix"
            )
        run, runs = uuid.uuid4().hex, f"{self.settings.checkpoint}/{self.settings.name}/{self.table}"
        # Those of jobs that were killed: whoever has the lease needs none of them.
        self._delete(hadoop_path(self.session, runs))
        checkpoint = f"{runs}/{run}"
        self._offsets_folder = f"{checkpoint}/offsets"
        stream = record_stream(self.session, self.settings, self.topics.names, partitions, restored.positions)
        writer = stream.writeStream.foreachBatch(self._batch).option("checkpointLocation", checkpoint)
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        if once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{max(self.settings.trigger_interval_ms, 1)} milliseconds")
        self.query = writer.queryName(f"{self.settings.name} {self.table} {run[:8]}").start()

    def stop(self) -> None:
        if self.query is not None and self.query.isActive:
            self.query.stop()

    def ended(self) -> bool:
        return self.query is None or not self.query.isActive

    def failure(self) -> str | None:
        """Why the query ended, in one line; None if it did not fail."""
        error = self.query.exception() if self.query is not None else None
        return None if error is None else one_line(error)

    def clean(self) -> None:
        """Removes the ended run's checkpoint."""
        if self._offsets_folder:
            self._delete(hadoop_path(self.session, self._offsets_folder).getParent())
            self._offsets_folder = ""

    def _delete(self, path: Any) -> None:
        file_system(self.session, path).delete(path, True)

    def _landed(self, session: SparkSession) -> LandedTable:
        return LandedTable(session, self.sink, self.table.keyspace, self.table.name)

    def _adopt(self, landed: LandedTable, anew: bool = False) -> None:
        """Follows the table's versions, and lands letters that waited for them; ``anew``: also if there is none."""
        versions = told_versions(self.table, self.schemas, self.described.get(self.name), self._say)
        check_rebuilt(self.table, self._known)
        plan = plan_table(self.settings, self.table, versions, self._known, self.topics.lacking, self.topics.ids)
        if not plan.changed and self._layout is not None and not anew:
            return
        if self._has_rows and not plan.recreated:
            check_fitting(landed, self.table, self._known, plan.known)
            if check_landed(self.table, self._known, plan.known):
                plan = replace(plan, known=self._move_keys(landed, plan.known))
        if (incomplete := plan.known.incomplete) is not None:
            self._say(f"{self.table} is incomplete: {incomplete}; scylla-cdc backfill completes it")
        self.progress.of(self.name).incomplete = incomplete
        for text in (*plan.told, *notices(plan.known.definitions[-1])):
            self._say(text)
        if plan.changed:
            if plan.recreated:
                # Before the new table is noted: a crash between the two finds it new again.
                landed.clear(self._unmerged.segment, self.topics.positions)
                self._unmerged.merged()
            self._layout = landed.prepare(plan.known)
        else:
            self._layout = plan.known.layout()
        with self._ends.counting():
            # Also at a start that changes nothing: the job may have ended between the two.
            ending = self._known is not None and self._land_letters(landed, plan.recreated)
            self._known = plan.known
            self._publishing.adopt(plan.known)
            if ending:
                self._expect_ends(landed)
        landed.register(self._layout)

    def _move_keys(self, landed: LandedTable, known: Known) -> Known:
        """The landed rows get the keys that the new definitions find them by; what is published is made anew."""
        assert self._known is not None
        before = self._known.layout()
        landed.merge(before, self._unmerged.segment, self._unmerged.mark, self.topics.positions)
        self._unmerged.merged()
        move_keys(landed, before, known.layout())
        return replace(known, lineage=known.lineage + 1)

    def _expect_ends(self, landed: LandedTable) -> None:
        """Something landed that will end by itself: whoever reads the table from now on looks at the time."""
        if (known := self._ends.expected(landed, self._known)) is not None:
            self._known, self._layout = known, known.layout()
            self._publishing.adopt(known)
            landed.register(self._layout)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.progress.note(text)

    def _batch(self, batch: DataFrame, number: int) -> None:
        """One micro-batch; see the module's text for its steps."""
        with self._publishing.lock:
            self._land(batch, number)

    def publish(self, now: bool = False) -> None:
        """Brings the published table up to what has landed, if that is due or wanted ``now``."""
        with self._publishing.lock:
            if self._publishing.is_due(now):
                self._unmerged.segment = self._publishing.publish(self._unmerged.segment)
                # Only now: a catalog that does not answer must not leave the published segment to be filled further.
                self._publishing.enroll()

    @property
    def may_have_parcels(self) -> bool:
        """Whether a backfill has left some, as far as was looked."""
        return self._filling

    def wants_parcels(self, filling: bool) -> bool:
        """Whether to look for what a backfill has read; ``filling``: one is under way."""
        return (filling or self._filling) and time.monotonic() >= self._looked_for + _LOOKED_FOR_S

    def take_up(self) -> None:
        """Lands what a backfill has read meanwhile, a parcel after the other: changes have their turn in between."""
        self._looked_for = time.monotonic()
        landed = self._landed(self.session)
        parcels = Parcels(landed)
        waiting = parcels.waiting()
        for parcel in waiting:
            with self._publishing.lock:
                self.lease.check()
                self._take_up(landed, parcels, parcel)
        self._filling, self._looked_for = bool(waiting), time.monotonic()

    def _take_up(self, landed: LandedTable, parcels: Parcels, parcel: Parcel) -> None:
        assert self._known is not None
        if parcel.is_for(self._known):
            known, seen = parcel.taken_into(self._known), Observation()
            counts = F.count_if(F.col("segment") != DEAD).alias("landed"), F.count(TTL).alias(TTL)
            frame = parcels.rows(parcel, self._unmerged.segment).observe(seen, *counts)
            with self._ends.counting():
                landed.append(frame.unionByName(landed.note_row(known), allowMissingColumns=True))
                counted = told(self.session, seen)
                # Who was paused meanwhile has appended to what is merged: whoever has the lease now needs the parcel.
                self.lease.check()
                self._known, self._has_rows, self._has_letters = known, True, True
                if known.incomplete is None:
                    self.topics.lacking = self.progress.of(self.name).incomplete = None
                self._publishing.landed({})
                self._publishing.adopt(known)
                if counted[TTL]:
                    self._expect_ends(landed)
            self._unmerged.count(counted["landed"])
            if self._unmerged.is_due:
                self._merge(landed)
        parcels.remove(parcel.number)

    @property
    def wants_publishing(self) -> bool:
        return self._publishing.is_due(False)

    @property
    def wants_housekeeping(self) -> bool:
        return self._housekeeping.is_due

    def keep_house(self) -> None:
        """Merges what is due, removes what nobody needs any more, lands letters, and sees what others have done to what
        is published. Removing goes on while batches land."""
        self.lease.check()
        landed = self._landed(self.session)
        with self._publishing.lock:
            if self._layout is not None and self._unmerged.is_due:
                # Nothing came since: there was no batch that would have done it.
                self._merge(landed)
            positions = dict(self.topics.positions)
        self._housekeeping.keep(landed, self._publishing, positions)
        if self._has_letters:
            with self._publishing.lock:
                # What they waited for may have come, and nothing else since.
                self._adopt(landed, anew=True)
        with self._publishing.lock:
            self._publishing.look()

    def _land(self, batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        landed = self._landed(session)
        self.lease.check()
        ends = batch_ends(session, self._offsets_folder, number)
        if news := self.topics.is_news(ends):
            self.topics.check_same(self._known)
        self._adopt(landed)
        if news:
            with uncompiled(session, self.topics.count(ends) <= _FEW):
                self._append(landed, batch, ends)
        else:
            # Spark begins with a batch, also if nothing came since the job before.
            self.progress.batch(self.name, 0, {}, None)
        if self._unmerged.is_due:
            self._merge(landed)
        self.progress.of(self.name).unmerged = self._unmerged.rows

    def _append(self, landed: LandedTable, batch: DataFrame, ends: Offsets) -> None:
        frame = self._decoded(batch.selectExpr("*", MADE_BY, CELL_TTLS))
        seen = Observation()
        counts = [f"count_if({reasons_sql([reason])}) AS {quoted(reason)}" for reason in DeadReason]
        counts += [f"count_if(segment <> {DEAD}) AS landed", "max(ts) AS newest", f"count({TTL}) AS {TTL}"]
        frame = frame.observe(seen, *map(F.expr, counts))
        with self._ends.counting():
            landed.append(
                frame.unionByName(landed.position_rows(ends, self._unmerged.segment), allowMissingColumns=True)
            )
            self._has_rows = self.landed = True
            self.topics.positions.update(ends)
            self._publishing.landed(ends)
            counted = told(landed.session, seen)
            if counted[TTL]:
                self._expect_ends(landed)
        dead = {str(reason): counted[reason] for reason in DeadReason if counted[reason]}
        self._has_letters |= bool(dead)
        self._unmerged.count(counted["landed"])
        self.progress.batch(self.name, counted["landed"], dead, counted["newest"])

    def _decoded(self, batch: DataFrame) -> DataFrame:
        assert self._layout is not None
        segment, range_topic = self._unmerged.segment, self.topics.range_deletes
        register_functions(batch.sparkSession, self._layout)
        if self.settings.avro:
            return decoded_avro(batch, self._layout, segment, range_topic, self._registry)
        return decoded_json(batch, self._layout, segment, range_topic, self.settings.schemas_enable)

    def _land_letters(self, landed: LandedTable, created_again: bool) -> bool:
        """Decodes again the dead letters that only waited for a definition or a schema, in a segment of its own. Says
        whether anything of them ends by itself."""
        if not self._has_letters:
            return False
        waiting = waiting_letters(landed, self._registry if self.settings.avro else None, created_again)
        if waiting is None:
            return False
        self._unmerged.segment += 1
        seen, landing = Observation(), F.count_if(F.col("segment") != DEAD).alias("landed")
        letters = self._decoded(waiting.records).observe(seen, landing, F.count(TTL).alias(TTL))
        landed.replace_letters(letters, waiting.reasons, waiting.always)
        self._unmerged.segment += 1
        self._publishing.landed({})
        counted = told(landed.session, seen)
        self._unmerged.count(counted["landed"])
        self.progress.letters_landed(self.name, counted["landed"], landed.letters_since(self.topics.began or {}))
        return bool(counted[TTL])

    def _merge(self, landed: LandedTable) -> None:
        assert self._layout is not None
        ending = self._ends.in_merge(self._layout)
        landed.merge(self._layout, self._unmerged.segment, self._unmerged.mark, self.topics.positions, ending)
        self._unmerged.merged()
        self._housekeeping.merged(self._unmerged.mark)
        table = self.progress.of(self.name)
        table.merges, table.unmerged = table.merges + 1, 0
