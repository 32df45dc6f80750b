"""The producer that makes delivery exactly once: one transaction at a time, and nobody is told less than it knows.

In: records, offsets of the group. Out: transactions that are committed, aborted, or of unknown outcome; each of that
as an exception of ``connector.errors`` where it is not as it was asked for.

No client begins a transaction while something of an earlier one of it may still be on its way, or stand in a log that
the client does not know of: brokers tell two of its transactions apart by its epoch alone (`is_spent`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from connector.delivery.batches import Bulk
from connector.delivery.bounded import bounded
from connector.delivery.clients import KafkaClients
from connector.delivery.failures import translated
from connector.delivery.producer import CALL_SECONDS, RETRY_PAUSE_SECONDS, ReportingProducer
from connector.errors import (
    DeliveryError,
    FatalDeliveryError,
    ProducerFenced,
    RetriableDeliveryError,
    TransactionAborted,
    UnknownOutcome,
)

log = logging.getLogger(__name__)

# A call that is still under way so long after its own timeout hangs.
HANG_SECONDS = CALL_SECONDS + 8.0
# So long after it answered a commit a coordinator may still write what is left of that transaction.
_COMPLETING_SECONDS = 1.0


class TransactionalProducer(ReportingProducer):
    """One transaction at a time, each call repeated until its answer is known or its deadline has passed."""

    def __init__(self, clients: KafkaClients, transactional_id: str, transaction_timeout_ms: int, **own: Any) -> None:
        super().__init__(
            clients,
            **own,
            transactional_id=transactional_id,
            client_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
        )
        self.transactional_id = transactional_id
        self._patience = transaction_timeout_ms / 1000
        self._committed_at = -math.inf
        # Of the client that there is: whether it has begun a transaction, and left doubts at the end of one.
        self._has_begun = self._in_doubt = False

    def start(self, deadline: float) -> None:
        """Register the transactional id, which ends whatever an earlier owner of it left open."""
        self._repeat("initialising transactions", self._producer.init_transactions, deadline)
        # What was said while it connected (of the first of a name's addresses, say) is no news from here on.
        self.poll()

    @property
    def acknowledged(self) -> bool:
        """Whether a record of this transaction is written. Its coordinator is done with the one before, then."""
        return self.pending() < self._given

    @property
    def has_lost(self) -> bool:
        """Whether this client has lost a connection to a broker, as far as it was polled."""
        return self._heard.lost

    @property
    def is_spent(self) -> bool:
        """Whether another client is to begin the next transaction, with the same id and so a later epoch, of which
        nothing is known in any partition and from before which nothing is taken any more.

        librdkafka numbers the records of a transaction on from those of the last one, and after an abort begins with
        the numbers of records that it had not heard of. If they stand in the log, and only an answer was lost, a broker
        takes those that have their numbers for the same ones: it writes nothing, and says that they are written.

        And a request that was under way when its connection ended may come at any time, after its repetition too. The
        end of a transaction then ends the next one of the same epoch (KIP-890, whose protocol librdkafka does not
        speak: its issue 5423), before all of its records are there.
        """
        return self._has_begun and (self._in_doubt or self._heard.lost)

    def renew(self) -> None:
        """Another client in the place of this one, between two transactions. What is ended stays as it ended, so all
        that is known of it stays true. That the id is taken over once more is no loss: who has taken it meanwhile
        because we count as gone has thrown us out of the group before, and the group refuses our commits."""
        self.poll()
        self._settle()
        self.close()
        self._connect()
        self._has_begun = self._in_doubt = False
        try:
            self.start(time.monotonic() + self._patience)
        except RetriableDeliveryError as error:
            raise UnknownOutcome(f"another producer is needed: {error}") from None

    def begin(self) -> None:
        self.poll()  # what is said of the one before
        if self.is_spent:
            self.renew()
        self.failure = self._heard.trouble = self._heard.refused = None
        if self._blocks is not None:
            self._blocks.forget_failure()
        self._topics.clear()
        self._written.clear()
        self._given, self._bulk = 0, Bulk()
        self._settle()
        try:
            self._producer.begin_transaction()
        except KafkaException as caught:
            raise translated(caught.args[0], "beginning a transaction") from None
        self._has_begun = True

    def send_offsets(self, offsets: Sequence[TopicPartition], group_metadata: Any) -> None:
        """Tie the transaction to our membership of the group: a member that was replaced cannot commit."""
        # An empty list would be accepted from a member that was thrown out long ago.
        assert offsets, "a transaction must name the slots it moves"
        deadline = time.monotonic() + self._patience

        def call(timeout: float) -> None:
            self._producer.send_offsets_to_transaction(list(offsets), group_metadata, timeout)

        try:
            self._repeat("sending offsets to the transaction", call, deadline)
        except RetriableDeliveryError as error:
            raise TransactionAborted(str(error)) from None
        except FatalDeliveryError as error:
            # Not fatal for the producer: the group refuses us (unknown member, old generation, fenced instance).
            raise TransactionAborted(str(error)) from None

    def commit(self) -> None:
        """Commit, and know it. Raises UnknownOutcome when it cannot be known: then nothing in memory is valid.

        A commit that fails retriably is called again and never aborted: the first call may have reached the
        coordinator, and an abort after it would be answered from the committed state.
        """
        deadline = time.monotonic() + self._patience * 2
        try:
            self._end("committing", self._producer.commit_transaction, deadline)
        except (RetriableDeliveryError, FatalDeliveryError) as error:
            raise UnknownOutcome(str(error)) from None
        self._committed_at = time.monotonic()

    def abort(self) -> None:
        """Abort, and know it; otherwise UnknownOutcome (only a confirmed abort keeps positions in memory valid)."""
        deadline = time.monotonic() + self._patience * 2
        try:
            self._be_heard_of()
            self.poll()
            if self.pending() or self._failed or self._heard.trouble is not None:
                self._in_doubt = True  # which of them stand in a log nobody has told
            self._end("aborting", self._producer.abort_transaction, deadline)
        except DeliveryError as error:
            raise UnknownOutcome(str(error)) from None
        self.failure = None

    def _be_heard_of(self) -> None:
        """A coordinator that still completes the transaction before lets the partitions of this one wait, but not its
        abort: that is of a transaction that it has not heard of, and refused for good."""
        if self._given and not self.acknowledged and time.monotonic() < self._committed_at + _COMPLETING_SECONDS:
            self._served(self._producer.flush, _COMPLETING_SECONDS)

    def _end(self, doing: str, call: Callable[[float], Any], deadline: float) -> None:
        # What had no answer in time may have been sent more than once.
        self._in_doubt |= self._repeat(doing, call, deadline) > 1

    def _repeat(self, doing: str, call: Callable[[float], Any], deadline: float) -> int:
        """How often it was called."""
        calls = 0
        while True:
            calls += 1
            try:
                bounded(call, doing, CALL_SECONDS, HANG_SECONDS)
                return calls
            except KafkaException as caught:
                error = translated(caught.args[0], doing)
                if not isinstance(error, RetriableDeliveryError) or time.monotonic() >= deadline:
                    raise error from None
                log.debug("%s, retrying", error)
            time.sleep(RETRY_PAUSE_SECONDS)


def fence(clients: KafkaClients, transactional_id: str, deadline: float) -> TransactionalProducer | None:
    """End what the process with this id left open, at once instead of after its transaction timeout.

    The producer takes the id over: the former owner, if it is still alive, is fenced. None if somebody else fences the
    same dead owner at this moment: what it left open is ended either way.
    """
    producer = TransactionalProducer(clients, transactional_id, transaction_timeout_ms=15_000)
    try:
        producer.start(deadline)
    except ProducerFenced:
        log.debug("%s is being fenced by another worker", transactional_id)
        producer.close()
        return None
    except DeliveryError:
        producer.close()
        raise
    return producer
