"""What systemd is told of `run`: that it is ready, how it is, that it still works, that it ends.

In: the socket that systemd names in the environment (`Type=notify`), and the service. Out: messages; none where nobody
asked for any. A thread of its own tells what other readers of the service are told, so that a supervisor that hangs is
not said to work, and is replaced by systemd.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Mapping
from typing import Final, Protocol

from connector.worker.state import State
from connector.worker.status_document import Liveness, ServiceStatus

log = logging.getLogger(__name__)

TELL_SECONDS: Final = 2.0
#: One line of `systemctl status`.
MOST_CHARACTERS: Final = 200
STARTING: Final = "starting"


class Told(Protocol):
    """Of a service, what is told."""

    @property
    def waiting_for(self) -> str | None: ...

    def liveness(self) -> Liveness: ...

    def status(self) -> ServiceStatus: ...


class ServiceManager:
    """Told in a thread, from `start` until ``stop`` is set. Nothing that happens here harms the service."""

    def __init__(self, service: Told, stop: threading.Event, environment: Mapping[str, str] = os.environ) -> None:
        self._service = service
        self._stop = stop
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._watched = _watched(environment)
        self._ready = False

    def start(self) -> None:
        """Does nothing where nobody asked for it."""
        if self._address:
            threading.Thread(target=self._tell, daemon=True, name="service manager").start()

    def _tell(self) -> None:
        pause = min(TELL_SECONDS, self._watched / 3) if self._watched else TELL_SECONDS
        while not self._stop.is_set():
            try:
                self._send("\n".join(self._words()))
            except Exception:
                # To be read by other threads is what a service is made for: a fault of ours, said nowhere else.
                log.exception("systemd is not told how the service is")
            self._stop.wait(pause)
        self._send("STOPPING=1\nSTATUS=stopping")

    def _words(self) -> list[str]:
        words = []
        waiting = self._service.waiting_for
        if not self._ready and waiting != STARTING:
            # Whoever waits for servers is ready: it waits in order. A wrong configuration ends before that.
            self._ready = True
            words.append("READY=1")
        if self._watched and self._service.liveness().alive:
            words.append("WATCHDOG=1")
        return [*words, f"STATUS={self._line()}"]

    def _line(self) -> str:
        status = self._service.status()
        line = status.state.name
        why = [status.waiting_for] if status.waiting_for else []
        if status.state is State.FAILED:
            why = [*status.failures(), *why]
        if status.state is not State.RUNNING and why:
            line += f": {'; '.join(why)}"
        line = " ".join(line.split())
        return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 1] + "…"

    def _send(self, text: str) -> None:
        # An address that begins with @ has no file.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.settimeout(1.0)
            to.connect(address)
            to.send(text.encode())


def _watched(environment: Mapping[str, str]) -> float:
    """After how many seconds of silence systemd kills this process; 0: never."""
    asked, of = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not asked.isdecimal() or (of and of != str(os.getpid())):
        return 0.0
    return int(asked) / 1_000_000
