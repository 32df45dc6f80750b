"""Changes that expire unread while somebody reads: a source that is away, a topic that is missing, a stream that has
failed, reads that are slower than writes. What expired while nobody read shows when positions are restored
(`horizon.py`).

In: how far each slot is read, how long each log keeps its rows, the time. Out: each slot that falls behind what its log
still has, once; and once more, with all that may be lost, when it is read on. A slot that was never within is none: a
table that is started begins with what its log has, wherever its first streams begin. Who restores a slot of another
table has told what was gone by then, and what he did not tell of was within.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from connector.source.descriptions import DescribedTable
from connector.source.horizon import NOT_READ, Expired
from connector.table_name import TableName
from connector.topology import KeptPlan, TableState, slots_stand

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0

#: A table in a slot.
Place = tuple[TableName, int]


class Unread:
    """Of one worker, or of a reader. ``report`` is called with each place that falls behind; ``told``: of which
    streams, or of which slots' other ones, it was said that changes may have expired."""

    def __init__(
        self,
        planner: KeptPlan,
        tables: Mapping[TableName, DescribedTable],
        report: Callable[[Expired], None],
        told: Collection[tuple[TableName, int, bytes | None]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._planner = planner
        self._tables = tables
        self._report = report
        self._told = told
        self._monotonic = monotonic
        self._due = 0.0
        self._seen: set[Place] = set()
        self._within: set[Place] = set()
        self._behind: dict[Place, Expired] = {}

    def tick(self, server_now: Callable[[], int]) -> None:
        """``server_now``: the servers' time, in ms."""
        if self._monotonic() < self._due:
            return
        self._due = self._monotonic() + LOOK_SECONDS
        self._forget_others()
        for table, plan in self._planner.tables.items():
            # Of a table that is gone, so is the log.
            if table in self._tables and not plan.gone:
                now = server_now()
                self._planner.keeps(table, self._tables[table].description.cdc.ttl, now)
                self._look(plan, now)

    def _look(self, plan: TableState, now: int) -> None:
        for slot, at in slots_stand(plan).items():
            place, ttl = (plan.table, slot), plan.kept.behind(slot, at) or 0
            horizon = now - ttl * 1000 if ttl else 0
            if place not in self._seen:
                self._seen.add(place)
                if self._was_restored_within(plan, slot):
                    self._within.add(place)
            gone = Expired(plan.table, slot, None, at, horizon, NOT_READ, ttl * 1000)
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

    def _was_restored_within(self, plan: TableState, slot: int) -> bool:
        ledger = plan.own_ledger(slot)
        mark = None if ledger is None else ledger.mark
        restored = mark is not None and mark.began is None and mark.read_to > 0
        return restored and not any((table, of) == (plan.table, slot) for table, of, _ in self._told)

    def _forget_others(self) -> None:
        """Slots that are somebody else's now: whoever restores them looks at what is committed."""
        ours = {(table, slot) for table, plan in self._planner.tables.items() for slot in plan.active}
        self._seen &= ours
        self._within &= ours
        self._behind = {place: gone for place, gone in self._behind.items() if place in ours}
