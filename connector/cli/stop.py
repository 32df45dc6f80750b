"""SIGTERM as an orderly end for commands that run until stopped."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[threading.Event]:
    """While it lasts, SIGTERM sets the event instead of ending the process. Ctrl-C still interrupts."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)
