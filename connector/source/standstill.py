"""Since when the thread that takes answers has been awake.

In: a way to be called in that thread after a while. Out: what was asked before that moment says nothing of the nodes. A
machine that is suspended, a container that has used up its share of the processor, a process that is stopped: what is
asked then is late, whoever answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TICK_SECONDS = 0.5

# Later than that a busy machine is not.
STILL_SECONDS = 1.0


class Standstill:
    """Of one connection. Asked in any thread."""

    def __init__(
        self, call_later: Callable[[float, Callable[[], None]], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._call_later, self._clock = call_later, clock
        self._ticked = self._awake_since = clock()
        self._ended = False
        call_later(TICK_SECONDS, self._tick)

    def awake_since(self) -> float:
        """By its clock. True as well where an answer is taken before the tick that is late."""
        now = self._clock()
        if now - self._ticked > TICK_SECONDS + STILL_SECONDS:
            # The driver's timers go by the machine's clock, which may be set back: then no tick comes for as long.
            self._awake_since = self._ticked = now
        return self._awake_since

    def end(self) -> None:
        self._ended = True

    def _tick(self) -> None:
        self.awake_since()
        self._ticked = self._clock()
        if not self._ended:
            self._call_later(TICK_SECONDS, self._tick)
