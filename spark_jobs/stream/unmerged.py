"""The changes of one table that are not merged: how many, since when, and in which segment the next ones will be.

In: what a start has found, and what is appended. Out: the segment to append to, and whether a merge is due.
"""

from __future__ import annotations

import time

from spark_jobs.config import Settings
from spark_jobs.tables import Restored

_BATCHES = 200
"""So many are merged however few their changes are: each has left small files that every reader opens."""


class Unmerged:
    """``segment`` is the one that is being filled; all up to ``mark`` are merged."""

    def __init__(self, settings: Settings) -> None:
        self._every_rows = settings.merge_every_rows
        self._every_ms = settings.merge_every_ms
        self.segment = 0
        self.mark = 0
        self.rows = 0
        self._batches = 0
        self._since_ms: int | None = None

    def begin(self, restored: Restored) -> None:
        self.segment, self.mark = restored.segment, restored.mark
        self.rows, self._since_ms, self._batches = restored.unmerged, restored.since_ms, 0

    def count(self, rows: int) -> None:
        """A batch has appended so many."""
        self.rows += rows
        self._batches += 1
        if rows and self._since_ms is None:
            self._since_ms = int(time.time() * 1000)

    def merged(self) -> None:
        """All of them are, or count as merged: the next ones are in a segment of their own."""
        self.mark, self.segment = self.segment, self.segment + 1
        self.rows, self._since_ms, self._batches = 0, None, 0

    @property
    def is_due(self) -> bool:
        if self.rows >= self._every_rows or self._batches >= _BATCHES:
            return True
        patience = self._every_ms
        return bool(patience and self._since_ms is not None and time.time() * 1000 - self._since_ms >= patience)
