"""Whether workers of a process that says nothing any more go on: then it hangs, and is not gone.

In: the names of its workers, as it said them last; the status topic, where each worker reports by itself. Out: whether
any of them has reported just now. The topic is read for it only while a process is silent.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

from connector.aside import aside
from connector.config import Configuration
from connector.errors import CdcError
from connector.worker.reports import ages_of

log = logging.getLogger(__name__)

# Between two looks, each of which reads the status topic.
LOOK_SECONDS = 3.0
# Since it reported: it does so as often, and ends with its process.
THERE_SECONDS = 10.0
# After so many looks that have found none of a process's workers, nobody looks for them again.
LOOKS = 3


class SignsOfLife:
    """As one process looks for them, in a thread of its own: Kafka may be what is silent."""

    def __init__(
        self,
        configuration: Configuration,
        monotonic: Callable[[], float] = time.monotonic,
        read: Callable[[Configuration, Collection[str]], Mapping[str, int]] = ages_of,
    ) -> None:
        self._configuration, self._monotonic, self._read = configuration, monotonic, read
        self._look: Future[Mapping[str, int]] | None = None
        self._due, self._asked_at = 0.0, 0.0
        #: By the name of a worker: when it reported last.
        self._reported: Mapping[str, float] = {}
        #: By process: how often its workers were looked for in vain.
        self._missed: dict[str, int] = {}

    def of_any(self, workers: Collection[str]) -> bool:
        now = self._monotonic()
        return any(now - self._reported.get(name, -math.inf) < THERE_SECONDS for name in workers)

    def look(self, silent: Mapping[str, Collection[str]]) -> None:
        """For workers of these processes, now and then; returns at once."""
        now = self._monotonic()
        self._missed = {process: self._missed.get(process, 0) for process in silent}
        if self._look is not None and self._look.done():
            self._take(self._look, silent)
            self._look = None
        names = {name for process, its in silent.items() if self._missed[process] < LOOKS for name in its}
        if names and self._look is None and now >= self._due:
            self._due, self._asked_at = now + LOOK_SECONDS, now
            self._look = aside(lambda: self._read(self._configuration, names), "signs of life")

    def _take(self, look: Future[Mapping[str, int]], silent: Mapping[str, Collection[str]]) -> None:
        try:
            self._reported = {name: self._asked_at - age / 1000 for name, age in look.result().items()}
        except CdcError as error:
            log.debug("whether workers of a process that is silent go on is not known: %s", error)
            return
        except Exception:
            log.exception("whether workers of a process that is silent go on is not known")
            return
        for process, its in silent.items():
            self._missed[process] = 0 if self.of_any(its) else self._missed[process] + 1
