"""Several connectors in one `run`: what ails one neither ends nor delays another."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.config import Configuration
from connector.errors import Problem
from connector.worker import ended_workers
from connector.worker import supervisor as supervising
from connector.worker import tenants as given_up
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.holding import Target
from connector.worker.http import readiness_of
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.slots import Noted
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from connector.worker.tenants import Preparation, Tenant
from tests.servers.patience import until
from tests.worker.workers_by_name import WORKER, configured, state

CRASH_LOOP = 2


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a run of some connectors in a thread; ends it after the test."""
    monkeypatch.setattr(ended_workers, "RESTART_PAUSE", 0.001)
    monkeypatch.setattr(ended_workers, "CRASH_LOOP", CRASH_LOOP)
    ended: list[Callable[[], None]] = []

    def start(*names: str) -> tuple[Supervisor, list[int]]:
        orders = [WorkerOrder(configured(name), index) for index, name in enumerate(names)]
        supervisor, stop, statuses = Supervisor([sys.executable, "-c", WORKER], orders), threading.Event(), list[int]()
        thread = threading.Thread(target=lambda: statuses.append(supervisor.run(stop)))
        supervisor.stop = stop  # type: ignore[attr-defined]
        thread.start()
        ended.append(lambda: (stop.set(), thread.join(90)))  # type: ignore[arg-type, return-value]
        return supervisor, statuses

    yield start
    for end in ended:
        end()


def shown_as(supervisor: Supervisor, steering: Steering) -> ConnectCluster:
    wishes: Any = steering
    return ConnectCluster(supervisor, steering, wishes, lambda config: (), configured("any"))


def test_a_connector_that_ends_again_and_again_ends_no_other(service: Any) -> None:
    supervisor, statuses = service("works", "fails")
    looked_at = supervisor.children
    as_it_was = dict(looked_at)
    until(lambda: supervisor.restarts > CRASH_LOOP, what="many ends")
    until(lambda: state(supervisor, "works") == "RUNNING", what="the other one")
    assert looked_at == as_it_was, "threads that answer somebody may be in the middle of it"
    assert not statuses and state(supervisor, "fails") == "WAITING"
    assert supervisor.status().connectors["works"].restarts == 0
    until(lambda: "no rights" in (supervisor.status().waiting_for or ""), what="the cause")
    assert b'scylla_cdc_running{connector="works"} 1.0' in metrics_page(supervisor.status)
    assert b'scylla_cdc_running{connector="fails"} 0.0' in metrics_page(supervisor.status)


def test_topics_outlive_the_workers_that_wrote_to_them_until_they_are_forgotten(service: Any) -> None:
    supervisor, _ = service("writes", "works")
    steering = Steering(supervisor)
    shown = shown_as(supervisor, steering)

    def topics() -> list[tuple[str, ...]]:
        return [each.topics for each in shown.connectors()]

    until(lambda: len(topics()[0]) == 1, what="the first one's topic")
    (first,) = topics()[0]
    steering.renew([0])
    until(lambda: len(topics()[0]) == 2, what="that of its successor as well")
    assert first in topics()[0] and topics()[1] == ()
    steering.wish("writes", Target.STOPPED)
    until(lambda: 0 not in supervisor.children, what="its end")
    assert len(topics()[0]) == 2
    steering.forget_topics("writes")
    until(lambda: topics() == [(), ()], what="that they are forgotten")


