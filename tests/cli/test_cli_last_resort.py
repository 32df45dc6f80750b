"""A process that was asked to end is gone in time, whatever hangs in it, and has said where."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.cli.last_resort import _FROZEN_SECONDS, _TELL_SECONDS
from tests.foreground import as_in_the_foreground
from tests.servers.patience import patience, until

# Who is to end a process has 0.3 s; whoever else could do it has ten minutes, however busy the machine is. In time
# both are Python's own timer, which says what it has to say, and behind it, where nobody can run it, a thread of C.
_BY_PYTHON = "last_resort._FROZEN_SECONDS = 600"
_AND_SAYS_WHERE = f"{_BY_PYTHON}; last_resort._TELL_SECONDS = 600"
_BY_C = "last_resort.END_SECONDS, last_resort._FROZEN_SECONDS = 600, -599.7"

_ASKED = """
import logging, os, threading
from connector.cli import last_resort
last_resort.END_SECONDS = 0.3
{who}
logging.basicConfig(format="%(message)s")
asked = last_resort.LastResort(last_resort.END_SECONDS, 7, lambda: os.write(1, b"all of it"))
"""
_ONCE_IT_HANGS = """
import sys
def once_it_hangs():
    while sys._current_frames()[threading.main_thread().ident].f_code.co_name != "close":
        pass
    os.write(1, b"all of it")
asked.also = once_it_hangs
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60 * patience(),
        check=False,
        preexec_fn=as_in_the_foreground,
    )


def test_it_is_cut_off_and_says_where_it_stood() -> None:
    hung = "def close():\n    stuck.acquire()\n"
    space = "mine = {'__name__': 'connector.hung', 'stuck': threading.Lock()}; mine['stuck'].acquire()"
    does = f"{_ONCE_IT_HANGS}{space}\nexec({hung!r}, mine); asked.arm(); mine['close']()"
    found = ended(_ASKED.format(who=_AND_SAYS_WHERE) + does)
    assert found.returncode == 7 and found.stdout == "all of it"
    assert (
        "not ended 0.3 s after it was asked to, so cut off: the main thread in connector.hung.close:2" in found.stderr
    )


def test_it_is_cut_off_where_a_library_keeps_the_interpreters_lock() -> None:
    found = ended(f"{_ASKED.format(who=_BY_C)}import ctypes; asked.arm(); ctypes.PyDLL(None).sleep(600)")
    assert found.returncode == 1 and "Timeout" in found.stderr and 'File "<string>"' in found.stderr


def test_there_is_time_to_say_where_before_a_thread_of_c_ends_it() -> None:
    assert _TELL_SECONDS < _FROZEN_SECONDS


def test_without_room_for_a_thread_it_ends_as_it_can() -> None:
    """It was a traceback in front of whatever was to be said."""
    full = (
        "import resource\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**20,) * 2)\n"
    )
    found = ended(f"from connector.cli.last_resort import LastResort\n{full}LastResort(60, 7).arm()\nprint('there')")
    assert (found.returncode, found.stdout, found.stderr) == (0, "there\n", "")


def test_it_is_cut_off_where_nobody_reads_what_it_says() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    program = f"{_ASKED.format(who=_BY_PYTHON)}asked.arm(); logging.error('ending')"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=writer, stdout=-3)
    try:
        assert process.wait(60 * patience()) == 7
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


# The command line as it is, but for what hangs.
_HANGS = """
import atexit, ctypes, os, signal, sys, threading
from connector.cli import last_resort, main, run, service
from connector.errors import ConfigurationError
last_resort.END_SECONDS = 0.3
{who}
main.END_SECONDS = run.END_SECONDS = last_resort.END_SECONDS
hangs = threading.Event().wait
here = ["run", "config/connector.json"]
class Work:
    def kill(self):
        pass
    def __init__(self, args, stop, stack):
        self.stack = stack
    def run(self, output):
        stack = self.stack
        return {work}
service.Service = Work
{before}
main.main(here)
"""
_HANGS_BEHIND = "of = main.run; main.run = lambda given: atexit.register(hangs) and of(given)"
_FAILS = "(_ for _ in ()).throw(ConfigurationError('what was wrong'))"


