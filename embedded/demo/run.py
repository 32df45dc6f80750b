"""One run of the demo, from servers to findings.

In: an empty folder, a seed, a number of rows, a view. Out: ``Findings``; nothing that it started outlives it.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from connector.aside import aside
from connector.errors import EmbeddedError
from connector.own_python import module_command
from connector.worker.status_document import ServiceStatus
from embedded.connectors import RunningConnector
from embedded.demo.client import connect
from embedded.demo.comparison import by_key, plain, recorded
from embedded.demo.fold import Folded, fold, recorded_keys
from embedded.demo.old_rows import write_old_rows
from embedded.demo.report import Findings
from embedded.demo.schema import ORDERS, PREPARATION, SPLIT, TABLES, Table
from embedded.demo.service import (
    CONFIDENCE_MS,
    WORKERS,
    has_passed,
    is_up,
    service_of,
    snapshots_over,
    status_of,
    wall_ms,
    write_files,
)
from embedded.demo.topics import Delivered, log_places, read_delivered
from embedded.demo.view import View
from embedded.demo.workload import STORY_KEY, Workload
from embedded.kafka import EmbeddedKafka
from embedded.process import TiedProcess
from embedded.scylla.process import EmbeddedScylla

_LOOK_SECONDS = 0.25
_UP_SECONDS = 180
# Between two writes, while it stays up: something to look at, and no work for the machine.
_WRITE_SECONDS = 0.2
_LANDING_SECONDS = 600


class Demo:
    """One run, from servers to findings."""

    def __init__(
        self, folder: Path, seed: int, rows: int, view: View, stay: Callable[[Findings, str], None] | None = None
    ) -> None:
        """``stay`` is given the findings and the page's address, and called before everything stays up."""
        self._stay = stay
        self._folder = folder
        self._seed = seed
        self._rows = rows
        self._view = view
        self._looked = 0.0

    def run(self) -> Findings:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_ctrl_c())
            kafka = EmbeddedKafka(data=self._folder / "kafka")
            scylla = EmbeddedScylla(ring_delay=0, seed=self._seed)
            stack.callback(kafka.close)
            stack.callback(scylla.stop)
            self._view.stage("starting ScyllaDB's double and Kafka")
            # Ctrl-C waits for neither: what a server has begun ends with this process.
            starting = aside(kafka.start, "kafka"), aside(scylla.start, "scylla")
            for server in starting:
                server.result()
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
            findings = self._compare(session, kafka.bootstrap_servers, workload, service)
            if self._stay is not None:
                stay_up(findings, workload, service, self._stay)
            return findings

    def _start_landing(self, stack: contextlib.ExitStack) -> None:
        log = self._folder / "logs" / "land.log"
        self._landing = TiedProcess(module_command("embedded.demo.landing", str(self._folder)), log)
        stack.callback(_end, self._landing)

    def _start_service(self, session: Any, scylla: str, kafka: str) -> RunningConnector:
        for statement in (*PREPARATION, *(table.statement for table in TABLES)):
            session.execute(statement)
        write_old_rows(session, self._seed, self._rows)
        self._before = {table.name: recorded_keys(table, _rows(session, table)) for table in TABLES}
        for table in TABLES:
            session.execute(table.log_begins)
        self._view.event(f"{self._old_rows:,} rows are older than the tables' logs")
        write_files(self._folder, scylla, kafka)
        self._view.stage(f"starting the connector for {len(TABLES)} tables")
        return service_of(self._folder)

    def _write(self, session: Any, admin: Any, service: RunningConnector) -> Any:
        workload = Workload(session, self._seed, self._rows)

        def look() -> None:
            self._look(workload.done, service)

        self._until(lambda: is_up(status_of(service)), look, "the connector did not come up")
        self._view.event(f"{WORKERS} workers share the slots")
        self._view.event(f"look at it: {service.url}/ui")
        self._view.stage(f"writing {self._rows:,} times, seed {self._seed}")
        workload.story_begins()
        workload.part(0.35, look)
        workload.story_goes_on()
        # What has to be read anew when streams change waits for late writes to those that ended, for a minute.
        workload.part(0.7, look)
        self._until(lambda: snapshots_over(status_of(service)), look, "not all rows from before the log were delivered")
        self._view.event("all rows from before the logs are delivered")
        workload.appends = True
        session.execute(SPLIT)
        self._view.event("depot.stock was split into 4 tablets")
        workload.part(0.75, look)
        self._view.event(f"worker with pid {service.kill_worker()} was killed (-9)")
        workload.part(0.8, look)
        admin.new_generation()
        self._view.event("a new generation of vnode streams began")
        workload.write_malformed_row()
        self._view.event("a row that makes no sense was put into the log")
        workload.part(0.9, look)
        workload.story_ends()
        workload.part(1, look)
        last = wall_ms()
        self._view.stage("waiting until all of it is in Kafka")
        self._until(lambda: has_passed(status_of(service), last), look, "not everything was delivered")
        return workload

    def _compare(self, session: Any, kafka: str, workload: Any, service: RunningConnector) -> Findings:

        if (status := service.stop()) != 0:
            raise EmbeddedError(f"the connector ended with status {status}: {self._folder / 'logs' / 'run.log'}")
        self._view.event("the connector was shut down cleanly")
        self._view.look(0, 0, ServiceStatus())
        self._view.stage("landing with Spark")
        (self._folder / "land.now").touch()
        delivered, logged = read_delivered(kafka), log_places(session)
        landing = landed_by(self._landing, self._folder)
        self._view.event(f"landed in {landing['seconds']:.1f} s")
        self._view.event(f"compared cell by cell in {landing['compared_seconds']:.1f} s")
        source, landed, folded = {}, {}, []
        for table in TABLES:
            rows = _rows(session, table)
            source[table.name] = by_key(
                ({name: plain(value) for name, value in row.items()} for row in rows), table.key
            )
            folded.append(self._folded(table, delivered, rows))
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
            old_rows=self._old_rows,
            snapshots=sum(each.snapshots for each in folded),
            breaches=[line for each in folded for line in each.breaches],
            latencies_ms=delivered.latencies_ms,
            confidence_ms=CONFIDENCE_MS,
            dead_letters=delivered.dead_letters,
            landing_seconds=landing["seconds"],
            story=workload.story,
            story_source=source[ORDERS.name].get(STORY_KEY, {}),
            story_landed=landed[ORDERS.name].get(STORY_KEY, {}),
            story_records=delivered.story,
        )

    @property
    def _old_rows(self) -> int:
        return sum(map(len, self._before.values()))

    def _folded(self, table: Table, delivered: Delivered, rows: list[dict[str, Any]]) -> Folded:
        name = table.name
        now = by_key(({name: recorded(value) for name, value in row.items()} for row in rows), table.key)
        return fold(table, delivered.events[name], delivered.deletes[name], self._before[name], now)

    def _look(self, done: int, service: RunningConnector) -> None:
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._view.look(done, self._rows, status_of(service))

    def _until(self, condition: Callable[[], bool], look: Callable[[], None], otherwise: str) -> None:
        pause = threading.Event()
        deadline = time.monotonic() + _UP_SECONDS
        while not condition():
            look()
            if time.monotonic() > deadline:
                raise EmbeddedError(f"{otherwise} in {_UP_SECONDS} s: {self._folder / 'logs' / 'run.log'}")
            pause.wait(_LOOK_SECONDS)


