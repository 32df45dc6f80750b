"""Connectors that are defined while a `run` without files goes on: loaded, tried again, replaced, deleted."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from connector.config import Configuration
from connector.errors import CdcError, Problem
from connector.secrets import MASK
from connector.worker import connectors as defining
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.connectors import Connectors
from connector.worker.holding import Target
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded
from tests.servers.patience import until
from tests.worker.workers_by_name import WORKER, configured, state


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
