"""How workers ended, and after how long the next one takes the place: pauses double while nothing is committed between.

In: ends of workers, and signs that they get on. Out: pauses; which of them end again and again, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from connector.pauses import doubled
from connector.worker.child import signal_name

# As many ends of workers in a row, for one cause and without a commit between them, are a crash loop.
CRASH_LOOP = 5
RESTART_PAUSE = 0.5
LONGEST_RESTART_PAUSE = 60.0
# Who runs for so long does not end again and again.
WELL_SECONDS = 60.0


def _restart_pause(ends: int) -> float:
    """After so many in a row."""
    return doubled(RESTART_PAUSE, ends, LONGEST_RESTART_PAUSE)


@dataclass(slots=True)
class Ends:
    """How often in a row workers ended for one cause: one of them, or those of a connector. ``count``: without a commit
    since; ``brief``: soon after they had begun and committed something, as where memory is enough for that much."""

    cause: str = ""
    count: int = 0
    brief: int = 0

    def ended(self, cause: str, *, brief: bool = False) -> int:
        """How often they have by now, without a commit."""
        if cause != self.cause:
            self.cause, self.count, self.brief = cause, 0, 0
        self.count, self.brief = self.count + 1, self.brief + brief
        return self.count

    @property
    def crashing(self) -> str | None:
        """Why they end again and again. They are started again all the same."""
        if self.count >= CRASH_LOOP:
            return self.cause
        if self.brief >= CRASH_LOOP:
            return f"{self.cause}, {self.brief} times soon after it had begun and committed something"
        return None


class EndedWorkers:
    """Of one service, by the workers' numbers. Changed by its thread alone, read by others as well."""

    def __init__(self) -> None:
        self._ends: dict[int, Ends] = {}
        self._last: dict[int, str] = {}
        #: How often a signal ended it, without a commit since.
        self._kills: dict[int, int] = {}

    def killed(self, worker: int, number: int, *, brief: bool) -> tuple[str, float]:
        """What is to be said of one that a signal ended, and how long to wait before the next."""
        killed = f"killed by signal {number} ({signal_name(number)})"
        self._of(worker).ended(killed, brief=brief)
        kills = self._kills[worker] = self._kills.get(worker, 0) + 1
        cause = self._last[worker] = f"{killed}, {kills} times in a row" if kills > 1 else killed
        # Once is chance. Again and again, it is what the worker does, or a machine that has no memory for it.
        return cause, 0.0 if kills == 1 else _restart_pause(kills - 1)

    def ended(self, worker: int, cause: str, *, brief: bool, in_a_row: int) -> float:
        """How long to wait before the next one; ``in_a_row``: ends of all workers of its connector."""
        self._last[worker] = cause
        # Each start and end of one takes slots from those that work.
        return _restart_pause(max(in_a_row, self._of(worker).ended(cause, brief=brief)))

    def committed(self, worker: int) -> None:
        """Its next end is the first, but for those that come soon after a commit."""
        self._last.pop(worker, None)
        self._kills.pop(worker, None)
        if worker in self._ends:
            self._ends[worker].count = 0

    def forget(self, worker: int) -> None:
        """It is well, or is no more."""
        self._ends.pop(worker, None)

    def last(self, worker: int) -> str | None:
        """How it ended, unless it has committed something since."""
        return self._last.get(worker)

    def in_words(self, worker: int) -> str:
        """To stand behind what is said of its next start: a worker that is started again and again is shown as that."""
        last = self.last(worker)
        if last is None:
            return ""
        ends = self._ends.get(worker, Ends())
        repeated = f", {ends.count} ends in a row" if ends.count > 1 and ends.cause == last else ""
        return f" (it ended before: {last}{repeated})"

    def crashing(self) -> Iterator[tuple[int, str]]:
        """Workers that end again and again, and why."""
        for worker, ends in list(self._ends.items()):
            if (why := ends.crashing) is not None:
                yield worker, why

    def _of(self, worker: int) -> Ends:
        return self._ends.setdefault(worker, Ends())