def test_a_connector_whose_workers_end_again_and_again_is_failed_for_who_asks_connects_api(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until something is committed. A restart waits for no pause between two starts."""
    supervisor, _ = service("works", "fails")
    steering = Steering(supervisor)
    cluster = shown_as(supervisor, steering)
    until(lambda: supervisor.status().connectors["fails"].crashing is not None, what="many ends")
    works, fails = cluster.connectors()
    until(lambda: [each.state for each in cluster.connectors()[0].tasks] == ["RUNNING"], what="the other one")
    assert [(each.state, each.trace) for each in fails.tasks] == [("FAILED", "FatalDeliveryError: no rights")]
    assert fails.instance.state == works.instance.state == "RUNNING"
    monkeypatch.setattr(ended_workers, "RESTART_PAUSE", 1e6)
    monkeypatch.setattr(ended_workers, "LONGEST_RESTART_PAUSE", 1e6)
    until(lambda: supervisor.due.get(1, 0.0) > 1e5, what="a long pause")
    ends = supervisor.restarts
    cluster.restart("fails", itself=True, tasks=[0])
    until(lambda: supervisor.restarts > ends, what="another end")
    supervisor.tenants[configured("fails").group].forget_ends()
    supervisor.ended_workers.forget(1)
    assert [each.state for each in cluster.connectors()[1].tasks] != ["FAILED"]


def test_alone_it_ends_the_run(service: Any) -> None:
    supervisor, statuses = service("fails")
    until(lambda: statuses == [1], what="the end")
    assert supervisor.restarts == CRASH_LOOP


def test_a_worker_that_somebody_else_ends_in_order_is_no_error(service: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    supervisor, statuses = service("works")
    until(lambda: state(supervisor, "works") == "RUNNING", what="the worker")
    os.kill(supervisor.children[0].pid, signal.SIGTERM)
    until(lambda: caplog.text.count("worker 0 started") == 2, what="another one")
    ends = [(each.levelname, each.getMessage()) for each in caplog.records if " ended" in each.getMessage()]
    assert ends == [("INFO", "worker 0 ended: in order, asked by somebody else")] and not statuses


def test_a_configuration_that_servers_refuse_fails_its_connector_only(service: Any) -> None:
    supervisor, statuses = service("works", "wrong")
    until(lambda: state(supervisor, "wrong") == "FAILED", what="the failure")
    until(lambda: state(supervisor, "works") == "RUNNING", what="the other one")
    status = supervisor.status()
    assert status.state.value == "FAILED" and "connector wrong has failed: another group runs it" in status.waiting_for
    assert not statuses and supervisor.restarts == 1


def test_when_all_are_refused_the_run_ends_as_for_one(service: Any) -> None:
    _, statuses = service("wrong")
    until(lambda: statuses == [2], what="the end")


def test_servers_that_one_waits_for_delay_no_other() -> None:
    orders = [WorkerOrder(configured(name), index) for index, name in enumerate(("works", "waits", "refused"))]
    supervisor, stop = Supervisor([sys.executable, "-c", WORKER], orders), threading.Event()

    def checks(
        configuration: Configuration, stopped: threading.Event, waiting: Preparation
    ) -> tuple[Sequence[Problem], Noted | None]:
        if configuration.connector.name == "waits":
            waiting.waiting_for = "db:9042 does not answer"
            stopped.wait()
        if configuration.connector.name == "refused":
            return [Problem("scylla.user", "the login was refused")], None
        return [], Noted(17)

    for order in orders:
        supervisor.prepare(order.configuration, partial(Preparation, order.configuration, stop, checks))
    thread = threading.Thread(target=supervisor.run, args=(stop,))
    thread.start()
    try:
        until(lambda: state(supervisor, "works") == "RUNNING", what="the one whose servers are there")
        until(lambda: state(supervisor, "refused") == "FAILED", what="the one that is refused")
        assert supervisor.noted == {"works": Noted(17)}
        assert state(supervisor, "waits") == "WAITING"
        said = supervisor.status().waiting_for or ""
        assert "connector waits: db:9042 does not answer" in said and "the login was refused" in said
        steering = Steering(supervisor)
        cluster = shown_as(supervisor, steering)
        shown = {view.name: view for view in cluster.connectors()}
        assert [each.state for each in shown["works"].tasks] == ["RUNNING"]
        assert (shown["works"].instance.state, shown["waits"].instance.state) == ("RUNNING", "UNASSIGNED")
        [task] = shown["waits"].tasks
        assert (task.state, task.trace) == ("UNASSIGNED", "connector waits: db:9042 does not answer")
        assert shown["refused"].instance.state == "FAILED" and not shown["refused"].tasks
        assert "the login was refused" in str(shown["refused"].instance.trace)
    finally:
        stop.set()
        thread.join(90)


def test_a_restart_that_is_asked_for_is_no_failure(service: Any) -> None:
    supervisor, _ = service("works", "also")
    until(lambda: len(supervisor.status().workers) == 2, what="both to report")
    pids = [worker.pid for worker in supervisor.status().workers]
    Steering(supervisor).renew([0])
    until(lambda: supervisor.status().workers[0].pid != pids[0], what="another process")
    until(lambda: not supervisor.status().workers[0].starting, what="a report of its own")
    assert supervisor.status().workers[1].pid == pids[1]
    assert supervisor.restarts == 0


def test_what_is_failed_is_tried_again_by_the_same_process(service: Any) -> None:
    supervisor, _ = service("failed", "works")
    until(lambda: state(supervisor, "failed") == "FAILED", what="its failure")
    pid = supervisor.status().workers[0].pid
    Steering(supervisor).try_again([0])
    until(lambda: state(supervisor, "failed") == "RUNNING", what="its success")
    assert supervisor.status().workers[0].pid == pid


def test_a_connector_that_was_given_up_is_begun_anew_from_its_checks_on() -> None:
    orders = [WorkerOrder(configured(name), index) for index, name in enumerate(("works", "refused"))]
    supervisor, stop = Supervisor([sys.executable, "-c", WORKER], orders), threading.Event()
    objections = ["the login was refused"]

    def checks(*_: Any) -> tuple[Sequence[Problem], Noted | None]:
        return [Problem("scylla.user", each) for each in objections], None

    for order in orders[1:]:
        supervisor.prepare(order.configuration, partial(Preparation, order.configuration, stop, checks))
    thread = threading.Thread(target=supervisor.run, args=(stop,))
    thread.start()
    try:
        until(lambda: state(supervisor, "refused") == "FAILED", what="the refusal")
        objections.clear()
        Steering(supervisor).begin_anew(orders[1].configuration.group)
        until(lambda: state(supervisor, "refused") == "RUNNING", what="its start")
    finally:
        stop.set()
        thread.join(90)


def test_a_connector_that_was_given_up_is_tried_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_up, "FIRST_LOOK_SECONDS", 0.001)
    orders = [WorkerOrder(configured(name), index) for index, name in enumerate(("works", "refused"))]
    supervisor, stop = Supervisor([sys.executable, "-c", WORKER], orders), threading.Event()
    objections, seen = ["the login was refused"], list[str]()

    def checks(*_: Any) -> tuple[Sequence[Problem], Noted | None]:
        if len(seen) > 1:
            seen.append(state(supervisor, "refused"))
        else:
            seen.append("")
        return [Problem("scylla.user", each) for each in objections], None

    supervisor.prepare(orders[1].configuration, partial(Preparation, orders[1].configuration, stop, checks))
    thread = threading.Thread(target=supervisor.run, args=(stop,))
    thread.start()
    try:
        until(lambda: len(seen) > 3, what="some looks")
        assert set(seen[2:]) == {"FAILED"}, "it is that until nothing is found"
        objections.clear()
        until(lambda: state(supervisor, "refused") == "RUNNING", what="its start")
    finally:
        stop.set()
        thread.join(90)


def test_a_connector_is_given_up_for_longer_each_time_until_it_gets_something_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(given_up, "time", SimpleNamespace(monotonic=lambda: now[0]))
    tenant, pauses = Tenant("shop"), list[float]()

    def fail() -> None:
        tenant.give_up("another group runs it")
        began = now[0]
        while not tenant.look_again():
            now[0] += 1
        pauses.append(now[0] - began)

    for _ in range(6):
        fail()
    assert pauses == [60, 120, 240, 480, 900, 900]
    tenant.forget_ends()
    fail()
    assert pauses[-1] == 60


def test_a_connector_that_is_not_to_run_has_nobody_look_at_its_servers_until_it_is() -> None:
    looks = list[Configuration]()

    def checks(configuration: Configuration, *_: Any) -> tuple[Sequence[Problem], Noted | None]:
        looks.append(configuration)
        return [], Noted(3)

    tenant, stop = Tenant("works", target=Target.STOPPED), threading.Event()
    tenant.prepare(partial(Preparation, configured("works"), stop, checks))
    tenant.begin_anew()
    assert not tenant.may_start() and tenant.preparation is None and tenant.reason() is None
    assert not looks
    tenant.target = Target.RUNNING
    until(tenant.may_start, what="what is found")
    assert looks == [configured("works")]


def test_what_was_asked_of_a_connector_that_is_deleted_before_anybody_comes_to_it_is_nothing(service: Any) -> None:
    supervisor, statuses = service("works", "fails", "gone")
    steering, group = Steering(supervisor), configured("gone").group
    until(lambda: state(supervisor, "gone") == "RUNNING", what="its worker")
    [child] = [each for each in list(supervisor.children.values()) if each.group == group]

    def delete() -> None:
        """As `Connectors` does it, in the middle of a round."""
        steering.begin_anew(group)
        steering.wish("gone", Target.PAUSED)
        supervisor.tenants = {each: tenant for each, tenant in supervisor.tenants.items() if each != group}
        child.process.kill()
        child.process.wait()

    supervisor.requests.put(delete)
    until(lambda: child not in list(supervisor.children.values()), what="the end of its worker")
    until(lambda: state(supervisor, "works") == "RUNNING", what="the other one")
    assert not statuses


def test_a_connector_that_is_paused_holds_and_others_go_on(service: Any) -> None:
    supervisor, _ = service("works", "also")
    steering = Steering(supervisor)
    until(lambda: len(supervisor.status().workers) == 2, what="both to report")
    steering.wish("works", Target.PAUSED)
    until(lambda: supervisor.status().workers_running == 1, what="its end")
    status = supervisor.status()
    assert status.connectors["works"].waiting_for == "connector works is PAUSED by request"
    assert (status.connectors["works"].target, status.connectors["also"].target) == ("PAUSED", "RUNNING")
    assert (status.state.value, state(supervisor, "works"), state(supervisor, "also")) == (
        "WAITING",
        "STOPPED",
        "RUNNING",
    )
    assert readiness_of(status).ready
    shown = shown_as(supervisor, steering).connectors()
    assert [[each.state for each in (view.instance, *view.tasks)] for view in shown] == [
        ["PAUSED"] * 2,
        ["RUNNING"] * 2,
    ]
    steering.wish("works", Target.STOPPED)
    assert shown_as(supervisor, steering).connectors()[0].tasks == ()
    steering.wish("works", Target.RUNNING)
    until(lambda: state(supervisor, "works") == "RUNNING", what="its return")
    assert supervisor.restarts == 0


def test_a_connector_that_is_resumed_runs_once_the_worker_that_was_ended_has_a_successor(
    service: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (linger := tmp_path / "linger").touch()
    monkeypatch.setenv("LINGER", str(linger))
    supervisor, _ = service("lingers")
    until(lambda: state(supervisor, "lingers") == "RUNNING", what="its report")
    [ended] = supervisor.status().workers
    steering = Steering(supervisor)
    steering.wish("lingers", Target.PAUSED)
    until(lambda: supervisor.status().workers[0].starting, what="its worker to be told")
    steering.wish("lingers", Target.RUNNING)
    assert state(supervisor, "lingers") == "WAITING"
    assert f"(pid {ended.pid}) is ending in order" in str(supervisor.status().waiting_for)
    linger.unlink()
    until(lambda: state(supervisor, "lingers") == "RUNNING", what="its return")
    assert supervisor.status().workers[0].pid != ended.pid


def test_a_worker_that_cannot_end_is_killed_for_its_successor(
    service: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is stopped hears of nothing, and a restart is what people ask for then."""
    monkeypatch.setattr(supervising, "ENDING_SECONDS", 0.5)
    supervisor, _ = service("works")
    until(lambda: state(supervisor, "works") == "RUNNING", what="its report")
    [stopped] = supervisor.children.values()
    os.kill(stopped.pid, signal.SIGSTOP)
    Steering(supervisor).renew([0])

    def succeeded() -> bool:
        return stopped not in supervisor.children.values() and state(supervisor, "works") == "RUNNING"

    until(succeeded, what="the next one")
    assert caplog.text.count(f"worker 0 (pid {stopped.pid}) has not ended in 0 s: killed") == 1
    assert supervisor.restarts == 0, "no failure of its own"
