"""A question that a node does not answer is put to another one as well, and whoever answers first is heard.

In: questions of which it does not matter how often they are carried out. Out: the driver's plan for each: after how
long the next node is asked.

A coordinator that is alive answers in time, if only that it gave up on the replicas: after 5 s (10 s for rows of many
partitions), unless ScyllaDB is configured otherwise. One that says nothing for longer hangs, or is gone without its
connections having ended, which the driver takes a minute to notice; until then every question would wait for its
timeout, and hold one of the places for queries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from cassandra.policies import SpeculativeExecutionPlan, SpeculativeExecutionPolicy

# Longer than `read_request_timeout_in_ms` and `range_request_timeout_in_ms` are by default.
SILENT_SECONDS = 6.0
SILENT_SECONDS_OF_ROWS = 12.0

# Of one question, besides the first.
MOST_OTHERS = 2

# Where ScyllaDB is configured to give up later, answers of a cluster that has too much to do may be late as well, and
# asking twice would make it worse: the reads that are under way when it begins, each once, and then one a second.
AT_ONCE = 64
PER_SECOND = 1.0


def take_time(statement: Any) -> Any:
    """The answer may take as long as one with rows of many partitions does."""
    statement.takes_time = True
    return statement


def meant_for(statement: Any, host: Any) -> Any:
    """The question is for this node alone, if one is given."""
    statement.for_one = host is not None
    return statement


def is_over(future: Any) -> None:
    """The question of this future of the driver's has its answer, or will have none: nobody else needs to be asked."""
    plan = future._spec_execution_plan
    if isinstance(plan, _Plan):
        plan.is_over()


class AskAnother(SpeculativeExecutionPolicy):  # type: ignore[misc]
    """Of one connection. Called in any thread. ``others``: how many nodes there are besides the one that is asked.

    The driver wants to know whether another node will be asked when it has asked the first one, seconds before. So what
    is allowed is held until then, or until the answer is there: else all that begin in these seconds would be allowed.
    """

    def __init__(
        self, others: Callable[[], int] = lambda: MOST_OTHERS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._others = others
        self._clock = clock
        self._lock = threading.Lock()
        self._left = float(AT_ONCE)
        self._held = 0
        self._filled_at = clock()

    def new_plan(self, keyspace: str | None, statement: Any) -> SpeculativeExecutionPlan:
        takes_time = getattr(statement, "takes_time", False)
        # Where there is nobody else, what is allowed would be used up for nothing.
        most = 0 if getattr(statement, "for_one", False) else min(MOST_OTHERS, self._others())
        return _Plan(self, SILENT_SECONDS_OF_ROWS if takes_time else SILENT_SECONDS, most)

    def hold(self) -> bool:
        """Whether another one may be asked."""
        with self._lock:
            now = self._clock()
            self._left = min(AT_ONCE, self._left + max(0.0, now - self._filled_at) * PER_SECOND)
            self._filled_at = now
            # While all is well, whatever is under way: as answers begin to be late, each of these may be asked twice.
            may = self._left >= AT_ONCE or self._left - self._held >= 1.0
            self._held += may
            return may

    def give_back(self, *, asked: bool) -> None:
        """What was held. ``asked``: another one was."""
        with self._lock:
            self._held -= 1
            if asked:
                # No debt: for hours nobody would be asked where a node hangs then.
                self._left = max(0.0, self._left - 1.0)


class _Plan(SpeculativeExecutionPlan):  # type: ignore[misc]
    """Of one question."""

    def __init__(self, owner: AskAnother, seconds: float, most: int) -> None:
        self._owner = owner
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._others = -1
        self._holds = self._over = False

    def next_execution(self, host: Any) -> float:
        """The driver calls it before it asks the first node, and whenever it has asked another one."""
        with self._lock:
            self._others += 1
            if self._holds:
                self._owner.give_back(asked=True)
            self._holds = not self._over and self._others < self._most and self._owner.hold()
            return self._seconds if self._holds else -1.0

    def is_over(self) -> None:
        with self._lock:
            self._over = True
            if self._holds:
                self._holds = False
                self._owner.give_back(asked=False)
