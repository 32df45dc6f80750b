"""A server as a child process that cannot outlive the program that started it.

In go a command and a log file, out comes a `TiedProcess` to wait for and to signal. `embedded/watchdog.py` holds the
tie; it and the server run in a session of their own, so that Ctrl-C reaches only the program, which stops in order.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from connector.errors import EmbeddedError

_WATCHDOG = Path(__file__).with_name("watchdog.py")


class TiedProcess:
    """Starts the command at once. `remove` names folders that go when this program dies without `release`."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        remove: Sequence[Path] = (),
    ) -> None:
        order = {
            "command": list(command),
            "log": str(log),
            "remove": [str(folder) for folder in remove],
            "parent": os.getpid(),
        }
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WATCHDOG), json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=dict(os.environ) | dict(environment or {}),
            start_new_session=True,
        )
        self._status: int | None = None
        self._heard = b""
        pid = self._hear(30)
        if not pid:
            self.release()
            raise EmbeddedError(f"could not start {command[0]}")
        self.pid = int(pid)

    def poll(self) -> int | None:
        """The exit status (negative: the signal that ended it), None while it runs."""
        return self.wait(0)

    def wait(self, timeout: float) -> int | None:
        """Waits for the end; None when it still runs after `timeout` seconds."""
        if self._status is None:
            told = self._hear(timeout)
            if told is not None:
                # The watchdog's own end says the same about the server, only without a status.
                self._status = int(told or -signal.SIGKILL)
        return self._status

    def signal(self, number: int) -> None:
        """Sends a signal if the process still runs."""
        if self.poll() is None:
            # The watchdog tells of an end a moment after it has seen it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def pause(self) -> None:
        """SIGSTOP; returns when no thread of the process runs any more, where the system tells (Linux)."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + 5
        # A signal is only pending when `kill` returns: on a busy machine some threads go on for a while.
        while self.poll() is None and time.monotonic() < deadline and not self._is_stopped():
            time.sleep(0.005)

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    def _is_stopped(self) -> bool:
        threads = Path(f"/proc/{self.pid}/task")
        if not threads.is_dir():
            return True
        with contextlib.suppress(OSError):
            states = [(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads.iterdir()]
            return set(states) == {"T"}
        return False

    def end(self, grace: float) -> int:
        """SIGTERM, and SIGKILL after `grace` seconds; 0 seconds: SIGKILL at once. Returns the exit status."""
        if grace > 0:
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)
            status = self.wait(grace)
            if status is not None:
                return status
        self.signal(signal.SIGKILL)
        status = self.wait(30)
        return -signal.SIGKILL if status is None else status

    def release(self) -> None:
        """Lets go of an ended process; its folders stay."""
        assert self._watchdog.stdin is not None and self._watchdog.stdout is not None
        if self._watchdog.stdin.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.write(b"keep\n")
        self._watchdog.stdin.close()
        self._watchdog.wait()
        self._watchdog.stdout.close()

    def _hear(self, timeout: float) -> bytes | None:
        """The watchdog's next line, empty when it has ended, None when there is none in time."""
        stdout = self._watchdog.stdout
        assert stdout is not None
        if stdout.closed:
            return b""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return None
                more = os.read(stdout.fileno(), 64)
                if not more:
                    return b""
                self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line
