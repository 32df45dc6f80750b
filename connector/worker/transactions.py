"""Transactions of one worker: when they end, how, and what their end means for the positions in memory.

In: a planner that knows what is produced, an open `Delivery`. Out: commits, or aborts after which reading begins anew
from what is committed, or a new producer after which every slot is restored. Owned by the worker's thread.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from connector.changes import Batch
from connector.delivery.failures import RECORD_ERRORS, TOPIC_ERRORS
from connector.delivery.records import OffsetsEntry
from connector.delivery.transaction import Delivery
from connector.errors import (
    CdcError,
    DeliveryError,
    FatalDeliveryError,
    LostClaim,
    ProducerFenced,
    RetriableDeliveryError,
    UnknownOutcome,
)
from connector.formats.encoder import Encoder
from connector.source.chores import Chores
from connector.source.connection import ServerClock
from connector.source.descriptions import DescribedTable
from connector.topology import Planner
from connector.worker.pipeline import Encoded, Pipeline
from connector.worker.schemas import SchemasTopic

log = logging.getLogger(__name__)

# How often marks follow the time where nothing happens.
MARKS_SECONDS = 5.0
AFTER_ABORT_SECONDS = 0.2
RENEW_PAUSE = (0.2, 10.0)


class Transactions:
    """``taken_back`` is called when reads have become void, ``start_over`` when all slots must be restored."""

    def __init__(
        self,
        delivery: Delivery,
        planner: Planner,
        encoder: Encoder,
        schemas: SchemasTopic,
        pipeline: Pipeline,
        clock: ServerClock,
        chores: Chores,
        *,
        heartbeat_ms: int,
        tables: Callable[[], Iterable[DescribedTable]],
        taken_back: Callable[[], None],
        start_over: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.delivery = delivery
        self._planner = planner
        self._encoder = encoder
        self._schemas = schemas
        self._pipeline = pipeline
        self._clock = clock
        self._chores = chores
        self._tables = tables
        self._taken_back = taken_back
        self._restore_all = start_over
        self._monotonic = monotonic
        self._heartbeat_seconds = heartbeat_ms / 1000
        self._heartbeat_due = monotonic() + self._heartbeat_seconds
        self._marks_due = monotonic() + MARKS_SECONDS
        self._quiet_until = 0.0
        self._renewing = False
        self._outages = 0
        self._renew_pause = RENEW_PAUSE[0]
        self._refused: Batch | None = None
        self.last_error: str | None = None
        self.fatal: CdcError | None = None

    @property
    def ready(self) -> bool:
        """There is a producer, and nothing speaks against filling a transaction."""
        return self.delivery.ready and not self._renewing and self._monotonic() >= self._quiet_until

    @property
    def seconds_left(self) -> float | None:
        """Until the open transaction has to be cut; None if none is open."""
        if not self.delivery.is_open:
            return None
        return max(0.0, self.delivery.settings.boundary_interval_ms / 1000 - self.delivery.age)

    # -- filling ---------------------------------------------------------------------------------------------

    def add(self, slot: int, batches: Sequence[Batch]) -> int:
        """All records of the first batches, as far as the transaction has room: how many, or why not even one."""
        encoded = self._pipeline.encode(batches, self.delivery.room)
        try:
            self.delivery.add(slot, encoded.records, encoded.bytes)
        except CdcError:
            self._blame(batches, encoded)
            raise
        return len(encoded.ends)

    def _blame(self, batches: Sequence[Batch], encoded: Encoded) -> None:
        """Find the batch whose record the client itself refused."""
        failure = self.delivery.last_failure
        if failure is not None and failure.record is not None:
            place = next(at for at, record in enumerate(encoded.records) if record is failure.record)
            self._refused = batches[bisect_right(encoded.ends, place)]

    def add_schemas(self, tables: Iterable[DescribedTable], slot: int) -> None:
        records = self._schemas.missing(table.description for table in tables)
        if records:
            self.delivery.add(slot, records)

    # -- committing ------------------------------------------------------------------------------------------

    def commit_if_due(self) -> None:
        if not self.delivery.ready or self._renewing:
            return
        marks = self._monotonic() >= self._marks_due
        worth_it = self.delivery.should_commit or marks or self._beat_due
        if worth_it or (not self.delivery.is_open and self._worth_opening()):
            try:
                self._beat()
                self.commit(move_marks=marks)
            except CdcError as error:
                self.recover(error)

    def commit(self, move_marks: bool = False) -> None:
        """Commit what was produced and what it implies; raises what `recover` deals with."""
        if move_marks:
            self._marks_due = self._monotonic() + MARKS_SECONDS
        commit = self._planner.commit_entries(self._clock.now_ms(), move_marks)
        if not commit.entries and not self.delivery.is_open:
            self._planner.committed()
            return
        if any(entry.value is not None and "owner" in entry.value for entry in commit.entries):
            # A claim is the earliest transaction there is: a table's description is committed with it, before any
            # record that is built with it.
            self.add_schemas(self._tables(), min(commit.slots))
        entries = [OffsetsEntry(entry.slot, entry.key, entry.value) for entry in commit.entries]
        self.delivery.commit(entries, commit.slots)
        self._planner.committed()
        self._schemas.committed()
        self._renew_pause = RENEW_PAUSE[0]

    def _worth_opening(self) -> bool:
        return self._planner.commit_due(self._clock.now_ms())

    @property
    def _beat_due(self) -> bool:
        # One worker beats for the whole connector: the one that has slot 0.
        beats = self._heartbeat_seconds > 0 and 0 in self._planner.owned
        return beats and self._monotonic() >= self._heartbeat_due

    def _beat(self) -> None:
        if self._beat_due:
            self._heartbeat_due = self._monotonic() + self._heartbeat_seconds
            self.delivery.add(0, self._encoder.heartbeat())

    # -- trouble ---------------------------------------------------------------------------------------------

    def recover(self, error: CdcError) -> None:
        """Decide what an error means for the open transaction, the positions in memory, and the process."""
        if isinstance(error, ProducerFenced | UnknownOutcome) or (
            isinstance(error, FatalDeliveryError) and self.delivery.last_failure is None
        ):
            self.start_over(error)
        else:
            # Aborted already, lost claims, a refused record, a Schema Registry that is away: taking the transaction
            # back and reading again is right for all of them.
            self.abort(error)

    def abort(self, error: CdcError) -> None:
        log.log(logging.INFO if isinstance(error, LostClaim) else logging.WARNING, "transaction aborted: %s", error)
        self.last_error = str(error)
        try:
            self.delivery.abort()
        except UnknownOutcome as unknown:
            self.start_over(unknown)
            return
        self._learn()
        self._schemas.aborted()
        # Only now, after a confirmed abort, are the positions from before the transaction true again.
        self._planner.aborted()
        self._taken_back()
        self._quiet_until = self._monotonic() + AFTER_ABORT_SECONDS

    def _learn(self) -> None:
        """What caused an abort must not cause the next one: its topic, or its batch, is remembered."""
        failure, self.delivery.last_failure = self.delivery.last_failure, None
        batch, self._refused = self._refused, None
        if failure is None:
            return
        if failure.error.code() in RECORD_ERRORS and batch is not None:
            self._pipeline.poison[(batch.stream_id, batch.time)] = str(failure)
        elif failure.error.code() in TOPIC_ERRORS or failure.error.code() in RECORD_ERRORS:
            self._pipeline.fail_topic(failure.topic, str(failure))

    def start_over(self, error: CdcError) -> None:
        """No position in memory is valid: a new producer, and every slot of ours restored."""
        log.warning("%s: starting a new producer and restoring all slots", error)
        self.last_error = str(error)
        self._learn()
        self._schemas.aborted()
        self.delivery.close()
        self._planner.forget()
        self._taken_back()
        self.renew(self._renew_pause)
        self._restore_all()

    def after_outage(self, outages: int) -> None:
        """Start over when no broker was there for a while (``outages`` counts how often).

        A broker that comes back may have ended our transactions, even committed ones, without telling their
        partitions (`leftovers`): nothing is produced behind such a transaction before it was looked for.
        """
        if outages != self._outages and self.delivery.ready and not self._renewing:
            self.start_over(RetriableDeliveryError("Kafka was away"))
        self._outages = outages

    def renew(self, pause: float = 0.0, again: bool = True) -> None:
        """Start a producer, in a chore: it takes a second at best."""
        self._renewing = True

        def start() -> None:
            time.sleep(pause)
            self.delivery.start(again=again)

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
        self.renew(self._renew_pause)
