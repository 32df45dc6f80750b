"""What the owners of slots have said, as far as it is committed: entries of the offsets topic, offsets of the group.

In: the offsets topic. Out: the last word of each owner, and names and times of transactions that were committed. What
stands somewhere without an end is judged by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from connector.delivery.clients import READ_COMMITTED, READ_UNCOMMITTED, KafkaClients
from connector.delivery.records import Headers, begin_of, commit_name, decode_offsets_entry, owner_of, written_at
from connector.delivery.topic_reader import read_topic

GROUP_SECONDS = 10.0

# Later than any record.
NEVER = 2**63 - 1


@dataclass
class Words:
    """What is committed: each owner's newest entry in any slot, as its timestamp, names of transactions, and their
    times: from their begin to their last entry."""

    newest: dict[str, int] = field(default_factory=dict)
    commits: set[str] = field(default_factory=set)
    times: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def heard(self, owner: str, timestamp: int) -> None:
        self.newest[owner] = max(self.newest.get(owner, 0), timestamp)

    def named(self, name: str, timestamp: int) -> None:
        self.commits.add(name)
        began = begin_of(name)
        if began is not None and timestamp != NEVER:
            self.times.setdefault(owner_of(name), []).append((began, timestamp))

    def committed_at(self, owner: str, timestamp: int) -> bool:
        return any(began <= timestamp <= ended for began, ended in self.times.get(owner, ()))


def time_of_word(headers: Headers | None, timestamp: int, stamped: bool) -> int:
    """By its owner's clock. Where a broker's was taken (``stamped``), anything of the owner's may be older."""
    return NEVER if stamped else written_at(headers, timestamp)


def committed_words(clients: KafkaClients, connector: str, topic: str, slots: int, group: str) -> Words:
    """Positions are their slot's owner's."""
    owners: dict[int, str] = {}
    words = Words()
    for record in read_topic(clients, topic, slots, group, READ_COMMITTED):
        entry = decode_offsets_entry(connector, record.partition, record.key, record.value, topic, record.offset)
        if entry is None:
            continue
        if entry.owner is not None:
            owners[entry.slot] = entry.owner
        owner = owners.get(entry.slot)
        time_ms = time_of_word(record.headers, record.timestamp, record.stamped)
        if owner is not None:
            words.heard(owner, time_ms)
        if name := commit_name(record.headers):
            words.named(name, time_ms)
    # Asked as a read_uncommitted client: another would wait for offsets that are pending, perhaps for ever.
    asking = clients.consumer(group, READ_UNCOMMITTED)
    try:
        places = [TopicPartition(topic, slot) for slot in range(slots)]
        told = asking.committed(places, timeout=GROUP_SECONDS)
        words.commits.update(place.metadata for place in told if place.error is None and place.metadata)
    finally:
        asking.close()
    return words
