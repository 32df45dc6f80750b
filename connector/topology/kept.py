"""How long a log keeps the rows that are still to be read: those from before its TTL was changed have the former one.

In: the TTL that the table has by now, and the time; what the marks of the slots say of the rows behind them. Out: the
TTL of the rows behind a place, the shortest that they may have. Seconds; 0: for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce


class Kept:
    """Of one table. ``ttl``: that of rows that are written now; None: nobody has told."""

    __slots__ = ("_before", "ttl")

    def __init__(self) -> None:
        self.ttl: int | None = None
        # By slot: what rows have at least, and up to when they were written.
        self._before: dict[int, tuple[int, int]] = {}

    def tell(self, ttl: int, now: int, noted: Iterable[tuple[int, int | None]], stands: Mapping[int, int]) -> None:
        """``noted``: of each slot of ours, what its mark says; ``stands``: up to when it is read, where the TTL is
        another one than before."""
        changed, before = ttl != self.ttl, {}
        for slot, was in noted:
            known = self._before.get(slot)
            if known is None:
                known = ttl_of_unread(was, ttl), now
            elif changed:
                known = ttl_of_unread(self.behind(slot, stands.get(slot, now)), ttl), now
            before[slot] = known
        self.ttl, self._before = ttl, before

    def behind(self, slot: int, at: int, noted: int | None = None) -> int | None:
        """Of the rows that a slot has from ``at`` (ms) on. What its mark says, of a slot that nothing was told of."""
        if slot not in self._before:
            return noted
        ttl, until = self._before[slot]
        return ttl if at < until else self.ttl

    def least(self, at: int) -> int | None:
        """Of all rows that our slots have from ``at`` on."""
        before = (ttl for ttl, until in self._before.values() if at < until)
        return None if self.ttl is None else reduce(_shorter, before, self.ttl)


def ttl_of_unread(noted: int | None, ttl: int) -> int:
    """Of rows that had the TTL ``noted`` once, if that is known, where rows that are written now have ``ttl``: nobody
    knows from when on."""
    return ttl if noted is None else _shorter(noted, ttl)


def _shorter(one: int, other: int) -> int:
    """Of two TTLs; 0 is the longest of all."""
    return min(one, other) if one and other else one or other
