"""The last resort of a process that is to end: whatever hangs in it, it is gone in time, and says where.

In: the time it has, and what is to be ended with it. Nothing here waits for a lock, a log or a server without a limit.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final, NoReturn

from connector.errors import ConfigurationError

log = logging.getLogger(__name__)

#: Containers are killed ten seconds after they were asked to end.
END_SECONDS: Final = 9.6
#: For the words: whoever reads the log may have stopped reading.
_TELL_SECONDS: Final = 0.2
#: Behind the time: then the interpreter's lock is held, and a thread of C has to do it.
_FROZEN_SECONDS: Final = 0.3
#: How many callers of where a thread stands are named.
_DEEPEST: Final = 4


class LastResort:
    """Of one process; armed when it is asked to end, or ends by itself: what comes first.

    ``status`` is what it then exits with, ``also`` what is done at the very end, from another thread; both may change.
    """

    def __init__(self, seconds: float, status: int, also: Callable[[], None] = lambda: None) -> None:
        self.status, self.also = status, also
        self._seconds = seconds
        self._armed = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._since = ""
        self._error: BaseException | None = None

    @contextlib.contextmanager
    def behind(self) -> Iterator[None]:
        """Armed when this ends, however it does: what is around it then has its time to close what is open."""
        try:
            yield
        except BaseException as error:
            self._error = error
            if isinstance(error, ConfigurationError):
                self.status = 2
            raise
        finally:
            self.arm("its work was done")

    def obey(self, stop: threading.Event, number: int) -> None:
        """A signal that asks to end: the first one ends in order, and in time; a second one at once. That a terminal
        is gone says its shell, and the kernel once more: nobody is impatient."""
        if stop.is_set():
            if number == signal.SIGHUP:
                return
            self.at_once(128 + number)
        try:
            self.arm()
        finally:
            stop.set()

    def at_once(self, status: int) -> NoReturn:
        try:
            self.also()
        finally:
            os._exit(status)

    def arm(self, since: str = "it was asked to") -> None:
        if not self._armed.acquire(blocking=False):
            return
        self._since = since
        # A stderr without a file, or none at all, takes no traceback. And both need a thread, which a limit of memory
        # or of processes may refuse: then it ends as it can, and says what it was about to say.
        with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):
            faulthandler.dump_traceback_later(self._seconds + _FROZEN_SECONDS, exit=True, file=sys.stderr)
        self._timer.daemon = True
        with contextlib.suppress(RuntimeError):
            self._timer.start()

    def disarm(self) -> None:
        """Nothing hung; what comes behind has a last resort of its own."""
        self._timer.cancel()
        faulthandler.cancel_dump_traceback_later()

    def _end(self) -> None:
        try:
            self.also()
            telling = threading.Thread(target=self._tell, daemon=True)
            telling.start()
            telling.join(_TELL_SECONDS)
        finally:
            os._exit(self.status)

    def _tell(self) -> None:
        where = "; ".join(standing())
        log.warning("not ended %.1f s after %s, so cut off: %s", self._seconds, self._since, where)
        if self._error is not None and not isinstance(self._error, SystemExit):
            log.error("it was about to end with: %s", self._error)


def leave(status: int) -> NoReturn:
    """Ends the process now that all is said: nobody is waited for, nothing is freed."""
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def standing() -> Iterator[str]:
    """Where each thread is in code of ours, the main thread first; libraries' own threads are nowhere in it."""
    main = threading.main_thread().ident
    for thread, frame in sorted(sys._current_frames().items(), key=lambda item: item[0] != main):
        if thread != threading.get_ident() and (places := list(_ours(frame))):
            yield f"{'the main thread' if thread == main else 'another thread'} in {' < '.join(places[:_DEEPEST])}"


def _ours(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in {"connector", "spark_jobs"}:
            yield f"{module}.{frame.f_code.co_name}:{frame.f_lineno}"
        frame = frame.f_back
