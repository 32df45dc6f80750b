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


def is_stranded(clients: KafkaClients, client: Any, topic: str) -> bool:
    """Whether this client reaches nobody where a new one reaches somebody."""
    return not _reaches(client, topic) and _reaches(clients.admin(), topic) and not _reaches(client, topic)


def _reaches(client: Any, topic: str) -> bool:
    try:
        client.list_topics(topic, timeout=REACH_SECONDS)
    except KafkaException:
        return False
    return True
