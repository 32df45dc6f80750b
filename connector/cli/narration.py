"""That long work goes on, for those who are not at a terminal: a line on stderr every half minute, what and how far.

In: what is being done, as the command tells it. Out: log lines, while nothing else is told.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from connector.cli.output import Output

log = logging.getLogger(__name__)

STILL_SECONDS = 30.0


class Narration:
    """A context manager; ``say`` is the command's narration, ``details`` how far the work is, in words."""

    def __init__(
        self,
        output: Output,
        details: Callable[[], str] = lambda: "",
        seconds: float = STILL_SECONDS,
    ) -> None:
        self._output, self.details, self._seconds = output, details, seconds
        self._doing, self._since = "", time.monotonic()
        self._told, self._end = threading.Event(), threading.Event()

    def say(self, text: str) -> None:
        self._output.say(text)
        self._doing, self._since = text.rstrip(" …."), time.monotonic()
        self._told.set()

    def __enter__(self) -> Narration:
        self._thread = threading.Thread(target=self._tell, daemon=True, name="narration")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._told.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._end.is_set():
            if self._told.wait(self._seconds):
                self._told.clear()
                continue
            seconds = time.monotonic() - self._since
            details = self.details()
            log.info("%s: for %.0f s%s", self._doing or "working", seconds, f", {details}" if details else "")
