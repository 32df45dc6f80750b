"""Partitions whose readers stand: an open transaction is in front of what was written behind it.

In: an admin client, partitions. Out: those that do not become readable, how long they have stood at the same offset,
and so whether whoever left that transaction open can still be at work; what was written there, without waiting for it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping

from confluent_kafka import Message, TopicPartition
from confluent_kafka.admin import AdminClient

from connector.delivery.clients import CALL_SECONDS, READ_COMMITTED, READ_UNCOMMITTED, KafkaClients, end_offsets
from connector.delivery.failures import translated
from connector.errors import RetriableDeliveryError

PAUSE_SECONDS = 0.1

# Transactions of workers that are alive end within this time, and their partitions move on.
PATIENCE_SECONDS = 3.0

Place = tuple[str, int]


class Standing:
    """Where readers are suspected to stand at a commit that has no end, and since when. Of one process.

    A coordinator ends a transaction after its timeout, whoever began it. What stands for longer than ``seconds`` at one
    offset is ended by nobody any more.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._seconds = seconds
        self._since: dict[Place, tuple[int, float]] = {}
        self._not_of: set[tuple[Place, int, str]] = set()
        self._last_words: dict[tuple[str, str], int] = {}

    def away(self, topic: str, owner: str, newest: int) -> None:
        """``topic`` cannot be looked at. ``newest``: the owner's last committed word; behind it he committed nothing
        there, and writes nothing before somebody has looked."""
        self._last_words.setdefault((topic, owner), newest)

    def last_word(self, topic: str, owner: str, newest: int) -> int:
        """``newest``, or an earlier one, from when the topic went away."""
        return self._last_words.get((topic, owner), newest)

    def seen(self, topic: str, owner: str) -> None:
        self._last_words.pop((topic, owner), None)

    def suspect(self, place: Place, offset: int) -> None:
        known = self._since.get(place)
        if known is None or known[0] != offset:
            self._since[place] = (offset, time.monotonic())

    def look(self, clients: KafkaClients, topic: str) -> str | None:
        """Why nothing may be written to ``topic`` yet: somebody may still end what is open there."""
        suspected = {place: since[0] for place, since in list(self._since.items()) if place[0] == topic}
        if not suspected:
            return None
        found = still_standing(clients.admin(), suspected, time.monotonic() + PATIENCE_SECONDS)
        for place, offset in suspected.items():
            if found.get(place) != offset:
                self._since.pop(place, None)
            elif not self.certain(place, offset):
                return blocked(place, offset)
        return None

    def certain(self, place: Place, offset: int) -> bool:
        known = self._since.get(place)
        return known is not None and known[0] == offset and time.monotonic() - known[1] >= self._seconds

    def tried(self, topic: str, number: int, offset: int, owner: str) -> None:
        """What stands there was committed by ``owner``: if it still stands, it is not his."""
        self._not_of.add(((topic, number), offset, owner))

    def may_be(self, topic: str, number: int, offset: int, owner: str) -> bool:
        return ((topic, number), offset, owner) not in self._not_of


def blocked(place: Place, offset: int) -> str:
    return f"readers of its partition {place[1]} are blocked at offset {offset}, by a commit that has no end there"


def still_standing(
    admin: AdminClient,
    places: Iterable[Place],
    deadline: float,
    cancelled: Callable[[], bool] = lambda: False,
    seconds: float = CALL_SECONDS,
) -> dict[Place, int]:
    """Partitions that do not become readable up to where they end now, with the offset where they stand."""
    ends: Mapping[Place, int] = end_offsets(admin, places, seconds=seconds)
    standing = dict.fromkeys(ends, 0)
    while True:
        stable = end_offsets(admin, standing, READ_COMMITTED, seconds)
        standing = {place: stable[place] for place in standing if stable[place] < ends[place]}
        if not standing or time.monotonic() >= deadline:
            return standing
        if cancelled():
            raise RetriableDeliveryError("restoring was cancelled")
        time.sleep(PAUSE_SECONDS)


def written_behind(
    clients: KafkaClients, group: str, starts: Mapping[Place, int], deadline: float
) -> Generator[Message, None, None]:
    """What partitions hold from these offsets on, open transactions included, and where they end: for as long as it is
    asked for."""
    reader = clients.consumer(group, READ_UNCOMMITTED, fetch_wait_max_ms=50)
    try:
        reader.assign([TopicPartition(topic, number, offset) for (topic, number), offset in starts.items()])
        while True:
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError("looking for hanging transactions took too long")
            message = reader.poll(PAUSE_SECONDS)
            if message is None:
                continue
            error = message.error()
            if error is None or not isinstance(translated(error, ""), RetriableDeliveryError):
                yield message
    finally:
        reader.close()


def newest_of_key(clients: KafkaClients, group: str, first: Message, deadline: float) -> Message:
    """The last record in the partition of ``first`` that has its key: to repeat it tells readers nothing old."""
    place, newest = (first.topic() or "", first.partition() or 0), first
    end = end_offsets(clients.admin(), [place])[place]
    with contextlib.closing(written_behind(clients, group, {place: first.offset() or 0}, deadline)) as messages:
        for message in messages:
            if message.error() is None and message.key() == first.key():
                newest = message
            if (message.offset() or 0) >= end - 1:
                break
    return newest
