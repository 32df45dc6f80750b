"""`scylla-cdc demo`: the whole way on one machine, with real processes, and a comparison of both its ends.

In: a seed and a number of rows. Out: a live view, then the answer; status 1 unless landed and source are the same. The
parts are in `embedded.demo`; this module says in which order they happen, and that nothing outlives them.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from connector.cli.demo_report import Findings, text, value
from connector.cli.demo_view import View, view_for
from connector.cli.output import Output
from connector.errors import EmbeddedError, Problem, UsageError

if TYPE_CHECKING:
    from embedded.demo.service import Service
    from embedded.process import TiedProcess

_LOOK_SECONDS = 0.25
_UP_SECONDS = 180
_LANDING_SECONDS = 600
_LANDING_STARTS = 2
_NEEDED = ("pyspark", "delta")
_MARKER = "made-by-scylla-cdc-demo"


class DemoCommand:
    name = "demo"
    help = "the whole way on one machine"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, other rows (1)")
        parser.add_argument("--rows", type=_count, default=2000, metavar="N", help="writes (2000)")
        parser.add_argument("--keep", type=Path, metavar="DIR", help="leave files, topics and tables in this folder")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        as_json = bool(getattr(args, "json", False))
        if missing := [name for name in _NEEDED if find_spec(name) is None]:
            raise EmbeddedError(f"the demo needs {', '.join(missing)}: pip install 'scylla-cdc[spark,embedded]'")
        with _folder(args.keep) as folder, view_for(output, as_json) as view:
            found = _Demo(folder, args.seed, args.rows, view).run()
        found.seconds = view.seconds
        found.folder, found.commands = _shown(folder), _commands(folder)
        output.result(value(found), text(found))
        return 0 if found.good else 1


class _Demo:
    """One run, from servers to findings."""

    def __init__(self, folder: Path, seed: int, rows: int, view: View) -> None:
        self._folder = folder
        self._seed = seed
        self._rows = rows
        self._view = view
        self._looked = 0.0

    def run(self) -> Findings:
        from embedded.kafka import EmbeddedKafka
        from embedded.scylla.process import EmbeddedScylla

        with contextlib.ExitStack() as stack:
            stack.enter_context(_ctrl_c())
            kafka = EmbeddedKafka(data=self._folder / "kafka")
            scylla = EmbeddedScylla(ring_delay=0, seed=self._seed)
            stack.callback(kafka.close)
            stack.callback(scylla.stop)
            self._view.stage("starting ScyllaDB's double and Kafka")
            with ThreadPoolExecutor(2) as pool:
                broker = pool.submit(kafka.start)
                pool.submit(scylla.start).result()
                broker.result()
            self._view.event(f"ScyllaDB on {scylla.address}")
            self._view.event(f"Kafka on {kafka.bootstrap_servers}")
            session = stack.enter_context(_connected(scylla.host, scylla.port))
            service = self._start_service(session, scylla.address, kafka.bootstrap_servers)
            # Another Ctrl-C does not disturb the end in order that the first one asked for.
            stack.callback(service.stop, 4)
            stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
            service.start()
            # Starting Spark takes seconds that need not be waited for.
            self._start_landing(stack)
            workload = self._write(session, scylla.admin, service)
            return self._compare(session, kafka.bootstrap_servers, workload, service, stack)

    def _start_landing(self, stack: contextlib.ExitStack) -> None:
        from embedded.process import TiedProcess

        log = self._folder / "logs" / "land.log"
        self._landing = TiedProcess([sys.executable, "-m", "connector.cli.demo_landing", str(self._folder)], log)
        stack.callback(_end, self._landing)

    def _start_service(self, session: Any, scylla: str, kafka: str) -> Service:
        from embedded.demo.schema import PREPARATION, TABLES
        from embedded.demo.service import Service, write_files

        for statement in (*PREPARATION, *(table.statement for table in TABLES)):
            session.execute(statement)
        write_files(self._folder, scylla, kafka)
        self._view.stage(f"starting the connector for {len(TABLES)} tables")
        return Service(self._folder)

    def _write(self, session: Any, admin: Any, service: Service) -> Any:
        from embedded.demo.schema import SPLIT
        from embedded.demo.service import WORKERS, has_passed, is_up, wall_ms
        from embedded.demo.workload import Workload

        workload = Workload(session, self._seed, self._rows)

        def look() -> None:
            self._look(workload.done, service)

        self._until(lambda: is_up(service.status()), look, _UP_SECONDS, "the connector did not come up", service)
        self._view.event(f"{WORKERS} workers share the slots")
        self._view.stage(f"writing {self._rows:,} times, seed {self._seed}")
        workload.story_begins()
        workload.part(0.25, look)
        session.execute(SPLIT)
        self._view.event("depot.stock was split into 4 tablets")
        workload.story_goes_on()
        workload.part(0.5, look)
        self._view.event(f"worker with pid {service.kill_worker()} was killed (-9)")
        workload.part(0.6, look)
        admin.new_generation()
        self._view.event("a new generation of vnode streams began")
        workload.write_malformed_row()
        self._view.event("a row that makes no sense was put into the log")
        workload.part(0.85, look)
        workload.story_ends()
        workload.part(1, look)
        last = wall_ms()
        self._view.stage("waiting until all of it is in Kafka")
        self._until(
            lambda: has_passed(service.status(), last), look, _UP_SECONDS, "not everything was delivered", service
        )
        return workload

    def _compare(
        self, session: Any, kafka: str, workload: Any, service: Service, stack: contextlib.ExitStack
    ) -> Findings:
        from embedded.demo.comparison import by_key, plain
        from embedded.demo.schema import ORDERS, TABLES
        from embedded.demo.service import CONFIDENCE_MS
        from embedded.demo.topics import log_places, read_delivered
        from embedded.demo.workload import STORY_KEY

        if (status := service.stop()) != 0:
            raise EmbeddedError(f"the connector ended with status {status}: {self._folder / 'logs' / 'run.log'}")
        self._view.event("the connector was stopped in order")
        self._view.look(0, 0, {})
        self._view.stage("landing with Spark")
        (self._folder / "land.now").touch()
        delivered, logged = read_delivered(kafka), log_places(session)
        landing = self._landed(stack)
        self._view.event(f"landed in {landing['seconds']:.1f} s")
        self._view.event(f"compared cell by cell in {landing['compared_seconds']:.1f} s")
        source, landed = {}, {}
        for table in TABLES:
            rows = session.execute(f"SELECT * FROM {table.name}")
            source[table.name] = by_key((plain(row) for row in rows), table.key)
            landed[table.name] = by_key(landing["rows"][table.name], table.key)
        return Findings(
            seed=self._seed,
            kinds=dict(workload.kinds),
            write_seconds=workload.seconds,
            source_rows={name: len(rows) for name, rows in source.items()},
            landed_rows={name: len(landing["rows"][name]) for name in landed},
            differences=landing["differences"],
            details=landing["details"],
            logged=logged.total(),
            records=delivered.places.total(),
            missing=(logged - delivered.places).total(),
            doubled=(delivered.places - logged).total(),
            latencies_ms=delivered.latencies_ms,
            confidence_ms=CONFIDENCE_MS,
            dead_letters=delivered.dead_letters,
            landing_seconds=landing["seconds"],
            story=workload.story,
            story_source=source[ORDERS.name].get(STORY_KEY, {}),
            story_landed=landed[ORDERS.name].get(STORY_KEY, {}),
            story_records=delivered.story,
        )

    def _landed(self, stack: contextlib.ExitStack) -> dict[str, Any]:
        import json

        result, log = self._folder / "landed.json", self._folder / "logs" / "land.log"
        deadline = time.monotonic() + _LANDING_SECONDS
        starts = 1
        while not result.exists():
            if (status := self._landing.wait(_LOOK_SECONDS)) is not None and not result.exists():
                if starts == _LANDING_STARTS:
                    raise EmbeddedError(f"landing ended with status {status}: {log}")
                # As whoever supervises a Spark job does: it goes on where it stood, and nothing lands twice.
                self._view.event(f"Spark ended with status {status}, and is started again: {log}")
                self._start_landing(stack)
                starts += 1
            if time.monotonic() > deadline:
                raise EmbeddedError(f"landing took more than {_LANDING_SECONDS} s")
        landing: dict[str, Any] = json.loads(result.read_text())
        if landing["status"] != 0:
            raise EmbeddedError(f"not every table landed: {landing['progress']}")
        return landing

    def _look(self, done: int, service: Service) -> None:
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._view.look(done, self._rows, service.status())

    def _until(
        self, condition: Callable[[], bool], look: Callable[[], None], seconds: float, otherwise: str, service: Service
    ) -> None:
        pause = threading.Event()
        deadline = time.monotonic() + seconds
        while not condition():
            look()
            if time.monotonic() > deadline:
                raise EmbeddedError(f"{otherwise} in {seconds:g} s: {self._folder / 'logs' / 'run.log'}")
            pause.wait(_LOOK_SECONDS)


@contextlib.contextmanager
def _ctrl_c() -> Iterator[None]:
    """A terminal interrupts the servers as well: what fails because they are gone is an interruption too."""
    before = signal.getsignal(signal.SIGINT)
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.default_int_handler(number, frame)

    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    try:
        yield
    except Exception as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _connected(host: str, port: int) -> Iterator[Any]:
    from embedded.demo.client import connect

    cluster = connect(host, port)
    try:
        session = cluster.connect()
        # The clock that readers go by: a machine that stands still for a moment makes no write late then.
        session.use_client_timestamp = False
        yield session
    finally:
        cluster.shutdown()


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where everything of this run lies: the given folder; else one in the cache that the next run takes over; else,
    where that cannot be written or is in use, a temporary one."""
    from embedded.cache import cache_dir

    if keep is not None:
        if keep.exists() and (not keep.is_dir() or (any(keep.iterdir()) and not (keep / _MARKER).exists())):
            raise UsageError([Problem("--keep", "is no empty folder", str(keep), file="command line")])
        with _locked(keep) as got:
            if not got:
                raise UsageError([Problem("--keep", "is in use by another demo", str(keep), file="command line")])
            yield _emptied(keep)
        return
    with contextlib.ExitStack() as stack:
        try:
            free = stack.enter_context(_locked(cache_dir() / "demo"))
            folder = _emptied(cache_dir() / "demo") if free else None
        except OSError:
            folder = None
        yield folder or _emptied(Path(tempfile.mkdtemp(prefix="scylla-cdc-demo-")))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / _MARKER, "a") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _emptied(folder: Path) -> Path:
    folder = folder.absolute()
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != _MARKER:
            each.unlink()
    (folder / _MARKER).touch()
    (folder / "logs").mkdir()
    return folder


def _end(process: TiedProcess) -> None:
    process.end(5)
    process.release()


def _shown(folder: Path) -> str:
    """As short as it can be said."""
    relative = os.path.relpath(folder)
    return relative if not relative.startswith("..") else str(folder)


def _commands(folder: Path) -> list[str]:
    shown = _shown(folder)
    command = _shown(Path(sys.argv[0])) if sys.argv[0].endswith("scylla-cdc") else "scylla-cdc"
    return [
        f"{command} validate {shown}/connector.json \\\n      --worker {shown}/worker.json --offline",
        f"{command} embedded up \\\n      --port 9042 --kafka-port 9092 --ring-delay 0",
        f"{_shown(Path(sys.executable))} {shown}/show.py",
    ]


def _count(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"{given} is not a number of 1 or more")
    return int(given)


COMMAND = DemoCommand()
