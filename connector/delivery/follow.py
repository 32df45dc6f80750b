"""Follow: what the other workers have committed, slot by slot, as it becomes visible.

In: the offsets topic. Out: entries in order per slot, and which slots have been read to their high watermark once:
before that a slot's picture is a prefix of its history, and nothing may be concluded from what it lacks.
"""

from __future__ import annotations

import logging

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connector.delivery.clients import READ_COMMITTED, KafkaClients, high_watermarks
from connector.delivery.failures import describe, translated
from connector.delivery.records import decode_offsets_entry
from connector.offsets_entry import OffsetsEntry

log = logging.getLogger(__name__)

FETCH_WAIT_MS = 250
MESSAGES_PER_POLL = 1_000


class Follower:
    """Reads every slot, also our own: a slot that moves away is then known without a gap."""

    def __init__(self, clients: KafkaClients, connector: str, topic: str, group: str, slots: int) -> None:
        self._clients = clients
        self._connector = connector
        self._topic = topic
        self._slots = slots
        self._consumer: Consumer = clients.consumer(group, READ_COMMITTED, fetch_wait_max_ms=FETCH_WAIT_MS)
        self._awaited: dict[int, int] = {}
        self.caught_up: frozenset[int] = frozenset()
        self._errors: dict[int, str] = {}

    @property
    def last_error(self) -> str | None:
        """What keeps a slot from being followed, until something of it is read again."""
        return next(iter(self._errors.values()), None)

    def start(self) -> None:
        """Note how far each slot must be read before it counts as known."""
        try:
            self._awaited = high_watermarks(self._clients, self._topic, range(self._slots))
        except KafkaException as caught:
            raise translated(caught.args[0], "following the offsets topic") from None
        self._consumer.assign([TopicPartition(self._topic, slot, 0) for slot in range(self._slots)])
        self.caught_up = frozenset(slot for slot, high in self._awaited.items() if high == 0)

    def poll(self) -> list[OffsetsEntry]:
        """What has become visible since the last call; never waits."""
        entries: list[OffsetsEntry] = []
        reached: set[int] = set()
        for message in self._consumer.consume(MESSAGES_PER_POLL, 0):
            slot, error = message.partition(), message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                self._errors[slot] = f"slot {slot}: {describe(error)}"
                continue
            self._errors.pop(slot, None)
            if error is None:
                entry = decode_offsets_entry(
                    self._connector, slot, message.key(), message.value(), self._topic, message.offset()
                )
                if entry is not None:
                    entries.append(entry)
            elif message.offset() >= self._awaited.get(slot, 0):
                # Only the end-of-partition event counts, not a message at the noted high watermark: compaction may
                # since have taken positions away in favour of copies behind it. It also tells of control records,
                # which are passed over in silence.
                reached.add(slot)
        if reached:
            self.caught_up |= reached
        return entries

    def close(self) -> None:
        self._consumer.close()
