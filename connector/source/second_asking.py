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


class AskAnother(SpeculativeExecutionPolicy):  # type: ignore[misc]
    """Of one connection. Called in any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left = float(AT_ONCE)
        self._filled_at = clock()

    def new_plan(self, keyspace: str | None, statement: Any) -> SpeculativeExecutionPlan:
        takes_time = getattr(statement, "takes_time", False)
        return _Plan(self, SILENT_SECONDS_OF_ROWS if takes_time else SILENT_SECONDS)

    def asked(self) -> None:
        """Another one was."""
        with self._lock:
            # No debt: who is asked late is asked, but for hours nobody would be where a node hangs then.
            self._left = max(0.0, self._left - 1.0)

    def may(self) -> bool:
        with self._lock:
            now = self._clock()
            self._left = min(AT_ONCE, self._left + max(0.0, now - self._filled_at) * PER_SECOND)
            self._filled_at = now
            return self._left >= 1.0


class _Plan(SpeculativeExecutionPlan):  # type: ignore[misc]
    """Of one question."""

    def __init__(self, owner: AskAnother, seconds: float) -> None:
        self._owner = owner
        self._seconds = seconds
        self._others = -1

    def next_execution(self, host: Any) -> float:
        """The driver calls it before it asks the first node, and whenever it has asked another one."""
        self._others += 1
        if self._others:
            self._owner.asked()
        return self._seconds if self._others < MOST_OTHERS and self._owner.may() else -1.0
