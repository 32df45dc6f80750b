"""What is told of work that fails: at once, in each interval, at its end; by a clock that the test moves."""

from __future__ import annotations

import logging

import pytest

from connector.errors import RetriableSourceError
from connector.source.background import GRACE_SECONDS, OVERDUE_SECONDS, TELL_SECONDS, Background, Purpose

STEADY = Purpose("sets", "sets are not seen", "changes may be waiting", steady=True)
ONCE = Purpose("claims", "slots are not restored", "nobody reads them")
ALIVE = Purpose("source", "nobody answers", "nothing is read")
BEHIND = Purpose("sets", "sets are not seen", "changes may be waiting", steady=True, behind="source")
NOON = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.background = Background(lambda: self.now, lambda: NOON + self.now)

    def run(self, seconds: float) -> None:
        """As an owner does it: several looks a second."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + 0.5)
            self.background.tick()


@pytest.fixture
def clock(caplog: pytest.LogCaptureFixture) -> Clock:
    caplog.set_level(logging.INFO, "connector.source.background")
    return Clock()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_it_is_told_at_once_in_each_interval_and_at_the_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = clock.background.task(STEADY, "ks.t")
    task.asked("the server")
    task.worked()
    clock.run(5)
    task.failed(RetriableSourceError("asking 127.0.0.1:9042: away"))
    since = "2023-11-14T22:15:00+00:00"  # when it last worked, not when it first failed
    assert told(caplog) == [
        f"ks.t: sets are not seen since {since}: asking 127.0.0.1:9042: away; changes may be waiting"
    ]
    for _ in range(100):  # attempts are no reason to tell it more often
        clock.run(1)
        task.failed(RetriableSourceError("asking 127.0.0.2:9042: away"))
    assert len(told(caplog)) == 1 + int(100 / TELL_SECONDS)
    assert told(caplog)[-1].endswith("attempts)")
    assert "127.0.0.2" in told(caplog)[-1], "the newest cause"
    assert since in told(caplog)[-1]
    [failing] = clock.background.failing(lasting=True)
    assert (failing.seconds, failing.lasting) == (105, 100)
    assert clock.background.kinds() == {"sets": 105}
    task.worked()
    assert told(caplog)[-1] == "sets of ks.t: works again after 105 s"
    assert clock.background.failing() == []
    assert clock.background.kinds() == {"sets": 0}
    clock.run(3 * TELL_SECONDS)
    assert told(caplog)[-1] == "sets of ks.t: works again after 105 s"


def test_what_one_task_says_for_all_is_not_logged_a_hundred_times(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    alive = clock.background.task(ALIVE)
    tables = [clock.background.task(BEHIND, f"ks.t{number}") for number in range(100)]
    alive.failed("refused")
    for _ in range(90):
        clock.run(1)
        for task in tables:
            task.failed("refused")
    assert len(told(caplog)) == 1 + int(90 / TELL_SECONDS)
    assert all(line.startswith("nobody answers") for line in told(caplog))
    assert len(clock.background.failing(lasting=True)) == 101, "it is known all the same"
    alive.worked()
    clock.run(5)
    for task in tables[2:]:
        task.worked()
    clock.run(TELL_SECONDS)
    assert told(caplog)[-1].startswith("source: works again"), "nobody has asked for the other two since"
    tables[0].failed("overloaded")
    assert told(caplog)[-1].startswith("ks.t0: sets are not seen") and "overloaded" in told(caplog)[-1]
    assert not [line for line in told(caplog) if "ks.t1" in line]


def test_what_comes_and_goes_is_told_once_in_an_interval(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = clock.background.task(ONCE)
    for _ in range(50):
        task.failed("no")
        clock.run(0.5)
        assert not clock.background.failing(lasting=True), "over before it is a state"
        task.worked()
        clock.run(0.5)
    assert len([line for line in told(caplog) if "not restored" in line]) == 2


def test_a_failure_that_lasts_is_a_state(clock: Clock) -> None:
    task = clock.background.task(ONCE)
    task.failed("no")
    clock.run(GRACE_SECONDS - 0.5)
    assert not clock.background.failing(lasting=True)
    clock.run(0.5)
    assert clock.background.failing(lasting=True)
    task.dismiss()
    assert not clock.background.failing()


def test_no_answer_is_a_failure(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = clock.background.task(STEADY)
    task.asked("127.0.0.1:9042")
    clock.run(OVERDUE_SECONDS - 0.5)
    assert not clock.background.failing()
    clock.run(0.5)
    [failing] = clock.background.failing(lasting=True)
    assert "no answer of 127.0.0.1:9042" in str(failing)
    task.worked()
    assert told(caplog)[-1].startswith("sets: works again")


def test_an_owner_that_was_away_blames_nobody_for_it(clock: Clock) -> None:
    task, failed = clock.background.task(STEADY), clock.background.task(ONCE)
    task.asked("127.0.0.1:9042")
    failed.failed("no")
    clock.run(1)
    clock.now += 600  # a consumer that thinks about a batch: the answer lies in the queue
    clock.background.tick()
    [failing] = clock.background.failing()
    assert (failing.kind, failing.lasting) == ("claims", 1)


def test_nothing_fails_since_a_moment_that_is_yet_to_come(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Its owner was busy, and asked when it had come back, before it looked at the time."""
    clock.background.tick()
    clock.now += 15
    task = clock.background.task(ONCE)
    task.asked("db:9042")
    clock.now += 0.2
    clock.background.tick()
    clock.now += 0.5
    task.failed(RetriableSourceError("no"))
    (failing,) = clock.background.failing()
    assert 0 <= failing.seconds <= 0.7 and failing.since <= NOON + clock.now
    clock.now += 5
    task.worked()
    assert told(caplog)[-1] in ("claims: works again after 5 s", "claims: works again after 6 s")


def test_what_an_owner_tries_itself_fails_for_as_long_as_it_does(clock: Clock) -> None:
    """Each of its attempts takes longer than it may be away: a commit to brokers that do not answer."""
    task = clock.background.task(ONCE)
    for _ in range(4):
        clock.now += 10
        task.failed("no reports")
        clock.background.tick()
        clock.run(1)
    [failing] = clock.background.failing(lasting=True)
    assert failing.lasting == 34


def test_pauses_double_and_are_bounded(clock: Clock) -> None:
    task = clock.background.task(ONCE)
    pauses = []
    for _ in range(2000):
        task.failed("no")
        pauses.append(task.pause(0.2, 10))
    assert pauses[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10]
    assert set(pauses[7:]) == {10}
    task.worked()
    task.failed("no")
    assert task.pause(0.2, 10) == 0.2


def test_what_nobody_foresaw_is_told_with_type_and_traceback(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = clock.background.task(ONCE)
    for _ in range(3):
        try:
            {}["now"]
        except KeyError as error:
            task.failed(error)
    assert "unexpected KeyError: 'now'" in told(caplog)[0]
    traces = [record for record in caplog.records if record.exc_info]
    assert len(traces) == 1


def test_a_library_that_tries_by_itself_is_asked_over_and_over(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    task = clock.background.task(ONCE)
    for _ in range(20):
        task.is_now("slot 1: away")
    assert clock.background.failing()[0].attempts == 1
    task.is_now(None)
    task.is_now(None)
    assert len(told(caplog)) == 2
