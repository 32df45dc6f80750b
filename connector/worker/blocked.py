"""A worker whose thread sits in a call that does not come back: another thread says so, and what the call waits for.

In: a sign of life after each turn. Out: a report every second while there was none for too long.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

from connector.delivery import KafkaClients
from connector.worker.messages import BlockedMessage, Report

# A turn takes milliseconds; a commit on a broker that is busy takes longer.
BLOCKED_SECONDS = 3.0
LOOK_SECONDS = 1.0


class BlockedTurns:
    """Watches the thread that makes it. A context manager."""

    def __init__(self, report: Report, clients: KafkaClients) -> None:
        self._report = report
        self._clients = clients
        self._thread = threading.get_ident()
        self._turned = time.monotonic()
        self._ended = threading.Event()

    def turned(self) -> None:
        self._turned = time.monotonic()

    def __enter__(self) -> BlockedTurns:
        threading.Thread(target=self._watch, daemon=True, name="blocked").start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            seconds = time.monotonic() - self._turned
            if seconds >= BLOCKED_SECONDS:
                self._report(BlockedMessage(seconds=round(seconds, 1), cause=self._cause()))

    def _cause(self) -> str:
        place = sys._current_frames().get(self._thread)
        rooms = [str(frame.f_globals.get("__name__", "")) for frame in _frames(place)]
        if any(room.startswith("connector.delivery") for room in rooms):
            return self._clients.explained("no answer")
        inside = next((room for room in rooms if room.startswith("connector.")), "unknown")
        return f"the worker is busy in {inside}"


def _frames(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found
