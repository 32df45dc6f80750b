"""Producers: what the transactional one shares with the idempotent one, which delivers where `disabled` is configured.

In: records with their topic (and partition, for the offsets topic). Out: delivery, or one exception of
``connector.errors`` per call. One shared delivery callback looks at every report; the first failure is remembered with
its topic, because what caused an abort decides what happens to its table afterwards.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from connector.delivery.batches import Batches, Bulk
from connector.delivery.client_log import Heard
from connector.delivery.clients import KafkaClients
from connector.delivery.failures import BACKPRESSURE, SKIPPED, of_report, translated, with_right
from connector.delivery.leaders import led_by_nobody
from connector.delivery.records import BlockClient, BlockProducer, KafkaBlock, KafkaRecord, OutgoingRecord
from connector.delivery.stranded import Silence
from connector.errors import (
    DeliveryError,
    ProducerFenced,
    RetriableDeliveryError,
    TransactionAborted,
    UnknownOutcome,
)

log = logging.getLogger(__name__)

# One call into librdkafka never blocks the owner thread for longer than this; the call is repeated instead, so that
# signals and shutdown are noticed.
CALL_SECONDS = 2.0

# So long news of a lost broker may wait while records are on their way: less than a broker's session with its cluster.
WATCH_SECONDS = 0.25

# Between two attempts of a call that failed retriably.
RETRY_PAUSE_SECONDS = 0.05

# Partitions whose leader is gone have another one sooner, if they get one.
LEADERLESS_SECONDS = 3.0

# Records that are on their way have news of some of them within this time.
STILL_SECONDS = 0.1

# For as long a client is hurried at a time that has no news: meanwhile its thread looks for room without a pause, and a
# broker that stands still would cost a core.
HURRY_SECONDS = 0.01

# Of each partition: one is sent, another one filled. More of them are memory that no cache of the processor holds.
BATCHES_AHEAD = 2

# Reports are let in once per this many records: often enough to keep librdkafka's queue short, rarely enough to
# be free.
RECORDS_PER_POLL = 256


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that was not delivered. ``record`` is given where the client itself refused it, before it was sent."""

    topic: str
    key: bytes | None
    error: KafkaError
    record: KafkaRecord | None = None

    def __str__(self) -> str:
        return f"topic {self.topic}: {with_right(self.error, unsent=self.record is not None)}"


