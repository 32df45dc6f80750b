"""What the HTTP port of `run` serves, and what it says of an open port."""

from __future__ import annotations

import http.client
import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector import secrets
from connector.config import Configuration
from connector.worker.child import Child
from connector.worker.holding import Target
from connector.worker.http import readiness_of, status_server
from connector.worker.order import WorkerOrder
from connector.worker.service import CHECK_SECONDS, ROUND_SECONDS
from connector.worker.status_document import Liveness, ServiceStatus, WorkerStatus
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
from tests.house import ROOT
from tests.http.certificates import Authority

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("status.json").read_text())


class Recorded:
    """A service that is as it was when it was recorded, apart from what a test changes."""

    def __init__(self, **changed: object) -> None:
        self.document = {**RECORDED, **changed}

    def status(self) -> ServiceStatus:
        return ServiceStatus.model_validate(self.document)

    def liveness(self) -> Liveness:
        return Liveness(alive=True, last_round_age_seconds=0.1)

    def excused(self) -> frozenset[int]:
        return frozenset()


def get(configuration: Configuration, path: str, token: str | None = None, service: Any = None) -> tuple[int, str]:
    with status_server(configuration, service or Recorded(), "127.0.0.1", 0) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=90)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def worker(**changed: object) -> dict[str, Any]:
    return {**RECORDED["workers"][0], "last_report_age_seconds": 0.1, "waiting_for": None, "slots": [1], **changed}


def test_every_path_is_there() -> None:
    statuses = {path: get(loaded(), path)[0] for path in ("/live", "/status", "/metrics", "/health", "/nothing")}
    expected = {"/live": 200, "/status": 200, "/metrics": 200, "/health": 503, "/nothing": 404}
    assert statuses == expected


def test_probes_need_no_token_and_tell_strangers_nothing() -> None:
    secured = loaded(worker={"rest.bearer.token": "an-operators-token"})
    waiting = Recorded(workers=[], waiting_for="db.internal:9042 does not answer")
    assert get(secured, "/live") == (200, '{"alive": true}')
    assert "last_round_age_seconds" in get(secured, "/live", "an-operators-token")[1]
    assert get(secured, "/ready", service=waiting) == (503, '{"ready": false}')
    assert "db.internal" in get(secured, "/ready", "an-operators-token", waiting)[1]
    for path in ("/health", "/status", "/metrics"):
        assert get(secured, path)[0] == 401
        assert get(secured, path, "an-operators-token", Recorded(state="RUNNING"))[0] == 200


@pytest.mark.parametrize("token", [None, "an-operators-token"])
@pytest.mark.parametrize("speaks_tls", [False, True])
def test_a_container_knows_how_it_is_whoever_may_ask(token: str | None, speaks_tls: bool, tmp_path: Path) -> None:
    """An engine's health check has neither the token nor trust in the certificate."""
    settings = {"rest.bearer.token": token} if token else {}
    if speaks_tls:
        identity, store = Authority().identity("connector.example.com"), tmp_path / "server.pem"
        store.write_text(identity.certificates + identity.key)
        settings["listeners.https.ssl.keystore.location"] = str(store)
    well = Recorded(state="RUNNING", workers=[worker()], workers_wanted=1)
    waiting = Recorded(state="WAITING", workers=[], waiting_for="db:9042 does not answer")
    for service, status in ((well, 0), (waiting, 1)):
        with status_server(loaded(worker=settings), service, "127.0.0.1", 0) as server:
            check = [sys.executable, "-m", "connector.cli.health_check", str(server.port)]
            done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, "")
        assert ("db:9042" in done.stdout) == (service is waiting and token is None), done.stdout


def test_no_secret_leaves_by_any_path() -> None:
    canary = "canary-in-the-coal-mine"
    failing = [f"Kafka refused {canary}"]
    tables = {canary: worker()["tables"]["ks.t"]}
    service = Recorded(failing=failing, waiting_for=canary, workers=[worker(waiting_for=canary, tables=tables)])
    secrets.register(canary)
    shown = [get(loaded(), path, service=service)[1] for path in ("/health", "/status", "/metrics", "/ready")]
    assert not [text for text in shown if canary in text.replace(f'"{canary}": {{', "")]


@pytest.mark.parametrize(
    ("workers", "waiting_for", "reason"),
    [
        ([], "db:9042 does not answer", "db:9042 does not answer"),
        ([], None, "2 of 2 workers have not reported yet"),
        ([worker()], None, "1 of 2 workers have not reported yet"),
        ([worker(), worker(index=1)], None, None),
        ([worker(), worker(index=1, slots=[], in_group=True)], None, None),
        ([worker(), worker(index=1, slots=[], slots_pending=[3], in_group=True)], None, None),
        ([worker(), worker(index=1, slots=[], in_group=False)], None, "worker 1: not in the consumer group"),
        (
            [worker(), worker(index=1, slots=[], in_group=False, waiting_for="kafka:9092 is down")],
            "kafka:9092 is down",
            "worker 1: kafka:9092 is down",
        ),
        ([worker(), worker(index=1, last_report_age_seconds=40)], None, "worker 1: no report for 40 s"),
        # What `/health` is for.
        ([worker(state="FAILED"), worker(state="WAITING", index=1, waiting_for="db:9042")], "db:9042", None),
    ],
)
def test_ready_is_whoever_has_slots_or_stands_in_line(
    workers: list[dict[str, Any]], waiting_for: str | None, reason: str | None
) -> None:
    found = readiness_of(Recorded(workers=workers, workers_wanted=2, waiting_for=waiting_for).status())
    assert (found.ready, found.waiting_for) == (reason is None, reason)