@pytest.mark.parametrize(
    ("before", "work", "status"),
    [
        ("threading.Thread(target=hangs).start()", "3", 3),
        ("", "atexit.register(hangs) and 3", 3),
        ("", "atexit.register(ctypes.PyDLL(None).sleep, 600) and 3", 1),
        (f"{_HANGS_BEHIND}; here = ['transform', '--type', 'ScyllaFlattenColumns']", "", 0),
        ("", "stack.callback(hangs) and 3", 3),
        ("", "stack.callback(ctypes.PyDLL(None).sleep, 600) and 3", 1),
        ("", f"stack.callback(hangs) and {_FAILS}", 2),
        ("", "os.kill(os.getpid(), signal.SIGTERM) or hangs()", 1),
        (
            "main.run = lambda given: os.kill(os.getpid(), signal.SIGTERM); atexit.register(hangs); here[0] = 'read'",
            "",
            1,
        ),
    ],
    ids=["thread", "at exit", "lock at exit", "other command", "close", "lock", "refused", "work", "asked before"],
)
def test_one_that_hangs_where_its_work_is_done_ends(before: str, work: str, status: int) -> None:
    holds_the_lock = "PyDLL" in before + work
    who = _BY_C if holds_the_lock else _AND_SAYS_WHERE
    found = ended(_HANGS.format(who=who, before=before, work=work or "0"))
    assert found.returncode == status, found.stderr
    assert ("Timeout" if holds_the_lock else "not ended 0.3 s after") in found.stderr
    assert ("it was about to end with: " in found.stderr and "what was wrong" in found.stderr) == (status == 2)


def test_what_is_freed_at_the_very_end_is_not_waited_for() -> None:
    """There the last resort itself could only end it as failed."""
    slow = "import time; kept = type('Slow', (), {'__del__': lambda self, sleep=time.sleep: sleep(600)})()"
    found = ended(_HANGS.format(who="last_resort.END_SECONDS = 600", before=slow, work="3"))
    assert (found.returncode, found.stderr) == (3, "")


_ASKED_EARLY = """
import os, signal, sys
class Asked:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Asked())
sys.argv = {command!r}
from connector.cli.start import main
main()
"""


@pytest.mark.parametrize(
    ("module", "signal", "command", "status"),
    [
        # The first module that is loaded, and the last one before the command listens by itself.
        ("connector.cli.main", "SIGTERM", ["run", "config/connector.json"], 0),
        ("connector.cli.last_resort", "SIGINT", ["--log-format", "json", "run", "config/connector.json"], 0),
        ("connector.cli.run", "SIGTERM", ["run", "config/connector.json"], 0),
        ("connector.cli.run", "SIGHUP", ["run", "config/connector.json"], 0),
        ("connector.cli.main", "SIGTERM", ["validate", "config/connector.json"], 128 + 15),
        ("connector.cli.main", "SIGHUP", ["validate", "config/connector.json"], 128 + 1),
    ],
)
def test_a_service_that_is_asked_before_it_has_begun_ends_in_order(
    module: str, signal: str, command: list[str], status: int
) -> None:
    found = ended(_ASKED_EARLY.format(module=module, signal=signal, command=["scylla-cdc", *command]))
    assert (found.returncode, found.stderr) == (status, "")


