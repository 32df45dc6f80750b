"""Workers that a signal ends: what is said of it, and when the next one begins."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest

from connector.cli.worker import PATIENCE_SECONDS
from connector.worker.child import Child
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.ended_workers import CRASH_LOOP, LONGEST_RESTART_PAUSE, RESTART_PAUSE, WELL_SECONDS
from connector.worker.messages import StatusMessage
from connector.worker.order import WorkerOrder
from connector.worker.service import SILENT_SECONDS
from connector.worker.shared_state import SharedState
from connector.worker.steering import Steering
from connector.worker.supervisor import ENDING_SECONDS, Supervisor
from tests.config.files import loaded
from tests.worker.test_worker_aging import said


def begun(supervisor: Supervisor, index: int = 0) -> Child:
    process: Any = SimpleNamespace(pid=7, kill=lambda: None)
    order = supervisor.orders[index]
    child = Child(index, process, order.configuration.group, order.configuration)
    supervisor.children[index] = child
    supervisor.due.pop(index, None)
    return child


def killed(supervisor: Supervisor, number: int, index: int = 0) -> float:
    """The least pause before the next one, or 0.0 for none at all."""
    before = time.monotonic()
    assert supervisor._ended(begun(supervisor, index), -number) is None
    due, after = supervisor.due[index], time.monotonic()
    return 0.0 if due <= after else due - before


def test_a_worker_that_a_signal_ends_again_and_again_is_started_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A library that crashes, or a kernel that has no memory for it: without a pause nothing else would get any."""
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), index) for index in range(2)])
    pauses = [killed(supervisor, signal.SIGSEGV) for _ in range(12)]
    assert pauses[0] == 0.0 and killed(supervisor, signal.SIGKILL, 1) == 0.0, "once is chance, of each of them"
    for number, pause in enumerate(pauses[1:]):
        assert pause >= min(LONGEST_RESTART_PAUSE, RESTART_PAUSE * 2**number)
    assert max(pauses) < 2 * LONGEST_RESTART_PAUSE
    assert "worker 0 was killed by signal 11 (SIGSEGV); restarting it\n" in caplog.text
    assert "killed by signal 11 (SIGSEGV), 3 times in a row; restarting it in 1.0 s" in caplog.text
    supervisor.waiting_for = None
    why = "worker 0 is started again (it ended before: killed by signal 11 (SIGSEGV), 12 times in a row)"
    assert why in (supervisor.status().waiting_for or "")


def test_the_first_start_is_none_again() -> None:
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)])
    supervisor.waiting_for = None
    assert supervisor.status().waiting_for == "worker 0 is started"


def test_who_was_asked_to_end_says_nothing_more_and_is_not_missed_meanwhile() -> None:
    now = 0.0
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)], monotonic=lambda: now)
    child = begun(supervisor)
    child.own = child.renewed = True
    supervisor._look_after()
    now = PATIENCE_SECONDS + 1.0
    supervisor._look_after()
    assert not supervisor.background.failing()
    now = ENDING_SECONDS
    supervisor._look_after()
    assert "no report for more than 15 s" in str(supervisor.background.failing()), "it hangs, or is stopped"


def test_who_stood_still_himself_does_not_say_that_workers_were_silent() -> None:
    """Stopped for half a minute, or on a machine that was: what they said lies in their pipes."""
    now = 100.0
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)], monotonic=lambda: now)
    supervisor.waiting_for = None
    supervisor._take(begun(supervisor), StatusMessage(status=said([0])))
    now += 30.0
    supervisor._goes_on()
    supervisor._look_after()
    assert supervisor.status().waiting_for is None and not supervisor.background.failing()
    for _ in range(4):
        now += SILENT_SECONDS / 4
        supervisor._goes_on()
    supervisor._look_after()
    assert "has not reported for 6 s or more" in (supervisor.status().waiting_for or ""), "it says nothing now either"
    assert "no report for more than 6 s" in str(supervisor.background.failing())


@pytest.mark.parametrize("by_files", [True, False])
def test_who_may_not_read_what_is_asked_of_connectors_runs_what_files_say(by_files: bool) -> None:
    orders = [WorkerOrder(loaded(), 0)] if by_files else []
    supervisor, shared = Supervisor(["false"], orders, lasting=not by_files), SharedState(loaded())
    supervisor.shared = shared
    shared.error = "reading topic configs: _TRANSPORT"
    supervisor._look_after()
    assert [failing.kind for failing in supervisor.background.failing()] == ["shared state"]
    shared.error, shared.forbidden = "reading topic configs: TOPIC_AUTHORIZATION_FAILED", True
    supervisor._look_after()
    assert [failing.kind for failing in supervisor.background.failing()] == ([] if by_files else ["shared state"])


