"""What the owners of slots have said, as far as it is committed: entries of the offsets topic, offsets of the group.

In: the offsets topic. Out: the last word of each owner, and names and times of transactions that were committed. What
stands somewhere without an end is judged by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message, TopicPartition

from connector.delivery.clients import READ_UNCOMMITTED, KafkaClients
from connector.delivery.records import Headers, OwnKeys, begin_of, commit_name, owner_of, written_at
from connector.delivery.slot_reader import OwnersRead, read_what_is_committed
from connector.delivery.slots_reader import Sought

GROUP_SECONDS = 10.0

# In the key of every entry that an owner of slots writes.
_OF_A_TABLE = b'"table_name":'

# Later than any record.
NEVER = 2**63 - 1


@dataclass
class Words:
    """What is committed: each owner's newest entry in any slot, as its timestamp, names of transactions, and their
    times: by their owners, from their begin to their last entry."""

    newest: dict[str, int] = field(default_factory=dict)
    commits: set[str] = field(default_factory=set)
    times: dict[str, dict[int, int]] = field(default_factory=dict)

    def heard(self, owner: str, timestamp: int) -> None:
        self.newest[owner] = max(self.newest.get(owner, 0), timestamp)

    def named(self, name: str, timestamp: int) -> None:
        self.commits.add(name)
        began = begin_of(name)
        if began is not None and timestamp != NEVER:
            ends = self.times.setdefault(owner_of(name), {})
            ends[began] = max(ends.get(began, timestamp), timestamp)

    def committed_at(self, owner: str, timestamp: int) -> bool:
        return any(began <= timestamp <= ended for began, ended in self.times.get(owner, {}).items())


def time_of_word(headers: Headers | None, timestamp: int, stamped: bool) -> int:
    """By its owner's clock. Where a broker's was taken (``stamped``), anything of the owner's may be older."""
    return NEVER if stamped else written_at(headers, timestamp)


class _SlotWords:
    """Of one slot, as it is read. Of a record no more is parsed than who owns it, and that once for each owner."""

    def __init__(self, connector: str, slot: int, words: Words) -> None:
        self.end = 0
        self._keys = OwnKeys(connector)
        self._owners = OwnersRead(connector, slot)
        self._words = words
        self._owner: str | None = None

    def take(self, run: list[Message]) -> Iterator[Message]:
        """The next messages of the partition; those that are none are handed back."""
        for message in run:
            if message.error() is not None:
                yield message
                continue
            self.end = max(self.end, (message.offset() or 0) + 1)
            if (key := self._keys.own(message)) is not None:
                self._hear(message, key)

    def _hear(self, message: Message, key: bytes) -> None:
        headers, (kind, timestamp) = message.headers(), message.timestamp()
        name = commit_name(headers)
        owner = self._owners.of(message) or (owner_of(name) if name else None)
        if owner:
            self._owner = owner
        elif not message.value() or _OF_A_TABLE not in key:
            # The group that runs the connector is written down by whoever comes next, and what is no more by people as
            # well: were it the last owner's word, nobody could tell any more that he left something open before it.
            return
        # Positions are their slot's owner's.
        time_ms = time_of_word(headers, timestamp, kind == TIMESTAMP_LOG_APPEND_TIME)
        if self._owner is not None:
            self._words.heard(self._owner, time_ms)
        if name:
            self._words.named(name, time_ms)


def committed_words(clients: KafkaClients, connector: str, topic: str, slots: int, group: str) -> Words:
    """All of them, however old: the last word that an owner has in any slot need not be the newest of its key."""
    words = Words()

    def words_of(slot: int, high: int) -> _SlotWords | None:
        return _SlotWords(connector, slot, words) if high else None

    read_what_is_committed(clients, Sought(topic, connector, every=True), group, slots, words_of)
    # Asked as a read_uncommitted client: another would wait for offsets that are pending, perhaps for ever.
    asking = clients.consumer(group, READ_UNCOMMITTED)
    try:
        places = [TopicPartition(topic, slot) for slot in range(slots)]
        told = asking.committed(places, timeout=GROUP_SECONDS)
        words.commits.update(place.metadata for place in told if place.error is None and place.metadata)
    finally:
        asking.close()
    return words
