"""Pauses between attempts: each is twice as long as the one before, up to a longest."""

from __future__ import annotations

from dataclasses import dataclass, field

#: More doublings than any two of our pauses are apart; a number without bound outgrows what a float can be.
_MOST_DOUBLINGS = 60


def doubled(first: float, failures: int, longest: float) -> float:
    """The pause after so many failures in a row.

    >>> doubled(2, 1, 60), doubled(2, 3, 60), doubled(2, 100_000, 60)
    (2.0, 8.0, 60.0)
    """
    return float(min(longest, first * 2.0 ** min(max(0, failures - 1), _MOST_DOUBLINGS)))


@dataclass(slots=True)
class Attempts:
    """What is tried while there is trouble: at once, then after pauses; at once again in trouble that comes when there
    was none for ``over`` seconds.

    >>> attempts = Attempts(2, 60, over=90)
    >>> [now for now in range(20) if attempts.is_due(now)], attempts.is_due(110)
    ([0, 2, 6, 14], True)
    """

    first: float
    longest: float
    over: float
    count: int = 0
    _due: float = field(default=-float("inf"), repr=False)
    _troubled: float = field(default=-float("inf"), repr=False)

    def is_due(self, now: float) -> bool:
        """Asked while there is trouble alone; whoever is told so tries."""
        if now - self._troubled >= self.over:
            self.count, self._due = 0, now
        self._troubled = now
        if now < self._due:
            return False
        self.count += 1
        self._due = now + doubled(self.first, self.count, self.longest)
        return True