def test_what_it_has_committed_meanwhile_makes_the_next_end_the_first() -> None:
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)])
    assert [killed(supervisor, signal.SIGKILL) > 0 for _ in range(2)] == [False, True]
    child = begun(supervisor)
    supervisor._take(child, StatusMessage(status=said([0], delivery={"commits": 1})))
    assert killed(supervisor, signal.SIGKILL) == 0.0
    assert killed(supervisor, signal.SIGRTMIN + 1) > 0
    assert f"signal {signal.SIGRTMIN + 1} (of the system's own)" in (supervisor.ended_workers.last(0) or "")


def ended(supervisor: Supervisor, cause: str, index: int = 0) -> float:
    """The least pause before the next one."""
    begun(supervisor, index).cause = cause
    before = time.monotonic()
    assert supervisor._ended(supervisor.children[index], 1) is None
    return supervisor.due[index] - before


def commits(supervisor: Supervisor, index: int) -> None:
    child, report = begun(supervisor, index), said([index], worker=str(index), index=index, delivery={"commits": 1})
    supervisor._take(child, StatusMessage(status=report))


def tasks(supervisor: Supervisor) -> list[tuple[str, str | None]]:
    supervisor.waiting_for = None
    steering: Any = Steering(supervisor)
    [view] = ConnectCluster(supervisor, steering, steering, lambda config: (), loaded()).connectors()
    return [(task.state, task.trace) for task in view.tasks]


def test_a_worker_that_ends_for_ever_is_failed_though_another_one_commits() -> None:
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), index) for index in range(3)])
    pauses = list[float]()
    for _ in range(CRASH_LOOP):
        assert not [task for task in tasks(supervisor) if task[0] == "FAILED"]
        pauses.append(ended(supervisor, "OSError: no space left"))
        killed(supervisor, signal.SIGKILL, 1)
        commits(supervisor, 2)
    assert pauses[-1] >= RESTART_PAUSE * 2 ** (CRASH_LOOP - 1), "each start takes slots from those that work"
    assert tasks(supervisor)[:2] == [("FAILED", "OSError: no space left"), ("FAILED", "killed by signal 9 (SIGKILL)")]
    assert tasks(supervisor)[2] == ("RUNNING", None)
    why = supervisor.status().waiting_for or ""
    assert f"worker 0 is started again (it ended before: OSError: no space left, {CRASH_LOOP} ends in a row)" in why
    assert (
        f"worker 1 is started again (it ended before: killed by signal 9 (SIGKILL), {CRASH_LOOP} times in a row)" in why
    )
    commits(supervisor, 0)
    assert [state for state, _ in tasks(supervisor)] == ["RUNNING", "FAILED", "RUNNING"]


def test_a_worker_that_runs_without_a_slot_is_not_failed_for_how_others_ended_before_it() -> None:
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)])
    for _ in range(CRASH_LOOP):
        killed(supervisor, signal.SIGKILL)
    child, idle = begun(supervisor), StatusMessage(status=said([], delivery={"rebalances": 1}))
    child.started = time.monotonic()
    supervisor._take(child, idle)
    assert [state for state, _ in tasks(supervisor)] == ["FAILED"]
    child.started -= WELL_SECONDS
    supervisor._take(child, idle)
    assert [state for state, _ in tasks(supervisor)] == ["RUNNING"]


def test_a_worker_that_commits_once_and_ends_again_and_again_is_failed_and_started_as_soon_as_ever() -> None:
    """It gets on, a little each time: memory is enough for that much, say."""
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), index) for index in range(2)])

    def commits_and_ends(seconds: float, number: int = signal.SIGKILL) -> float:
        child = begun(supervisor)
        child.started = time.monotonic() - seconds
        supervisor._take(child, StatusMessage(status=said([0], delivery={"commits": 1})))
        assert supervisor._ended(child, -number) is None
        return supervisor.due[0] - time.monotonic()

    for _ in range(2 * CRASH_LOOP):
        assert commits_and_ends(WELL_SECONDS) <= 0
        assert tasks(supervisor)[0][0] != "FAILED", "that is once in a while"
    for _ in range(CRASH_LOOP):
        assert tasks(supervisor)[0][0] != "FAILED"
        assert commits_and_ends(5.0) <= 0
    why = f"killed by signal 9 (SIGKILL), {CRASH_LOOP} times soon after it had begun and committed something"
    assert tasks(supervisor)[0] == ("FAILED", why)
    [connector] = supervisor.status().connectors.values()
    assert connector.crashing_workers == {0: why}
    commits(supervisor, 0)
    assert tasks(supervisor)[0][0] == "RUNNING", "it has been there for a while"


def test_who_is_asked_to_end_in_the_middle_of_its_start_has_as_long_for_that_as_others() -> None:
    now = 100.0
    supervisor = Supervisor(["false"], [WorkerOrder(loaded(), 0)], monotonic=lambda: now)
    child = begun(supervisor)
    child.heard, now = now, now + 2 * ENDING_SECONDS
    supervisor._look_after()
    child.renewed = True
    supervisor._look_after()
    assert not supervisor.background.failing(), "a start may take a minute"
    now += ENDING_SECONDS - 1.0
    supervisor._look_after()
    assert not supervisor.background.failing()
