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
from connector.worker.reports import (
    SILENT_MS,
    _orphaned,
    _processes,
    _table,
    _take,
    _warnings,
    _workers,
    status_report,
)
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
    given = {"name": "orders", "group": "workers", "process": "p", "now": 100_000, "trace": "ks.t does not exist"}
    given |= other
    instance = {"state": state, "trace": given["trace"], "worker_id": "a:1", "version": "0.1.0"}
    view = {"name": given["name"], "config": {}, "instance": instance, "tasks": [], "topics": []}
    word = {"id": given["process"], "started_ms": 1, "at_ms": given["now"] - age, "connectors": [view]}
    key = json.dumps(["", {"group": given["group"], "process": given["process"]}])
    return key.encode(), json.dumps(word).encode()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (of_process(), [("FAILED", "ks.t does not exist")]),
        (of_process(state="UNASSIGNED"), [("UNASSIGNED", "ks.t does not exist")]),
        (of_process(state="STOPPED", trace=None), [("STOPPED", None)]),
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
def test_what_a_process_says_of_the_connector_is_known(
    said: tuple[bytes | None, bytes | None], found: list[tuple[str, str | None]]
) -> None:
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    assert [*_processes(dict([said]), configuration, 100_000)] == found


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_process_whose_clock_is_wrong_is_heard_and_one_that_was_killed_is_not(
    hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both say when they said it by their own clocks alone."""
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    looks, now = list[int](), int(time.time() * 1000)

    def said(*_: object) -> dict[bytes, bytes]:
        looks.append(0)
        there = of_process(now=now + hours * 3_600_000 + len(looks) * 3_000, process="there", trace="no such table")
        gone = of_process(now=now + hours * 3_600_000, process="gone", state="PAUSED", trace=None)
        return dict([there, gone] if is_there else [gone])

    monkeypatch.setattr(reports, "_said", said)
    monkeypatch.setattr(reports, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(Positions, "stored_with_snapshots", lambda _: ([], {}))
    is_there = True
    report = status_report(configuration)
    assert (report.state, report.given_up) == (State.FAILED, "no such table")
    is_there = False
    report = status_report(configuration)
    assert (report.state, report.target) == (State.STOPPED, "RUNNING")
    looks.clear()
    now = 0
    status_report(configuration)
    assert len(looks) == 1, "what is older than a day nobody waits for"


@pytest.mark.parametrize(
    ("states", "state", "given_up", "target", "waiting_for"),
    [
        ({}, State.STOPPED, None, "RUNNING", None),
        ({"a": ("FAILED", "no such table")}, State.FAILED, "no such table", "RUNNING", None),
        ({"a": ("UNASSIGNED", "db is away")}, State.WAITING, None, "RUNNING", "db is away"),
        ({"a": ("RUNNING", None)}, State.WAITING, None, "RUNNING", None),
        ({"a": ("PAUSED", None)}, State.STOPPED, None, "PAUSED", None),
        ({"a": ("STOPPED", None), "b": ("UNASSIGNED", "db is away")}, State.STOPPED, None, "STOPPED", None),
    ],
)
def test_status_of_a_connector_without_workers_is_what_its_processes_say(
    monkeypatch: pytest.MonkeyPatch,
    states: dict[str, tuple[str, str | None]],
    state: State,
    given_up: str | None,
    target: str,
    waiting_for: str | None,
) -> None:
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    now = int(time.time() * 1000)
    said = [of_process(now=now, process=name, state=each, trace=why) for name, (each, why) in states.items()]
    monkeypatch.setattr(reports, "_said", lambda *_: dict(said))
    monkeypatch.setattr(Positions, "stored_with_snapshots", lambda _: ([], {}))
    report = status_report(configuration)
    assert (report.state, report.given_up, report.target) == (state, given_up, target)
    assert report.waiting_for == waiting_for


def test_workers_that_run_say_more_than_their_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process has no workers yet, as it was started a moment ago; those of another one deliver."""
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    now = int(time.time() * 1000)
    worker = {**STATUS, "time_ms": now, "slot_count": 1, "slots": [0]}
    name = str(configuration.connector.reading.tables[0])
    worker |= {"tables": {name: {"state": "RUNNING"}}, "tables_configured": [name]}
    said = [of_process(now=now, state="UNASSIGNED", trace="db is away"), (KEY, json.dumps(worker).encode())]
    monkeypatch.setattr(reports, "_said", lambda *_: dict(said))
    monkeypatch.setattr(Positions, "stored_with_snapshots", lambda _: ([], {}))
    report = status_report(configuration)
    assert (report.state, report.target, report.waiting_for) == (State.RUNNING, "RUNNING", None)


@pytest.mark.parametrize(("process", "state"), [("PAUSED", State.STOPPED), ("RUNNING", State.WAITING)])
def test_where_nobody_is_to_take_over_from_one_that_was_killed_no_table_waits_for_that(
    monkeypatch: pytest.MonkeyPatch, process: str, state: State
) -> None:
    configuration = load({**BASE, **JSON, "name": "orders"}, {**WORKER, "group.id": "workers"})
    now = int(time.time() * 1000)
    name = str(configuration.connector.reading.tables[0])
    killed = {**STATUS, "time_ms": now - 60_000, "slot_count": 1, "slots": [0], "tables": {name: {"state": "RUNNING"}}}
    said = [of_process(now=now, state=process, trace=None), (KEY, json.dumps(killed).encode())]
    monkeypatch.setattr(reports, "_said", lambda *_: dict(said))
    monkeypatch.setattr(Positions, "stored_with_snapshots", lambda _: ([], {}))
    report = status_report(configuration)
    assert (report.state, report.tables[name].state) == (state, state)


@pytest.mark.parametrize(("left", "lag"), [(70_000, 70_000), (None, None)])
def test_a_table_that_a_worker_does_not_know_is_not_running(left: int | None, lag: int | None) -> None:
    """Nobody reads it in the slots of that one; how late it is there the others cannot say."""
    knows = {**STATUS, "time_ms": 100_000, "slots": [0], "tables": {"ks.t": {"state": "RUNNING", "lag_ms": 500}}}
    other = {**STATUS, "worker": "w-2", "time_ms": 100_000, "slots": [1], "tables": {}, "tables_configured": ["ks.u"]}
    workers = _workers([WorkerStatus.model_validate(each) for each in (knows, other)], 100_000)
    report = _table("ks.t", workers, 99_000, 100_000, left=left)
    assert (report.state, report.lag_ms) == (State.WAITING, lag)
    report = _table("ks.t", workers[:1], 99_000, 100_000)
    assert (report.state, report.lag_ms) == (State.RUNNING, 500)
