"""`scylla-cdc demo`: Ctrl-C at its stages, the comparison, the answer. The README's commands run the whole of it."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from connector.errors import EmbeddedError
from connector.worker.status_document import ServiceStatus
from embedded.demo.comparison import plain
from embedded.demo.report import Findings, text, value
from embedded.demo.run import landed_by, stay_up
from embedded.demo.service import has_passed
from embedded.demo.workload import Told
from embedded.process import TiedProcess
from tests.foreground import as_in_the_foreground
from tests.house import ROOT
from tests.servers.patience import patience, until


def processes_with(marker: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_text().replace("\0", " ")
                variables = (folder / "environ").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker.encode() in variables and state != "Z":
                found.append(command)
    return found


@pytest.mark.kafka
@pytest.mark.scylla
@pytest.mark.parametrize("moment", ["starting ScyllaDB", "Kafka on", "starting the connector", "writing", "-9"])
def test_ctrl_c_ends_it_at_once_and_leaves_nothing(tmp_path: Path, moment: str) -> None:
    marker = f"DEMO_{uuid.uuid4().hex}"
    demo = subprocess.Popen(
        [sys.executable, "-m", "connector", "demo", "--keep", str(tmp_path / "demo")],
        cwd=ROOT,
        env={**os.environ, marker: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=as_in_the_foreground,
    )
    try:
        assert demo.stdout is not None
        for line in demo.stdout:
            if moment in line:
                break
        else:
            raise AssertionError(f"ended before: {demo.communicate()[1]}")
        # As a terminal does it: to the whole group.
        os.killpg(demo.pid, signal.SIGINT)
        _, errors = demo.communicate(timeout=180 * patience())
        assert (demo.returncode, errors) == (130, "")
    finally:
        demo.kill()
        demo.communicate()
    until(lambda: not processes_with(marker), 90, lambda: f"the end of {processes_with(marker)}")


_HANGS = """
import threading
from connector.cli.start import main
from embedded.kafka import EmbeddedKafka
EmbeddedKafka.start = lambda self: threading.Event().wait()
main()
"""


def test_ctrl_c_waits_for_no_server_that_is_starting(tmp_path: Path) -> None:
    """Nor for one that is only begun while all ends."""
    demo = subprocess.Popen(
        [sys.executable, "-c", _HANGS, "demo", "--keep", str(tmp_path / "demo")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_in_the_foreground,
    )
    try:
        assert demo.stdout is not None
        assert "starting ScyllaDB" in demo.stdout.readline()
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=180 * patience())
        assert (demo.returncode, errors) == (130, "")
    finally:
        demo.kill()
        demo.communicate()


def test_a_folder_with_something_else_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    done = subprocess.run(
        [sys.executable, "-m", "connector", "demo", "--keep", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, (tmp_path / "letter").read_text()) == (2, "dear")
    assert "--keep" in done.stderr


def test_values_of_driver_and_spark_become_the_same() -> None:
    moment = datetime.datetime(2024, 5, 1, 12)
    assert plain({"at": moment, "d": Decimal("1.50"), "b": b"\x01", "s": ("b",), "n": None}) == [
        ["at", 1714564800000],
        ["b", "01"],
        ["d", "1.50"],
        ["n", None],
        ["s", ["b"]],
    ]


def status(*tables: dict[str, object], pending: Sequence[int] = ()) -> ServiceStatus:
    """Of two workers with three slots each that read one table."""
    who: dict[str, object] = {
        "worker": "w",
        "fingerprint": "",
        "tables_configured": ["shop.orders"],
        "time_ms": 0,
        "state": "RUNNING",
        "slots_pending": list(pending),
    }
    workers = [
        {**who, "slots": [0, 1, 2], "slot_count": 6, "tables": {"shop.orders": {"state": "RUNNING", **table}}}
        for table in tables
    ]
    return ServiceStatus.model_validate({"state": "RUNNING", "workers": workers})


def test_a_slot_that_is_claimed_and_not_yet_read_has_not_passed() -> None:
    read: dict[str, object] = {"position_ms": 11, "waiting_count": 0}
    assert has_passed(status(read, read), 10)
    assert has_passed(status(read, {"position_ms": None, "waiting_count": 0}), 10)
    assert not has_passed(status(read, {"position_ms": 10, "waiting_count": 0}), 10)
    assert not has_passed(status(read, {"position_ms": None, "waiting_count": 3}), 10)
    assert not has_passed(status(read, {"state": "FAILED"}), 10)
    assert not has_passed(status(read, {"position_ms": None, "waiting_count": 0}, pending=[1]), 10)


def findings(**changes: object) -> Findings:
    values: dict[str, object] = {
        "seed": 1,
        "kinds": {"insert": 1},
        "write_seconds": 2.0,
        "source_rows": {"shop.orders": 1},
        "landed_rows": {"shop.orders": 1},
        "differences": 0,
        "details": [],
        "logged": 10,
        "records": 10,
        "missing": 0,
        "doubled": 0,
        "old_rows": 4,
        "snapshots": 4,
        "breaches": [],
        "latencies_ms": [1, 2, 3],
        "confidence_ms": 1500,
        "dead_letters": [{"scylla.cdc.table": "shop.orders", "__connect.errors.exception.message": "because " * 20}],
        "landing_seconds": 1.0,
        "story": [
            Told("UPDATE t USING TIMESTAMP 5 SET note = 'a long note, is it not' WHERE k = 1", 5, ("note",), "late")
        ],
        "story_source": {"note": "a"},
        "story_landed": {"note": "a"},
        "story_records": [{"op": "u", "after": {"note": {"value": "a"}}}],
    }
    return Findings(**{**values, **changes})  # type: ignore[arg-type]


def test_the_answer_fits_a_narrow_terminal() -> None:
    shown = text(findings())
    assert max(map(len, shown.splitlines())) <= 60
    assert "0 differences" in shown and "(late)" in shown and 'u "a"' in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("wrong", [{"missing": 1}, {"doubled": 2}, {"differences": 1, "details": ["a row"]}])
def test_what_is_missing_doubled_or_different_is_no_success(wrong: dict[str, object]) -> None:
    assert findings().good and not findings(**wrong).good
    assert value(findings(**wrong)).items() >= wrong.items()


def test_a_promise_of_the_snapshot_that_is_broken_is_no_success() -> None:
    broken = findings(breaches=["('ada', 1): 2 rows of the snapshot"])
    assert not broken.good and "1 BREACHES" in text(broken) and "2 rows of the snapshot" in text(broken)
    assert value(broken)["snapshot"] == {"before": 4, "records": 4, "breaches": broken.breaches}


def test_landing_that_takes_too_long_or_ends_early_shows_its_log(tmp_path: Path) -> None:
    class Job(TiedProcess):
        def __init__(self, status: int | None) -> None:
            self.status = status

        def wait(self, seconds: float) -> int | None:
            return self.status

    log = tmp_path / "logs" / "land.log"
    log.parent.mkdir()
    log.write_text("first\nKafka does not answer\n")
    for status, shown in ((None, "landing has not ended in 0 s"), (1, "landing ended with status 1")):
        with pytest.raises(EmbeddedError) as caught:
            landed_by(Job(status), tmp_path, 0)
        assert str(caught.value) == f"{shown}: Kafka does not answer ({log})"


def test_it_stays_up_at_the_same_address_until_ctrl_c() -> None:
    happened: list[str] = []

    class Connector:
        url = "http://127.0.0.1:7"

        def start(self) -> None:
            happened.append("started")

        def wait_until_running(self) -> None:
            happened.append("running")

    class Writes:
        def one(self) -> None:
            happened.append("written")
            if happened.count("written") == 2:
                raise KeyboardInterrupt

    def told(found: Findings, page: str) -> None:
        happened.append(page)

    stay_up(findings(), Writes(), Connector(), told)  # type: ignore[arg-type]
    assert happened == ["started", "running", "http://127.0.0.1:7/ui", "written", "written"]
