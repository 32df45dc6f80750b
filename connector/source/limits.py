"""Limits on what one worker asks of the cluster: queries per second, and reads under way.

In: the time, from the caller. Out: whether one more may start, and when to ask again.
"""

from __future__ import annotations

import threading

BURST_SECONDS = 0.2

# A page of a table's rows is slow when it takes so many times what it usually takes, and so much more.
SLOW_FACTOR, SLOW_SECONDS = 4.0, 0.05
LEAST_RATE = 0.2
MOST_PAUSE = 60.0


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


class SnapshotPace:
    """How fast the rows of a table are read: never faster than allowed, and slower where answers become slow.

    What a page usually takes is learnt from the fastest. While pages take several times as long, somebody else needs
    the cluster: the rate is halved with each such answer, and comes back by a tenth with each good one.
    """

    def __init__(self, per_second: float, now: float) -> None:
        self._most = per_second
        self._rate = per_second
        self._usual: float | None = None
        self._next = now

    @property
    def rate(self) -> float:
        return self._rate

    def take(self, now: float) -> bool:
        if now < self._next <= now + MOST_PAUSE:
            return False
        self._next = now + 1 / self._rate
        return True

    def give_back(self) -> None:
        """Nothing was asked after all."""
        self._next = 0.0

    def answered(self, slowest: float, pages: int, now: float) -> None:
        """A query of so many pages; all but the first are paid for now."""
        self._next = max(self._next, now + (pages - 1) / self._rate)
        # A usual time that was learnt in a quiet hour is not held against a busy day for ever.
        self._usual = slowest if self._usual is None else min(slowest, self._usual * 1.02)
        if slowest > SLOW_FACTOR * self._usual + SLOW_SECONDS:
            self._rate = max(LEAST_RATE, self._rate / 2)
        else:
            self._rate = min(self._most, self._rate * 1.1)

    def failed(self, now: float) -> None:
        self._rate = max(LEAST_RATE, self._rate / 2)
        self._next = now + 1 / self._rate
