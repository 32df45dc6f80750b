"""Several connectors in one `run`: what ails one neither ends nor delays another."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.config import Configuration
from connector.errors import CdcError, Problem
from connector.secrets import MASK
from connector.worker import connectors as defining
from connector.worker import supervisor as supervising
from connector.worker import tenants as given_up
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.connectors import Connectors
from connector.worker.holding import Target
from connector.worker.http import readiness_of
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.slots import Noted
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from connector.worker.tenants import Preparation, Tenant
from tests.config.files import loaded
from tests.servers.patience import until

CRASH_LOOP = 2

# Does what the connector is called: reports and works until it is ended, fails, finds its configuration wrong.
WORKER = """
import json, os, pickle, signal, sys, threading
order = pickle.load(sys.stdin.buffer)
name = order.configuration.connector.name
if name == "fails":
    print(json.dumps({"event": "end", "cause": "FatalDeliveryError: no rights"}), flush=True)
    sys.exit(1)
if name == "wrong":
    print(json.dumps({"event": "end", "cause": "another group runs it"}), flush=True)
    sys.exit(2)
state = "FAILED" if name == "failed" else "RUNNING"
topics = [f"written by {os.getpid()}"] if name == "writes" else []
def listen():
    global state
    for line in sys.stdin.buffer:
        if line == b"FORGET_TOPICS\\n":
            topics.clear()
            continue
        state = "RUNNING" if line == b"TRY_AGAIN\\n" else "FAILED"
threading.Thread(target=listen, daemon=True).start()
status = {"worker": name, "index": order.index, "connector": name, "fingerprint": "f", "tables_configured": [],
          "time_ms": 1, "pid": os.getpid(), "slots": [0], "slot_count": 1, "tables": {}, "delivery": {"rebalances": 1}}
if name == "measured":
    status["tables"] = {"ks.t": {"state": "RUNNING", "position_ms": 1, "lag_ms": 5, "records": 1}}
def end():
    while os.path.exists(os.environ.get("LINGER", "")):
        threading.Event().wait(0.05)
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end).start())
while True:
    print(json.dumps({"event": "status", "status": {**status, "state": state, "topics": topics}}), flush=True)
    threading.Event().wait(0.3)
"""


def configured(name: str) -> Configuration:
    return loaded({"name": name, "topic.prefix": name})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a run of some connectors in a thread; ends it after the test."""
    monkeypatch.setattr(supervising, "RESTART_PAUSE", 0.001)
    monkeypatch.setattr(given_up, "CRASH_LOOP", CRASH_LOOP)
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


def state(supervisor: Supervisor, name: str) -> str:
    return str(supervisor.status().connectors[name].state.value)


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
    monkeypatch.setattr(supervising, "RESTART_PAUSE", 1e6)
    monkeypatch.setattr(supervising, "LONGEST_RESTART_PAUSE", 1e6)
    until(lambda: supervisor.due.get(1, 0.0) > 1e5, what="a long pause")
    ends = supervisor.restarts
    cluster.restart("fails", itself=True, tasks=[0])
    until(lambda: supervisor.restarts > ends, what="another end")
    supervisor.tenants[configured("fails").group].forget_ends()
    supervisor._ends.clear()
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


class Remembering:
    """What was asked of connectors, where nothing was."""

    group_id = "workers"

    def target(self, name: str) -> Target:
        return Target.STOPPED if name == "stopped" else Target.RUNNING


