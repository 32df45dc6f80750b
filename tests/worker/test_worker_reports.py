"""What stands in the status topic: workers' last words, and whatever else somebody wrote there."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from connector.config import load
from connector.worker import reports
from connector.worker.positions import Positions
from connector.worker.process import LONGEST_REPORT_SECONDS, REPORT_SECONDS, REPORT_SHARE, until_the_next
from connector.worker.reports import SILENT_MS, _given_up, _orphaned, _take, _warnings, _workers, status_report
from connector.worker.service import SILENT_SECONDS
from connector.worker.state import State
from connector.worker.status_document import ReportedWorker, WorkerStatus
from connector.worker.status_topic import PUBLISH_SECONDS
from tests.formats.options import BASE, JSON, WORKER

KEY = b'["orders", {"worker": "w-1"}]'
STATUS: dict[str, Any] = {
    "worker": "w-1",
    "state": "RUNNING",
    "fingerprint": "f",
    "time_ms": 1,
    "slot_count": 25,
    "slots": [1],
    "tables": {"ks.t": {"state": "RUNNING"}},
    "tables_configured": ["ks.t"],
}


def taken(key: bytes | None, value: bytes | None, found: dict[str, WorkerStatus]) -> dict[str, WorkerStatus]:
    _take("orders", key, value, found)
    return found


def test_a_worker_is_known_until_its_tombstone() -> None:
    found = taken(KEY, json.dumps(STATUS).encode(), {})
    assert found["w-1"].document() == STATUS
    assert taken(KEY, None, found) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"5", b"{}"),
        (b"[" * 100_000, b"{}"),
        (b'["orders"]', b"{}"),
        (b'["orders", {"worker": [1]}]', b"{}"),
        (b'["other", {"worker": "w-1"}]', json.dumps(STATUS).encode()),
        (KEY, b"x"),
        (KEY, b"[" * 100_000),
        (KEY, b"7"),
        (KEY, b"{}"),
        *((KEY, json.dumps({**STATUS, name: None}).encode()) for name in STATUS),
        (KEY, json.dumps({**STATUS, "slot_count": 10**15}).encode()),
        (KEY, json.dumps({**STATUS, "tables": {"ks.t": 1}}).encode()),
        (KEY, json.dumps({**STATUS, "slots": [[]]}).encode()),
    ],
)
def test_anything_else_is_passed_over(key: bytes | None, value: bytes) -> None:
    assert taken(key, value, {}) == {}
    assert taken(key, value, {"w-2": STATUS}) == {"w-2": STATUS}


@pytest.mark.parametrize(
    ("age", "state", "stale"),
    [(1_000, State.RUNNING, False), (9_000, State.WAITING, False), (60_000, State.WAITING, True)],
)
def test_last_words_are_believed_as_long_as_they_are_new(age: int, state: State, stale: bool) -> None:
    status = WorkerStatus.model_validate({**STATUS, "tables": {"ks.t": {"state": "RUNNING", "lag_ms": 500}}})
    [worker] = _workers([status], status.time_ms + age)
    assert (worker.state, worker.tables["ks.t"].state, worker.stale) == (state, state, stale)
    assert worker.tables["ks.t"].lag_ms == 500 + (age if state is State.WAITING else 0)
    assert bool(worker.waiting_for) == (state is State.WAITING)


@pytest.mark.parametrize("off", [-60_000, 0, 60_000])
@pytest.mark.parametrize(("ago", "stale"), [(1_000, False), (20_000, True), (50_000, True), (90_000, True)])
@pytest.mark.parametrize("whose", ["time_ms", "server_time_ms"])
def test_a_clock_that_is_wrong_makes_no_worker_gone_and_none_that_is_gone_present(
    off: int, ago: int, stale: bool, whose: str
) -> None:
    """Its own, or that of ScyllaDB's nodes: the other one is that of whoever looks."""
    now = 10_000_000
    times = {"time_ms": now - ago, "server_time_ms": now - ago}
    status = WorkerStatus.model_validate({**STATUS, **times, whose: now - ago + off})
    [worker] = _workers([status], now)
    assert worker.stale is stale and worker.age_ms >= ago


