"""Slots of other workers in which a table is not read: whoever has them runs by a configuration without it.

In: a table's plan, which slots are ours. Out: how far the table is where nobody reads it. Whoever reads a table writes
its mark every minute or so, in each of his slots; where it stands for much longer, it has no reader, or one that does
not get on and says the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from connector.table_name import TableName
from connector.topology import TableState
from connector.worker.silent_slots import SILENT_SECONDS

# There may be thousands of tables, and some dozen slots.
LOOK_SECONDS = 10.0


class Unclaimed:
    """As one worker sees it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[TableName, tuple[float, int | None]] = {}
        #: Where each table stood last in each slot of others, None for nowhere yet, and since when.
        self._stood: dict[tuple[TableName, int], tuple[int | None, float]] = {}

    def stands(self, plan: TableState, owned: Collection[int]) -> int | None:
        """Before this ms all of it is committed where nobody reads it; None: somebody does everywhere."""
        now = self._clock()
        due, found = self._found.get(plan.table, (now, None))
        if now >= due:
            found = min(self._standing(plan, owned, now), default=None)
            self._found[plan.table] = now + LOOK_SECONDS, found
        return found

    def _standing(self, plan: TableState, owned: Collection[int], now: float) -> list[int]:
        found, home = list[int](), plan.mark_of(plan.home)
        for slot in range(plan.book.slots):
            place = plan.table, slot
            ledger = None if slot in owned else plan.book.ledger(slot, plan.table)
            if ledger is None or home is None:
                # Ours, or nothing is known of it; or where the table begins has not been decided.
                self._stood.pop(place, None)
                continue
            at = None if ledger.mark is None else ledger.mark.read_to
            before, since = self._stood.get(place, (at, now))
            self._stood[place] = at, since if at == before else now
            if at == before and now - since >= SILENT_SECONDS:
                found.append(home.start if at is None else at)
        return found
