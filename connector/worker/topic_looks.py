"""Looks at what brokers say of topics, every minute, each topic by the worker that has the slot its name maps to.

In: a way to look. Out: what was found, in the worker's own thread. One look is under way at a time; that Kafka does
not answer others say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar
from zlib import crc32

from connector.delivery import KafkaClients
from connector.source import Background, Chores

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0

Place = tuple[str, int]
Found = TypeVar("Found")
Read = Callable[[KafkaClients, Collection[str]], Mapping[Place, Found]]


class TopicLooks(Generic[Found]):
    """Of one kind, of one worker. By the clock of ``background``, ``due`` is when the next one is, ``looked`` when the
    last one ended."""

    def __init__(
        self, clients: KafkaClients, chores: Chores, background: Background, slots: int, read: Read[Found], due: float
    ) -> None:
        self._clients, self._chores, self._background = clients, chores, background
        self._slots, self._read = slots, read
        self.due, self.looked = due, float("-inf")
        self._under_way = False

    @property
    def is_due(self) -> bool:
        return not self._under_way and self._background.monotonic() >= self.due

    def is_mine(self, topic: str, owned: Collection[int]) -> bool:
        return crc32(topic.encode()) % self._slots in owned

    def look(self, topics: Collection[str], then: Callable[[Mapping[Place, Found]], None]) -> None:
        def found(answer: Mapping[Place, Found] | None, error: BaseException | None) -> None:
            self.looked = self._background.monotonic()
            self.due, self._under_way = self.looked + LOOK_SECONDS, False
            if error is not None or answer is None:
                log.debug("what brokers say of %s is not known: %s", topics, error)
            else:
                then(answer)

        self._under_way = True
        self._chores.submit(lambda: self._read(self._clients, topics) if topics else {}, found)
