"""Python's garbage collector, as a worker sets it."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable

EVERY_SECONDS = 30.0

_OLDER = 1


def collect_rarely() -> None:
    """Once all modules are imported: what they brought stays, and is not looked at again.

    Pages are many thousand small objects that live for one page: looking for cycles among them finds none and costs
    more than decoding them.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def _threads() -> int:
    """Also those that are not Python's, as Kafka clients have them; 0 where nobody tells."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


class Leftovers:
    """What is garbage only to the collector goes now and then, however little there is of it.

    An error knows its frames; where one of them keeps it, as each does that waits for the answer of a Kafka client,
    they keep that client together, with all its threads and connections. While Kafka is away there is one more
    every minute, and an idle worker makes so few objects that none of them would go for hours.

    Only what was made since the last time is looked at. A client that was in use then, because it waited for an answer,
    is passed over from there on: where there are more threads than the last time, all is looked at.
    """

    def __init__(self, threads: Callable[[], int] = _threads) -> None:
        self._threads, self._last = threads, math.inf
        self._due = 0.0

    def clear(self, now: float) -> None:
        """If it is time."""
        if now >= self._due:
            self._due = now + EVERY_SECONDS
            gc.collect(_OLDER)
            if self._threads() > self._last:
                gc.collect()
            self._last = self._threads()
