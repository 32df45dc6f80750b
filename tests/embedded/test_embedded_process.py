"""A tied process ends with the program that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from embedded.process import TiedProcess
from tests.embedded.processes import is_gone
from tests.house import ROOT
from tests.servers.patience import patience, until

FOREVER = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., TiedProcess]]:
    started = []

    def begin(command: list[str], **more: object) -> TiedProcess:
        process = TiedProcess(command, tmp_path / "log", **more)  # type: ignore[arg-type]
        started.append(process)
        return process

    yield begin
    for process in started:
        process.end(0)
        process.release()


def test_status_of_an_end_by_itself(start: Callable[..., TiedProcess], tmp_path: Path) -> None:
    process = start(
        [sys.executable, "-c", "import os, sys; print(os.environ['NAME']); sys.exit(7)"], environment={"NAME": "x"}
    )
    until(lambda: process.poll() is not None)
    assert process.wait(0) == 7
    assert process.poll() == 7
    assert (tmp_path / "log").read_text() == "x\n"


def test_signals_reach_the_process(start: Callable[..., TiedProcess], tmp_path: Path) -> None:
    process = start(FOREVER)
    until(lambda: (tmp_path / "log").read_text() == "up\n")
    assert process.poll() is None
    assert process.wait(0.01) is None
    assert process.end(90) == -signal.SIGTERM


def test_a_process_that_has_just_ended_is_sent_nothing(
    start: Callable[..., TiedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end and the watchdog's word of it; one demo of thirty ended there, with "No such process"."""
    process = start([sys.executable, "-c", "pass"])
    until(lambda: not Path(f"/proc/{process.pid}").exists())
    with monkeypatch.context() as unheard:
        unheard.setattr(process, "poll", lambda: None)
        process.signal(signal.SIGTERM)
    assert process.end(90) == 0


def test_a_deaf_or_stopped_process_is_killed(start: Callable[..., TiedProcess], tmp_path: Path) -> None:
    deaf = start(
        [sys.executable, "-c", "import signal; signal.signal(15, 1); print('up', flush=True)\nwhile 1: signal.pause()"]
    )
    until(lambda: (tmp_path / "log").read_text() == "up\n")
    deaf.signal(signal.SIGSTOP)
    assert deaf.end(0.1) == -signal.SIGKILL


def test_release_keeps_the_folder(start: Callable[..., TiedProcess], tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    process = start(FOREVER, remove=[kept])
    process.end(0)
    process.release()
    assert kept.is_dir()


PROGRAM = """
import os, sys, signal
from pathlib import Path
from embedded.process import TiedProcess
folder = Path(sys.argv[1])
process = TiedProcess([sys.executable, "-c", "import signal; signal.pause()"], folder / "log", remove=[folder / "data"])
if sys.argv[2] == "stopped":
    process.signal(signal.SIGSTOP)
if sys.argv[2] == "forked" and os.fork() == 0:
    os.close(1)
    signal.pause()
    os._exit(0)
print(process.pid, process._watchdog.pid, flush=True)
if sys.argv[2] == "falls off":
    sys.exit(0)
signal.pause()
"""


@pytest.mark.parametrize("how", ["killed", "stopped", "forked", "falls off", "terminated"])
def test_the_end_of_the_program_is_the_end_of_the_process(how: str, tmp_path: Path) -> None:
    """Killed; with the process stopped; with a fork that still holds the pipe; by an exit that cleans nothing up."""
    (tmp_path / "data").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        assert program.stdout is not None
        pid, watchdog = map(int, program.stdout.readline().split())
        if how != "falls off":
            assert not is_gone(pid)
            os.kill(program.pid, signal.SIGTERM if how == "terminated" else signal.SIGKILL)
        program.wait(90 * patience())
        try:
            until(lambda: is_gone(pid) and is_gone(watchdog))
            assert not (tmp_path / "data").exists()
        finally:
            if how == "forked":
                os.killpg(program.pid, signal.SIGKILL)


def test_the_end_of_the_watchdog_is_the_end_of_the_process(start: Callable[..., TiedProcess]) -> None:
    """By the kernel's hand, which other systems than Linux do not lend."""
    process = start(FOREVER)
    os.kill(process._watchdog.pid, signal.SIGKILL)
    if sys.platform != "linux":
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: is_gone(process.pid))
    assert process.poll() == -signal.SIGKILL


def test_ctrl_c_at_the_terminal_is_the_programs_alone(start: Callable[..., TiedProcess]) -> None:
    process = start(FOREVER)
    assert os.getsid(process.pid) == process._watchdog.pid != os.getsid(0)
