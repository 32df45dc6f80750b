"""A thread that looks at something now and then, until it is told to stop.

In: what looks, and what is not known where that fails. Out: looks, each behind the one before it. A failed one is said
with where it failed, and followed by others: whatever ails a file or a server, the next look may find it mended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5


class NowAndThen:
    def __init__(self, look: Callable[[], None], name: str, unknown: str) -> None:
        self._look, self._name, self._unknown = look, name, unknown
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name=self._name).start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self._look()
            except Exception:
                log.exception("%s is not known", self._unknown)
