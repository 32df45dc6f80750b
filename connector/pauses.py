"""Pauses between attempts: each is twice as long as the one before, up to a longest."""

from __future__ import annotations

#: More doublings than any two of our pauses are apart; a number without bound outgrows what a float can be.
_MOST_DOUBLINGS = 60


def doubled(first: float, failures: int, longest: float) -> float:
    """The pause after so many failures in a row.

    >>> doubled(2, 1, 60), doubled(2, 3, 60), doubled(2, 100_000, 60)
    (2.0, 8.0, 60.0)
    """
    return float(min(longest, first * 2.0 ** min(max(0, failures - 1), _MOST_DOUBLINGS)))
