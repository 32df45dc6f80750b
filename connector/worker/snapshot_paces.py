"""How fast the snapshot of each table goes, and how long it takes yet if it goes on so.

In: what is done of it, now and then. Out: rows a second, and seconds. Rows come in lots, one for each confidence
window, so that only some minutes together tell a pace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from connector.table_name import TableName

_SPAN_MS: Final = 180_000
_STEP_MS: Final = 2_000

# What nothing was done of for so long, and for twice as long as it took from one lot to the next, stands still.
_STILL_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Pace:
    """``seconds_left`` is None as long as nothing was done that could tell, and while it stands still."""

    rows_per_second: float = 0.0
    seconds_left: int | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    at_ms: int
    done: float
    rows: int


class SnapshotPaces:
    def __init__(self) -> None:
        self._marks: dict[TableName, tuple[str, deque[_Mark]]] = {}

    def of(self, table: TableName, snapshot: str, at_ms: int, done: float, rows: int) -> Pace:
        """``snapshot``: which one of the table's; ``done``: the part of the table, 0 to 1."""
        name, marks = self._marks.get(table, ("", deque[_Mark]()))
        if name != snapshot:
            marks = deque()
            self._marks[table] = snapshot, marks
        now = _Mark(at_ms, done, rows)
        if not marks or at_ms - marks[-1].at_ms >= _STEP_MS:
            marks.append(now)
        while at_ms - marks[0].at_ms > _SPAN_MS:
            marks.popleft()
        return _pace([*marks, now])

    def forget(self, table: TableName) -> None:
        """It waits, or is over: the time until it goes on says nothing of its pace."""
        self._marks.pop(table, None)


def _pace(marks: Sequence[_Mark]) -> Pace:
    first, now = marks[0], marks[-1]
    lots = [mark.at_ms for before, mark in pairwise(marks) if mark.done > before.done]
    seconds = (now.at_ms - first.at_ms) / 1000
    if seconds <= 0:
        return Pace()
    rows, done = max(0, now.rows - first.rows) / seconds, (now.done - first.done) / seconds
    still = done <= 0 or now.at_ms - lots[-1] > _patience_ms([first.at_ms, *lots])
    return Pace(round(rows, 1), None if still else round((1 - now.done) / done))


def _patience_ms(lots: Sequence[int]) -> int:
    return max(_STILL_MS, 2 * max(later - earlier for earlier, later in pairwise(lots)))
