"""What is over within moments is no state: a worker that was well a moment ago is not said to wait.

In: what keeps a worker from delivering now. Out: whether it is a state. A broker that restarts costs a worker its
producer, and its slots are restored after that; background tasks have the same grace (`background.py` of the source).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from connector.source import GRACE_SECONDS


class Grace:
    """Of one worker, asked again and again. Who was never well has none: it is not ready yet."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._well_at: float | None = None

    def covers(self, waits: bool, lasting: bool) -> bool:
        """``waits``: something keeps the worker from delivering; ``lasting``: and has done so for longer than its own
        grace."""
        now = self._clock()
        if not waits:
            self._well_at = now
        return waits and not lasting and self._well_at is not None and now - self._well_at < GRACE_SECONDS
