"""The worker: one thread that owns all state, and joins source, planner, encoder and delivery.

In: a configuration, described tables, checked topics. Out: records and positions in Kafka, until it is told to stop.
The driver's threads, chores and librdkafka only hand things over through one queue.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from connector.changes import Batch
from connector.config import Configuration
from connector.delivery.claims import Claims
from connector.delivery.clients import KafkaClients
from connector.delivery.follow import Follower
from connector.delivery.restore import RestoredSlot
from connector.delivery.topics import TopicFacts, ensure_topics
from connector.delivery.transaction import Delivery
from connector.errors import (
    CdcError,
    FatalSourceError,
    LostClaim,
)
from connector.formats.encoder import Encoder
from connector.source.chores import ChoreDone, Chores
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable, describe_table
from connector.source.horizon import Expired, expired
from connector.source.log_reader import ReadEvent
from connector.source.reading import Reading
from connector.source.settings import ReadingSettings
from connector.source.watch import Watch
from connector.topology import Planner, Read, TableName
from connector.worker.claiming import Claiming
from connector.worker.pipeline import Pipeline
from connector.worker.schemas import SchemasTopic, last_versions
from connector.worker.settings import WorkerIdentity, data_spec, delivery_settings
from connector.worker.transactions import Transactions

log = logging.getLogger(__name__)

# How long events are worked on before the group, the timers and the commit get their turn.
SLICE_SECONDS = 0.05
LONGEST_WAIT = 0.1


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
        self.pipeline = Pipeline(configuration, encoder, topics, who.index, self._create_topic)
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
            topics=lambda: self.pipeline.topics,
            restored=self._restored,
            beside=self._look_again,
            monotonic=monotonic,
        )
        self.follower = Follower(clients, connector.name, offsets, configuration.group, slots)
        smallest = min((facts.max_message_bytes for facts in topics.values()), default=1_048_588)
        self.delivery = Delivery(
            clients,
            delivery_settings(configuration, who, max(16_384, min(1_000_000, smallest))),
            self.claims,
            topics=lambda: self.pipeline.topics,
            group=configuration.group,
        )
        self.transactions = Transactions(
            self.delivery,
            self.planner,
            encoder,
            schemas,
            self.pipeline,
            connection.clock,
            self._chores,
            heartbeat_ms=connector.output.heartbeat_interval_ms,
            tables=lambda: {**self.reading.tables, **self._new_descriptions}.values(),
            taken_back=self.reading.forget_void,
            start_over=lambda: self.claiming.begin(self.claims.owned),
            monotonic=monotonic,
        )
        self._pump_due = 0.0
        self._new_descriptions: dict[TableName, DescribedTable] = {}
        self.expired: dict[tuple[TableName, int, bytes | None], Expired] = {}
        self.failed_tables: dict[TableName, str] = {}

    # -- life ------------------------------------------------------------------------------------------------

    def _create_topic(self, name: str) -> TopicFacts:
        return ensure_topics(self.clients.admin(), [data_spec(self.configuration, name)])[name]

    def start(self) -> None:
        self.follower.start()
        self.planner.follow([], self.follower.caught_up)
        self.watch.start(self.reading.tables.values())
        self.claims.join()
        # An id that ends with the process has left nothing behind.
        self.transactions.renew(again=self.who.instance_id is not None)

    def turn(self) -> None:
        """One round: events, group, followers, timers, commit, new reads."""
        now = self._monotonic()
        self._take_events(max(0.0, min(LONGEST_WAIT, self._next_due(now) - now)))
        self.claims.poll()
        self._follow()
        self.claiming.tick()
        self.watch.tick()
        self._publish_descriptions()
        self.transactions.after_outage(self.clients.health.outages)
        self.transactions.commit_if_due()
        now = self._monotonic()
        if self.transactions.ready:
            self._pump_due = now + self.reading.pump(self.connection.clock.now_ms())

    def stop(self) -> None:
        """Finish: what was produced is committed, the group is left in good order, then everything is closed."""
        try:
            if self.transactions.ready and self.claims.owned:
                self.transactions.commit(move_marks=True)
        except CdcError as error:
            log.warning("the last commit failed: %s", error)
        self.claims.close()
        self.follower.close()
        self.delivery.close()
        self._chores.close()
        self.connection.close()

    def _next_due(self, now: float) -> float:
        due = self._pump_due if self.transactions.ready else now + LONGEST_WAIT
        left = self.transactions.seconds_left
        return due if left is None else min(due, now + left)

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
                self.transactions.recover(error)
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

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        """`Reading` has complete batches: a transaction is cut in front of one, never inside."""
        if self.delivery.should_commit:
            self.transactions.commit()
        return self.transactions.add(read.slot, batches)

    def _described(self, table: TableName, found: DescribedTable | None) -> None:
        if found is None:
            self.reading.described(table, None)
        else:
            self._new_descriptions[table] = found

    def _publish_descriptions(self) -> None:
        """A new description is committed by itself before anything is encoded with it."""
        if not self._new_descriptions or not self.transactions.ready:
            return
        owned = self.planner.owned
        try:
            if owned:
                self.transactions.commit()
                self.transactions.add_schemas(self._new_descriptions.values(), min(owned))
                if self.delivery.is_open:
                    self.transactions.commit()
        except CdcError as error:
            self.transactions.recover(error)
            return
        for table, found in self._new_descriptions.items():
            self.reading.described(table, found)
        self._new_descriptions.clear()

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
        now = self.connection.clock.now_ms()
        for slot, restored in sorted(found.items()):
            if slot in self.claims.owned:
                self.planner.restore(slot, restored.entries)
                for gone in expired(restored.entries, self.reading.tables, now):
                    self._report_expired(gone)
        self.reading.forget_void()

    def _report_expired(self, gone: Expired) -> None:
        """Once for each stream: a slot that comes back, or a restore that is repeated, is no news."""
        where = (gone.table, gone.slot, gone.stream)
        if where not in self.expired:
            self.expired[where] = gone
            log.warning("%s", gone)

    def _revoked(self, slots: frozenset[int]) -> None:
        """Still ours while this runs: what was produced is committed, or it is taken back."""
        if self.delivery.is_open:
            try:
                self.transactions.commit()
            except CdcError as error:
                self.transactions.recover(error)
        self._let_go(slots)

    def _lost(self, slots: frozenset[int]) -> None:
        """Not ours any more, and perhaps somebody else's already: nothing begun before this is ever committed."""
        if self.delivery.is_open:
            self.transactions.abort(LostClaim("thrown out of the group"))
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
