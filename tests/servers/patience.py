"""How tests wait: for a condition, with a deadline.

Deadlines are seconds on the double, and longer on a server that is far away and makes its schema changes, stream sets
and splits in its own time. Tests sleep nowhere else; `tests/test_house.py` finds every other place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

_POLL_SECONDS = 0.05

Answer = TypeVar("Answer")


def patience() -> float:
    """The factor of all deadlines; 1 unless the tests run against somebody's cluster."""
    return float(os.environ.get("TEST_PATIENCE", "1"))


def until(
    condition: Callable[[], Answer],
    seconds: float = 90,
    what: str | Callable[[], str] = "a condition",
    step: Callable[[], object] = lambda: time.sleep(_POLL_SECONDS),
) -> Answer:
    """The first true answer of ``condition``, which is asked again after each ``step``: a short pause, or some work.

    ``what`` names the condition in the failure; it is called only then.
    """
    deadline = time.monotonic() + seconds * patience()
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            missing = what if isinstance(what, str) else what()
            raise AssertionError(f"gave up after {seconds * patience():.0f} s waiting for: {missing}")
        step()
    return answer


def let_pass(seconds: float) -> None:
    """For soaks alone: how long a fault lasts, the time between two faults."""
    time.sleep(seconds)
