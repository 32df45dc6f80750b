"""Workers of other processes, as they said themselves last: asked for while one of ours says nothing.

In: the configuration of a worker that is silent. Out: its connector's workers that do say something. One that hangs
does not know who took over from it, nor does its supervisor, whose own workers may be none of those.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from connector.config import Configuration
from connector.errors import CdcError
from connector.worker.reports import SILENT_MS, reported_workers
from connector.worker.status_document import ReportedWorker

log = logging.getLogger(__name__)

# Between two looks, each of which reads the status topic. What was found is believed for a little longer than that.
LOOK_SECONDS = 5.0
BELIEVED_SECONDS = 15.0


class Elsewhere:
    """Of one service. Looks in a thread of its own, one at a time: Kafka may be what is silent."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        read: Callable[[Configuration], Iterable[ReportedWorker]] = reported_workers,
    ) -> None:
        self._monotonic, self._read = monotonic, read
        self._found: dict[str, tuple[float, tuple[ReportedWorker, ...]]] = {}
        self._thread: threading.Thread | None = None
        self._due = 0.0

    def look(self, configurations: Collection[Configuration]) -> None:
        """For those of connectors, now and then; returns at once."""
        looking = self._thread is not None and self._thread.is_alive()
        if not configurations or looking or self._monotonic() < self._due:
            return
        self._due = self._monotonic() + LOOK_SECONDS
        self._thread = threading.Thread(target=self._look, args=(list(configurations),), daemon=True, name="elsewhere")
        self._thread.start()

    def others(self, ours: Collection[str]) -> list[tuple[ReportedWorker, float]]:
        """Those that were found, but for ``ours``, and how many seconds ago each said so."""
        now = self._monotonic()
        return [
            (worker, now - at + max(0, worker.age_ms) / 1000)
            for at, workers in list(self._found.values())
            if now - at < BELIEVED_SECONDS
            for worker in workers
            if worker.worker not in ours
        ]

    def _look(self, configurations: Sequence[Configuration]) -> None:
        for configuration in configurations:
            began = self._monotonic()
            try:
                # One that is silent as well knows no more than ours.
                found = tuple(worker for worker in self._read(configuration) if worker.age_ms <= SILENT_MS)
            except CdcError as error:
                log.debug("who reads for a worker that is silent is not known: %s", error)
                continue
            self._found[configuration.group] = began, found