@pytest.fixture
def defined(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connectors]:
    """Of a run without files, in a thread."""
    monkeypatch.setattr(defining, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(defining, "LOOK_SECONDS", 0.01)
    supervisor, stop = Supervisor([sys.executable, "-c", WORKER], [], lasting=True), threading.Event()
    told: Any = Remembering()

    def load(config: Mapping[str, str]) -> Configuration:
        return loaded({"topic.prefix": "any", **config}, environ=dict(os.environ))

    connectors = Connectors(
        supervisor,
        told,
        load,
        lambda c: c.connector.tasks_max,
        WorkerOrder,
        lambda *_: ([], None),
        lambda *_: [],
        stop,
    )
    thread = threading.Thread(target=supervisor.run, args=(stop,))
    thread.start()
    try:
        until(lambda: supervisor.status().state.value == "RUNNING", what="a service without connectors")
        yield connectors
    finally:
        stop.set()
        thread.join(90)
        until(lambda: all(each.name != "definitions" for each in threading.enumerate()), what="the end of its threads")


def shown_of(connectors: Connectors) -> ConnectCluster:
    supervisor, told = connectors.supervisor, connectors.shared
    return ConnectCluster(supervisor, Steering(supervisor), told, lambda c: (), configured("any"), defined=connectors)


MISSING = {"name": "works", "tasks.max": "1", "scylla.query.time.window.size": "${env:A_VARIABLE_OF_THIS_TEST}"}


def test_a_definition_that_cannot_be_loaded_is_tried_again_and_ends_no_worker_meanwhile(
    defined: Connectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, shown = defined.supervisor, shown_of(defined)
    defined.take("works", {"name": "works", "tasks.max": "1"})
    until(lambda: state(supervisor, "works") == "RUNNING", what="its worker")
    [before] = supervisor.status().workers
    defined.take("works", MISSING)
    until(lambda: defined.broken["works"].attempts > 2, what="some attempts")
    status = supervisor.status()
    assert (status.workers[0].pid, status.workers[0].state.value) == (before.pid, "RUNNING")
    assert state(supervisor, "works") == "WAITING" and "A_VARIABLE_OF_THIS_TEST" in str(status.waiting_for)
    [view] = shown.connectors()
    assert (view.instance.state, [task.state for task in view.tasks]) == ("FAILED", ["RUNNING"])
    assert "A_VARIABLE_OF_THIS_TEST" in str(view.instance.trace)
    monkeypatch.setenv("A_VARIABLE_OF_THIS_TEST", "15000")
    until(lambda: not defined.broken, what="that it is found")
    until(lambda: state(supervisor, "works") == "RUNNING", what="the worker of the new definition")
    assert [worker.pid for worker in supervisor.status().workers] != [before.pid]


def test_a_connector_that_could_not_be_loaded_at_first_comes_by_itself(
    defined: Connectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    defined.take("works", MISSING)
    assert state(defined.supervisor, "works") == "FAILED"
    monkeypatch.setenv("A_VARIABLE_OF_THIS_TEST", "15000")
    until(lambda: state(defined.supervisor, "works") == "RUNNING", what="its worker")


def test_tables_that_must_not_be_begun_do_not_come_to_those_that_are_read(defined: Connectors) -> None:
    supervisor, shown, asked = defined.supervisor, shown_of(defined), []
    first = {"name": "works", "tasks.max": "1", "scylla.table.names": "ks.t"}
    both = {**first, "scylla.table.names": "ks.t,ks.other"}
    defined.take("works", first)
    until(lambda: state(supervisor, "works") == "RUNNING", what="its worker")
    [before] = supervisor.status().workers

    said: CdcError | list[Problem] = CdcError("no answer")

    def forbids(configuration: Configuration, cancelled: Callable[[], bool]) -> list[Problem]:
        asked.append(configuration.written_tables)
        if isinstance(said, CdcError):
            raise said
        return said

    defined.forbids = forbids
    defined.take("works", both)
    assert "it is not known yet whether they may be: no answer" in defined.broken["works"].reason
    said = [Problem("offset.storage.topic", "has positions of Java's")]
    until(lambda: "has positions of Java's" in defined.broken["works"].reason, what="an answer")
    [configuration] = supervisor.configurations()
    assert configuration.written_tables == "ks.t"
    assert state(supervisor, "works") == "WAITING" and "has positions of Java's" in str(supervisor.status().waiting_for)
    [view] = shown.connectors()
    assert (view.instance.state, [task.state for task in view.tasks]) == ("FAILED", ["RUNNING"])
    said = []
    until(lambda: not defined.broken, what="that nothing is in the way")
    [configuration] = supervisor.configurations()
    assert configuration.written_tables == "ks.t,ks.other" and set(asked) == {"ks.t,ks.other"}
    until(lambda: state(supervisor, "works") == "RUNNING", what="no word of it any more")
    asked.clear()
    defined.take("works", first)
    assert not asked, "a table that goes needs no leave"
    assert [worker.pid for worker in supervisor.status().workers] == [before.pid]


def test_a_change_of_more_than_tables_begins_none_that_must_not_be_begun_either(defined: Connectors) -> None:
    """The workers that run would end for it, and those behind them would not be let."""
    supervisor, shown = defined.supervisor, shown_of(defined)
    first = {"name": "works", "tasks.max": "1", "scylla.table.names": "ks.t"}
    defined.take("works", first)
    until(lambda: state(supervisor, "works") == "RUNNING", what="its worker")
    [before] = supervisor.status().workers
    said = [Problem("offset.storage.topic", "has positions of Java's")]
    defined.forbids = lambda *_: said
    window = {"scylla.query.time.window.size": "12000"}
    defined.take("works", {**first, **window, "scylla.table.names": "ks.t,ks.other"})
    [view] = shown.connectors()
    assert (view.instance.state, [task.state for task in view.tasks]) == ("FAILED", ["RUNNING"])
    assert "has positions of Java's" in str(view.instance.trace)
    assert [worker.pid for worker in supervisor.status().workers] == [before.pid]
    defined.take("works", {**first, **window})
    until(lambda: [worker.pid for worker in supervisor.status().workers] != [before.pid], what="the window alone")
    said = []
    defined.take("works", {**first, "scylla.table.names": "ks.t,ks.other"})
    until(lambda: supervisor.configurations()[0].written_tables == "ks.t,ks.other", what="nothing in the way")


def test_a_definition_under_another_name_than_its_own_is_no_connector_of_either(defined: Connectors) -> None:
    """The API writes none, but others may write to the topic."""
    defined.take("one", {"name": "other", "tasks.max": "1"})
    [view] = shown_of(defined).connectors()
    assert (view.name, view.instance.state) == ("one", "FAILED") and "it is defined as one" in str(view.instance.trace)
    assert not defined.supervisor.orders
    defined.take("one", {"name": "one", "tasks.max": "1"})
    until(lambda: state(defined.supervisor, "one") == "RUNNING", what="its worker")


def test_who_runs_a_deleted_connector_after_everybody_has_heard_of_it_is_shown(
    defined: Connectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a file of his own: he would be hidden in one process, and shown in the others, for ever."""
    defined.take("gone", {"name": "gone", "tasks.max": "1"})
    defined.take("gone", None)
    assert defined.just_deleted() == {"gone"}
    monkeypatch.setattr(defining, "HEARD_SECONDS", 0.0)
    assert not defined.just_deleted()


def test_what_was_said_last_stands_where_a_new_definition_is_given_up(defined: Connectors) -> None:
    supervisor = defined.supervisor
    defined.take("measured", {"name": "measured", "tasks.max": "1"})
    until(lambda: b'scylla_cdc_lag_seconds{connector="measured"' in metrics_page(supervisor.status), what="a lag")
    defined.checks = lambda *_: ([Problem("scylla.table.names", "table ks.t does not exist")], None)
    for window in ("1200", "1300"):
        defined.take("measured", {"name": "measured", "tasks.max": "1", "scylla.confidence.window.size": window})
        until(lambda: state(supervisor, "measured") == "FAILED" and not supervisor.children, what="its failure")
        page = metrics_page(supervisor.status).decode()
        assert 'scylla_cdc_lag_seconds{connector="measured"' in page and 'running{connector="measured"} 0.0' in page
        [worker] = supervisor.status().workers
        assert "ks.t does not exist" in str(worker.waiting_for)


def test_a_connector_that_was_stopped_is_deleted_without_being_run(defined: Connectors) -> None:
    supervisor, started = defined.supervisor, list[str]()
    steering = Steering(supervisor)
    defined.take("stopped", {"name": "stopped", "tasks.max": "1"})
    supervisor._start = lambda order: started.append(order.configuration.connector.name)  # type: ignore[assignment]
    # As it comes from the topic.
    defined.take("stopped", None)
    steering.wish("stopped", Target.RUNNING)
    done = threading.Event()
    supervisor.requests.put(done.set)
    until(done.is_set, what="a round")
    assert not supervisor.status().connectors and not started


def test_a_file_defines_a_connector_that_was_deleted_half_way_to_be_run(defined: Connectors) -> None:
    written = list[tuple[str, Any]]()

    class Writing(Remembering):
        def wish(self, name: str, target: Target) -> None:
            written.append((name, target))

        def define(self, name: str, config: dict[str, str]) -> None:
            written.append((name, config))
            defined.take(name, config)

    told: Any = Writing()
    defined.shared = told
    for name in ("stopped", "other"):
        defined.take(name, None)
    given = [{"name": name, "tasks.max": "1"} for name in ("stopped", "other")]
    defined.define_first(given, defined.stop)
    assert written == [("stopped", Target.RUNNING), ("stopped", given[0]), ("other", given[1])]


def test_connectors_are_admitted_replaced_and_dismissed(defined: Connectors) -> None:
    connectors, supervisor, shown = defined, defined.supervisor, shown_of(defined)
    connectors.take("works", {"name": "works", "tasks.max": "2"})
    connectors.take("stopped", {"name": "stopped"})
    until(lambda: state(supervisor, "works") == "RUNNING", what="its workers")
    login = {"scylla.user": "cdc", "scylla.password": "open sesame"}
    first = {worker.pid for worker in supervisor.status().workers}
    assert len(first) == 2 and state(supervisor, "stopped") == "STOPPED"

    connectors.take("works", {"name": "works", "tasks.max": "1", **login})
    until(lambda: [worker.pid in first for worker in supervisor.status().workers] == [False], what="the new one")
    assert connectors.with_secrets("works", {"scylla.password": MASK})["scylla.password"] == "open sesame"

    connectors.take("works", {"name": "works", "scylla.query.time.window.size": "${env:NO_SUCH_VARIABLE}"})
    broken = next(view for view in shown.connectors() if view.name == "works")
    assert broken.instance.state == "FAILED" and "NO_SUCH_VARIABLE" in str(broken.instance.trace)
    connectors.take("works", {"name": "works"})
    until(lambda: state(supervisor, "works") == "RUNNING", what="its return")
    for name in ("works", "stopped"):
        connectors.take(name, None)
    until(lambda: not supervisor.children, what="the end of all workers")
    assert not shown.connectors() and supervisor.liveness().alive and supervisor.restarts == 0
