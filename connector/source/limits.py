"""Limits on what one worker asks of the cluster: queries per second, and reads under way.

In: the time, from the caller. Out: whether one more may start, and when to ask again.
"""

from __future__ import annotations

import threading

BURST_SECONDS = 0.2


class TokenBucket:
    """Queries per second with a short burst. Further pages of a running read are let through and paid for later.

    Taken from by the owner thread, charged by the driver's threads.
    """

    def __init__(self, per_second: float, now: float) -> None:
        self._rate = per_second
        self._capacity = max(1.0, per_second * BURST_SECONDS)
        # Starts with one token rather than a full bucket: a restart of many workers must not hit the cluster at once.
        self._tokens = 1.0
        self._filled_at = now
        self._lock = threading.Lock()

    def take(self, now: float) -> bool:
        with self._lock:
            self._fill(now)
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True

    def charge(self) -> None:
        """Take a token that may not be there yet. Only the owner fills the bucket: a driver's thread that was paused
        would bring a time that has passed, and what was filled since would be filled again."""
        with self._lock:
            self._tokens -= 1.0

    def wait(self, now: float) -> float:
        """Seconds until `take` will succeed."""
        with self._lock:
            self._fill(now)
            return max(0.0, (1.0 - self._tokens) / self._rate)

    def _fill(self, now: float) -> None:
        # A clock that steps back must not freeze the bucket.
        elapsed = max(0.0, now - self._filled_at)
        self._filled_at = now
        self._tokens = min(self._capacity, self._tokens + elapsed * self._rate)
