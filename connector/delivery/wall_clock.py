"""Whether this host's clock was set back: then what is written now looks older than what was written before.

In: nothing. Out: yes or no, since it was made.
"""

from __future__ import annotations

import time

# A clock that is only slowed down stays with the one that cannot be set.
TOLERANCE_SECONDS = 0.01


class WallClock:
    """Of one process. Held against the clock that cannot be set."""

    def __init__(self) -> None:
        self._ahead, _ = _bounds()

    @property
    def was_set_back(self) -> bool:
        least, most = _bounds()
        self._ahead = max(self._ahead, least)
        return most < self._ahead - TOLERANCE_SECONDS


def _bounds() -> tuple[float, float]:
    """How far the one is ahead of the other, at least and at most: anything may happen between two questions."""
    before, now, after = time.monotonic(), time.time(), time.monotonic()
    return now - after, now - before
