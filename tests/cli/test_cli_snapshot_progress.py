"""The bar of a `run` that ends with its snapshots: what it counts, where it is drawn, its end."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import pty
import struct
import termios
import threading

import pytest

from connector.cli import snapshot_progress
from connector.cli.output import ConsoleOutput
from connector.cli.snapshot import pace_text, snapshot_text
from connector.cli.snapshot_progress import SnapshotProgress, Standing, standing
from connector.worker.status_document import SnapshotStatus, WorkerStatus
from tests.house import ROOT
from tests.servers.patience import until


def report(refused: int = 0, left: int | None = None, **tables: tuple[float, int] | None) -> WorkerStatus:
    shown = {
        name: {
            "state": "RUNNING",
            "snapshot": None
            if shot is None
            else {"ended": False, "done": shot[0], "rows": shot[1], "refused": refused, "seconds_left": left},
        }
        for name, shot in tables.items()
    }
    who = {"worker": "w", "fingerprint": "", "tables_configured": [], "time_ms": 0, "state": "RUNNING"}
    return WorkerStatus.model_validate({**who, "slots": [], "slot_count": 6, "tables": shown})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_committed_counts_once_and_rows_add_up() -> None:
    reports = [report(a=(0.5, 10), b=(0.25, 3)), report(a=(0.75, 4), b=None)]
    assert standing(reports) == Standing(0.5, 17, 2, 0)
    assert standing([report(a=None)]) is None


def test_while_rows_are_refused_no_end_is_promised() -> None:
    reports = [report(left=40, a=(0.5, 10)), report(refused=2, a=(0.5, 4))]
    assert standing(reports[:1]) == Standing(0.5, 10, 1, 0, seconds_left=40)
    found = standing(reports)
    assert found is not None and found.text() == " 50% of 1 table, 14 rows, rows of 2 ranges are refused"


def test_what_goes_on_tells_how_long_yet() -> None:
    assert (
        Standing(0.5, 1200, 2, 0, rows_per_second=350.4, seconds_left=290).text()
        == " 50% of 2 tables, 1,200 rows, 350 rows/s, about 5 min to go"
    )
    assert [pace_text(0, left) for left in (None, 99, 20_000)] == ["", ", about 99 s to go", ", about 6 h to go"]


def test_the_tutorial_shows_a_snapshot_as_it_is_told() -> None:
    done = SnapshotStatus(kind="initial", ended=True, done=1.0, rows=2)
    assert f"    snapshot: {snapshot_text(done)}\n" in (ROOT / "docs" / "tutorial.md").read_text()


def test_a_bar_is_drawn_in_place_and_wiped_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_progress, "_DRAWN_SECONDS", 0.01)
    terminal = Terminal()
    with SnapshotProgress(ConsoleOutput(io.StringIO(), terminal), lambda: [report(a=(0.5, 1200))]):
        until(lambda: "1,200 rows" in terminal.getvalue(), 30, "a bar")
    shown = terminal.getvalue()
    assert f"\r\x1b[Ksnapshot {'━' * 12}{'─' * 12}  50% of 1 table, 1,200 rows\r" in shown
    assert shown.endswith("\r\x1b[K") and "\n" not in shown


FULL = "━" * 12 + "─" * 12


@pytest.mark.parametrize(("columns", "bar"), [(110, FULL), (58, "━" * 5 + "─" * 5), (48, ""), (30, ""), (0, FULL)])
def test_a_bar_takes_one_line_of_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, bar: str) -> None:
    """What wraps is not wiped: each time one more line of it stays."""
    monkeypatch.setattr(snapshot_progress, "_DRAWN_SECONDS", 0.01)
    far, near = pty.openpty()
    fcntl.ioctl(near, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    told = "snapshot " + bar + "  50% of 1 table, 123,456,789,012 rows"
    shown = ""

    def drawn() -> bool:
        nonlocal shown
        shown += os.read(far, 10_000).decode(errors="ignore")
        return shown.count("\x1b[K") > 2

    try:
        with (
            os.fdopen(near, "w") as terminal,
            SnapshotProgress(ConsoleOutput(io.StringIO(), terminal), lambda: [report(a=(0.5, 123_456_789_012))]),
        ):
            until(drawn, 30, "a bar")
    finally:
        os.close(far)
    line = shown.split("\x1b[K")[1].rstrip("\r")
    assert line == (told[: columns - 1] if columns else told)


def test_elsewhere_there_are_lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(snapshot_progress, "_TOLD_SECONDS", 0.01)
    asked, stderr = threading.Event(), io.StringIO()

    def reports() -> list[WorkerStatus]:
        asked.set()
        return [report(a=(1.0, 5))]

    with caplog.at_level(logging.INFO), SnapshotProgress(ConsoleOutput(io.StringIO(), stderr), reports):
        assert asked.wait(30)
        until(lambda: bool(caplog.messages), 30, "a line")
    assert caplog.messages[0] == "snapshot: 100% of 1 table, 5 rows" and stderr.getvalue() == ""
