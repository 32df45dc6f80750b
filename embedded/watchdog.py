"""Stands between a program and a server it started, so that the server ends with the program whatever happens to it.

Run as a script with one JSON argument: the command, its log file, folders to remove, the program's process id. Says the
server's process id and later its exit status on stdout. When stdin closes without `keep`, or the program is no longer
the parent, the server is killed and the folders are removed. Standard library only: it must start at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys

# A forked copy of the program may hold our stdin open after the program's death, so its being our parent counts too.
_LOOK_FOR_PARENT_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1


def _end_with_watchdog() -> None:
    """In the server, before exec: on Linux the kernel kills it should the watchdog itself be killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    order = json.loads(sys.argv[1])
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with open(order["log"], "ab") as log:
        server = subprocess.Popen(
            order["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_restore_signals,
        )
    _say(str(server.pid))
    said = b""
    told = False
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select(_LOOK_FOR_PARENT_SECONDS)}
            if woken in ready:
                os.read(woken, 64)
            if not told and server.poll() is not None:
                told = True
                _say(str(server.returncode))
            if 0 in ready:
                more = os.read(0, 64)
                said += more
                if not more:
                    break
            elif os.getppid() != order["parent"]:
                break
    if server.poll() is None:
        server.kill()
        server.wait()
    if not said.startswith(b"keep"):
        for folder in order["remove"]:
            shutil.rmtree(folder, ignore_errors=True)


def _restore_signals() -> None:
    # An ignored signal stays ignored across exec: the server must hear them.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)
    _end_with_watchdog()


def _say(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    main()
