"""The worker: one thread that owns all state, and joins source, planner, encoder and delivery.

In: parts that are finished (`wiring.py` makes them). Out: records and positions in Kafka, until it is told to stop.
The driver's threads, chores and librdkafka only hand things over through one queue.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from connector.config import Configuration
from connector.delivery import Delivery, Follower, KafkaClients, Lookout, Membership
from connector.errors import CdcError, LostClaim
from connector.formats import Encoder
from connector.native import Native
from connector.source import (
    Background,
    ChoreDone,
    Chores,
    Connection,
    LateChanges,
    Purpose,
    ReadEvent,
    Reading,
    Snapshots,
    Tables,
    Unread,
    Watch,
)
from connector.table_name import TableName
from connector.topology import Planner, SlotsPlan
from connector.worker.blocked_readers import BlockedReaders
from connector.worker.kept_descriptions import KeptDescriptions
from connector.worker.lost_records import LostRecords
from connector.worker.notifications import Notifications
from connector.worker.pipeline import Pipeline
from connector.worker.restoring import Restoring
from connector.worker.settings import WorkerIdentity
from connector.worker.signals import Signals
from connector.worker.silent_slots import SilentSlots
from connector.worker.table_list import TableList
from connector.worker.transactions import Transactions

log = logging.getLogger(__name__)

# How long events are worked on before the group, the timers and the commit get their turn.
SLICE_SECONDS = 0.05
LONGEST_WAIT = 0.1

# Where nothing has to be done but to sweep, and to hear of the group and of others' commits.
QUIET_WAIT = 0.25

# Joining a group takes a few seconds where nothing is wrong. Whether we are in it is asked of another thread.
JOIN_SECONDS = 10.0
MEMBER_SECONDS = 1.0

FOLLOWING = Purpose("following", "commits of other workers are not seen", "streams that continue theirs are not read")
GROUP = Purpose("group", "the worker is not in its consumer group", "it gets no slots to read")


@dataclass(kw_only=True)
class Worker:
    """`start`, then `turn` until told otherwise, then `stop`. The `SlotOwner` of its membership.

    ``events`` is where everything arrives that happens in other threads.
    """

    configuration: Configuration
    who: WorkerIdentity
    clients: KafkaClients
    connection: Connection
    events: queue.Queue[ReadEvent | ChoreDone]
    background: Background
    chores: Chores
    planner: Planner
    tables: Tables
    watch: Watch
    reading: Reading
    snapshots: Snapshots
    signals: Signals | None
    notifications: Notifications
    late: LateChanges
    encoder: Encoder
    pipeline: Pipeline
    membership: Membership
    restoring: Restoring
    unread: Unread
    follower: Follower
    delivery: Delivery
    transactions: Transactions
    table_list: TableList
    native: Native
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._slots: SlotsPlan = self.planner
        self._following = self.background.task(FOLLOWING)
        self._group = self.background.task(GROUP)
        self._member_at = self.monotonic()
        self._member_due = 0.0
        topic = self.configuration.worker.offsets.name
        self._lookout = Lookout(self.clients, topic, self.membership, self.follower, self.delivery, self.monotonic)
        self._blocked_readers = BlockedReaders(
            self.clients,
            self.chores,
            self.background,
            slots=self.planner.book.slots,
            timeout_ms=self.configuration.worker.transaction_timeout_ms,
        )
        self._kept_descriptions = KeptDescriptions(
            self.configuration, self.clients, self.chores, self.background, self.tables
        )
        self._lost_records = LostRecords(
            self.clients,
            self.chores,
            self.background,
            slots=self.planner.book.slots,
            positions=topic,
            descriptions=self.configuration.connector.output.schema_topic,
            apart=(self.configuration.worker.status.name,),
            doubt=self._kept_descriptions.doubt,
        )
        self._pump_due = 0.0
        self._beginnings = 0
        self._followed: frozenset[int] = frozenset()
        self.silent_slots = SilentSlots(self.monotonic)

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.follower.start_anew()  # in the first round, and in later ones while Kafka is away
        self.watch.start()
        if self.signals is not None:
            self.signals.start()
        self.membership.join(self)
        # An id that ends with the process has left nothing behind.
        self.transactions.renew(again=self.who.instance_id is not None)

    def turn(self) -> None:
        """One round: events, group, followers, timers, commit, new reads. Raises what no waiting can mend."""
        now = self.monotonic()
        longest = QUIET_WAIT if self._quiet else LONGEST_WAIT
        self._take_events(max(0.0, min(longest, self._next_due(now) - now)))
        self.membership.poll()
        self._look_at_the_group(now)
        self._follow()
        self._lookout.tick(self.transactions.fails)
        self._blocked_readers.tick(self.pipeline.topics, self._slots.owned)
        self._lost_records.tick(self.pipeline.topics, self._slots.owned, self.transactions.ready)
        self._kept_descriptions.tick()
        self.restoring.tick()
        self.watch.tick()
        self.transactions.publish_descriptions()
        self.transactions.listen()
        self.transactions.after_outage(self.clients.health.outages)
        self.transactions.commit_if_due()
        self.reading.forget_void()
        if self.signals is not None:
            self.signals.take(self.planner, self.tables)
        self.notifications.tick(self.planner)
        self.table_list.tick()
        self.unread.tick(self.connection.clock.now_ms)
        self.background.tick()
        now = self.monotonic()
        more = False
        if self.transactions.ready:
            server_now = self.connection.clock.now_ms()
            self.late.pump(server_now)
            # After events and before new reads: now groups stand where their last read ended.
            more = self._place(server_now)
        if self.transactions.ready:
            if self.pipeline.take_resumed():
                self.reading.go_on()
            pause = self.reading.pump(server_now)
            self._pump_due = now if more else now + pause

    def _place(self, server_now: int) -> bool:
        """Whether there is more of snapshots to be placed at once."""
        try:
            return self.snapshots.pump(server_now)
        except CdcError as error:
            self.transactions.recover(error)
            return False

    def stop(self) -> None:
        """Finish: what was produced is committed, the group is left in good order, then everything is closed."""
        try:
            if self.transactions.ready and self.membership.owned:
                self.transactions.commit(move_marks=True)
        except CdcError as error:
            log.warning("the last commit failed: %s", error)
            # Nothing more is tried: what is open is ended by the next owners of the slots.
            self.delivery.close()
        self.membership.close()
        if self.signals is not None:
            self.signals.stop()
        self.notifications.close(self.planner)
        self.follower.close()
        self.delivery.close()
        self.chores.close()
        self.connection.close()

    def try_again(self) -> None:
        """Somebody has asked for what is FAILED to be tried now, not when its time has come."""
        self.reading.try_again()
        self.watch.look_again()
        self.table_list.look_again()

    def read_tables(self, tables: Sequence[TableName], written: str) -> None:
        """These from now on: those that stay are read on as if nothing had been said."""
        self.configuration = self.configuration.with_tables(tables, written)
        self.table_list.want(self.configuration)

    def _next_due(self, now: float) -> float:
        due = self._pump_due if self.transactions.ready else now + LONGEST_WAIT
        left = self.transactions.seconds_left
        return due if left is None else min(due, now + left)

    @property
    def _quiet(self) -> bool:
        """Nothing is read, placed, claimed or committed, nor about to be."""
        waits = self.delivery.is_open or self.restoring.pending or not self.membership.settled
        return self.transactions.ready and not waits and self.reading.quiet and not self.snapshots.busy

    def _take_events(self, wait: float) -> None:
        try:
            event = self.events.get(timeout=wait) if wait else self.events.get_nowait()
        except queue.Empty:
            return
        until = self.monotonic() + SLICE_SECONDS
        while True:
            try:
                if isinstance(event, ChoreDone):
                    event.finish()
                else:
                    self.reading.handle(event)
            except CdcError as error:
                self.transactions.recover(error)
            if self.monotonic() >= until:
                return
            try:
                event = self.events.get_nowait()
            except queue.Empty:
                return

    def _follow(self) -> None:
        # What we commit in our own slots we know: it is heard of when they go away.
        owned = self._slots.owned
        entries = self.follower.poll(owned)
        if self.follower.fell_back:
            self.follower.fell_back = False
            self.restoring.look_at_positions(self.transactions.start_over)
        caught_up = (self.follower.caught_up - owned) | {entry.slot for entry in entries}
        if self.follower.beginnings != self._beginnings:
            # Perhaps since a slot was lost, and perhaps all is known again by now: what is no more is told to nobody
            # who begins, and must not be remembered.
            self._beginnings, self._followed = self.follower.beginnings, frozenset()
            self._slots.follow_anew()
        if entries or caught_up != self._followed:
            self.silent_slots.heard({entry.slot for entry in entries} | (caught_up - self._followed))
            self._followed = caught_up
            self._slots.follow(entries, caught_up)
        error = self.follower.last_error
        self._following.is_now(None if error is None else self.clients.explained(error))

    def _look_at_the_group(self, now: float) -> None:
        """A worker that is no member gets no slots, and the group's own attempts to join are silent."""
        if now < self._member_due:
            return
        self._member_due = now + MEMBER_SECONDS
        if self.membership.member_id:
            self._member_at = now
            self._group.is_now(None)
        elif now - self._member_at >= JOIN_SECONDS:
            # librdkafka says of a coordinator that "brokers are down", and not which.
            silence = "no answer from the group's coordinator"
            self._group.is_now(self.clients.explained(self.membership.last_error or silence))

    # -- slots -----------------------------------------------------------------------------------------------

    def gained(self, slots: frozenset[int]) -> None:
        """Called by `Membership`, as the next two."""
        if slots:
            log.info("claimed slots %s", _ranges(slots))
            self.restoring.begin(slots)

    def revoked(self, slots: frozenset[int]) -> None:
        """Still ours while this runs: what was produced is committed, or it is taken back."""
        if self.delivery.is_open:
            try:
                self.transactions.commit()
            except CdcError as error:
                self.transactions.recover(error)
        self._let_go(slots)

    def lost(self, slots: frozenset[int]) -> None:
        """Not ours any more, and perhaps somebody else's already: nothing begun before this is ever committed."""
        if self.delivery.is_open:
            self.transactions.abort(LostClaim("thrown out of the group"))
        self._let_go(slots)
        # Whoever was thrown out was away, perhaps for long.
        self.follower.start_anew()

    def _let_go(self, slots: frozenset[int]) -> None:
        log.info("released slots %s", _ranges(slots))
        self.restoring.forget(slots)
        self.transactions.released(slots)
        self.silent_slots.heard(slots)
        self._slots.release(slots)


def _ranges(slots: Iterable[int]) -> str:
    """``{1, 2, 3, 7}`` as ``1-3, 7``."""
    parts: list[list[int]] = []
    for slot in sorted(slots):
        if parts and slot == parts[-1][-1] + 1:
            parts[-1].append(slot)
        else:
            parts.append([slot])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
