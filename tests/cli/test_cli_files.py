"""Several connectors on one command line, and the worker's file in front, as for `connect-standalone`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.cli.configuration import definitions, load_beside, load_to_run
from connector.cli.main import run
from connector.cli.service import announce
from connector.worker import checks, supervisor
from connector.worker.child import Child
from connector.worker.ended_workers import Ends
from connector.worker.messages import StatusMessage
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.status_document import ServiceStatus, WorkerStatus
from connector.worker.tenants import Tenant
from tests.config.files import CONNECTOR, WORKER, loaded


def properties(path: Path, values: dict[str, Any]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return [
        properties(tmp_path / "worker.properties", WORKER),
        properties(tmp_path / "one.properties", {**CONNECTOR, "name": "one", "tasks.max": 2}),
        properties(tmp_path / "two.properties", {**CONNECTOR, "name": "two"}),
    ]


def test_all_of_them_are_validated(files: list[str], capsys: Any) -> None:
    assert run(["validate", "--offline", *files]) == 0
    assert capsys.readouterr().out.startswith("valid: connector one, 1 table; connector two, 1 table")
    assert run(["validate", "--offline", *files[1:], "--worker", files[0]]) == 0


def test_problems_of_all_of_them_are_one_answer(files: list[str], capsys: Any, tmp_path: Path) -> None:
    properties(tmp_path / "two.properties", {**CONNECTOR, "name": "one", "tasks.max": 0})
    properties(tmp_path / "worker.properties", {**WORKER, "group.idd": "x"})
    assert run(["validate", "--offline", *files, "--json"]) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [(Path(each["file"]).name, each["property"]) for each in problems] == [
        ("worker.properties", "group.idd"),
        ("two.properties", "tasks.max"),
    ]


def test_two_connectors_of_one_name_would_share_positions(files: list[str], capsys: Any) -> None:
    assert run(["run", files[0], files[1], files[1]]) == 2
    assert "has the same name, hence the same positions" in capsys.readouterr().err


def test_a_file_with_several_connectors(files: list[str], capsys: Any, tmp_path: Path) -> None:
    config = {name: value for name, value in CONNECTOR.items() if name != "name"}
    resources = [
        {"apiVersion": "v1", "kind": "KafkaConnector", "metadata": {"name": name}, "spec": {"config": config}}
        for name in ("orders", "returns")
    ]
    path = tmp_path / "all.yaml"
    path.write_text("\n---\n".join(map(json.dumps, resources)))
    assert run(["validate", "--offline", files[0], str(path)]) == 0
    assert "connector orders, 1 table; connector returns" in capsys.readouterr().out


@pytest.fixture
def piped() -> Iterator[Callable[[str], Path]]:
    """As `<(sops -d FILE)` of a shell."""
    ends: list[int] = []

    def path(file: str) -> Path:
        end, told = os.pipe()
        ends.append(end)
        os.write(told, Path(file).read_bytes())
        os.close(told)
        return Path(f"/dev/fd/{end}")

    yield path
    for end in ends:
        os.close(end)


def test_files_that_are_pipes_are_read_once(files: list[str], piped: Callable[[str], Path]) -> None:
    """However many connectors are beside a worker's, and whenever one of them is looked at once more."""
    assert run(["validate", "--offline", *(str(piped(each)) for each in files)]) == 0
    worker, *connectors = map(piped, files)
    args = argparse.Namespace(config=connectors, worker=worker)
    (one, two), again = load_to_run(args)
    assert again("one") == one and again("two") == two
    posted = definitions(args)
    assert [each["name"] for each in posted] == ["one", "two"]
    assert load_beside(posted[1], worker).worker == two.worker


def test_run_starts_the_workers_of_all_connectors(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[WorkerOrder] = []
    monkeypatch.setattr(checks, "wait_until_checked", lambda *_: [])
    monkeypatch.setattr(supervisor.Supervisor, "run", _taking(orders))
    assert run(["run", *files]) == 0
    assert [(order.configuration.connector.name, order.index) for order in orders] == [
        *(("one", 0), ("one", 1), ("two", 2))
    ]
    assert {order.configuration.worker.bootstrap_servers for order in orders} == {"127.0.0.1:9092"}


def _taking(orders: list[WorkerOrder]) -> Any:
    def taken(self: supervisor.Supervisor, stop: threading.Event) -> int:
        orders.extend(self.orders)
        return 0

    return taken


def test_commits_of_one_connector_say_nothing_about_the_crashes_of_another(status: dict[str, Any]) -> None:
    looked_after = supervisor.Supervisor([], [])
    process: Any = None
    ours, others = (Child(index, process, group) for index, group in enumerate(("one", "two")))
    one = Tenant("one", ends=Ends("broken", 4))
    looked_after.tenants = {"one": one, "two": Tenant("two")}
    reported = StatusMessage(status=WorkerStatus.model_validate(status))
    looked_after._take(others, reported)
    assert one.ends == Ends("broken", 4)
    looked_after._take(ours, reported)
    assert one.ends == Ends()


def test_metrics_of_two_connectors_in_one_run_do_not_meet(status: dict[str, Any]) -> None:
    workers = [{**status, "index": index, "connector": name} for index, name in enumerate(("one", "two"))]
    document = ServiceStatus.model_validate({"state": "RUNNING", "connector": "one, two", "workers": workers})
    page = metrics_page(lambda: document).decode()
    assert 'scylla_cdc_rows_total{connector="one",worker="0"}' in page
    assert 'scylla_cdc_rows_total{connector="two",worker="1"}' in page


@pytest.fixture
def status() -> dict[str, Any]:
    """A report of a worker that has committed something."""
    document = json.loads((Path(__file__).parents[1] / "worker" / "status.json").read_text())
    found: dict[str, Any] = document["workers"][0]
    return {**found, "delivery": {**found["delivery"], "commits": 1}}


def test_what_is_unknown_is_a_warning_of_the_log_and_what_has_no_effect_a_line_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "connector"):
        announce(loaded({"some.thing": "else", "poll.interval.ms": "7"}), 1)
    said = [(record.levelname, record.getMessage().split(": ")) for record in caplog.records]
    levels = {parts[1]: level for level, parts in said if len(parts) > 1}
    assert (levels["some.thing"], levels["poll.interval.ms"]) == ("WARNING", "INFO")
