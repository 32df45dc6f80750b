"""What a running job does for its table beside landing: what nobody needs any more goes, so that nobody has to call.

In: what was merged, and when. Out: merged changes that no reader started before can still ask for are removed, and so
are positions that newer ones stand for, and files of no version. What stays for good, the changes of a history and dead
letters, gets larger files: each batch leaves one or more. Only ``maintain`` sorts, compacts the rest, forgets deletes.

A file that no version names may be one that a commit is about to name, of this job or of ``maintain`` beside it. None
is taken for garbage within a day: no commit takes that long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from spark_jobs.config import Settings
from spark_jobs.stream.kafka_topics import Offsets
from spark_jobs.stream.publishing import Publishing
from spark_jobs.tables import LandedTable

_EVERY_S = 300
_VACUUM_EVERY_S, _FIRST_VACUUM_S = 6 * 3600, 3600
YOUNG_MS = 24 * 3_600_000
"""Files that no version names are not deleted while they are younger: a commit may be about to name them."""


class Housekeeping:
    """Of one table. ``now`` is a clock that only goes forward."""

    def __init__(self, settings: Settings, now: Callable[[], float] = time.monotonic) -> None:
        self._grace_s = settings.reader_grace_ms / 1000
        self._kept_ms = settings.publish_retention_ms
        self._now = now
        self._next = now() + _EVERY_S
        self._vacuum_at = now() + _FIRST_VACUUM_S
        self._merged: dict[int, float] = {}
        self._removed = 0
        #: Where a portion ended that is not the last. The table is not published meanwhile: the next one waits.
        self._compacted: int | None = None
        self._lock = threading.Lock()

    def merged(self, through: int) -> None:
        """The segments up to this one are merged. At a start nobody knows since when: since then."""
        with self._lock:
            self._merged[through] = self._now()

    @property
    def is_due(self) -> bool:
        return self._now() >= self._next

    def keep(self, landed: LandedTable, publishing: Publishing, positions: Mapping[tuple[str, int], int]) -> None:
        """All that is due."""
        self._next = self._now() + _EVERY_S
        through = self._removable(publishing.published_through)
        vacuums = self._now() >= self._vacuum_at
        # Asked only where something is to be done: silent tables cost nothing.
        if not (through > self._removed or vacuums or self._compacted is not None) or (known := landed.known()) is None:
            return
        if through > self._removed:
            if not known.history:
                landed.remove_changes(through)
            landed.remove_positions(Offsets(positions))
            self._removed = through
        if vacuums:
            self._vacuum_at = self._now() + _VACUUM_EVERY_S
            for table in landed.folders():
                landed.sink.vacuum(table, max(YOUNG_MS, int(self._grace_s * 1000)))
            publishing.vacuum(max(YOUNG_MS, self._kept_ms))
        if vacuums or self._compacted is not None:
            after, self._compacted = self._compacted, None
            # Last: it reads and writes files, and where it fails, what it would have replaced is all that stays.
            self._compacted = landed.compact_changes(through, after)

    def _removable(self, published: int | None) -> int:
        """The greatest segment that every reader has in the state, and that is published where that is asked for."""
        with self._lock:
            old = [through for through, since in self._merged.items() if since + self._grace_s <= self._now()]
            through = max(old, default=0)
            self._merged = {segment: since for segment, since in self._merged.items() if segment >= through}
        return through if published is None else min(through, published)
