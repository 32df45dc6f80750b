"""The transaction: records and the positions that they imply become visible together, or not at all.

In: outgoing records with their slot; at commit the offsets entries in the planner's order. Out: a commit that is
known to have happened, or one of TransactionAborted, TooLate, ProducerFenced, UnknownOutcome, LostClaim.

The order of a commit is written down once, in `Delivery.commit`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import TopicPartition

from connector.delivery.batches import Batches
from connector.delivery.clients import KafkaClients
from connector.delivery.hanging_transactions import Field, Unseen, end_hanging_transactions, ended_everywhere
from connector.delivery.producer import FailedRecord, ReportingProducer
from connector.delivery.records import (
    COMMIT_HEADER,
    BlockClient,
    KafkaRecord,
    OutgoingRecord,
    compact_json,
    encode_offsets_key,
    left_header,
    name_of_commit,
    record_size,
)
from connector.delivery.standing import Standing
from connector.delivery.topic_facts import TopicFacts
from connector.delivery.transactional_producer import TransactionalProducer
from connector.delivery.wall_clock import WallClock
from connector.errors import (
    ClockSetBack,
    DeliveryError,
    Disowned,
    LostClaim,
    ProducerFenced,
    TooLate,
    TransactionAborted,
    UnknownOutcome,
)
from connector.offsets_entry import OffsetsEntry

log = logging.getLogger(__name__)

# So long the owner thread waits for partitions to tell: transactions of others, which may stand in front, are shorter.
MARKERS_SECONDS = 2.0
# Between two times that clients are listened to of which nothing is asked.
LISTEN_SECONDS = 30.0


class Membership(Protocol):
    """Who we are in the group that hands out slots."""

    @property
    def member_id(self) -> str:
        """The group's name for this member; empty when it is not one."""

    def metadata(self) -> Any:
        """What `send_offsets_to_transaction` wants to know of the membership."""


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """`disabled` is the only delivery mode that is not exactly once."""

    connector: str
    offsets_topic: str
    transactional_id: str
    transaction_timeout_ms: int = 15_000
    boundary_interval_ms: int = 500
    max_bytes: int = 32 * 1024 * 1024
    exactly_once: bool = True


