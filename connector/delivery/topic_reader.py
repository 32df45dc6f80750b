"""Reading a topic once, from its beginning to where it ends now.

In: a topic and an isolation level. Out: its records, as keys and values with their partitions.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, TopicPartition

from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED, KafkaClients
from connector.delivery.end_offsets import LEADERLESS_SECONDS, high_watermarks
from connector.delivery.failures import translated
from connector.delivery.records import Headers
from connector.delivery.slot_reader import POLL_SECONDS, Patience
from connector.delivery.slots_reader import MESSAGES_PER_CALL
from connector.errors import RetriableDeliveryError

# For the next record, not for all of them.
PATIENCE_SECONDS = 30.0


class StoredRecord(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    offset: int
    headers: Headers = ()
    stamped: bool = False
    """Its time is that of the broker which wrote it."""


def read_topic(
    clients: KafkaClients, topic: str, partitions: int, group: str, isolation: str
) -> Iterator[StoredRecord]:
    """Every record up to the end of each partition, each partition in its order.

    With read_committed the end is the last stable offset; with read_uncommitted it is the high watermark.
    """
    ends = ends_of_topic(clients, topic, partitions, LEADERLESS_SECONDS)
    for message in _messages(clients, topic, group, isolation, dict.fromkeys(ends, 0), ends):
        yield _stored(message)


def read_tail(
    clients: KafkaClients, topic: str, partitions: int, group: str, most: int, longest: int
) -> list[StoredRecord]:
    """The last committed records of each partition, no more than so many, in their order; of long values the
    beginning."""
    ends = ends_of_topic(clients, topic, partitions, LEADERLESS_SECONDS)
    # Transactions' markers have offsets as well: one for each record at the worst.
    starts = {number: max(0, end - 2 * most) for number, end in ends.items()}
    tails = {number: deque[StoredRecord](maxlen=most) for number in ends}
    for message in _messages(clients, topic, group, READ_COMMITTED, starts, ends):
        record = _stored(message)
        tails[record.partition].append(record._replace(value=(record.value or b"")[:longest]))
    return [record for tail in tails.values() for record in tail]


def scan_partition(
    clients: KafkaClients, topic: str, partition: int, group: str, prefix: bytes, start: int
) -> tuple[list[StoredRecord], int]:
    """The newest record of each key that begins with ``prefix``, in the topic's order, from ``start`` to the high
    watermark as of now, and that offset.

    Read uncommitted: for records that are written without a transaction, and must not wait for those of others.
    """
    with _named(topic):
        ends = high_watermarks(clients, topic, [partition], LEADERLESS_SECONDS)
    read = _messages(clients, topic, group, READ_UNCOMMITTED, {partition: start}, ends)
    newest: dict[bytes, Message] = {}
    for message in read:
        key = message.key()
        if key is not None and key.startswith(prefix):
            newest.pop(key, None)
            newest[key] = message
    return [_stored(message) for message in newest.values()], ends[partition]


def ends_of_topic(clients: KafkaClients, topic: str, partitions: int, leaderless: float = 0.0) -> dict[int, int]:
    """As `high_watermarks`."""
    with _named(topic):
        return high_watermarks(clients, topic, range(partitions), leaderless)


def _messages(
    clients: KafkaClients, topic: str, group: str, isolation: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[Message]:
    """What the partitions hold between their starts and ends. They are read for as long as something comes."""
    waiting = {number for number, end in ends.items() if starts[number] < end}
    if not waiting:
        return
    consumer = clients.consumer(group, isolation, fetch_wait_max_ms=50)
    try:
        with _named(topic):
            consumer.assign([TopicPartition(topic, number, starts[number]) for number in waiting])
            arriving = _arriving(consumer, topic)
            while waiting:
                message = next(arriving)
                number, at = message.partition() or 0, message.offset() or 0
                if message.error() is None:
                    yield message
                    over = at + 1 >= ends[number]
                else:
                    # The end of the partition. Behind the last stable offset a read_committed consumer gets nothing.
                    over = at >= ends[number] or isolation == READ_COMMITTED
                if over:
                    waiting.discard(number)
    finally:
        consumer.close()


def _arriving(consumer: Consumer, topic: str) -> Iterator[Message]:
    """Messages, and ends of partitions. Errors that may pass by themselves are waited out, while patience lasts."""
    patience = Patience(PATIENCE_SECONDS)
    while not patience.over:
        first = consumer.poll(POLL_SECONDS)
        # Those that are there already: waiting for more would be waiting behind the end.
        for message in [first, *consumer.consume(MESSAGES_PER_CALL, 0)] if first is not None else ():
            error = message.error()
            if error is None:
                patience.renew()
            elif error.code() != KafkaError._PARTITION_EOF:
                if not isinstance(translated(error, ""), RetriableDeliveryError):
                    raise KafkaException(error)
                continue
            yield message
    raise RetriableDeliveryError(f"topic {topic} could not be read to its end: nothing comes")


@contextlib.contextmanager
def _named(topic: str) -> Iterator[None]:
    """Errors of the client say which topic was read."""
    try:
        yield
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"reading topic {topic}: the broker did not answer in time") from None


def _stored(message: Message) -> StoredRecord:
    return StoredRecord(
        message.partition() or 0,
        message.key(),
        message.value(),
        message.timestamp()[1],
        message.offset() or 0,
        message.headers() or (),
        message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME,
    )
