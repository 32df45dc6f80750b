"""Whose turn it is: what all tables of a worker want to read, sweep, look at and note, fair between them.

In: the plans of all tables, the time. Out: reads, sweeps and looks that are begun, and which marks may move with the
time. What was in vain with all tables is so until one of them stirs: each is asked for in every round of the worker.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping

from connector.table_name import TableName
from connector.topology import claims, looks, sweeps
from connector.topology.book import SlotBook
from connector.topology.groups import Read, Sweep
from connector.topology.table_reader import TableReader

# Reads that one table may get before it is another one's turn.
PORTION = 8

# When a table in which nothing could be swept is tried again.
NEXT_SWEEP_MS = 1_000

# Sweeps of this part of the time between two of a table are begun at once.
TOGETHER = 10

# Marks that nothing but the time moves are spread over several looks, so many of them each, but not over more than fit
# into half of the time in which they have to move.
MARKS_TOGETHER = 1_000
LOOK_MS = 5_000
PART_OF_IDLE = 2
NOT_NOW = 1 << 62


class Turns:
    """``plans`` are those of the planner, which adds and removes them."""

    def __init__(self, plans: Mapping[TableName, TableReader], book: SlotBook) -> None:
        self._plans = plans
        self._book = book
        self._turn = self._looked = 0
        self._no_read = self._no_look = self._no_claim = -1
        # Of sweeps: the stirs and the pace that this is true of, from when on, and until when.
        self._no_sweep = (-1, 0, 0, 0)

    def reads(self, now: int, count: int, narrowest: int) -> list[Read]:
        """Those that are the most behind first."""
        if self._no_read == self._book.stirs:
            return []
        waiting: list[tuple[int, int, TableReader]] = []
        plans = list(self._plans.values())
        self._turn += 1
        for number, plan in enumerate(plans):
            oldest = plan.oldest()
            if oldest is not None:
                waiting.append((oldest, (number + self._turn) % len(plans), plan))
        if not waiting:
            self._no_read = self._book.stirs
        heapq.heapify(waiting)
        reads: list[Read] = []
        while waiting and len(reads) < count:
            _, turn, plan = heapq.heappop(waiting)
            # In small portions and by turns, so that a table with many groups at one place does not take all.
            portion = plan.plan(now, min(count - len(reads), PORTION), narrowest)
            reads += portion
            oldest = plan.oldest()
            if portion and oldest is not None:
                heapq.heappush(waiting, (oldest, turn + len(plans), plan))
        return reads

    def sweeps(self, now: int, every_ms: int, but: Collection[TableName]) -> list[Sweep]:
        """Of each table one every ``every_ms``, of the tables ``but`` none."""
        begun: list[Sweep] = []
        stirs, pace, since, until = self._no_sweep
        if (stirs, pace) == (self._book.stirs, every_ms) and since <= now < until:
            return begun
        # A clock that steps back must not put them off.
        if all(plan.sweep is not None or now < plan.sweep_due <= now + every_ms for plan in self._plans.values()):
            until = min((plan.sweep_due for plan in self._plans.values()), default=now)
            self._no_sweep = (self._book.stirs, every_ms, now, until)
            return begun
        # Those that are due soon go with them: what is answered together is worked on together.
        soon = now + every_ms // TOGETHER
        for number, plan in enumerate(self._plans.values()):
            if plan.sweep is not None or soon < plan.sweep_due <= now + every_ms:
                continue
            first = plan.sweep_due == 0
            if plan.table in but:
                sweeps.wake_all(plan)
            sweep = None if plan.table in but else sweeps.begin(plan, now)
            if sweep is None:
                plan.sweep_due = now + min(every_ms, NEXT_SWEEP_MS)
                continue
            begun.append(sweep)
            # The first ones come together; from then on tables take turns.
            plan.sweep_due = now + (every_ms * (number + 1) // len(self._plans) if first else every_ms)
        return begun

    def looks(self, now: int, count: int) -> list[Read]:
        """Beyond the ends of closed streams."""
        if self._no_look == self._book.stirs:
            return []
        reads: list[Read] = []
        ended = [plan for plan in self._plans.values() if plan.lineage.any_closed]
        if not ended:
            self._no_look = self._book.stirs
        for plan in ended:
            reads += looks.begin(plan, now, count - len(reads))
        return reads

    def commit_due(self, now: int) -> bool:
        """Whether any table has something to say that no record brings about."""
        if self._no_claim == self._book.stirs:
            return False
        owned = len(self._book.own)
        for plan in self._plans.values():
            if plan.announced or (len(plan.active) < owned and _may_claim(plan, now)):
                return True
        self._no_claim = self._book.stirs
        return False

    def marks(self, idle_ms: int, move: bool) -> Iterator[tuple[TableReader, int]]:
        """Every table, with how old its marks must be that nothing but the time moves; with ``move`` that of many
        tables is not the same for all: a commit of all marks takes seconds then, and changes have to wait for it."""
        marks = len(self._plans) * len(self._book.own)
        looks_needed = max(1, min(marks // MARKS_TOGETHER, idle_ms // PART_OF_IDLE // LOOK_MS)) if move else 1
        self._looked += looks_needed > 1
        for number, plan in enumerate(self._plans.values(), self._looked):
            yield plan, idle_ms if number % looks_needed == 0 else NOT_NOW


def _may_claim(plan: TableReader, now: int) -> bool:
    return any(claims.first_mark(plan, slot, now) is not None for slot in plan.claimable())
