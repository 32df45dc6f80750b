"""Topics whose readers stand: a transaction is open in front of our records, for longer than any of ours is.

In: the topics that records go to, which slots are ours. Out: a background task of each topic, which says since when and
how to end it. Looked at every minute, each topic by one worker: the one that has the slot that its name maps to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from connector.delivery import KafkaClients, blocked_partitions
from connector.source import Background, Chores, Purpose, instant
from connector.worker.topic_looks import LOOK_SECONDS, Place, Read, TopicLooks

# So long after a transaction's timeout its coordinator, which looks every ten seconds, has ended it.
COORDINATORS_SECONDS = 15.0

BLOCKED = Purpose(
    "blocked_readers",
    "those who read what is committed get nothing new",
    "its records are written, and seen when that transaction has ended",
    holds=False,
    grace=0.0,
)


class BlockedReaders:
    """Of one worker. ``timeout_ms``: of its connector's transactions; all clocks are those of ``background``."""

    def __init__(
        self,
        clients: KafkaClients,
        chores: Chores,
        background: Background,
        *,
        slots: int,
        timeout_ms: int,
        read: Read[int] = blocked_partitions,
    ) -> None:
        self._clients, self._background = clients, background
        first = background.monotonic() + LOOK_SECONDS
        self._looks = TopicLooks(clients, chores, background, slots, read, first)
        # What any worker of ours has left open is ended by then.
        self._longest = timeout_ms / 1000 + COORDINATORS_SECONDS
        #: Where each partition stands, and since when by both clocks.
        self._since: dict[Place, tuple[int, float, float]] = {}
        self._told: frozenset[str] = frozenset()
        background.expect(BLOCKED)

    def tick(self, topics: Iterable[str], owned: Collection[int]) -> None:
        """Look if it is time."""
        if self._looks.is_due:
            self._looks.look([topic for topic in topics if self._looks.is_mine(topic, owned)], self._found)

    def _found(self, standing: Mapping[Place, int]) -> None:
        now, wall = self._background.monotonic(), self._background.wall()
        kept = {place: known for place, known in self._since.items() if standing.get(place) == known[0]}
        self._since = {place: kept.get(place, (offset, now, wall)) for place, offset in standing.items()}
        words: defaultdict[str, list[str]] = defaultdict(list)
        for (topic, number), (offset, since, at) in sorted(self._since.items()):
            if now - since > self._longest:
                words[topic].append(f"partition {number} stands at offset {offset} since {instant(at)} or longer")
        for topic in self._told | words.keys():
            task = self._background.task(BLOCKED, f"topic {topic}")
            task.is_now(self._explained(topic, words[topic]) if topic in words else None)
        self._told = frozenset(words)

    def _explained(self, topic: str, words: list[str]) -> str:
        number, (offset, *_) = min((number, known) for (name, number), known in self._since.items() if name == topic)
        tool = f"kafka-transactions.sh --bootstrap-server {self._clients.address}"
        where = f"--topic {topic} --partition {number}"
        return (
            f"{', '.join(words)}, at a transaction that is open for longer than one of this connector can be. Kafka "
            "ends it after the transaction.timeout.ms of who began it, unless a broker has lost sight of it. "
            f"`{tool} describe-producers {where}` shows its producer's id, `{tool} list` the transactional.id of that, "
            f"and `{tool} abort {where} --start-offset {offset}` ends it"
        )
