"""The last resort of a process that was asked to end: whatever hangs in it, it is gone in time, and says where.

In: the time it has, and what is to be ended with it. Nothing here waits for a lock, a log or a server without a limit.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

#: For the words: whoever reads the log may have stopped reading.
_TELL_SECONDS: Final = 0.2
#: Behind the time: then the interpreter's lock is held, and a thread of C has to do it.
_FROZEN_SECONDS: Final = 0.3
#: How many callers of where a thread stands are named.
_DEEPEST: Final = 4


class LastResort:
    """Of one process; armed when it is asked to end. ``status`` is what it then exits with, and may change."""

    def __init__(self, seconds: float, status: int, also: Callable[[], None] = lambda: None) -> None:
        """``also``: what is to be done at the very end, from another thread."""
        self.status = status
        self._seconds, self._also = seconds, also

    def arm(self) -> None:
        # A stderr without a file, or none at all, takes no traceback.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            faulthandler.dump_traceback_later(self._seconds + _FROZEN_SECONDS, exit=True, file=sys.stderr)
        timer = threading.Timer(self._seconds, self._end)
        timer.daemon = True
        timer.start()

    def _end(self) -> None:
        try:
            self._also()
            telling = threading.Thread(target=self._tell, daemon=True)
            telling.start()
            telling.join(_TELL_SECONDS)
        finally:
            os._exit(self.status)

    def _tell(self) -> None:
        log.warning("not ended %.1f s after it was asked to, so cut off: %s", self._seconds, "; ".join(standing()))


def standing() -> Iterator[str]:
    """Where each thread is in code of ours, the main thread first; libraries' own threads are nowhere in it."""
    main = threading.main_thread().ident
    for thread, frame in sorted(sys._current_frames().items(), key=lambda item: item[0] != main):
        if thread != threading.get_ident() and (places := list(_ours(frame))):
            yield f"{'the main thread' if thread == main else 'another thread'} in {' < '.join(places[:_DEEPEST])}"


def _ours(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] == "connector":
            yield f"{module}.{frame.f_code.co_name}:{frame.f_lineno}"
        frame = frame.f_back