# Two workers, which take their time to end; `run` itself beyond its checks.
_RUN = """
import signal, sys, threading
from functools import partial
from connector.cli.last_resort import LastResort
from connector.cli.run import _obey
from connector.stop_signals import ENDING, on_signals
from connector.worker.order import WorkerOrder
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
worker = '''
import os, pickle, signal, sys, threading
pickle.load(sys.stdin.buffer)
def asked(*_):
    os.write(2, b"asked ")
    threading.Event().wait({seconds})
    sys.exit(0)
signal.signal(signal.SIGTERM, asked)
print("begun", file=sys.stderr, flush=True)
threading.Event().wait()
'''
signal.signal(signal.SIGUSR1, lambda *_: threading.Event().wait(0.5))
orders = [WorkerOrder(loaded({{"name": "w", "topic.prefix": "w"}}), index) for index in range(2)]
supervisor, stop = Supervisor([sys.executable, "-c", worker], orders), threading.Event()
with on_signals(ENDING, partial(_obey, stop, LastResort(60, 1, supervisor.kill))):
    print("ready", file=sys.stderr, flush=True)
    sys.exit(supervisor.run(stop))
"""


@contextlib.contextmanager
def begun(folder: Path, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", _RUN.format(seconds=seconds)]
    with open(folder / "log", "wb") as log:
        run = subprocess.Popen(command, stderr=log, preexec_fn=as_in_the_foreground)
    try:
        yield run
    finally:
        run.kill()
        run.wait()


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"  # nobody has asked for it
    return True


def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with begun(tmp_path, 600) as run:
        until(lambda: log.read_text().count("begun") == 2, what="two workers")
        workers = children(run.pid)
        run.send_signal(signal.SIGTERM)
        # Of two signals that wait together Python hands over the lower number first, whichever came first.
        until(lambda: log.read_text().count("asked") == 2, what="the first signal to be obeyed")
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        assert run.wait(60 * patience()) == 128 + signal.SIGINT
        for each in workers:
            until(lambda: gone(each), what="its end")  # noqa: B023


def test_a_terminal_that_is_gone_ends_it_in_order(tmp_path: Path) -> None:
    """Its shell says so, and the kernel once more; who waits for the workers then is not impatient."""
    log = tmp_path / "log"
    with begun(tmp_path, 1) as run:
        until(lambda: log.read_text().count("begun") == 2, what="two workers")
        run.send_signal(signal.SIGHUP)
        until(lambda: log.read_text().count("asked") == 2, what="the first signal to be obeyed")
        run.send_signal(signal.SIGHUP)
        assert run.wait(60 * patience()) == 0


def test_a_closed_terminal_takes_nothing_with_it_that_is_not_in_order(tmp_path: Path) -> None:
    """What it says to a terminal that is gone fails, which must not be its end."""
    (tmp_path / "worker.json").write_text('{"bootstrap.servers": "127.0.0.1:1"}')
    command = ["run", "--worker", str(tmp_path / "worker.json"), "--http-port", "0"]
    ours, theirs = os.openpty()

    def at_its_terminal() -> None:
        as_in_the_foreground()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    run = subprocess.Popen(
        [sys.executable, "-m", "connector", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=at_its_terminal,
    )
    os.close(theirs)
    said = b""
    try:
        while b"connection refused" not in said:
            said += os.read(ours, 4096)
        os.close(ours)
        assert run.wait(60 * patience()) == 0
    finally:
        run.kill()
        run.wait()


@pytest.mark.parametrize("moment", range(1, 4))
def test_it_ends_whenever_it_is_asked_to(tmp_path: Path, moment: int) -> None:
    """Before, while and after its workers begin, also where they were asked with it."""
    log = tmp_path / "log"
    with begun(tmp_path, 0) as run:
        until(lambda: log.read_text().count("begun") >= moment - 1 and "ready" in log.read_text(), what="that moment")
        also = children(run.pid) if moment == 3 else []
        for pid in [*also, run.pid]:
            os.kill(pid, signal.SIGTERM)
        assert run.wait(60 * patience()) == 0, log.read_text()


def test_it_ends_also_after_a_signal_that_outlasted_what_it_waited_for(tmp_path: Path) -> None:
    """Python's simplest queue waits for ever then, and a busy machine makes any signal last as long."""
    log = tmp_path / "log"
    with begun(tmp_path, 0) as run:
        until(lambda: log.read_text().count("begun") == 2, what="two workers")
        run.send_signal(signal.SIGUSR1)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60 * patience()) == 0, log.read_text()
