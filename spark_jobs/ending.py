"""The end of a job that is asked to end: what is under way may be finished, but not for ever.

In: the event that asks for it. Out: Spark is gone when that takes too long, so that whoever waits for it goes on. What
is given up is landed by the next start: nothing counts before the commit that holds it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from spark_jobs.session import end_spark

PATIENCE_S: Final = 30.0
"""For the batch, the merge or the publication that is under way; compose.yaml gives a job a minute to end."""
_LOOK_S: Final = 0.5
"""How often it is looked whether the job has ended by itself, and whether there is a Spark that can be ended."""


class Ending:
    """Around what is to be ended. ``gave_up``: Spark was ended in the middle of something."""

    def __init__(self, stop: threading.Event, say: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
        self.gave_up = False
        self._stop, self._say, self._patience_s = stop, say, patience_s
        self._over = threading.Event()
        self._starting = True

    def __enter__(self) -> Ending:
        threading.Thread(target=self._wait, daemon=True, name="ending").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.gave_up and self._starting:
            # While Spark starts, what is written to stderr is kept back.
            self._say("asked to end while it starts")

    def started(self) -> None:
        """From now on something is under way that is worth being finished."""
        self._starting = False

    def _wait(self) -> None:
        while not self._stop.wait(_LOOK_S):
            if self._over.is_set():
                return
        patience = 0.0 if self._starting else self._patience_s
        if self._over.wait(patience):
            return
        self.gave_up = True
        if not self._starting:
            late = f"not done {patience:.0f} s after it was asked to end"
            self._say(f"{late}: what is under way is given up, and landed by the next start")
        while not end_spark() and not self._over.wait(_LOOK_S):
            pass
