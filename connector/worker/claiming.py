"""Claiming: from "the group gave us these slots" to "their committed state is restored".

In: slots gained and gone. Out: restored slots, handed to ``restored`` in the owner thread, with the answer to whatever
else must be asked anew before a claim (``beside``). Restoring waits for the
broker, so it runs as a chore; a slot that goes away meanwhile is simply not heard of again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from connector.delivery.clients import KafkaClients
from connector.delivery.restore import RestoredSlot, restore
from connector.errors import RetriableDeliveryError, RetriableSourceError
from connector.source.chores import Chores

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0


class Claiming:
    """Which slots are on their way. Owned by one thread; only `restore` itself runs elsewhere."""

    def __init__(
        self,
        clients: KafkaClients,
        chores: Chores,
        *,
        connector: str,
        topic: str,
        group: str,
        topics: Callable[[], Iterable[str]],
        restored: Callable[[Mapping[int, RestoredSlot], Any], None],
        beside: Callable[[], Any] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = clients
        self._chores = chores
        self._connector = connector
        self._topic = topic
        self._group = group
        self._topics = topics
        self._restored = restored
        self._beside = beside
        self._monotonic = monotonic
        self._tickets: dict[int, int] = {}
        self._ticket = 0
        self._again: list[tuple[float, frozenset[int]]] = []
        self._pause = FIRST_PAUSE
        self.error: str | None = None

    @property
    def pending(self) -> frozenset[int]:
        return frozenset(self._tickets)

    def begin(self, slots: Iterable[int]) -> None:
        """Restore ``slots`` anew, whatever was known of them."""
        wanted = frozenset(slots)
        if not wanted:
            return
        self._ticket += 1
        ticket = self._ticket
        for slot in wanted:
            self._tickets[slot] = ticket
        read = partial(
            restore,
            self._clients,
            connector=self._connector,
            topic=self._topic,
            group=self._group,
            slots=wanted,
            topics=self._topics,
            cancelled=lambda: not any(self._tickets.get(slot) == ticket for slot in wanted),
        )
        self._chores.submit(
            lambda: (read(), self._beside()), lambda answer, error: self._done(ticket, wanted, answer, error)
        )

    def forget(self, slots: Iterable[int]) -> None:
        """Slots that are ours no more."""
        for slot in slots:
            self._tickets.pop(slot, None)

    def tick(self) -> None:
        """Try again what failed."""
        now = self._monotonic()
        due = [slots for at, slots in self._again if at <= now]
        self._again = [(at, slots) for at, slots in self._again if at > now]
        for slots in due:
            self.begin(slot for slot in slots if slot in self._tickets)

    def _done(
        self,
        ticket: int,
        slots: frozenset[int],
        answer: tuple[dict[int, RestoredSlot], Any] | None,
        error: BaseException | None,
    ) -> None:
        still = frozenset(slot for slot in slots if self._tickets.get(slot) == ticket)
        if not still:
            return
        if answer is None:
            if not isinstance(error, RetriableDeliveryError | RetriableSourceError):
                raise error or AssertionError("a chore without an answer")
            self.error = str(error)
            log.warning("restoring slots: %s; trying again in %.1f s", error, self._pause)
            self._again.append((self._monotonic() + self._pause, still))
            self._pause = min(LONGEST_PAUSE, self._pause * 2)
            return
        self.error = None
        self._pause = FIRST_PAUSE
        self.forget(still)
        found, beside = answer
        self._restored({slot: found[slot] for slot in still}, beside)