class ReportingProducer:
    """What both producers share: produce with back-pressure, one callback, flush with every report checked."""

    def __init__(
        self,
        clients: KafkaClients,
        blocks: BlockClient | None = None,
        *,
        batches: Batches | None = None,
        freely: bool = False,
        **own: Any,
    ) -> None:
        """``blocks``: who takes many records at once, past the binding. ``batches``: of an owner who flushes what shall
        be seen. ``freely``: the configuration may say that fewer acknowledgements do."""
        self._clients, self._taker, self._freely, self._own = clients, blocks, freely, own
        self._configured, self._batches = clients.producer_properties, batches
        self._connect()
        self.failure: FailedRecord | None = None
        self._silence = Silence()
        #: Of what is not flushed, and of what is.
        self._topics: set[str] = set()
        self._written: set[str] = set()
        self._given = 0
        self._bulk = Bulk()

    def _connect(self) -> None:
        """A client, of which nobody has heard anything yet."""
        self._heard, taker = Heard(), self._taker
        self._blocks: BlockProducer | None = None
        own = self._own
        if self._batches is not None:
            own = own | self._batches.properties(self._configured, own.get("transaction_timeout_ms"))
        own = self._kept(self._clients, self._freely) | own
        # As all that promise something are. Of others it does not matter where their records stand.
        promises = str(own["enable_idempotence"]).lower() == "true"
        if taker is not None and promises and "plugin.library.paths" not in self._configured:
            with taker.making() as beside:
                told = {"plugin_library_paths": taker.plugin, "delivery_report_only_error": True}
                self._producer = self._made(self._clients, own | told)
                self._blocks = beside()
        if self._blocks is None:
            self._producer = self._made(self._clients, own | {"delivery_report_only_error": not promises})

    @staticmethod
    def _kept(clients: KafkaClients, freely: bool) -> dict[str, Any]:
        """What the promises stand on."""
        promised = {"enable.idempotence": True, "acks": "all"}
        given = clients.producer_properties if freely else {}
        return {name.replace(".", "_"): given.get(name, value) for name, value in promised.items()}

    def _made(self, clients: KafkaClients, own: dict[str, Any]) -> Any:
        # murmur2 over the key, and random for null keys, is what Java producers do: records of both connectors
        # must land in the same partitions.
        return clients.producer(
            **own,
            partitioner="murmur2_random",
            on_delivery=self._reported,
            heard=self._heard if "transactional_id" in own else None,
        )

    def produce_all(self, records: Sequence[KafkaRecord]) -> None:
        """All of ``records``, in order; waits while our own queue is full."""
        self._given += len(records)
        if self._blocks is not None and self._blocks.takes(records):
            self._produce_block(self._blocks, records)
            return
        produce = self._producer.produce
        for at, record in enumerate(records, 1):
            topic, headers, partition = record.topic, record.headers, record.partition
            self._topics.add(topic)
            try:
                if headers or partition is not None:
                    self._produce_with(record)
                else:
                    produce(topic, record.value, record.key)
            except (BufferError, KafkaException) as caught:
                self._produce_again(record, caught)
            if not at % RECORDS_PER_POLL:
                self.poll()

    def produce(self, record: KafkaRecord) -> None:
        self.produce_all((record,))

    def produce_to(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        self.produce(OutgoingRecord(topic, key, value, partition=partition))

    def poll(self) -> None:
        """Let delivery reports in; cheap, called with every handful of records."""
        self._served(self._producer.poll, 0)

    def pending(self) -> int:
        return len(self._producer)

    @property
    def client(self) -> Any:
        return self._producer

    def is_stuck(self) -> bool:
        """Whether something has been pending for so long that a new client may do better. To be asked now and then."""
        if self.pending():
            return self._silence.lasts()
        self._silence.broken()
        return False

    def flush(self, deadline: float, watch: Callable[[], object] = lambda: None) -> None:
        """Wait until every report has come and was good. ``watch`` is called again and again meanwhile.

        Raises TransactionAborted when a record failed, RetriableDeliveryError when the reports did not come in time.
        """
        patience = time.monotonic() + LEADERLESS_SECONDS
        moves = self._keep_pace(1, deadline, watch)
        before = self.pending()
        while left := self._hurry(WATCH_SECONDS if moves else HURRY_SECONDS, deadline):
            moves, before = left < before, left
            if not moves:
                self._served(self._producer.poll, STILL_SECONDS)
            watch()
            if time.monotonic() >= patience:
                # Another leader would have been found by now, or the topic been heard of: those who write elsewhere
                # shall not wait for this one.
                self._blame_a_topic()
            if self._failed or (self._heard.trouble is not None and not moves):
                # What is left of a transaction that was given up stays until it is aborted.
                break
            if time.monotonic() >= deadline:
                self._blame_a_topic()
                self.check()
                raise RetriableDeliveryError("delivery reports did not arrive in time")
        self.check()
        if self._heard.trouble is not None:
            self._say_why_it_failed()
        self._settle()
        self._written |= self._topics
        self._topics.clear()
        self._bulk = Bulk()

    def _hurry(self, seconds: float, deadline: float) -> int:
        """Has the client send what waits for more of its batch; how much is pending after that."""
        return self._served(self._producer.flush, min(seconds, max(0.0, deadline - time.monotonic())))

    def _settle(self) -> None:
        """Blocks are lent to the client while anything is under way."""
        if self._blocks is not None and not self.pending():
            self._blocks.settled()

    def _keep_pace(self, batches: int, deadline: float = math.inf, watch: Callable[[], object] = lambda: None) -> bool:
        """Waits while more is pending than so many batches of each partition, and is on its way: see `batches`. False
        where nothing of it moves."""
        if self._batches is None:
            return True
        most = batches * self._batches.most_waiting(self._bulk, self._configured)
        left = self.pending()
        while left > most and not self._failed and time.monotonic() < deadline:
            watch()
            self._served(self._producer.poll, STILL_SECONDS)
            before, left = left, self.pending()
            if left >= before:
                return False
        return True

    @property
    def written(self) -> frozenset[str]:
        """Topics that records were given for, since the last transaction began."""
        return frozenset(self._written | self._topics)

    @property
    def _failed(self) -> bool:
        return self.failure is not None or (self._blocks is not None and self._blocks.failure is not None)

    def check(self) -> None:
        """Raise if any record was not delivered."""
        if self.failure is None and self._blocks is not None and (lost := self._blocks.failure) is not None:
            # Of records in blocks the binding's callback knows nothing.
            self.failure = FailedRecord(lost.topic, lost.key, of_report(lost.code))
        if self.failure is None:
            return
        if self.failure.error.code() == KafkaError._MSG_TIMED_OUT:
            self._blame_a_topic()
        raise TransactionAborted(str(self.failure))

    def _blame_a_topic(self) -> None:
        """Called when reports did not come, or say that time was up: librdkafka waits for a topic that is gone, or has
        no leader, as for one that is slow, and for longer than most transactions last."""
        try:
            existing = self._producer.list_topics(timeout=CALL_SECONDS).topics
        except KafkaException:
            return
        for topic in sorted(self._topics):
            error = existing[topic].error if topic in existing else _gone()
            if error is None:
                why = led_by_nobody(existing[topic])
                if why is None:
                    continue
                error = KafkaError(KafkaError.LEADER_NOT_AVAILABLE, why)
            self.failure = FailedRecord(topic, None, error)
            return

    def finish(self, seconds: float) -> None:
        """Close, once what was given is delivered: for words that are worth a moment, and no error."""
        try:
            self.flush(time.monotonic() + seconds)
        except DeliveryError as error:
            log.debug("closed with words that were not delivered: %s", error)
        self.close()

    def close(self) -> None:
        """Let go, without waiting for anything. What is open is ended if Kafka hears of it at once, and else by the
        next owner of its id, or in time: a client that went on trying would run for as long as its brokers are away,
        and keep all that it says of that. So the binding's own end, which goes on for ever, is not called: a client
        ends with the last reference to it. All of that happens in a thread that nobody waits for.
        """
        producer, blocks, served = self._producer, self._blocks, self._served
        self._producer = self._blocks = None

        def end(client: Any) -> None:
            with contextlib.suppress(KafkaException, SystemError, DeliveryError):
                client.purge()
                # Brings the reports of all that was purged, without which the binding keeps who was to hear them:
                # nothing is read any more then.
                if not served(client.flush, CALL_SECONDS) and blocks is not None:
                    blocks.settled()
            with contextlib.suppress(KafkaException, SystemError):
                client.abort_transaction(CALL_SECONDS)

        if producer is not None:
            threading.Thread(target=end, args=(producer,), daemon=True, name="closing").start()

    def _produce_with(self, record: KafkaRecord) -> None:
        partition = -1 if record.partition is None else record.partition
        self._producer.produce(
            record.topic, record.value, record.key, partition, headers=list(record.headers) if record.headers else None
        )

    def _produce_block(self, blocks: BlockProducer, block: KafkaBlock) -> None:
        """All records of a block, which go to one topic."""
        self._topics.add(block.topic)
        self._bulk.add(block.topic, len(block), block.size)
        self._keep_pace(BATCHES_AHEAD)
        at = 0
        while True:
            taken = blocks.produce(block, at)
            at += taken.count
            self.poll()
            if not taken.code:
                return
            if taken.broken:
                # Nothing may stand behind a record that is missing.
                raise TransactionAborted("the client took a part of a block of records only")
            error = KafkaError(taken.code)
            if taken.code == KafkaError._STATE:
                self._say_why_it_failed()
            if taken.code != BACKPRESSURE:
                refused = translated(error, f"producing to {block.topic}", unsent=True)
                # Which record is to blame, and what becomes of it, is found when they are produced one by one.
                raise (
                    refused
                    if isinstance(refused, ProducerFenced | UnknownOutcome)
                    else TransactionAborted(str(refused))
                )
            self._wait_for_room()

    def _produce_again(self, record: KafkaRecord, caught: BufferError | KafkaException) -> None:
        """Until the record is taken, or refused for good."""
        while True:
            if isinstance(caught, KafkaException):
                error: KafkaError = caught.args[0]
                if error.code() == KafkaError._STATE:
                    self._say_why_it_failed()
                if error.code() != BACKPRESSURE:
                    self._remember(FailedRecord(record.topic, record.key, error, record))
                    raise translated(error, f"producing to {record.topic}", unsent=True) from None
            self._wait_for_room()
            try:
                self._produce_with(record)
                return
            except (BufferError, KafkaException) as again:
                caught = again

    def _wait_for_room(self) -> None:
        """Our own queue is full: Kafka is slower than we read. Waiting here is what slows reading down."""
        if not self._served(self._producer.poll, STILL_SECONDS):
            # Many partitions may each have less than a batch.
            self._served(self._producer.flush, STILL_SECONDS)
        self.check()

    def _say_why_it_failed(self) -> None:
        """The transaction has failed of an earlier record, whose report is on its way: this one is not to blame."""
        deadline = time.monotonic() + CALL_SECONDS
        while not self._failed and self._heard.refused is None and self.pending() and time.monotonic() < deadline:
            self._served(self._producer.poll, RETRY_PAUSE_SECONDS)
        if self._heard.refused is not None:
            # Of its records no report comes but that they were purged.
            forbidden = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            self._remember(FailedRecord(self._heard.refused, None, forbidden))
        self.check()
        self._blame_a_topic()
        self.check()
        raise TransactionAborted(self._heard.trouble or "the transaction has failed, and nothing says why")

    @staticmethod
    def _served(call: Callable[[float], int], timeout: float) -> int:
        """Run a call that serves callbacks. A fatal error surfaces inside them, as whatever the binding makes of it."""
        try:
            return call(timeout)
        except KafkaException as caught:
            raise translated(caught.args[0], "delivering") from None
        except SystemError as caught:
            cause = caught.__cause__
            if isinstance(cause, KafkaException):
                raise translated(cause.args[0], "delivering") from None
            raise UnknownOutcome(f"delivering: the client failed: {caught}") from None
        except:  # noqa: E722
            raised: Any = sys.exc_info()[1]
        # Now and then the binding raises an error that is no exception, which no other clause catches, and which
        # nothing may be raised beside.
        raise translated(raised, "delivering") if isinstance(raised, KafkaError) else raised

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            if message.offset() is not None:
                return
            error = of_report(SKIPPED)
        # A purged record is the echo of an abort, never its cause.
        if error.code() not in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
            self._remember(FailedRecord(message.topic() or "", message.key(), error))

    def _remember(self, failed: FailedRecord) -> None:
        if self.failure is None:
            self.failure = failed


def _gone() -> KafkaError:
    return KafkaError(KafkaError._UNKNOWN_TOPIC, "the topic does not exist")
