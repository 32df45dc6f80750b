"""Reading a topic once, from its beginning to where it ends now.

In: a topic and an isolation level. Out: its records, as keys and values with their partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connector.delivery.clients import READ_UNCOMMITTED, KafkaClients, high_watermarks
from connector.delivery.failures import translated
from connector.delivery.records import Headers
from connector.errors import RetriableDeliveryError

POLL_SECONDS = 0.2
SCANNED_AT_ONCE = 2_000


class StoredRecord(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    offset: int
    headers: Headers = ()


def read_topic(
    clients: KafkaClients, topic: str, partitions: int, group: str, isolation: str, patience: float = 60.0
) -> Iterator[StoredRecord]:
    """Every record up to the end of each partition, each partition in its order.

    With read_committed the end is the last stable offset; with read_uncommitted it is the high watermark.
    """
    consumer = clients.consumer(group, isolation, fetch_wait_max_ms=50)
    try:
        waiting = {number for number, end in high_watermarks(clients, topic, range(partitions)).items() if end}
        consumer.assign([TopicPartition(topic, number, 0) for number in waiting])
        deadline = time.monotonic() + patience
        while waiting:
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError(f"topic {topic} could not be read to its end in time")
            message = consumer.poll(POLL_SECONDS)
            if message is None:
                continue
            if message.error() is None:
                yield StoredRecord(
                    message.partition(),
                    message.key(),
                    message.value(),
                    message.timestamp()[1],
                    message.offset(),
                    message.headers() or (),
                )
            elif message.error().code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            elif not isinstance(translated(message.error(), ""), RetriableDeliveryError):
                raise KafkaException(message.error())
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"reading topic {topic}: the broker did not answer in time") from None
    finally:
        consumer.close()


def scan_partition(
    clients: KafkaClients, topic: str, partition: int, group: str, prefix: bytes, start: int, patience: float = 30.0
) -> tuple[list[StoredRecord], int]:
    """The records whose keys begin with ``prefix``, from ``start`` to the high watermark as of now, and that offset.

    Read uncommitted: for records that are written without a transaction, and must not wait for those of others.
    """
    consumer = clients.consumer(group, READ_UNCOMMITTED, fetch_wait_max_ms=50)
    found: list[StoredRecord] = []
    try:
        end = high_watermarks(clients, topic, [partition])[partition]
        if start >= end:
            return found, end
        consumer.assign([TopicPartition(topic, partition, start)])
        at, heard = start, time.monotonic()
        while at < end:
            messages = consumer.consume(SCANNED_AT_ONCE, POLL_SECONDS)
            if any(message.error() is None for message in messages):
                heard = time.monotonic()
            elif time.monotonic() - heard >= patience:
                raise RetriableDeliveryError(f"topic {topic}, partition {partition} could not be read to its end")
            for message in messages:
                error = message.error()
                if error is None:
                    at = message.offset() + 1
                    key = message.key()
                    if key is not None and key.startswith(prefix):
                        found.append(
                            StoredRecord(partition, key, message.value(), message.timestamp()[1], message.offset())
                        )
                elif error.code() == KafkaError._PARTITION_EOF:
                    at = max(at, message.offset())
                elif not isinstance(translated(error, ""), RetriableDeliveryError):
                    raise KafkaException(error)
        return found, end
    except KafkaException as caught:
        raise translated(caught.args[0], f"reading topic {topic}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"reading topic {topic}: the broker did not answer in time") from None
    finally:
        consumer.close()