class Delivery:
    """The open transaction of one worker. Owned by one thread."""

    def __init__(
        self,
        clients: KafkaClients,
        settings: DeliverySettings,
        membership: Membership,
        *,
        clock: Callable[[], float] = time.monotonic,
        topics: Callable[[], Iterable[str]] = lambda: (),
        group: str = "",
        unseen: Unseen | None = None,
        blocks: BlockClient | None = None,
        stood: Standing | None = None,
        positions: Callable[[], None] = lambda: None,
        facts: Mapping[str, TopicFacts] = {},
        outlived: bool = False,
    ) -> None:
        """``positions`` raises if the offsets topic is not the one that it was. ``facts``: of topics, so far known.
        ``outlived``: by its transactional id, which an earlier process may have used."""
        self._clients = clients
        self._positions = positions
        self._blocks = blocks
        since = 0.0 if outlived else time.time() * 1000
        self._field = Field(
            settings.connector,
            settings.offsets_topic,
            group,
            topics,
            unseen,
            stood or Standing(),
            # Plain records are in no transaction: no marker of ours comes to where they go.
            since if settings.exactly_once else None,
        )
        self.settings = settings
        self._membership = membership
        self._clock = clock
        self._wall_clock = WallClock()
        self._producer: TransactionalProducer | None = None
        self._plain: ReportingProducer | None = None
        self._opened_at: float | None = None
        self._member_at_begin = ""
        self._name = ""
        self._touched: set[int] = set()
        self._last_slots: frozenset[int] = frozenset()
        self.bytes = 0
        self.records = 0
        self.byte_limit = settings.max_bytes
        self._batches = Batches(facts)
        self._outages = 0
        #: Whether what the last transaction wrote certainly has its end in each partition.
        self._settled = True
        self.last_failure: FailedRecord | None = None
        self.commits = 0
        # As which member the group did not know us at the last attempt.
        self._disowned: str | None = None
        self.aborts = 0
        self._listen_due = clock() + LISTEN_SECONDS

    # -- life ------------------------------------------------------------------------------------------------

    def start(self, patience: float = 60.0, again: bool = False) -> None:
        """A producer that may begin transactions; replaces one that was fenced or whose outcome is unknown.

        ``again``: the id has been used before, and what it left open may need more than the coordinator's word.
        """
        self.close()
        producer = TransactionalProducer(
            self._clients,
            self.settings.transactional_id,
            self.settings.transaction_timeout_ms,
            lasting=True,
            blocks=self._blocks,
            batches=self._batches,
        )
        try:
            deadline = self._clock() + patience
            producer.start(deadline)
            # From here on: what an outage before this did to an earlier transaction is looked for now.
            self._outages = self._clients.health.outages
            self._settled = True
            if again:
                end_hanging_transactions(self._clients, self._field, [producer], deadline)
        except DeliveryError:
            producer.close()
            raise
        self._producer = producer
        if not self.settings.exactly_once:
            self._plain = ReportingProducer(self._clients, freely=True, batches=self._batches)

    @property
    def ready(self) -> bool:
        return self._producer is not None

    @property
    def producers(self) -> list[Any]:
        """The clients that write, while there are any."""
        return [each.client for each in (self._producer, self._plain) if each is not None]

    @property
    def disowned(self) -> bool:
        """Whether the group did not know us at the last attempt, and our client is none the wiser since."""
        return self._disowned is not None and self._disowned == self._membership.member_id

    @property
    def address(self) -> str:
        return self._clients.address

    @property
    def connection_error(self) -> str | None:
        """What the clients last said of their connections, brokers' addresses included."""
        return self._clients.health.error

    def close(self) -> None:
        """Drop the producers; an open transaction is left to the next owner of the slots, who ends it."""
        for producer in (self._producer, self._plain):
            if producer is not None:
                producer.close()
        self._producer = self._plain = None
        self._forget()

    def listen(self) -> None:
        """Take in what the clients have said while nothing was asked of them. Until then each keeps it, and goes
        through all of it for whatever is new: where Kafka is away, sixty lines of its log each second."""
        if not self.is_open and self._clock() >= self._listen_due:
            self._listen_due = self._clock() + LISTEN_SECONDS
            for producer in (self._producer, self._plain):
                if producer is not None:
                    producer.poll()

    # -- filling ---------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    @property
    def age(self) -> float:
        return 0.0 if self._opened_at is None else self._clock() - self._opened_at

    @property
    def room(self) -> int:
        """Bytes until the transaction has to be cut."""
        return self.byte_limit - self.bytes

    def add(self, slot: int, records: Sequence[KafkaRecord], size: int | None = None) -> None:
        """Records of whole batches: a transaction is never cut inside one. ``size``: of all of them, if known."""
        producer = self._opened() if self._plain is None else self._plain_opened()
        self._times_rise()
        self._touched.add(slot)
        self.bytes += sum(map(record_size, records)) if size is None else size
        self.records += len(records)
        try:
            producer.produce_all(records)
            producer.check()
            self._settle()
        except DeliveryError:
            self.last_failure = producer.failure
            raise

    @property
    def should_commit(self) -> bool:
        """Cut by time, by bytes, and long before the broker would give up on the transaction."""
        if not self.is_open:
            return False
        oldest = min(self.settings.boundary_interval_ms, self.settings.transaction_timeout_ms // 3) / 1000
        return self.age >= oldest or self.bytes >= self.byte_limit

    # -- ending ----------------------------------------------------------------------------------------------

    def commit(self, entries: Sequence[OffsetsEntry], slots: Collection[int] = (), by: float | None = None) -> None:
        """Make the records and ``entries`` visible together. The order of the steps is the promise:

        1. entries are produced in the planner's order (positions and tombstones before marks), behind all records:
           every prefix that a follower may see is then conservative;
        2. every delivery report is awaited and looked at: a commit with a lost record would lose it for ever. So is
           whether the brokers were there all the time (`_never_away`), and whether the entries are in the topic that
           they are meant for, not in another one of its name;
        3. the group is told the offsets of *every* slot that has a record or an entry here: the broker refuses them
           from a member that was replaced, and a slot that is not named is not protected;
        4. commit. Nothing is produced between 3 and 4, or it would travel without that protection.

        The last entry of each slot and the group's offsets carry one name: where the end of the transaction is missing
        in a slot and stands in one of the other places, it is known what the end was (`hanging_transactions`). That
        entry also says who may have left a transaction open where this worker could not look yet: its heirs look.

        ``slots``: further slots that have something in this transaction. ``by``: when the brokers must have all of it,
        on this object's clock; otherwise TooLate, and it is to be aborted.
        """
        producer = self._opened()
        self._times_rise()
        self._still_member()
        named = self._touched.union(slots, (entry.slot for entry in entries))
        deadline = self._clock() + self.settings.transaction_timeout_ms / 1000
        try:
            if self._plain is not None:
                self._plain.flush(deadline)
            producer.produce_all(self._records(entries))
            producer.flush(deadline, self._settle)
            self._never_away(producer)
            self._settle()
            self._positions()
            if by is not None and self._clock() >= by:
                raise TooLate("the brokers had it too late to be in front of what other workers deliver")
            if named:
                topic, name = self.settings.offsets_topic, self._name
                offsets = [TopicPartition(topic, slot, 0, metadata=name) for slot in sorted(named)]
                # Taken before the last look at it: of a worker that was thrown out during the flush they name no
                # member at all, and a broker believes those.
                membership = self._membership.metadata()
                self._still_member()
                producer.send_offsets(offsets, membership)
            producer.commit()
            self._never_away(producer)
        except (DeliveryError, LostClaim) as error:
            self.last_failure = producer.failure or (self._plain.failure if self._plain else None)
            self._after_failure(error)
            self._disowned = self._member_at_begin if isinstance(error, Disowned) else None
            raise
        self.commits += 1
        self._disowned = None
        self._settled, self._last_slots = False, frozenset(named)
        self._clients.health.succeeded()
        self.byte_limit = min(self.settings.max_bytes, self.byte_limit * 2)
        self._forget()

    def abort(self) -> None:
        """End the transaction without a trace. Raises UnknownOutcome if that is not confirmed."""
        if not self.is_open:
            return
        assert self._producer is not None
        try:
            if self._plain is not None:
                self._plain.close()
                self._plain = ReportingProducer(self._clients, freely=True, batches=self._batches)
            self._producer.abort()
            self.aborts += 1
            self._settled, self._last_slots = False, frozenset(self._touched)
        finally:
            self._forget()

    # -- inside ----------------------------------------------------------------------------------------------

    def _still_member(self) -> None:
        if self._membership.member_id != self._member_at_begin or not self._member_at_begin:
            # Thrown out, and perhaps back in: others may have read, and moved, our slots meanwhile.
            raise LostClaim("membership changed since the transaction began")

    def _times_rise(self) -> None:
        """Raise ClockSetBack if records would have earlier times than older ones. What somebody left open is told from
        what he committed by their times."""
        if self._wall_clock.was_set_back:
            raise ClockSetBack("this host's clock was set back; a new worker goes on")

    def _never_away(self, producer: TransactionalProducer) -> None:
        """Raise UnknownOutcome if the brokers went away since this producer was started.

        They may have come back without the markers of its last transaction, which they call committed, and which is
        open in all of its partitions. The marker of the next one would speak for it wherever both of them wrote, and
        nowhere else: rows would be aborted whose positions are committed. So nothing more is produced, or committed,
        with this producer, and nothing counts as committed that it was told of since.
        """
        producer.poll()
        if self._clients.health.outages != self._outages:
            raise UnknownOutcome("Kafka was away, and may have forgotten to end the last transaction")

    def _ended_everywhere(self, producer: TransactionalProducer) -> None:
        """Another client for a producer whose own is spent; raise UnknownOutcome unless what the last transaction wrote
        has its end in all partitions then.

        A coordinator leaves out those that nobody leads, and says nothing of it. What is written behind a transaction
        that is open there ends together with it, of whichever epoch, and may have to be aborted. A leader is not lost
        without a connection, which spends a client, so partitions are asked only then; once the coordinator is done
        with that transaction, which is before it lets another client begin.
        """
        if not producer.is_spent:
            return
        producer.renew()
        topic = self.settings.offsets_topic
        slots = [(topic, slot) for slot in self._last_slots]
        if not ended_everywhere(self._clients, producer.written - {topic}, slots, MARKERS_SECONDS):
            raise UnknownOutcome(
                "partitions that nobody leads, or that may not be seen, do not tell how the last one ended"
            )
        self._settled = True

    def _settle(self) -> None:
        """Raise UnknownOutcome if a broker was lost, or all went away, before this transaction's first record was
        written: nothing of it may reach a partition that has not heard of the end of the last one."""
        if self._settled:
            return
        assert self._producer is not None
        acknowledged = self._producer.acknowledged
        # Not only once all is written, which may be too late: brokers that are back take what waited for them.
        self._never_away(self._producer)
        if self._producer.has_lost:
            raise UnknownOutcome("a broker was lost while the last transaction was brought to its end")
        self._settled = acknowledged

    def _records(self, entries: Sequence[OffsetsEntry]) -> list[OutgoingRecord]:
        last = {entry.slot: at for at, entry in enumerate(entries)}
        headers = ((COMMIT_HEADER, self._name.encode()), *left_header(self._field.stood.left()))
        return [
            OutgoingRecord(
                self.settings.offsets_topic,
                encode_offsets_key(self.settings.connector, entry.key),
                None if entry.value is None else compact_json(entry.value),
                headers=headers if last[entry.slot] == at else (),
                partition=entry.slot,
            )
            for at, entry in enumerate(entries)
        ]

    def _opened(self) -> TransactionalProducer:
        assert self._producer is not None, "start() comes first"
        if self._opened_at is None:
            self._times_rise()
            self._never_away(self._producer)
            self._ended_everywhere(self._producer)
            # Before the first record, by the same clock as the records' timestamps, and cut off as they are.
            began_ms = int(time.time() * 1000)
            self._member_at_begin = self._membership.member_id
            self._producer.begin()
            self._name = name_of_commit(self.settings.transactional_id, began_ms)
            self._opened_at = self._clock()
        return self._producer

    def _plain_opened(self) -> ReportingProducer:
        assert self._plain is not None
        self._opened()
        return self._plain

    def _after_failure(self, error: Exception) -> None:
        if isinstance(error, (ProducerFenced, UnknownOutcome)):
            log.warning("delivery: %s; starting a new producer", error)
        elif isinstance(error, TransactionAborted):
            # Too much for one transaction is one of the reasons: try less next time, down to a single batch.
            self.byte_limit = max(1, min(self.byte_limit, max(self.bytes, 2)) // 2)

    def _forget(self) -> None:
        self._opened_at = None
        self._member_at_begin = self._name = ""
        self._touched.clear()
        self.bytes = self.records = 0
