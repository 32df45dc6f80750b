"""``WriteTimes``: when batches were written. What is asked of all of them together needs no look at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """In microseconds. ``total``: of all, counted from ``earliest``."""

    earliest: int
    latest: int
    total: int
    each: Sequence[int]

    @classmethod
    def of(cls, times: Sequence[int]) -> WriteTimes:
        """There is at least one."""
        earliest = min(times)
        return cls(earliest, max(times), sum(times) - earliest * len(times), times)
