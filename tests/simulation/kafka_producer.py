"""A producer of the simulated Kafka, with the interface of confluent-kafka's.

In: records, the calls of a transaction. Out: appended records in the order of each partition, delivery reports, the
errors that librdkafka gives. What is not flushed is sent bit by bit, as by its threads; some of it still arrives after
its process was killed.

Records of transactions are numbered in each partition, as librdkafka numbers them: what an abort finds in its queue has
never been sent for it, and the next transaction goes on with those numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from tests.simulation.kafka_broker import Broker, Handle, failure
from tests.simulation.kafka_consumer import GroupMetadata, Message
from tests.simulation.kafka_log import Fate, Partition, Stored
from tests.simulation.scheduler import EPOCH

AGAIN_SECONDS = 0.02
MOST_SECONDS = 0.05
LARGEST_MESSAGE = 1_000_000
MISSING_TOPIC_SECONDS = 30.0
# For how long nothing comes back of what was written: also longer than a transaction waits. In part of the cases a
# connection was lost; in others leaders answer that they do not know, as where a replica is missing after an append.
CUT_SECONDS = (0.1, 1.0, 6.0, 12.0)
HEARD = 0.5

FENCED = (KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


@dataclass(slots=True)
class _Queued:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    since: float
    timestamp: int
    number: int | None = None
    place: tuple[str, int] | None = None


class Producer(Handle):
    """Transactional where it has an id, else idempotent."""

    def __init__(self, broker: Broker, properties: dict[str, Any]) -> None:
        super().__init__(broker, properties)
        self._id: str | None = properties.get("transactional.id")
        self._timeout = float(properties.get("transaction.timeout.ms", 60_000)) / 1000
        self._on_delivery: Callable[[KafkaError | None, Message], None] = properties.get(
            "on_delivery", lambda error, message: None
        )
        self._only_errors = bool(properties.get("delivery.report.only.error", False))
        # Full batches go without lingering.
        self._linger = min(float(properties.get("linger.ms", 5)) / 1000, MOST_SECONDS)
        self._queue: list[_Queued] = []
        self._reports: list[tuple[KafkaError | None, Message]] = []
        self._producer = broker.transactions.new_producer() if self._id is None else -1
        self._epoch = -1
        self._in_transaction = False
        # Its outcome is unknown until the coordinator has said it.
        self._committing = False
        # What the coordinator knows of this transaction.
        self._added: set[tuple[str, int]] = set()
        self._offsets_sent = False
        self._abortable: KafkaError | None = None
        self._fatal: KafkaError | None = None
        self._sending = False
        # The number of the next record of each partition; whether some are missing, so that the epoch has to change.
        self._numbers: dict[tuple[str, int], int] = {}
        self._has_gaps = False
        self._batches = 0
        # Answers were lost: the leaders are not reached before that time.
        self._cut_until = 0.0

    def __len__(self) -> int:
        return len(self._queue) + len(self._reports)

    # -- records -----------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None:
        if self._fatal is not None:
            raise failure(KafkaError._FATAL, str(self._fatal), fatal=True)
        if self._id is not None and (not self._in_transaction or self._abortable is not None):
            raise failure(KafkaError._STATE, "producing is not allowed in this state")
        if len(key or b"") + len(value or b"") > LARGEST_MESSAGE:
            raise failure(KafkaError.MSG_SIZE_TOO_LARGE, "Broker: Message size too large")
        made_ms = round((EPOCH + self.scheduler.now + (self.process or self.scheduler.outside).skew) * 1000)
        given = tuple(headers or ())
        self._queue.append(_Queued(topic, partition, key, value, given, self.scheduler.now, made_ms))
        if not self._sending:
            self._sending = True
            self.scheduler.later(self._linger * self.scheduler.random.random(), self._send_some)

    def poll(self, timeout: float = 0) -> int:
        self.serve()
        if timeout:
            self.scheduler.pass_time(timeout)
        return self._report()

    def flush(self, timeout: float = 60.0) -> int:
        deadline = self.scheduler.now + timeout
        self.serve()
        if self.closed:
            # Nothing is on its way, and no time is drawn for it: what a seed does is not to change with that.
            self._report()
            return 0
        while True:
            self.scheduler.pass_time(self.scheduler.random.random() * self.broker.network.seconds)
            self._send(len(self._queue))
            self._report()
            if not self._queue or self.scheduler.now >= deadline or self._fatal is not None:
                return len(self._queue)
            self.scheduler.pass_time(min(AGAIN_SECONDS, max(0.001, deadline - self.scheduler.now)))

    def purge(self) -> None:
        """Of a client that is let go."""
        self.closed = True
        self._drop(KafkaError._PURGE_QUEUE)

    # -- transactions ------------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float) -> None:
        transactions = self.broker.transactions
        assert self._id is not None
        name = self._id
        deadline = self.scheduler.now + timeout
        while True:
            left = deadline - self.scheduler.now
            answer = self.ask(lambda: transactions.register(name, self._timeout), left, coordinator=True)
            if not isinstance(answer, int):
                self._producer, self._epoch = answer.producer, answer.epoch
                return
            if self.scheduler.now >= deadline:
                raise failure(answer, f"Failed to initialize Producer ID: {KafkaError(answer).str()}", retriable=True)
            self._pause(deadline)

    def begin_transaction(self) -> None:
        self._check()
        if self._in_transaction:
            raise failure(KafkaError._STATE, "a transaction is open already")
        self._in_transaction = True
        self._begin_anew()

    def send_offsets_to_transaction(
        self, offsets: Sequence[TopicPartition], metadata: GroupMetadata, timeout: float
    ) -> None:
        self._check()
        deadline = self.scheduler.now + timeout
        slots = {each.partition: each.metadata or "" for each in offsets}
        name = self._id
        assert name is not None

        places = {(each.topic, each.partition) for each in offsets}

        def commit() -> int | None:
            refused = self.broker.transactions.add(name, self._epoch, None, metadata.group)
            if refused is None and any(self.broker.led(place) is None for place in places):
                refused = int(KafkaError.UNKNOWN_TOPIC_OR_PART)
            if refused is None:
                self._offsets_sent = True
                refused = self.broker.groups.offsets(
                    metadata.group, metadata.member_id, metadata.generation, self._producer, slots
                )
            return refused

        self._ask(commit, deadline)

    def commit_transaction(self, timeout: float) -> None:
        self._check()
        deadline = self.scheduler.now + timeout
        self._committing = True
        if self.flush(timeout):
            raise failure(KafkaError._TIMED_OUT, "messages are still to be delivered", retriable=True)
        self._check()
        self._end(True, deadline)

    def abort_transaction(self, timeout: float) -> None:
        if self._id is None:
            raise failure(KafkaError._NOT_CONFIGURED, "it has no transactions")
        if self._fatal is not None:
            raise self._fatal_failure()
        if self._committing and self._abortable is None:
            raise failure(KafkaError._CONFLICT, "Conflicting call: commit_transaction is under way")
        if not self._in_transaction:
            raise failure(KafkaError._STATE, "there is no transaction")
        deadline = self.scheduler.now + timeout
        for queued in self._queue:
            if queued.number is not None:
                self._numbers[self._place(queued)] -= 1
        self._drop(KafkaError._PURGE_QUEUE)
        self._report()
        self._end(False, deadline)

    # -- inside ------------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        self._added, self._offsets_sent, self._abortable, self._committing = set(), False, None, False

    def _check(self) -> None:
        if self._fatal is not None:
            raise self._fatal_failure()
        if self._abortable is not None:
            raise failure(self._abortable.code(), self._abortable.str(), abort=True)

    def _fatal_failure(self) -> Exception:
        assert self._fatal is not None
        return failure(self._fatal.code(), self._fatal.str(), fatal=True)  # type: ignore[no-any-return]

    def _pause(self, deadline: float) -> None:
        if self.scheduler.now >= deadline:
            raise failure(KafkaError._TIMED_OUT, "no end in time", retriable=True)
        self.scheduler.pass_time(AGAIN_SECONDS)

    def _end(self, commit: bool, deadline: float) -> None:
        name = self._id
        assert name is not None
        if self._added or self._offsets_sent:
            self._ask(lambda: self.broker.transactions.end(name, self._epoch, commit), deadline)
        self._in_transaction = False
        self._begin_anew()
        if self._has_gaps:
            self._epoch = self.broker.transactions.later_epoch(name, self._epoch)
            self._numbers.clear()
            self._has_gaps = False

    def _ask(self, action: Callable[[], int | None], deadline: float) -> None:
        """One question to a coordinator, until its answer is final."""
        while True:
            refused = self.ask(action, max(0.0, deadline - self.scheduler.now), coordinator=True)
            if refused is None:
                return
            if refused == KafkaError.CONCURRENT_TRANSACTIONS:
                self._pause(deadline)
                continue
            if refused in FENCED:
                self._fence()
                raise self._fatal_failure()
            if refused == KafkaError.INVALID_TXN_STATE:
                self._fatal = KafkaError(refused, "Broker: Producer attempted a transactional operation out of turn")
                raise self._fatal_failure()
            self._abortable = KafkaError(refused, txn_requires_abort=True)
            raise failure(refused, abort=True)

    def _fence(self) -> None:
        self._fatal = KafkaError(KafkaError._FENCED, "the transactional id belongs to another producer", fatal=True)
        self._drop(KafkaError._PURGE_QUEUE)

    def _drop(self, code: int) -> None:
        for queued in self._queue:
            self._reports.append((KafkaError(code), Message(queued.topic, queued.partition, -1, queued.key, None)))
        self._queue.clear()

    def _report(self) -> int:
        reports, self._reports = self._reports, []
        for error, message in reports:
            self._on_delivery(error, message)
        return len(reports)

    def _send_some(self) -> None:
        """The client's own thread."""
        self._sending = False
        if not self._queue or self.closed:
            return
        dead = self.process is not None and not self.process.alive
        if self.runs or dead:
            self._send(self.scheduler.random.randint(0, len(self._queue)))
        if dead:
            self._queue.clear()
        elif self._queue:
            self._sending = True
            self.scheduler.later(self._linger, self._send_some)

    def _send(self, most: int) -> None:
        if not self.reaches() or self.scheduler.now < self._cut_until:
            return
        self._batches += 1
        cut = self.broker.network.cut if self._id is not None else 0.0
        is_lost = cut > 0 and self.scheduler.random.random() < cut
        blocked: set[tuple[str, int]] = set()
        kept: list[_Queued] = []
        queue, self._queue = self._queue, []
        for at, queued in enumerate(queue):
            behind = islice(queue, at + 1, most)
            if at >= most or self._fatal is not None or not self._sent(queued, behind, blocked, is_lost):
                kept.append(queued)
        self._queue = kept + self._queue
        if is_lost and any(queued.number is not None for queued in kept):
            self.broker.mishaps += 1
            if self.scheduler.random.random() < HEARD:
                self.lose_connection()
            self._cut_until = self.scheduler.now + self.scheduler.random.choice(CUT_SECONDS)
        if self._fatal is not None:
            self._drop(KafkaError._PURGE_QUEUE)

    def _place(self, queued: _Queued) -> tuple[str, int]:
        """Where it goes, once that is known: also when there are more partitions by then, or none."""
        if queued.place is None:
            partition = self.broker.partition(queued.topic, queued.partition, queued.key)
            queued.place = partition.topic, partition.number
        return queued.place

    def _sent(self, queued: _Queued, behind: Iterable[_Queued], blocked: set[tuple[str, int]], is_lost: bool) -> bool:
        """Whether it is out of the queue: stored, or refused for good. ``behind``: what is sent together with it;
        ``is_lost``: the answer, so that it is stored, and sent again."""
        topic = self.broker.topics.get(queued.topic)
        if topic is None:
            return self._too_old(queued)
        if topic.refuses is not None:
            return self._failed(queued, topic.refuses)
        place = self._place(queued)
        partition = self.broker.led(place)
        if partition is None:
            return self._too_old(queued)
        if place in blocked or partition.available_at > self.scheduler.now or not self._may_write(partition, place):
            blocked.add(place)
            return self._fatal is None and self._too_old(queued)
        # Refused by the partition's leader: the coordinator counts the partition among the transaction's already.
        if len(queued.key or b"") + len(queued.value or b"") > topic.largest:
            return self._failed(queued, KafkaError.MSG_SIZE_TOO_LARGE)
        transactional = self._id is not None
        record = Stored(
            queued.key,
            queued.value,
            queued.headers,
            self.broker.time_ms if topic.stamps else queued.timestamp,
            self._producer if transactional else None,
            Fate.OPEN if transactional else Fate.NONE,
            self.broker.time_ms,
            topic.stamps,
        )
        if transactional and queued.number is None:
            queued.number = self._numbers.setdefault(place, 0)
            self._numbers[place] += 1
        if self._is_skipped(behind, partition):
            self._written(queued, None)
            return True
        partition.known.add(self._producer)
        if queued.number is None:
            self._written(queued, partition.append(record))
            return True
        offset = partition.take(record, self._epoch, queued.number, self._batches)
        if offset is None:
            return self._failed(queued, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if not is_lost:
            self._written(queued, offset)
        return not is_lost

    def _is_skipped(self, behind: Iterable[_Queued], partition: Partition) -> bool:
        """Refused for a moment, while one behind it is taken: of a producer that the leader knows nothing of it takes
        any record for the first, and the client takes that for its word for all before."""
        if not partition.slow or self._producer in partition.known:
            return False
        there = (each for each in behind if each.topic in self.broker.topics)
        skipped = any(self._place(each) == (partition.topic, partition.number) for each in there)
        partition.slow = not skipped
        return skipped

    def _written(self, queued: _Queued, offset: int | None) -> None:
        if not self._only_errors:
            self._reports.append((None, Message(queued.topic, queued.partition, offset, queued.key, queued.value)))

    def _may_write(self, partition: Partition, place: tuple[str, int]) -> bool:
        if self._id is None:
            return True
        transactions = self.broker.transactions
        if place not in self._added:
            if not self.reaches(coordinator=True):
                return False
            refused = transactions.add(self._id, self._epoch, partition)
            if refused is not None:
                if refused in FENCED:
                    self._fence()
                return False
            self._added.add(place)
        if partition.epochs.get(self._producer, -1) > self._epoch or not transactions.holds(
            self._id, self._epoch, partition
        ):
            self._fence()
            return False
        return True

    def _too_old(self, queued: _Queued) -> bool:
        """A record waits no longer than a transaction; a topic that does not exist is waited for as well."""
        if self.scheduler.now - queued.since < min(self._timeout, MISSING_TOPIC_SECONDS):
            return False
        return self._failed(queued, KafkaError._MSG_TIMED_OUT)

    def _failed(self, queued: _Queued, code: int) -> bool:
        error = KafkaError(code)
        self._reports.append((error, Message(queued.topic, queued.partition, -1, queued.key, queued.value)))
        self._has_gaps = True
        if self._id is not None and self._abortable is None:
            self._abortable = KafkaError(code, txn_requires_abort=True)
        return True
