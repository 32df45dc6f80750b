"""Signals that ask a process to end, heard in a thread of their own: what is done about them may wait for a lock.

In: numbers of signals, and what is to be done. CPython runs a handler between two steps of the main thread, whatever
that holds at the moment: one that sets an event, or writes to the log, waits for ever for a lock that its own thread
has, and a main thread that sits in a library's call runs no handler at all. The number is in a socket at once.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

#: What asks a process to end: who looks after it, Ctrl-C, and a terminal that is gone.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Of no signal: the listener is to end.
_OVER = b"\0"


@contextlib.contextmanager
def on_signals(numbers: tuple[signal.Signals, ...], act: Callable[[int], None]) -> Iterator[None]:
    """``act`` is called with each that comes, one after the other. To be entered by the main thread."""
    numbers = tuple(number for number in numbers if number != signal.SIGHUP or hangup())
    here, there = socket.socketpair()
    there.setblocking(False)
    # Signals that others handle arrive here too.
    wanted = frozenset(map(int, numbers))
    threading.Thread(target=_listen, args=(here, wanted, act), daemon=True, name="signals").start()
    fd_before = signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _noticed) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(fd_before)
        with contextlib.suppress(OSError):  # it is full of signals
            there.send(_OVER)
        there.close()


def hangup() -> tuple[signal.Signals, ...]:
    """The signal of a terminal that is gone; none under nohup: whoever started the process did not want it to end."""
    return () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)


@contextlib.contextmanager
def stopped_by(*numbers: signal.Signals) -> Iterator[threading.Event]:
    """An event that these signals set."""
    stop = threading.Event()
    with on_signals(numbers, lambda _: stop.set()):
        yield stop


def _noticed(number: int, frame: object) -> None:
    """Only that there is a handler makes the interpreter write the number."""


def _listen(here: socket.socket, wanted: frozenset[int], act: Callable[[int], None]) -> None:
    with here:
        while (came := here.recv(1)) not in (_OVER, b""):
            if came[0] in wanted:
                try:
                    act(came[0])
                except Exception as error:
                    # The next one is heard as well.
                    log.error("signal %d: %s: %s", came[0], type(error).__name__, error)