def test_who_is_excused_is_not_missed() -> None:
    waiting = Recorded(workers=[worker()], workers_wanted=3, waiting_for="db:9042")
    assert readiness_of(waiting.status(), {1}).waiting_for == "1 of 2 workers have not reported yet"
    assert readiness_of(waiting.status(), {1, 2}).ready
    assert readiness_of(Recorded(workers=[], workers_wanted=1, waiting_for="db:9042").status(), {0}).ready
    nobody = Recorded(workers=[], workers_wanted=0, waiting_for="starting", connectors={})
    assert readiness_of(nobody.status()).waiting_for == "starting", "what there is to run is not known"


@pytest.mark.parametrize("lasting", [False, True])
def test_who_can_be_mended_through_this_process_alone_keeps_it_ready(lasting: bool) -> None:
    """Behind a Service of Kubernetes nobody reaches a process that is not ready."""
    one = loaded({"tasks.max": "1"})
    before = WorkerStatus.model_validate({**RECORDED["workers"][0], "index": 0})

    def ready(
        tenant: dict[str, Any], *, starts: str | None = None, asks: str | None = None, again: bool = False
    ) -> bool:
        """``asks``: what its worker, which there is only then, waits for."""
        supervisor = Supervisor(["false"], [WorkerOrder(one, 0)], lasting=lasting)
        supervisor.waiting_for = starts
        if asks is not None:
            child = Child(0, SimpleNamespace(pid=1), one.group, one, waiting=asks or None)  # type: ignore[arg-type]
            supervisor.children = {0: child}
        if again:
            supervisor._last[0] = before, 0.0
        for name, value in tenant.items():
            setattr(supervisor.tenants[one.group], name, value)
        return readiness_of(supervisor.status(), supervisor.excused()).ready

    assert not ready({}) and not ready({}, asks=""), "its worker has not reported"
    assert not ready({}, starts="what was asked before to be known")
    assert ready({"target": Target.PAUSED}), "nothing is to run"
    assert ready({"over": "table ks.t does not exist"}) is lasting, "with files an update may have broken it"
    assert ready({"over": "table ks.t does not exist"}, again=True)
    assert ready({"preparation": SimpleNamespace(waiting_for="db:9042 does not answer")}) is lasting
    assert ready({}, asks="connecting to ScyllaDB") is lasting
    assert ready({}, asks="connecting to ScyllaDB", again=True), "it ran before"


def test_live_is_a_supervisor_that_does_its_rounds() -> None:
    now = 1000.0
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)], monotonic=lambda: now)
    now += CHECK_SECONDS - 1
    assert supervisor.liveness().alive, "it waits for servers"
    supervisor.waiting_for = "db:9042"
    now += CHECK_SECONDS - 1
    assert supervisor.liveness().alive, "it has looked at them again"
    now += 2
    assert not supervisor.liveness().alive, "it hangs"
    supervisor.waiting_for = None
    assert supervisor.liveness().alive
    now += ROUND_SECONDS + 1
    assert supervisor.liveness() == Liveness(alive=False, last_round_age_seconds=ROUND_SECONDS + 1)
    assert get(loaded(), "/live", service=supervisor)[0] == 503


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_open_port_is_warned_about_once_it_is_opened(
    host: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def said(**worker: str) -> list[tuple[int, str]]:
        caplog.clear()
        with caplog.at_level(logging.INFO, "connector"), status_server(loaded(worker=worker), Recorded(), host, 0):
            return [(record.levelno, record.getMessage()) for record in caplog.records]

    identity = Authority().identity("server")
    store = tmp_path / "server.pem"
    store.write_text(identity.certificates + identity.key)
    tls, token = {"listeners.https.ssl.keystore.location": str(store)}, {"rest.bearer.token": "an-operators-token"}
    [(level, text)] = said()
    assert level == logging.WARNING and "rest.bearer.token" in text and "listeners.https.ssl.keystore.location" in text
    [(level, text)] = said(**token)
    assert level == logging.INFO and "unencrypted" in text and "an-operators-token" not in text
    [(level, text)] = said(**tls)
    assert level == logging.INFO and "rest.bearer.token is not set" in text
    assert said(**tls, **token) == []
    with status_server(loaded(), Recorded(), "127.0.0.1", 0):
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("days", "said"), [((-9, -2), "has expired on 20"), ((2, 9), "is valid from 20"), ((-1, 1), None)]
)
def test_a_certificate_whose_time_is_not_now_is_told(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, days: tuple[int, int], said: str | None
) -> None:
    """What a client objects to it is never heard here."""
    identity, store = Authority().identity("server", days), tmp_path / "server.pem"
    store.write_text(identity.key + identity.certificates)
    configuration = loaded(worker={"listeners.https.ssl.keystore.location": str(store)})
    with caplog.at_level(logging.INFO), status_server(configuration, Recorded(), "127.0.0.1", 0) as server:
        told = [record.getMessage() for record in caplog.records if "the certificate of" in record.getMessage()]
        assert bool(told) == (said is not None) and all(server.url in each and str(said) in each for each in told)
