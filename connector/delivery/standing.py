"""Partitions whose readers stand: an open transaction is in front of what was written behind it.

In: an admin client, partitions. Out: those that do not become readable, how long they have stood at the same offset,
and so whether whoever left that transaction open can still be at work; what was written there, without waiting for it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from connector.delivery.clients import CALL_SECONDS, READ_COMMITTED, READ_UNCOMMITTED, KafkaClients
from connector.delivery.end_offsets import end_offsets
from connector.delivery.failures import translated
from connector.delivery.records import Left
from connector.delivery.topic_facts import partitions_of
from connector.errors import RetriableDeliveryError

PAUSE_SECONDS = 0.1

# Transactions of workers that are alive end within this time, and their partitions move on.
PATIENCE_SECONDS = 3.0

Place = tuple[str, int]

_PERHAPS_OWN = (
    "; it may be this worker's, and whether it was committed is not known: if it persists, end it "
    "(kafka-transactions.sh find-hanging, abort)"
)


@dataclass(slots=True)
class _Suspicion:
    """At ``offset``, since ``at``; others have so many seconds ``more`` to end it. ``own``: it may be of whoever writes
    there next."""

    offset: int
    at: float
    more: float
    own: bool = False


class Standing:
    """Where readers are suspected to stand at a commit that has no end, and since when. Of one process.

    A coordinator ends a transaction after its timeout, whoever began it. What stands for longer than ``seconds`` at one
    offset is ended by nobody any more.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        #: Longer than any transaction, in seconds.
        self.longest = seconds
        self._since: dict[Place, _Suspicion] = {}
        self._not_of: set[tuple[Place, int, str]] = set()
        self._last_words: dict[tuple[str, str], int] = {}

    def away(self, topic: str, owner: str, newest: int) -> None:
        """``topic`` cannot be looked at. ``newest``: the owner's last committed word; behind it he committed nothing
        there, and writes nothing before somebody has looked."""
        self._last_words.setdefault((topic, owner), newest)

    def left(self) -> list[Left]:
        """Whose transactions may be open where nobody could look: whoever comes after this process has to know."""
        return [Left(topic, owner, newest) for (topic, owner), newest in sorted(self._last_words.items())]

    def last_word(self, topic: str, owner: str, newest: int) -> int:
        """``newest``, or an earlier one, from when the topic went away."""
        return self._last_words.get((topic, owner), newest)

    def seen(self, topic: str, owner: str) -> None:
        self._last_words.pop((topic, owner), None)

    def suspect(self, place: Place, offset: int, more: float = 0.0) -> None:
        """``more``: so many seconds longer, for others who may know whose it is."""
        known = self._since.get(place)
        if known is None or known.offset != offset:
            self._since[place] = _Suspicion(offset, time.monotonic(), more)
        else:
            known.more = min(known.more, more)

    def suspect_others(self, place: Place, offset: int) -> bool:
        """What stands there is none of ours to end, and ours may be behind it; False when nobody has ended it."""
        self.suspect(place, offset, self.longest)
        return self._since[place].own or not self.certain(place, offset, self.longest)

    def suspect_own(self, place: Place, offset: int, own: bool) -> None:
        """``own``: what stands there may be ours, and nobody knows how it was to end. It is waited for until somebody
        ends it."""
        self.suspect(place, offset, self.longest)
        self._since[place].own = own

    def blocked(self, place: Place, offset: int) -> str:
        known = self._since.get(place)
        return blocked(place, offset) + (_PERHAPS_OWN if known is not None and known.own else "")

    def look(self, clients: KafkaClients, topic: str) -> str | None:
        """Why nothing may be written to ``topic`` yet: somebody may still end what is open there."""
        suspected = {place: known for place, known in list(self._since.items()) if place[0] == topic}
        if not suspected:
            return None
        try:
            found = still_standing(clients.admin(), suspected, time.monotonic() + PATIENCE_SECONDS)
        except KafkaException:
            # One that we have no right to see raises: it has what it had.
            there = partitions_of(clients.admin(), topic) or 0
            gone = [place for place in suspected if place[1] >= there]
            if not gone:
                raise
            # It was deleted, and has fewer partitions since.
            for place in gone:
                self._since.pop(place, None)
            return self.look(clients, topic)
        for place, known in suspected.items():
            if found.get(place) != known.offset:
                self._since.pop(place, None)
            elif known.own or not self.certain(place, known.offset, known.more):
                return self.blocked(place, known.offset)
        return None

    def certain(self, place: Place, offset: int, more: float = 0.0) -> bool:
        known = self._since.get(place)
        return known is not None and known.offset == offset and time.monotonic() - known.at >= self.longest + more

    def tried(self, topic: str, number: int, offset: int, owner: str) -> None:
        """What stands there was committed by ``owner``: if it still stands, it is not his."""
        self._not_of.add(((topic, number), offset, owner))

    def may_be(self, topic: str, number: int, offset: int, owner: str) -> bool:
        return ((topic, number), offset, owner) not in self._not_of


def blocked(place: Place, offset: int) -> str:
    return f"readers of its partition {place[1]} are blocked at offset {offset}, by a transaction that has no end there"


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
