"""`status`: its exit status, and what it says of workers and servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connector.cli.main import run
from connector.worker.status_document import ReportedWorker, StatusReport
from tests.config.files import CONNECTOR, WORKER

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent.parent / "worker" / "status.json").read_text())


def reported(state: str, **changed: object) -> StatusReport:
    worker = {**RECORDED["workers"][0], "state": state, "age_ms": 100, "stale": False, **changed}
    content = {"connector": "shop", "state": state, "tables": {}, "workers": [], "warnings": []}
    return StatusReport.model_validate({**content, "workers": [ReportedWorker.model_validate(worker)]})


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "c.json").write_text(json.dumps(CONNECTOR))
    (tmp_path / "w.json").write_text(json.dumps(WORKER))
    return [str(tmp_path / "c.json"), "--worker", str(tmp_path / "w.json")]


@pytest.mark.parametrize(("state", "status"), [("FAILED", 1), ("WAITING", 0), ("RUNNING", 0), ("STOPPED", 0)])
def test_only_what_has_failed_is_a_failure(
    state: str, status: int, files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("connector.worker.reports.status_report", lambda _: reported(state))
    assert run(["status", *files]) == status
    assert run(["status", *files, "--json"]) == status
    assert f"connector shop: {state} (ScyllaDB 2026.1.0; Kafka 4.0 or newer)" in capsys.readouterr().out


def test_why_a_connector_was_given_up_is_said(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = reported("FAILED").model_copy(update={"workers": (), "given_up": "table ks.t does not exist"})
    monkeypatch.setattr("connector.worker.reports.status_report", lambda _: report)
    assert run(["status", *files]) == 1
    assert "connector shop: FAILED\n  given up: table ks.t does not exist\n" in capsys.readouterr().out


def test_a_worker_is_told_with_its_place_and_what_is_new_about_it(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = reported("RUNNING", colour="blue", started_ms=1_795_328_220_000)
    monkeypatch.setattr("connector.worker.reports.status_report", lambda _: report)
    run(["status", *files])
    place = "on db-tools-1, pid 4712, version 0.1.0, since 2026-11-22T06:17:00+00:00"
    assert f"{place}, native path on\n" in capsys.readouterr().out
    run(["status", *files, "--json"])
    assert json.loads(capsys.readouterr().out)["workers"][0]["colour"] == "blue"


def test_groups_that_are_tried_again_for_one_reason_are_told_together(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = [(7, 3, "no answer"), (2, 10, "no answer"), (7, 4, "no answer"), (5, 1, "refused")]
    retrying = [{"slot": slot, "attempts": count, "error": error} for slot, count, error in attempts]
    monkeypatch.setattr("connector.worker.reports.status_report", lambda _: reported("RUNNING", retrying=retrying))
    run(["status", *files])
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if "retrying" in line]
    assert told == ["retrying slots 2, 7, attempt 10: no answer", "retrying slot 5, attempt 1: refused"]


def test_an_older_worker_has_no_place(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = reported("RUNNING", host="", scylla_version=None, kafka_version=None, native={})
    monkeypatch.setattr("connector.worker.reports.status_report", lambda _: report)
    run(["status", *files])
    out = capsys.readouterr().out
    assert "connector shop: RUNNING\n" in out and "3 slots\n" in out


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"target": "PAUSED"}, ["connector shop: STOPPED, PAUSED by request"]),
        ({"waiting_for": "db:9042 is away"}, ["connector shop: STOPPED", "  waits for: db:9042 is away"]),
        ({"given_up": "no such table"}, ["connector shop: STOPPED", "  given up: no such table"]),
    ],
)
def test_a_connector_without_workers_is_told_with_the_reason(
    said: dict[str, str],
    shown: list[str],
    files: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = {"connector": "shop", "state": "STOPPED", "tables": {}, "workers": [], "warnings": [], **said}
    monkeypatch.setattr("connector.worker.reports.status_report", lambda _: StatusReport.model_validate(content))
    assert run(["status", *files]) == 0
    assert capsys.readouterr().out.splitlines() == shown
