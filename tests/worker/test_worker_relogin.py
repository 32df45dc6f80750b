"""Workers whose login is refused begin anew once what they log in with is another one, and not before."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from connector.cli.configuration import load_to_run
from connector.config import login_digest
from connector.secrets import scrub
from connector.worker.child import Child
from connector.worker.messages import Message, RefusedMessage
from connector.worker.order import WorkerOrder
from connector.worker.relogin import HEARD_SECONDS, LONGEST_REST, Relogin
from connector.worker.renewal import Renewal
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from tests.worker.test_worker_renewal import Store, files, passwords


class Process:
    """Of a worker that was asked to end, or not."""

    def __init__(self) -> None:
        self.pid, self.asked = 4711, False

    def terminate(self) -> None:
        self.asked = True

    def poll(self) -> None:
        return None


class Run:
    """Two connectors of files, `shop` and `other`, with a worker each: 0 and 1."""

    def __init__(self, folder: Path) -> None:
        self.store, self.now = Store(folder), 1000.0
        configurations, load = load_to_run(files(folder, self.store))
        self.loads = 0

        def counted(name: str) -> Any:
            self.loads += 1
            return load(name)

        orders = [WorkerOrder(each, index) for index, each in enumerate(configurations)]
        self.supervisor = Supervisor([], orders, lambda: self.now)
        renewal = Renewal(self.supervisor, counted, threading.Lock())
        self.relogin = Relogin(self.supervisor, renewal, Steering(self.supervisor), lambda: self.now)
        for index in (0, 1):
            self.started(index)

    def started(self, index: int) -> None:
        """With what its order says, as a process of its own would."""
        order = self.supervisor.orders[index]
        process: Any = Process()
        child = Child(index, process, order.configuration.group, configuration=order.configuration, own=True)
        self.supervisor._forget_refusal(index)
        self.supervisor.children = {**self.supervisor.children, index: child}
        self.logins = {**getattr(self, "logins", {}), index: login_digest(order.configuration)}

    def said(self, index: int, message: Message) -> None:
        self.supervisor._take(self.supervisor.children[index], message)

    def refused(self, *workers: int, seconds: float = 60.0) -> list[int]:
        """Workers that are asked to end after a while in which these were refused."""
        before = {index: child.process.asked for index, child in self.supervisor.children.items()}  # type: ignore[attr-defined]
        for _ in range(round(seconds)):
            for index in workers:
                if not self.supervisor.children[index].renewed:
                    self.said(
                        index, RefusedMessage(cause="kafka:9092: Authentication failed", login=self.logins[index])
                    )
            self.now += 1
            self.relogin.look()
            while not self.supervisor.requests.empty():
                self.supervisor.requests.get()()
        now = {index: child.process.asked for index, child in self.supervisor.children.items()}  # type: ignore[attr-defined]
        return [index for index, asked in now.items() if asked and not before[index]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_worker_begins_anew_when_another_login_is_there(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert run.refused(seconds=5) == [] and run.loads == 0, "while connections stand no store of secrets is asked"
    assert run.refused(0, seconds=600) == [], "with the same login it would be refused again"
    assert 8 <= run.loads <= 16, "less and less often"
    status = run.supervisor.status().connectors
    assert status["shop"].login_refused == "kafka:9092: Authentication failed" and status["other"].login_refused is None
    run.store.holds("the second word")
    assert run.refused(0) == [0]
    assert passwords(run.supervisor) == ["the second word", "the first word"]
    assert run.supervisor.status().connectors["shop"].logins_renewed == 1
    assert (
        "connector shop: its login is refused (kafka:9092: Authentication failed), and what it logs in" in caplog.text
    )
    assert "second" not in scrub(caplog.text)
    run.started(0)
    assert run.refused(seconds=HEARD_SECONDS) == []
    assert run.supervisor.status().connectors["shop"].login_refused is None


def test_a_worker_that_has_ended_of_it_begins_at_once_with_the_other_login(run: Run) -> None:
    run.said(1, RefusedMessage(cause="db:9042: login refused", login=run.logins[1]))
    run.supervisor.children = {0: run.supervisor.children[0]}
    run.supervisor.due[1] = 1e9
    run.store.holds("the second word")
    assert run.refused(seconds=60) == []
    assert run.supervisor.due[1] == 0.0 and passwords(run.supervisor) == ["the first word", "the second word"]


def test_a_store_with_another_login_for_whoever_asks_makes_no_storm(run: Run) -> None:
    begun = 0
    for minute in range(60):
        run.store.holds(f"the word of minute {minute}")
        for index in run.refused(0):
            begun += 1
            run.started(index)
    assert 5 <= begun <= 12
    assert run.now > 1000 + 3 * LONGEST_REST


def test_what_cannot_be_read_is_told_once_and_looked_at_again(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.store.path.unlink()
    assert run.refused(0, seconds=300) == []
    assert caplog.text.count("its login is refused, and what it logs in with cannot be read") == 1
    run.store.holds("the second word")
    assert run.refused(0) == [0]


def test_another_workers_file_is_no_other_login(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    files(tmp_path, run.store, **{"offset.storage.topic": "another"})
    run.store.holds("the second word")
    assert run.refused(0, seconds=300) == [] and "start the process anew" not in caplog.text


def test_who_is_to_stand_still_is_not_begun(run: Run) -> None:
    from connector.worker.holding import Target

    [tenant] = [each for each in run.supervisor.tenants.values() if each.name == "shop"]
    tenant.target = Target.PAUSED
    run.store.holds("the second word")
    assert run.refused(0) == [] and run.loads == 0
