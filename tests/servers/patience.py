"""How tests wait: for a condition, with a deadline.

Deadlines are seconds on the double, and longer on a server that is far away and makes its schema changes, stream sets
and splits in its own time, and while more processes want the machine than it has cores. Tests sleep nowhere else;
`tests/test_house.py` finds every other place.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_POLL_SECONDS = 0.05
_SELDOM_SECONDS = 0.3
# What a container may use of its machine's processors: microseconds in each so many, or `max`.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")

Answer = TypeVar("Answer")


def patience() -> float:
    """The factor of all deadlines; 1 on an idle machine, unless the tests run against somebody's cluster."""
    return float(os.environ.get("TEST_PATIENCE", "1")) * crowd()


def crowd() -> float:
    """How many processes want each core: among so many, everything takes so much longer than alone.

    Of the last minute, or of this moment: the average still says nothing of those that have only just begun.
    """
    with open("/proc/loadavg") as file:
        minute, _, _, now, *_ = file.read().split()
    return max(1.0, max(float(minute), float(now.partition("/")[0])) / cores())


def cores() -> float:
    """How many of the machine's are ours: tests that run in a container, or on some cores, have fewer than it has."""
    ours = float(len(os.sched_getaffinity(0)))
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()
        ours = min(ours, int(quota) / int(period))
    return ours


def until(
    condition: Callable[[], Answer],
    seconds: float = 90,
    what: str | Callable[[], str] = "a condition",
    step: Callable[[], object] = lambda: time.sleep(_POLL_SECONDS),
) -> Answer:
    """The first true answer of ``condition``, which is asked again after each ``step``: a short pause, or some work.

    ``what`` names the condition in the failure; it is called only then.
    """
    began = now = time.monotonic()
    left = seconds
    while not (answer := condition()):
        if left <= 0:
            missing = what if isinstance(what, str) else what()
            raise AssertionError(f"gave up after {now - began:.0f} s waiting for: {missing}")
        step()
        before, now = now, time.monotonic()
        left -= (now - before) / patience()
    return answer


def seldom() -> None:
    """The pause before a look that takes the time of those who are waited for: a whole topic, a process of its own."""
    time.sleep(_SELDOM_SECONDS)


def let_pass(seconds: float) -> None:
    """For soaks alone: how long a fault lasts, the time between two faults."""
    time.sleep(seconds)
