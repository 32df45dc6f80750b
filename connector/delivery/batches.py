"""When librdkafka has something to send: what its producer needs not to be hurried for.

In: which topics have how many partitions, what a configuration says of batches. Out: properties of a producer, and how
many records may wait with no batch among them that is full.

librdkafka has one request to each partition under way. Where another batch waits behind it that is due, since records
linger for so long or it is to be flushed, its thread asks again and again, without any pause, whether it may go: as
much of the processor as all that it does. So records linger until a transaction ends, and a flush comes when those
that fill batches have gone by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from connector.delivery.topic_facts import TopicFacts

#: Of transactions: longer than records wait where Kafka is slower than we are.
LINGER_MS = 5_000
LARGEST_BATCH = 1_000_000
_LINGER = ("linger.ms", "queue.buffering.max.ms")
_TIMES = ("message.timeout.ms", "delivery.timeout.ms")
_RECORDS_OF_A_BATCH = 10_000


class Bulk:
    """What a producer was given in blocks since it was flushed."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.records = self.bytes = 0

    def add(self, topic: str, records: int, size: int) -> None:
        self.topics.add(topic)
        self.records += records
        self.bytes += size


class Batches:
    """Of all producers of one owner, who tells what is known of topics as he learns it."""

    def __init__(self, topics: Mapping[str, TopicFacts]) -> None:
        self._topics = topics
        #: Of the producers that were made last: many topics are not looked at for each block.
        self._size = LARGEST_BATCH

    def properties(self, configured: Mapping[str, Any], transaction_timeout_ms: int | None) -> dict[str, Any]:
        """What a producer has that is made now, beside what is configured. A transaction is seen when it is committed,
        which waits for no linger: a shorter one than ours would cost, and bring nothing."""
        # A batch of records must fit the smallest topic's limit, or all of its records are refused together.
        self._size = max(1, min([LARGEST_BATCH, *(facts.max_message_bytes for facts in self._topics.values())]))
        if transaction_timeout_ms is None:
            return {"batch_size": self._size}
        # librdkafka refuses to let records linger for as long as they have.
        times = transaction_timeout_ms, *(configured.get(name) for name in _TIMES)
        longest = min([LINGER_MS, *(int(time) // 3 for time in times if time)])
        return {"batch_size": self._size, "linger_ms": max([longest, *_configured_lingers(configured)])}

    def most_waiting(self, bulk: Bulk, configured: Mapping[str, Any]) -> float:
        """How many records can be pending while no partition has a full batch; as good as any number if that is not
        known, or if nothing came in bulk."""
        if not bulk.topics <= self._topics.keys() or not bulk.topics:
            return math.inf
        records = int(configured.get("batch.num.messages", _RECORDS_OF_A_BATCH))
        of_each = min(records, self._size * bulk.records / max(1, bulk.bytes))
        return of_each * sum(self._topics[topic].partitions for topic in bulk.topics)


def _configured_lingers(configured: Mapping[str, Any]) -> list[int]:
    return [round(float(configured[name])) for name in _LINGER if name in configured]
