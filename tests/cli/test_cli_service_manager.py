"""What systemd is told, by a socket as systemd has it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.cli.service_manager import ServiceManager
from connector.worker.state import State
from connector.worker.status_document import ServiceStatus
from tests.servers.patience import patience, until

UNIT = Path(__file__).parents[2] / "config" / "systemd" / "scylla-cdc.service"


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(60 * patience())
        yield listening


def service(waiting_for: str | None, alive: bool = True) -> Any:
    state = State.RUNNING if waiting_for is None else State.WAITING
    return SimpleNamespace(
        waiting_for=waiting_for,
        liveness=lambda: SimpleNamespace(alive=alive),
        status=lambda: SimpleNamespace(state=state, waiting_for=waiting_for),
    )


def heard(systemd: socket.socket, told: Any, watchdog: str = "300000") -> Iterator[list[str]]:
    stop = threading.Event()
    environment = {"NOTIFY_SOCKET": str(systemd.getsockname()), "WATCHDOG_USEC": watchdog}
    ServiceManager(told, stop, environment).start()
    try:
        while True:
            yield systemd.recv(4096).decode().splitlines()
    finally:
        stop.set()


def test_who_waits_is_ready_once_and_says_for_what(systemd: socket.socket) -> None:
    told = service("starting")
    words = heard(systemd, told)
    assert next(words) == ["WATCHDOG=1", "STATUS=WAITING: starting"]
    told.waiting_for = "ScyllaDB at 10.0.0.1:9042: refused"
    until(lambda: "READY=1" in next(words), what="that it is ready", step=lambda: None)
    told.waiting_for = None
    assert "READY=1" not in [word for _ in range(3) for word in next(words)]
    words.close()  # type: ignore[attr-defined]


def test_a_supervisor_that_hangs_is_not_said_to_work(systemd: socket.socket) -> None:
    words = heard(systemd, service(None, alive=False))
    assert next(words) == ["READY=1", "STATUS=RUNNING"]
    assert next(words) == ["STATUS=RUNNING"]
    words.close()  # type: ignore[attr-defined]


def test_what_is_said_is_one_short_line(systemd: socket.socket) -> None:
    words = heard(systemd, service("Kafka:\n" + "x" * 1_000))
    [status] = [word for word in next(words) if word.startswith("STATUS=")]
    assert status.startswith("STATUS=WAITING: Kafka: xxx") and len(status) < 220
    words.close()  # type: ignore[attr-defined]


def test_of_what_has_failed_the_table_and_the_reason_are_said(systemd: socket.socket) -> None:
    told = service("ScyllaDB: slow")
    gone = {"state": "FAILED", "error": "table ks.gone does not exist"}
    worker = {"index": 0, "worker": "w", "fingerprint": "f", "tables_configured": [], "time_ms": 0, "state": "FAILED"}
    worker |= {"slots": [], "slot_count": 1, "tables": {"ks.gone": gone}, "last_report_age_seconds": 0.1}
    told.status = lambda: ServiceStatus.model_validate({"state": "FAILED", "workers": [worker, {**worker, "index": 1}]})
    words = heard(systemd, told)
    assert next(words)[-1] == "STATUS=FAILED: ks.gone is FAILED: table ks.gone does not exist"
    words.close()  # type: ignore[attr-defined]


def test_run_tells_systemd_from_its_start_to_its_end(systemd: socket.socket) -> None:
    """Without a connector: what is there of it is the supervisor."""
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    worker = Path(str(systemd.getsockname())).with_name("worker.json")
    worker.write_text(str(settings).replace("'", '"'))
    run = subprocess.Popen(
        [sys.executable, "-m", "connector", "run", "--worker", str(worker), "--http-port", "0"],
        env={**os.environ, "NOTIFY_SOCKET": str(systemd.getsockname()), "WATCHDOG_USEC": "600000"},
        stderr=subprocess.PIPE,
    )
    try:
        said = ""
        while any(word not in said for word in ("READY=1", "127.0.0.1:1", "connection refused", "WATCHDOG=1")):
            said += systemd.recv(4096).decode() + "\n"
        run.send_signal(signal.SIGTERM)
        while "STOPPING=1" not in said:
            said += systemd.recv(4096).decode() + "\n"
        assert run.wait(60 * patience()) == 0
        assert "connection refused" in said
    finally:
        run.kill()
        run.communicate()


def test_the_unit_starts_what_there_is() -> None:
    unit = RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert service["Type"] == "notify"
    words = service["ExecStart"].split()[1:]
    help_of_run = subprocess.run([sys.executable, "-m", "connector", "run", "--help"], capture_output=True, text=True)
    assert words[0] == "run" and all(
        option in help_of_run.stdout for option in re.findall(r"--[a-z-]+", service["ExecStart"])
    )