@pytest.mark.parametrize(
    ("ages", "slots", "orphaned"),
    [
        ([], [], False),
        ([0], [range(25)], False),
        ([0, 0], [range(12), range(12, 25)], False),
        ([0, 0], [range(12), []], True),
        ([0, 60_000], [range(12), range(12, 25)], True),
        ([0, 60_000], [range(25), range(12, 25)], False),
        ([60_000], [range(25)], True),
    ],
)
def test_slots_that_nobody_reads_are_not_running(ages: list[int], slots: list[Any], orphaned: bool) -> None:
    """Also those that one worker has let go and the other does not have yet."""
    statuses = [
        WorkerStatus.model_validate({**STATUS, "worker": f"w-{at}", "time_ms": 100_000 - age, "slots": list(its)})
        for at, (age, its) in enumerate(zip(ages, slots, strict=True))
    ]
    assert _orphaned(_workers(statuses, 100_000)) is orphaned


def test_reports_that_cost_much_come_more_rarely_and_never_so_late_that_a_worker_seems_silent() -> None:
    assert until_the_next(0.0) == until_the_next(0.002) == REPORT_SECONDS
    assert until_the_next(0.003) == pytest.approx(0.003 / REPORT_SHARE)
    assert until_the_next(5.0) == LONGEST_REPORT_SECONDS
    # What is published is the last report, now and then.
    assert LONGEST_REPORT_SECONDS + PUBLISH_SECONDS < SILENT_MS / 1000 - 2
    assert LONGEST_REPORT_SECONDS < SILENT_SECONDS / 2


def test_a_budget_of_queries_that_makes_changes_late_is_a_warning() -> None:
    def warnings(late_ms: int) -> list[str]:
        reading = {"late_ms": late_ms}
        worker = ReportedWorker.model_validate(STATUS | {"reading": reading, "age_ms": 1, "stale": False})
        return [each for each in _warnings(load(BASE | JSON, WORKER | JSON, {}), [worker]) if "later" in each]

    assert warnings(0) == []
    assert warnings(12_300) == [
        "changes may be up to 12.3 s later than they need to be: scylla.max.queries.per.second (500) is less than "
        "worker w-1 has use for"
    ]


def of_process(age: int = 1_000, state: str = "FAILED", **other: Any) -> tuple[bytes, bytes]:
    given = {"name": "orders", "group": "workers", "now": 100_000, **other}
    instance = {"state": state, "trace": "ks.t does not exist", "worker_id": "a:1", "version": "0.1.0"}
    view = {"name": given["name"], "config": {}, "instance": instance, "tasks": [], "topics": []}
    word = {"id": "p", "started_ms": 1, "at_ms": given["now"] - age, "connectors": [view]}
    key = json.dumps(["", {"group": given["group"], "process": "p"}])
    return key.encode(), json.dumps(word).encode()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (of_process(), ["ks.t does not exist"]),
        (of_process(state="RUNNING"), []),
        (of_process(state="STOPPED"), []),
        (of_process(name="other"), []),
        (of_process(group="others"), []),
        (of_process(age=60_000), []),
        ((of_process()[0], None), []),
        ((of_process()[0], b'{"at_ms": "now"}'), []),
        ((of_process()[0], b'{"at_ms": 100000, "connectors": [1]}'), []),
        ((b"x", b"{}"), []),
        ((None, b"{}"), []),
    ],
)
def test_a_connector_that_a_process_has_given_up_has_failed(
    said: tuple[bytes | None, bytes | None], found: list[str]
) -> None:
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    assert [*_given_up(dict([said]), configuration, 100_000)] == found


def test_status_of_a_connector_without_workers_says_that_it_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    monkeypatch.setattr(reports, "_said", lambda *_: dict([of_process(now=int(time.time() * 1000))]))
    monkeypatch.setattr(Positions, "stored_with_snapshots", lambda _: ([], {}))
    report = status_report(configuration)
    assert (report.state, report.given_up) == (State.FAILED, "ks.t does not exist")
    monkeypatch.setattr(reports, "_said", lambda *_: {})
    report = status_report(configuration)
    assert (report.state, report.given_up) == (State.STOPPED, None)
