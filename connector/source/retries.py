"""What is being tried again, how often and why: per group of streams, for `status` and metrics.

In: failures and successes of reads. Out: how long to wait (doubling with jitter), and when to stop trying.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass

from connector.errors import AccessDenied, CdcError, FatalSourceError, TableMissing
from connector.source.settings import ReadingSettings

# A table that is gone may be a schema change that this coordinator has not seen yet; one that stays gone is gone.
MISSING_TABLE_ATTEMPTS = 30
DENIED_ATTEMPTS = 5
FATAL_ATTEMPTS = 3


@dataclass(slots=True)
class Retrying:
    """One group's trouble."""

    attempts: int
    error: CdcError
    since: float
    not_before: float


class Retries:
    """Of one worker. Times are the caller's monotonic seconds."""

    def __init__(self, settings: ReadingSettings) -> None:
        self._settings = settings
        self._random = random.Random()
        self.groups: dict[Hashable, Retrying] = {}
        self.total = 0

    def failed(self, group: Hashable, error: CdcError, now: float) -> Retrying:
        """Note a failure; ``not_before`` says when the next attempt may start."""
        self.total += 1
        known = self.groups.get(group)
        if known is None:
            known = self.groups[group] = Retrying(0, error, now, now)
        # Another kind of error is another trouble: what counts is how often the same one came in a row.
        known.attempts = known.attempts + 1 if type(known.error) is type(error) else 1
        known.error = error
        known.not_before = now + self._pause(known.attempts)
        return known

    def succeeded(self, group: Hashable) -> None:
        self.groups.pop(group, None)

    def hopeless(self, retrying: Retrying) -> bool:
        """Trying again has stopped making sense."""
        error, attempts = retrying.error, retrying.attempts
        if isinstance(error, TableMissing):
            return attempts >= MISSING_TABLE_ATTEMPTS
        if isinstance(error, AccessDenied):
            return attempts >= DENIED_ATTEMPTS
        return isinstance(error, FatalSourceError) and attempts >= FATAL_ATTEMPTS

    def _pause(self, attempts: int) -> float:
        doubled = self._settings.retry_base_ms * (1 << min(attempts - 1, 30))
        pause = min(self._settings.retry_max_ms, doubled) / 1000
        return pause * (1 - self._random.random() * self._settings.retry_jitter_percent / 100)
