"""Changes that do not become records, and since when: it is over when records of them are committed.

In: whoever makes records, and for which part of a slot; how transactions end. Out: the task `RECORDS` of each table.
A topic that refuses records is tried again every so often, and all looks well until it has answered: what was made
counts for nothing before its commit, and what other groups of the table deliver says nothing of the one that waits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from connector.errors import CdcError, PoisonRow
from connector.source import Background, Postponed, Purpose, Task

RECORDS = Purpose("records", "changes do not become records", "they wait in the log until its TTL")
BEATS = Purpose("heartbeats", "no heartbeats are written", "changes are delivered all the same", holds=False)

# What waits is tried again after a pause, behind others; what is not is no more: its rows expired, its group ended.
TURN_SECONDS = 60.0

Place = tuple[int, Hashable]


class RecordsNotMade(Postponed):
    """What records are made with is away: a Schema Registry, a topic that must be created. Nothing was produced."""


@dataclass(slots=True)
class _Waiting:
    tried: float
    made: bool = False


class Unmade:
    """Of one worker."""

    def __init__(
        self, background: Background, pause_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``pause_seconds``: the longest between two attempts."""
        background.expect(RECORDS, BEATS)
        self._background = background
        self._patience = 2 * pause_seconds + TURN_SECONDS
        self._clock = clock
        self._waiting: dict[Task, dict[Place, _Waiting]] = {}

    @contextlib.contextmanager
    def making(self, about: str, slot: int, part: Hashable = None, purpose: Purpose = RECORDS) -> Iterator[None]:
        """Around whatever makes records. What goes wrong in it says nothing about the transaction. ``part``: of the
        slot, whose changes come in order; without one it is over as soon as something is made."""
        task, place = self._background.task(purpose, about), (slot, part)
        try:
            yield
        except PoisonRow:
            self._forget(task, [place])  # it is not waited for any more
            raise
        except CdcError as error:
            waiting = self._waiting.setdefault(task, {})
            if task.error is None:
                waiting.clear()
            waiting[place] = _Waiting(self._clock())
            task.failed(error)
            raise RecordsNotMade(str(error)) from error
        if task.error is None:
            return
        if part is None:
            self._forget(task, list(self._waiting[task]), Task.worked)
        elif (known := self._waiting[task].get(place)) is not None:
            known.made = True

    def committed(self) -> None:
        """What was made is delivered."""
        now = self._clock()
        for task, waiting in list(self._waiting.items()):
            over = [place for place, each in waiting.items() if each.made or now - each.tried > self._patience]
            self._forget(task, over, Task.worked)

    def aborted(self) -> None:
        """What was made is made again."""
        for waiting in self._waiting.values():
            for each in waiting.values():
                each.made = False

    def released(self, slots: frozenset[int]) -> None:
        """What waits in them is their next owner's to tell."""
        for task, waiting in list(self._waiting.items()):
            self._forget(task, [place for place in waiting if place[0] in slots])

    def _forget(self, task: Task, places: list[Place], end: Callable[[Task], None] = Task.dismiss) -> None:
        waiting = self._waiting.get(task)
        if waiting is None:
            return
        for place in places:
            waiting.pop(place, None)
        if not waiting or task.error is None:
            del self._waiting[task]
            end(task)
