"""The worker: one thread that owns all state, and joins source, planner, encoder and delivery.

In: a configuration, described tables, checked topics. Out: records and positions in Kafka, until it is told to stop.
The driver's threads, chores and librdkafka only hand things over through one queue.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable, Iterable, Mapping

from connector.changes import Batch
from connector.config import Configuration
from connector.delivery.claims import Claims
from connector.delivery.clients import KafkaClients
from connector.delivery.failures import RECORD_ERRORS, TOPIC_ERRORS
from connector.delivery.follow import Follower
from connector.delivery.records import OffsetsEntry
from connector.delivery.restore import RestoredSlot
from connector.delivery.topics import TopicFacts
from connector.delivery.transaction import Delivery
from connector.errors import (
    CdcError,
    DeliveryError,
    FatalDeliveryError,
    FatalSourceError,
    LostClaim,
    ProducerFenced,
    RetriableDeliveryError,
    TransactionAborted,
    UnknownOutcome,
)
from connector.formats.encoder import Encoder
from connector.source.chores import ChoreDone, Chores
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable, describe_table
from connector.source.log_reader import ReadEvent
from connector.source.reading import Reading
from connector.source.settings import ReadingSettings
from connector.source.watch import Watch
from connector.topology import Planner, Read, TableName
from connector.worker.claiming import Claiming
from connector.worker.pipeline import Pipeline
from connector.worker.schemas import SchemasTopic, last_versions
from connector.worker.settings import WorkerIdentity, delivery_settings

log = logging.getLogger(__name__)

# How often marks follow the time where nothing happens.
MARKS_SECONDS = 5.0
# How long events are worked on before the group, the timers and the commit get their turn.
SLICE_SECONDS = 0.05
LONGEST_WAIT = 0.1
AFTER_ABORT_SECONDS = 0.2
RENEW_PAUSE = (0.2, 10.0)


class Worker:
    """`start`, then `turn` until told otherwise, then `stop`."""

    def __init__(
        self,
        configuration: Configuration,
        who: WorkerIdentity,
        *,
        connection: Connection,
        clients: KafkaClients,
        tables: Mapping[TableName, DescribedTable],
        topics: Mapping[str, TopicFacts],
        encoder: Encoder,
        schemas: SchemasTopic,
        slots: int,
        reading: ReadingSettings,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        connector = configuration.connector
        self.configuration = configuration
        self.who = who
        self.clients = clients
        self.connection = connection
        self.encoder = encoder
        self._schemas = schemas
        self._monotonic = monotonic
        self._events: queue.SimpleQueue[ReadEvent | ChoreDone] = queue.SimpleQueue()
        self._chores = Chores(self._events.put)
        self.planner = Planner(
            tables,
            slots=slots,
            owner=who.client_id,
            confidence_ms=reading.confidence_ms,
            lookback_ms=connector.reading.initial_lookback_ms,
        )
        self.watch = Watch(self.planner, connection, reading, self._chores, self._described)
        self.reading = Reading(
            self.planner, connection, reading, self._events.put, self, self.watch.describe, monotonic
        )
        self.reading.tables.update(tables)
        self.pipeline = Pipeline(configuration, encoder, topics, who.index)
        offsets = connector.delivery.offset_topic
        self.claims = Claims(
            clients,
            offsets,
            configuration.group,
            who.client_id,
            slots=slots,
            on_gained=self._gained,
            on_revoked=self._revoked,
            on_lost=self._lost,
            session_timeout_ms=configuration.worker.session_timeout_ms,
            instance_id=who.instance_id,
        )
        self.claiming = Claiming(
            clients,
            self._chores,
            connector=connector.name,
            topic=offsets,
            group=configuration.group,
            restored=self._restored,
            beside=self._look_again,
            monotonic=monotonic,
        )
        self.follower = Follower(clients, connector.name, offsets, configuration.group, slots)
        smallest = min((facts.max_message_bytes for facts in topics.values()), default=1_048_588)
        self.delivery = Delivery(
            clients, delivery_settings(configuration, who, max(16_384, min(1_000_000, smallest))), self.claims
        )
        self._heartbeat_seconds = connector.output.heartbeat_interval_ms / 1000
        self._heartbeat_due = monotonic() + self._heartbeat_seconds
        self._marks_due = monotonic() + MARKS_SECONDS
        self._pump_due = 0.0
        self._quiet_until = 0.0
        self._renewing = False
        self._renew_pause = RENEW_PAUSE[0]
        self._new_descriptions: dict[TableName, DescribedTable] = {}
        self._batch: Batch | None = None
        self.failed_tables: dict[TableName, str] = {}
        self.last_error: str | None = None
        self.fatal: CdcError | None = None

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.follower.start()
        self.planner.follow([], self.follower.caught_up)
        self.watch.start(self.reading.tables.values())
        self.claims.join()
        self._renew()

    def turn(self) -> None:
        """One round: events, group, followers, timers, commit, new reads."""
        now = self._monotonic()
        self._take_events(max(0.0, min(LONGEST_WAIT, self._next_due(now) - now)))
        self.claims.poll()
        self._follow()
        self.claiming.tick()
        self.watch.tick()
        self._publish_descriptions()
        self._commit_if_due()
        now = self._monotonic()
        if self._may_read(now):
            self._pump_due = now + self.reading.pump(self.connection.clock.now_ms())

    def stop(self) -> None:
        """Finish: what was produced is committed, the group is left in good order, then everything is closed."""
        try:
            if self.delivery.ready and not self._renewing and self.claims.owned:
                self._commit(move_marks=True)
        except CdcError as error:
            log.warning("the last commit failed: %s", error)
        self.claims.close()
        self.follower.close()
        self.delivery.close()
        self._chores.close()
        self.connection.close()

    def _next_due(self, now: float) -> float:
        due = self._pump_due if self._may_read(now) else now + LONGEST_WAIT
        if self.delivery.is_open:
            boundary = self.delivery.settings.boundary_interval_ms / 1000
            due = min(due, now + max(0.0, boundary - self.delivery.age))
        return due

    def _may_read(self, now: float) -> bool:
        return self.delivery.ready and not self._renewing and now >= self._quiet_until

    def _take_events(self, wait: float) -> None:
        try:
            event = self._events.get(timeout=wait) if wait else self._events.get_nowait()
        except queue.Empty:
            return
        until = self._monotonic() + SLICE_SECONDS
        while True:
            try:
                if isinstance(event, ChoreDone):
                    event.finish()
                else:
                    self.reading.handle(event)
            except CdcError as error:
                self._recover(error)
            if self._monotonic() >= until:
                return
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return

    def _follow(self) -> None:
        before = self.follower.caught_up
        entries = self.follower.poll()
        if entries or self.follower.caught_up != before:
            self.planner.follow(entries, self.follower.caught_up)

    # -- delivering ------------------------------------------------------------------------------------------

    def batch(self, read: Read, batch: Batch) -> None:
        """`Reading` has a complete batch: a transaction is cut in front of it, never inside."""
        if self.delivery.should_commit:
            self._commit()
            if not self.planner.is_current(read):
                return
        records = self.pipeline.records_of(batch)
        self._batch = batch
        self.delivery.add(read.slot, records)
        self._batch = None

    def _commit_if_due(self) -> None:
        if not self.delivery.ready or self._renewing:
            return
        now = self._monotonic()
        marks = now >= self._marks_due
        if self.delivery.should_commit or marks or (not self.delivery.is_open and self._worth_opening()):
            try:
                self._commit(move_marks=marks)
            except CdcError as error:
                self._recover(error)

    def _worth_opening(self) -> bool:
        return self.planner.commit_due(self.connection.clock.now_ms())

    def _commit(self, move_marks: bool = False) -> None:
        """Commit what was produced and what it implies; raises what `_recover` deals with."""
        if move_marks:
            self._marks_due = self._monotonic() + MARKS_SECONDS
            self._beat()
        commit = self.planner.commit_entries(self.connection.clock.now_ms(), move_marks)
        if not commit.entries and not self.delivery.is_open:
            self.planner.committed()
            return
        if any(entry.value is not None and "owner" in entry.value for entry in commit.entries):
            # A claim is the earliest transaction there is: a table's description is committed with it, before any
            # record that is built with it.
            tables = {**self.reading.tables, **self._new_descriptions}
            self._add_schemas(tables.values(), min(commit.slots))
        entries = [OffsetsEntry(entry.slot, entry.key, entry.value) for entry in commit.entries]
        self.delivery.commit(entries, commit.slots)
        self.planner.committed()
        self._schemas.committed()
        self._renew_pause = RENEW_PAUSE[0]

    def _beat(self) -> None:
        # One worker beats for the whole connector: the one that has slot 0.
        if not self._heartbeat_seconds or 0 not in self.planner.owned:
            return
        now = self._monotonic()
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + self._heartbeat_seconds
            self.delivery.add(0, self.encoder.heartbeat())

    def _add_schemas(self, tables: Iterable[DescribedTable], slot: int) -> None:
        records = self._schemas.missing(table.description for table in tables)
        if records:
            self.delivery.add(slot, records)

    def _described(self, table: TableName, found: DescribedTable | None) -> None:
        if found is None:
            self.reading.described(table, None)
        else:
            self._new_descriptions[table] = found

    def _publish_descriptions(self) -> None:
        """A new description is committed by itself before anything is encoded with it."""
        if not self._new_descriptions or self._renewing or not self.delivery.ready:
            return
        owned = self.planner.owned
        try:
            if owned:
                self._commit()
                self._add_schemas(self._new_descriptions.values(), min(owned))
                if self.delivery.is_open:
                    self._commit()
        except CdcError as error:
            self._recover(error)
            return
        for table, found in self._new_descriptions.items():
            self.reading.described(table, found)
        self._new_descriptions.clear()

    # -- trouble ---------------------------------------------------------------------------------------------

    def _recover(self, error: CdcError) -> None:
        """Decide what an error means for the open transaction, the positions in memory, and the process."""
        if isinstance(error, ProducerFenced | UnknownOutcome):
            self._start_over(error)
        elif isinstance(error, TransactionAborted | RetriableDeliveryError | LostClaim):
            self._abort(error)
        elif isinstance(error, FatalDeliveryError):
            self._learn()
            if self.delivery.last_failure is not None:
                self._abort(error)
            else:
                self._start_over(error)
        else:
            # The Schema Registry, for one: nothing was produced for this batch, so the transaction may stand.
            self._abort(error)

    def _abort(self, error: CdcError) -> None:
        log.log(logging.INFO if isinstance(error, LostClaim) else logging.WARNING, "transaction aborted: %s", error)
        self.last_error = str(error)
        try:
            self.delivery.abort()
        except UnknownOutcome as unknown:
            self._start_over(unknown)
            return
        self._learn()
        self._schemas.aborted()
        self.planner.aborted()
        self.reading.forget_void()
        self._quiet_until = self._monotonic() + AFTER_ABORT_SECONDS

    def _learn(self) -> None:
        """What caused an abort must not cause the next one: its topic, or its batch, is remembered."""
        failure, self.delivery.last_failure = self.delivery.last_failure, None
        batch, self._batch = self._batch, None
        if failure is None:
            return
        if failure.error.code() in RECORD_ERRORS and batch is not None:
            self.pipeline.poison[(batch.stream_id, batch.time)] = str(failure)
        elif failure.error.code() in TOPIC_ERRORS or failure.error.code() in RECORD_ERRORS:
            self.pipeline.failed_topics[failure.topic] = str(failure)

    def _start_over(self, error: CdcError) -> None:
        """No position in memory is valid: a new producer, and every slot of ours restored."""
        log.warning("%s: starting a new producer and restoring all slots", error)
        self.last_error = str(error)
        self._learn()
        self._schemas.aborted()
        self.delivery.close()
        self.planner.forget()
        self.reading.forget_void()
        self._renew()
        self.claiming.begin(self.claims.owned)

    def _renew(self) -> None:
        self._renewing = True
        pause = 0.0 if self.delivery.aborts == 0 and self.delivery.commits == 0 else self._renew_pause

        def start() -> None:
            time.sleep(pause)
            self.delivery.start()

        self._chores.submit(start, self._renewed)

    def _renewed(self, _: object, error: BaseException | None) -> None:
        self._renewing = False
        if error is None:
            return
        if not isinstance(error, DeliveryError):
            raise error
        if isinstance(error, FatalDeliveryError):
            self.fatal = error
            return
        self.last_error = str(error)
        log.warning("no producer yet: %s", error)
        self._renew_pause = min(RENEW_PAUSE[1], self._renew_pause * 2)
        self._renew()

    # -- slots -----------------------------------------------------------------------------------------------

    def _gained(self, slots: frozenset[int]) -> None:
        if slots:
            log.info("slots %s are ours", _ranges(slots))
            self.claiming.begin(slots)

    def _look_again(self) -> tuple[dict[str, str], list[DescribedTable]]:
        """In a chore, before a claim: which descriptions stand in the topic, *then* what the tables are now.

        A worker that was slow to get its slots would otherwise write the description it started with behind a newer one
        of somebody else, and a table's last record is taken for what it is now.
        """
        options = self.encoder.options
        versions = last_versions(self.clients, options.schema_topic, self.configuration.group)
        described = []
        for table in list(self.reading.tables):
            with contextlib.suppress(FatalSourceError):  # its reads will tell
                described.append(describe_table(self.connection, table))
        return versions, described

    def _restored(self, found: Mapping[int, RestoredSlot], looked: tuple[dict[str, str], list[DescribedTable]]) -> None:
        versions, described = looked
        self._schemas.read_again(versions)
        for table in described:
            if self.reading.tables[table.table] != table:
                self._new_descriptions[table.table] = table
        for slot, restored in sorted(found.items()):
            if slot in self.claims.owned:
                self.planner.restore(slot, restored.entries)
        self.reading.forget_void()

    def _revoked(self, slots: frozenset[int]) -> None:
        """Still ours while this runs: what was produced is committed, or it is taken back."""
        if self.delivery.is_open:
            try:
                self._commit()
            except CdcError as error:
                self._recover(error)
        self._let_go(slots)

    def _lost(self, slots: frozenset[int]) -> None:
        """Not ours any more, and perhaps somebody else's already: nothing begun before this is ever committed."""
        if self.delivery.is_open:
            self._abort(LostClaim("thrown out of the group"))
        self._let_go(slots)

    def _let_go(self, slots: frozenset[int]) -> None:
        log.info("slots %s are not ours any more", _ranges(slots))
        self.claiming.forget(slots)
        self.planner.release(slots)
        self.reading.forget_void()


def _ranges(slots: Iterable[int]) -> str:
    """``{1, 2, 3, 7}`` as ``1-3, 7``."""
    parts: list[list[int]] = []
    for slot in sorted(slots):
        if parts and slot == parts[-1][-1] + 1:
            parts[-1].append(slot)
        else:
            parts.append([slot])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
