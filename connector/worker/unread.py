"""Changes that expire unread while a worker runs: a source that is away, a topic that is missing, a stream that has
failed, reads that are slower than writes. What expired while nobody ran shows when slots are restored (`restoring.py`).

In: how far each slot is read, how long each log keeps its rows, the time. Out: each slot that falls behind what its log
still has, once; and once more, with all that may be lost, when it is read on. A slot that was never within is none: a
table that is started begins with what its log has, wherever its first streams begin.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from connector.source import DescribedTable, Expired
from connector.table_name import TableName
from connector.topology import Plan, TableState, slots_stand

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0

NOT_READ = "they were not read"

#: A table in a slot.
Place = tuple[TableName, int]


class Unread:
    """Of one worker. ``report`` is called with each place that falls behind."""

    def __init__(
        self,
        planner: Plan,
        tables: Mapping[TableName, DescribedTable],
        report: Callable[[Expired], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planner = planner
        self._tables = tables
        self._report = report
        self._monotonic = monotonic
        self._due = 0.0
        self._within: set[Place] = set()
        self._behind: dict[Place, Expired] = {}

    def tick(self, server_now: Callable[[], int]) -> None:
        """``server_now``: the servers' time, in ms."""
        if self._monotonic() < self._due:
            return
        self._due = self._monotonic() + LOOK_SECONDS
        self._forget_others()
        for table, plan in self._planner.tables.items():
            ttl = self._tables[table].description.cdc.ttl if table in self._tables else 0
            # Of a table that is gone, so is the log.
            if ttl and not plan.gone:
                self._look(plan, server_now() - ttl * 1000)

    def _look(self, plan: TableState, horizon: int) -> None:
        for slot, at in slots_stand(plan).items():
            place = plan.table, slot
            gone = Expired(plan.table, slot, None, at, horizon, NOT_READ)
            if at >= horizon:
                self._within.add(place)
                if (was := self._behind.pop(place, None)) is not None:
                    log.warning("%s; it is read on", was)
            elif place in self._behind:
                # What has been read since was late, and no more than that.
                self._behind[place] = replace(self._behind[place], to_ms=horizon)
            elif place in self._within:
                self._within.discard(place)
                self._behind[place] = gone
                self._report(gone)

    def _forget_others(self) -> None:
        """Slots that are somebody else's now: whoever restores them looks at what is committed."""
        ours = {(table, slot) for table, plan in self._planner.tables.items() for slot in plan.active}
        self._within &= ours
        self._behind = {place: gone for place, gone in self._behind.items() if place in ours}