def landed_by(process: TiedProcess, folder: Path, seconds: float = _LANDING_SECONDS) -> dict[str, Any]:
    """What the job that lands has written down at its end."""
    result, log = folder / "landed.json", folder / "logs" / "land.log"
    deadline = time.monotonic() + seconds
    while not result.exists():
        if (status := process.wait(_LOOK_SECONDS)) is not None and not result.exists():
            raise EmbeddedError(f"landing ended with status {status}: {_last_line(log)} ({log})")
        if time.monotonic() > deadline:
            raise EmbeddedError(f"landing has not ended in {seconds:.0f} s: {_last_line(log)} ({log})")
    landing: dict[str, Any] = json.loads(result.read_text())
    if landing["status"] != 0:
        raise EmbeddedError(f"not every table landed: {landing['progress']}")
    return landing


def stay_up(
    findings: Findings, workload: Workload, service: RunningConnector, told: Callable[[Findings, str], None]
) -> None:
    """The connector runs again, and something is written now and then, until somebody presses Ctrl-C."""
    service.start()
    service.wait_until_running()
    told(findings, f"{service.url}/ui")
    pause = threading.Event()
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            workload.one()
            pause.wait(_WRITE_SECONDS)


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
    cluster = connect(host, port)
    try:
        session = cluster.connect()
        # The clock that readers go by: a machine that stands still for a moment makes no write late then.
        session.use_client_timestamp = False
        yield session
    finally:
        cluster.shutdown()


def _rows(session: Any, table: Table) -> list[dict[str, Any]]:
    return [row._asdict() for row in session.execute(f"SELECT * FROM {table.name}")]


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _end(process: TiedProcess) -> None:
    process.end(5)
    process.release()
