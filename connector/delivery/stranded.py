"""Clients that have lost all their brokers for good, and do not know it.

In: when something was heard, a client that hears nothing. Out: whether a new one is to take its place.

librdkafka (2.10 and later) drops every broker that an answer with the cluster's metadata does not name. Brokers that
stood still for a while, a machine that slept, are fenced for a moment when they go on, and name nobody, themselves
included. The client then begins at its configured addresses again; if it finds there the broker that it is about to
drop, it adds none, drops that one, and has nobody left to ask, ever. ``metadata.recovery.*`` changes nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from connector.delivery.clients import KafkaClients
from connector.delivery.follow import Follower
from connector.delivery.membership import Membership
from connector.errors import Stranded

# Brokers that are away are seldom away for so long, and a new client costs little.
STRANDED_SECONDS = 20.0

REACH_SECONDS = 1.0


class Silence:
    """How long nothing has come of what a client was asked for."""

    def __init__(self, seconds: float = STRANDED_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: float | None = None

    def broken(self) -> None:
        self._since = None

    def lasts(self) -> bool:
        """Called while there is silence; true every so many seconds of it."""
        now = self._clock()
        if self._since is None:
            self._since = now
        if now - self._since < self._seconds:
            return False
        self._since = now
        return True


class Lookout:
    """Of one worker, over the two clients that it cannot do without. That its producers reach nobody is seen when they
    fail, and they are replaced."""

    def __init__(
        self,
        clients: KafkaClients,
        topic: str,
        membership: Membership,
        follower: Follower,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients, self._topic = clients, topic
        self._membership, self._follower = membership, follower
        self._outside, self._deaf = Silence(clock=clock), Silence(clock=clock)
        self._heard = self._commits = 0

    def tick(self, commits: int) -> None:
        """Raise Stranded. ``commits``: how many this worker has made; it follows its own as well."""
        if self._membership.settled:
            self._outside.broken()
        elif self._outside.lasts():
            self._check(self._membership.client, "of its consumer group")
        if self._follower.heard != self._heard or commits == self._commits:
            self._heard, self._commits = self._follower.heard, commits
            self._deaf.broken()
        elif self._deaf.lasts():
            self._check(self._follower.client, "that follows commits")

    def _check(self, client: Any, which: str) -> None:
        if is_stranded(self._clients, client, self._topic):
            raise Stranded(f"the client {which} has lost its brokers for good; a new worker goes on")


def is_stranded(clients: KafkaClients, client: Any, topic: str) -> bool:
    """Whether this client reaches nobody where a new one reaches somebody."""
    return not _reaches(client, topic) and _reaches(clients.admin(), topic) and not _reaches(client, topic)


def _reaches(client: Any, topic: str) -> bool:
    try:
        client.list_topics(topic, timeout=REACH_SECONDS)
    except KafkaException:
        return False
    return True
