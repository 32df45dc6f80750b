"""A compacted topic of one partition, as small as a list: followed from its beginning, created by the first write.

In: clients, the topic's specification. Out: its records in order, as they appear, or ``DeliveryError``. One that is
deleted and created again is followed from its beginning, too: a client that knew the former one waits behind the end of
that for ever, without a word.
"""

from __future__ import annotations

import time
from typing import NoReturn

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from connector.delivery.clients import CALL_SECONDS, READ_UNCOMMITTED, KafkaClients, LastingLogin
from connector.delivery.failures import describe, translated
from connector.delivery.lasting_topic import LastingTopic
from connector.delivery.producer import ReportingProducer
from connector.delivery.slots_reader import MESSAGES_PER_CALL
from connector.delivery.stranded import Silence
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import ensure_topics
from connector.errors import DeliveryError, RetriableDeliveryError, TransactionAborted

WRITE_SECONDS = 15.0
# A topic in which nothing happens is asked for its end so often, for a sign of life.
ASK_SECONDS = 30.0
FETCH_WAIT_MS = 100

_GONE = "what was in it is gone"

# What a client says of a topic that it has known before, while brokers start.
_MISSING_FOR_NOW = frozenset(
    {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART}
)


class SmallTopic:
    """Read by one thread; anybody may write."""

    def __init__(self, clients: KafkaClients, spec: TopicSpec, group: str) -> None:
        self._clients, self._spec, self._group = clients, spec, group
        self._consumer: Consumer | None = None
        self._login = LastingLogin(clients)
        self._failing, self._quiet = Silence(), Silence(ASK_SECONDS)
        #: Whether there is such a topic.
        self.reading = False
        #: Whether everything that was there has been read, or that there is nothing; what is read once more is not.
        self.complete = False
        self._held: list[tuple[int, bytes, bytes | None]] = []
        self._lasting = LastingTopic(clients, spec.name, _GONE)
        #: Behind the last record that was read; whether what came next has shown that those were of another topic.
        self._next, self._doubted = 0, False
        #: How often it was found to be another one than before, in which nothing stands of what was read.
        self.renewals = 0
        #: The offset of the next record, when it was looked at first.
        self.end: int | None = None

    def poll(self, seconds: float) -> list[tuple[bytes, bytes | None]]:
        """What has appeared since the last call, keys and values; at most that long is waited for it."""
        return [(key, value) for _, key, value in self.poll_with_offsets(seconds)]

    def poll_with_offsets(self, seconds: float) -> list[tuple[int, bytes, bytes | None]]:
        """As `poll`."""
        try:
            with self._clients.named():
                if self._login.is_another:
                    self._log_in_anew()
                found = self._polled(seconds)
                self._failing.broken()
                return found
        except DeliveryError:
            self._read_once_more()
            another = self._doubted or self._lasting.replaced
            if another:
                self._lasting.accept()
                self._next, self._doubted = 0, False
                self.renewals += 1
            if another or self._failing.lasts():
                self._let_go()
            raise

    def _log_in_anew(self) -> None:
        self._login.note()
        self._read_once_more()
        self._let_go()

    def _read_once_more(self) -> None:
        self.reading = False
        self._held.clear()  # it comes again

    def _let_go(self) -> None:
        self.close()
        self._consumer = None

    def poll_whole(self, seconds: float) -> list[tuple[int, bytes, bytes | None]]:
        """As `poll_with_offsets`, but nothing while it is read from its beginning, which any failure leads to: all of
        it together then. Who obeys records must not obey what others behind them have undone long ago."""
        self._held += self.poll_with_offsets(seconds)
        if not self.complete:
            return []
        whole, self._held = self._held, []
        return whole

    def write(self, key: bytes, value: bytes | None) -> int:
        """When this returns it is kept, at the offset that is returned. Raises ``DeliveryError``;
        ``ConfigurationError`` if there can be no topic."""
        self.create()
        with self._clients.named():
            producer, read = _NotingProducer(self._clients), self._next
            try:
                producer.produce_to(self._spec.name, 0, key, value)
                producer.flush(time.monotonic() + WRITE_SECONDS)
                # What had been read stands in front of what is written, unless it stood somewhere else.
                self._doubted |= 0 <= producer.offset < read
                return producer.offset
            except TransactionAborted as error:
                raise RetriableDeliveryError(str(error)) from None
            finally:
                producer.close()

    @property
    def which(self) -> str | None:
        """Another one for each topic that is read, also of the same name; None if nobody tells."""
        return None if self._lasting.id is None else f"{self._spec.name}/{self._lasting.id}"

    def create(self) -> None:
        """If there is none. As `write`."""
        with self._clients.named():
            ensure_topics(self._clients.admin(), [self._spec])

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _polled(self, seconds: float) -> list[tuple[int, bytes, bytes | None]]:
        try:
            if self._doubted:
                self._doubt()
            if self._consumer is None:
                # Consumers do not create what they ask about.
                self._consumer = self._clients.consumer(self._group, READ_UNCOMMITTED, fetch_wait_max_ms=FETCH_WAIT_MS)
            if not self.reading and not self._begin(self._consumer):
                self.complete = True
                return []
            found = []
            for message in self._consumer.consume(MESSAGES_PER_CALL, seconds):
                error = message.error()
                if error is None:
                    number = message.offset() or 0
                    if number < self._next:
                        # A client that stands behind the end of a topic begins at its beginning, without a word.
                        self._doubt()
                    self._next = number + 1
                    found.append((number, message.key() or b"", message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    self.complete = True
                else:
                    raise KafkaException(error)
            if found:
                self._quiet.broken()
            elif self._quiet.lasts():
                self._consumer.get_watermark_offsets(TopicPartition(self._spec.name, 0), CALL_SECONDS)
                self._lasting.check()
            return found
        except KafkaException as caught:
            if self._consumer is not None and not self.reading:
                self._consumer.poll(0)  # what its connections have to say is said in here
            error, doing = caught.args[0], f"reading topic {self._spec.name}"
            if error.code() in _MISSING_FOR_NOW:
                raise RetriableDeliveryError(f"{doing}: {describe(error)}") from None
            raise translated(error, doing) from None

    def _doubt(self) -> NoReturn:
        self._doubted = True
        raise RetriableDeliveryError(f"topic {self._spec.name} was deleted and created again: {_GONE}")

    def _begin(self, consumer: Consumer) -> bool:
        """From the beginning, whatever was read before; False while there is no such topic."""
        name = self._spec.name
        topic = consumer.list_topics(name, timeout=CALL_SECONDS).topics[name]
        if topic.error is not None:
            if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self.end = 0 if self.end is None else self.end
                return False
            raise KafkaException(topic.error)
        self._lasting.check()
        if self.end is None:
            self.end = consumer.get_watermark_offsets(TopicPartition(name, 0), CALL_SECONDS)[1]
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
        self.reading, self.complete, self._next = True, False, 0
        return True


class _NotingProducer(ReportingProducer):
    """Of one record: where it stands."""

    offset = -1

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            offset = message.offset()
            self.offset = self.offset if offset is None else offset
        super()._reported(error, message)
