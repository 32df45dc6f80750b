"""Transactions of one worker: when they end, how, and what their end means for the positions in memory.

In: a planner that knows what is produced, an open `Delivery`. Out: commits, or aborts after which reading begins anew
from what is committed, or a new producer after which every slot is restored. Owned by the worker's thread.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from collections.abc import Hashable, Sequence

from connector.changes import Batch
from connector.delivery import (
    CLOCK_ERRORS,
    NOT_OF_THE_TOPIC,
    RECORD_ERRORS,
    TOPIC_ERRORS,
    Delivery,
    Membership,
    advice,
    describe,
    record_size,
)
from connector.errors import (
    CdcError,
    ClockIsWrong,
    ClockSetBack,
    FatalDeliveryError,
    LostClaim,
    ProducerFenced,
    RetriableDeliveryError,
    RightMissing,
    TooLate,
    TransactionAborted,
    UnknownOutcome,
)
from connector.formats import Encoder
from connector.native import RecordBlock
from connector.source import Background, Chores, Purpose, ServerClock, Tables, explained, instant
from connector.topology import CommitsPlan, Opening, Read
from connector.worker.heartbeat import HEARTBEAT_SLOT, Heartbeat
from connector.worker.measures import Measures
from connector.worker.pipeline import Encoded, Pipeline
from connector.worker.restoring import Restoring
from connector.worker.schemas import schema_records
from connector.worker.topic_troubles import Look, TopicTroubles, Unseen
from connector.worker.unmade import RecordsNotMade, Unmade

log = logging.getLogger(__name__)

# How often marks are looked at: where something happened they follow the time. Where nothing does, they follow it
# rarely, and never later than a part of the time that the log keeps its rows: a mark older than that looks like a loss.
MARKS_SECONDS = 5.0
IDLE_MARK_SECONDS = 60.0
IDLE_PART_OF_TTL = 10
AFTER_ABORT_SECONDS = 0.2
RENEW_PAUSE = (0.2, 10.0)

# Servers that are set by NTP differ by less.
WRONG_CLOCK_MS = 60_000.0

# So many aborts follow each other at the shortest pause: a transaction that is too large is halved after each.
HALVINGS = 20

DELIVERY = Purpose(
    "delivery", "changes are not delivered", "what was read since is not committed and will be read again"
)


class Transactions:
    """Takes what was read (`Consumer` and `LateConsumer` of the source), and commits it."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        planner: CommitsPlan,
        encoder: Encoder,
        tables: Tables,
        pipeline: Pipeline,
        membership: Membership,
        restoring: Restoring,
        clock: ServerClock,
        chores: Chores,
        look: Look,
        unseen: Unseen,
        heartbeat_ms: int,
        retry_seconds: float,
        background: Background,
    ) -> None:
        self.delivery = delivery
        self._planner = planner
        self._encoder = encoder
        self._tables = tables
        self._pipeline = pipeline
        self._membership = membership
        self._claiming = restoring
        self._clock = clock
        self._chores = chores
        self._topics = TopicTroubles(pipeline, look, unseen, chores)
        self._unmade = Unmade(background, retry_seconds)
        self._task = background.task(DELIVERY)
        self._heartbeat = Heartbeat(encoder, pipeline, self._unmade, heartbeat_ms / 1000)
        self._marks_due = time.monotonic() + MARKS_SECONDS
        self._quiet_until = 0.0
        self._renewing = False
        self._outages = 0
        self._renew_pause = RENEW_PAUSE[0]
        self._refused: Batch | None = None
        self.measures = Measures()
        #: With its time: it is told long after it was over, too.
        self.last_error: str | None = None
        self._fatal: FatalDeliveryError | None = None

    @property
    def ready(self) -> bool:
        """There is a producer, and nothing speaks against filling a transaction."""
        return self.delivery.ready and not self._renewing and time.monotonic() >= self._quiet_until

    @property
    def fails(self) -> bool:
        """Nothing has been committed since a transaction failed."""
        return self._task.error is not None

    @property
    def seconds_left(self) -> float | None:
        """Until the open transaction has to be cut; None if none is open."""
        if not self.delivery.is_open:
            return None
        return max(0.0, self.delivery.settings.boundary_interval_ms / 1000 - self.delivery.age)

    # -- filling ---------------------------------------------------------------------------------------------

    def forgive(self) -> None:
        """What records were refused for may be mended."""
        self._topics.look_again(self._pipeline.forgive())

    def deliver(self, read: Read, batches: Sequence[Batch]) -> int:
        """`Reading` has complete batches: a transaction is cut in front of one, never inside."""
        if self.delivery.should_commit:
            self.commit()
        return self.add(read, batches)

    def place(self, read: Opening, batches: Sequence[Batch]) -> int:
        """`Snapshots` has whole partitions, to stand behind all that was delivered of their group so far."""
        if self.delivery.should_commit:
            self.commit()
        group = read.state.group
        return len(self._produced(read.state.slot, (group.range_end, read.snapshot), batches).ends)

    def give_up(self, read: Read, batch: Batch, reason: str) -> bool:
        """`LateChanges` found a batch that would break the order of its key: it becomes a dead letter, if those are
        kept."""
        if self.delivery.should_commit:
            self.commit()
        letters = self._pipeline.late_letters(batch, reason)
        if letters:
            self.delivery.add(read.slot, letters, sum(map(record_size, letters)))
        return bool(letters)

    @property
    def takes_back(self) -> bool:
        return self.delivery.settings.exactly_once

    def settle(self, by: float | None) -> None:
        """`LateChanges` has handed on what it found."""
        self.commit(by=by)

    def add(self, read: Read, batches: Sequence[Batch]) -> int:
        """All records of the first batches, as far as the transaction has room: how many, or why not even one."""
        encoded = self._produced(read.slot, read.range_end, batches)
        if isinstance(encoded.records, RecordBlock):
            block = encoded.records
            self.measures.added_at(batches[0].layout.description.full_name, block.times, block.rows, len(block))
        else:
            self.measures.added(batches[: len(encoded.ends)], len(encoded.records))
        return len(encoded.ends)

    def _produced(self, slot: int, part: Hashable, batches: Sequence[Batch]) -> Encoded:
        with self._unmade.making(batches[0].layout.description.full_name, slot, part):
            encoded = self._pipeline.encode(batches, self.delivery.room)
        try:
            self.delivery.add(slot, encoded.records, encoded.bytes)
        except CdcError:
            self._blame(batches, encoded)
            raise
        return encoded

    def _blame(self, batches: Sequence[Batch], encoded: Encoded) -> None:
        """Find the batch whose record the client itself refused."""
        failure = self.delivery.last_failure
        if failure is None or failure.record is None:
            return
        if isinstance(encoded.records, RecordBlock):
            # Who is to blame in a block is found out when its records are made one by one.
            self.delivery.last_failure = None
        else:
            place = next(at for at, record in enumerate(encoded.records) if record is failure.record)
            self._refused = batches[bisect_right(encoded.ends, place)]

    def publish_descriptions(self) -> None:
        """A new description is committed by itself before anything is encoded with it."""
        if not self._tables.changed or not self.ready:
            return
        if not self._tables.found_others and self._pipeline.trouble(self._encoder.options.schema_topic):
            return  # What stood there once can wait until the topic takes records: changes do not wait for it.
        owned = self._planner.owned
        try:
            if owned:
                self.commit()
                self._add_schemas(min(owned))
                if self.delivery.is_open:
                    self.commit()
        except CdcError as error:
            self.recover(error)
        else:
            self._tables.put_in_force()

    def _add_schemas(self, slot: int) -> None:
        with self._unmade.making("descriptions", slot):
            records = schema_records(self._encoder, self._tables)
        if records:
            self.delivery.add(slot, records)

    def released(self, slots: frozenset[int]) -> None:
        """What waits to become records in them is their next owner's to tell, and what was refused his to find."""
        self._pipeline.poison.clear()
        self._unmade.released(slots)

    # -- committing ------------------------------------------------------------------------------------------

    def commit_if_due(self) -> None:
        """Raises FatalDeliveryError once Kafka refuses us a producer for good."""
        if self._fatal is not None:
            raise self._fatal
        self._topics.tick()
        if not self.delivery.ready or self._renewing:
            return
        ready = self._topics.take_ready()
        if ready:
            self.start_over(RetriableDeliveryError(f"topic {ready[0].name} takes records again"))
            return
        if self._task.error is not None and not self._membership.owned:
            self._task.dismiss()  # nothing to commit any more
        marks = time.monotonic() >= self._marks_due
        beats = self._heartbeat.is_due(self._planner.owned)
        worth_it = self.delivery.should_commit or marks or beats
        if worth_it or (not self.delivery.is_open and self._worth_opening()):
            try:
                if beats and (records := self._heartbeat.records()):
                    self.delivery.add(HEARTBEAT_SLOT, records)
                # Where nothing happens, nothing else would tell for a minute that what has failed works again.
                self.commit(move_marks=marks, idle_ms=self._idle_ms() if marks and not self.fails else 0)
            except CdcError as error:
                self.recover(error)

    def commit(self, move_marks: bool = False, by: float | None = None, idle_ms: int = 0) -> None:
        """Commit what was produced and what it implies; raises what `recover` deals with. ``by``: see `Delivery`."""
        if move_marks:
            self._marks_due = time.monotonic() + MARKS_SECONDS
        commit = self._planner.commit_entries(self._clock.now_ms(), move_marks, idle_ms)
        if not commit.entries and not self.delivery.is_open:
            self._planner.committed()
            return
        if any(entry.owner is not None for entry in commit.entries):
            # A claim is the earliest transaction there is: a table's description is committed with it, before any
            # record that is built with it.
            self._add_schemas(min(commit.slots))
        self.delivery.commit(commit.entries, commit.slots, by)
        self._planner.committed()
        self._pipeline.committed()
        self._unmade.committed()
        self.measures.committed(self._clock.now_ms())
        self._tables.recorded()
        self._renew_pause = RENEW_PAUSE[0]
        self._task.worked()

    def _idle_ms(self) -> int:
        kept = [self._tables[table].description.cdc.ttl for table in self._tables]
        seconds: float = min([IDLE_MARK_SECONDS, *(ttl / IDLE_PART_OF_TTL for ttl in kept if ttl)])
        return round(seconds * 1000)

    def _worth_opening(self) -> bool:
        return self._planner.commit_due(self._clock.now_ms())

    # -- trouble ---------------------------------------------------------------------------------------------

    def recover(self, error: CdcError) -> None:
        """Decide what an error means for the open transaction, the positions in memory, and the process."""
        if isinstance(error, ClockSetBack):
            # Nothing more is tried: what is open is ended by the next owners of the slots.
            self._fatal = error
            self.delivery.close()
            self._planner.forget()
        elif isinstance(error, ProducerFenced | UnknownOutcome) or (
            isinstance(error, FatalDeliveryError) and self.delivery.last_failure is None
        ):
            self.start_over(error)
        else:
            # Aborted already, a lost membership, a refused record: for all of them it is right to take the
            # transaction back and read again.
            self.abort(error)

    def abort(self, error: CdcError) -> None:
        log.log(
            logging.INFO if isinstance(error, LostClaim | TooLate) else logging.DEBUG, "transaction aborted: %s", error
        )
        pause = AFTER_ABORT_SECONDS
        if not isinstance(error, LostClaim | RecordsNotMade | TooLate):
            pause = self._failed(error)
        self._remember(error)
        try:
            self.delivery.abort()
        except UnknownOutcome as unknown:
            self.start_over(UnknownOutcome(f"{error}; {unknown}"))
            return
        self._learn()
        self._tables.not_recorded()
        # Only now, after a confirmed abort, are the positions from before the transaction true again.
        self._planner.aborted()
        self._quiet_until = time.monotonic() + pause

    def _failed(self, error: CdcError) -> float:
        """Tell it; how long to wait before the next transaction."""
        self._pipeline.plainly = True
        self._task.failed(self._explained(error))
        tries = HALVINGS if isinstance(error, TransactionAborted) else 0
        return max(AFTER_ABORT_SECONDS, self._task.pause(AFTER_ABORT_SECONDS / (1 << tries), RENEW_PAUSE[1]))

    def _remember(self, error: BaseException) -> None:
        self.last_error = f"{instant(time.time())}: {explained(error)}"

    def _explained(self, error: CdcError) -> str:
        """With the broker's address, which librdkafka tells elsewhere than in the error of a call."""
        cause = self.delivery.connection_error
        return f"{error} ({cause})" if cause is not None and cause not in str(error) else str(error)

    def _learn(self) -> None:
        """What caused an abort must not cause the next one: its topic, or its batch, is remembered."""
        self.measures.forget()
        self._pipeline.aborted()
        self._unmade.aborted()
        failure, self.delivery.last_failure = self.delivery.last_failure, None
        batch, self._refused = self._refused, None
        if failure is None:
            return
        code, topic = failure.error.code(), failure.topic
        if code in CLOCK_ERRORS and (wrong := wrong_clock(self._clock.skew_ms)) is not None:
            self._fatal = ClockIsWrong(wrong)
        elif code in RECORD_ERRORS and batch is not None:
            self._pipeline.remember(batch, str(failure))
        elif code in TOPIC_ERRORS:
            self._topics.suspend(topic, advice(failure.error), refused=True)
        elif code not in NOT_OF_THE_TOPIC and topic in self._pipeline.topics:
            # A record of no batch, an entry of a slot say, may be refused by the client itself.
            unsent = failure.record is not None
            self._topics.suspend(topic, describe(failure.error, unsent=unsent), too_large=code in RECORD_ERRORS)

    def start_over(self, error: CdcError) -> None:
        """No position in memory is valid: a new producer, and every slot of ours restored."""
        log.info("%s: starting a new producer and restoring all slots", error)
        self._failed(error)
        self._remember(error)
        self._learn()
        self._tables.not_recorded()
        self.delivery.close()
        self._planner.forget()
        self.renew(self._renew_pause)
        self._claiming.begin(self._membership.owned)

    def listen(self) -> None:
        """Who has slots begins a transaction every so often, and hears by that what its clients say."""
        if self._planner.owned or self._renewing:
            return
        try:
            self.delivery.listen()
        except CdcError as error:
            # Of a producer that is of no use any more, as where its coordinator refuses us.
            self.recover(error)

    def after_outage(self, outages: int) -> None:
        """Start over when no broker was there for a while (``outages`` counts how often).

        A broker that comes back may have ended our transactions, even committed ones, without telling their
        partitions (`hanging_transactions`): nothing is produced behind such a transaction before it was looked for.
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

        self._task.asked(self.delivery.address)
        self._chores.submit(start, self._renewed)

    def _renewed(self, _: object, error: BaseException | None) -> None:
        self._renewing = False
        self._topics.take_unseen()
        if error is None:
            self._task.answered()  # a commit will tell whether it works
            return
        if isinstance(error, FatalDeliveryError) and not isinstance(error, RightMissing):
            self._fatal = error
            return
        self._remember(error)
        self._task.failed(self._explained(error) if isinstance(error, CdcError) else error)
        self._renew_pause = min(RENEW_PAUSE[1], self._renew_pause * 2)
        self.renew(self._renew_pause)


def wrong_clock(skew_ms: float) -> str | None:
    """What is to be said where Kafka refuses records for their time, and ScyllaDB's time is another one as well; None,
    if it is as ours: then the broker's is wrong, and every machine is refused."""
    if abs(skew_ms) < WRONG_CLOCK_MS:
        return None
    # Without a figure: the same is said after every start.
    where = "ahead of" if skew_ms < 0 else "behind"
    return (
        f"Kafka takes no records of this machine for their time, and its clock is {where} ScyllaDB's by more than a "
        "minute: set it right (NTP); other machines have its slots meanwhile"
    )
