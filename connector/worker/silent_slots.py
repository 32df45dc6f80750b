"""Slots that others have, or nobody, and in which nothing is committed any more.

In: when something came in a slot, in the offsets topic. Out: those in which nothing came for longer than their owner
would be silent. Of these nobody else may tell how late they are: it is dead, hangs, or is cut off from Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from connector.worker.transactions import IDLE_MARK_SECONDS

# Marks that only the time moves are written in portions, within half of that time again.
SILENT_SECONDS = 2.5 * IDLE_MARK_SECONDS


class SilentSlots:
    """As one worker hears of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[int, float] = {}

    def heard(self, slots: Iterable[int]) -> None:
        """Something came in them, or they were followed to their end, or were ours until now."""
        self._heard.update(dict.fromkeys(slots, self._clock()))

    def besides(self, owned: Collection[int]) -> frozenset[int]:
        """Those that are silent, but for ours."""
        before = self._clock() - SILENT_SECONDS
        return frozenset(slot for slot, at in self._heard.items() if at < before and slot not in owned)
