"""A job that is asked to end has a while for what is under way; then Spark is ended, and what waits for it goes on."""

from __future__ import annotations

import io
import signal
import subprocess
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext

from connector.errors import LandingError
from spark_jobs.config.settings import load_settings
from spark_jobs.ending import Ending
from spark_jobs.land import _beside, _Job, _Landing, land
from spark_jobs.session.jvm_start import leaving_nothing
from spark_jobs.stream import Progress, TableStream
from tests.servers.patience import patience, until


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is taken for Spark's."""
    process = subprocess.Popen(["sleep", "600"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    yield process
    process.kill()
    process.wait()


def test_what_is_under_way_is_finished_if_that_takes_no_longer_than_it_may(spark: subprocess.Popen[bytes]) -> None:
    stop, said = threading.Event(), list[str]()
    with Ending(stop, said.append, patience_s=60) as ending:
        ending.started()
        stop.set()
    assert (ending.gave_up, said, spark.poll()) == (False, [], None)


def test_what_takes_longer_is_given_up_with_a_word(spark: subprocess.Popen[bytes]) -> None:
    stop, said = threading.Event(), list[str]()
    with Ending(stop, said.append, patience_s=0.1) as ending:
        ending.started()
        stop.set()
        assert spark.wait(60) == -signal.SIGKILL
    assert ending.gave_up and said == [
        "not done 0 s after it was asked to end: what is under way is given up, and landed by the next start"
    ]


def test_a_start_is_given_up_at_once_as_soon_as_there_is_something_to_end(
    spark: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, said, gateway = threading.Event(), list[str](), SparkContext._gateway
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with Ending(stop, said.append, patience_s=600) as ending:
        stop.set()
        until(lambda: ending.gave_up, what="the start to be given up")
        assert spark.poll() is None
        monkeypatch.setattr(SparkContext, "_gateway", gateway)
        assert spark.wait(60) == -signal.SIGKILL
    assert said == ["asked to end while it starts"]


def test_a_job_that_was_given_up_is_no_failure_but_for_who_wanted_to_land_once(
    spark: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the session is asked for until it is gone."""

    class Gone:
        @property
        def sparkContext(self) -> Any:
            raise ConnectionRefusedError(111, "Connection refused")

        @property
        def _jvm(self) -> Any:
            assert spark.wait(60) == -signal.SIGKILL
            raise ConnectionRefusedError(111, "Connection refused")

    settings: Any = SimpleNamespace(session_config=dict)
    monkeypatch.setattr("spark_jobs.land.start_session", lambda config: Gone())
    for once in (False, True):
        stop = threading.Event()
        stop.set()
        assert land(settings, once, Progress(), stop) == once


def test_publications_that_wait_for_their_turn_are_the_next_starts() -> None:
    begun, over = list[int](), threading.Event()

    def publish(number: int) -> None:
        begun.append(number)
        over.wait(90 * patience())

    with _beside() as pool:
        waiting = [pool.submit(publish, number) for number in range(6)]
        until(lambda: len(begun) == 2, what="two of them")
        waiting[-1].add_done_callback(lambda _: over.set())
    assert begun == [0, 1]


def test_many_tables_are_not_all_asked_for_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a query goes on is asked in Java, for 0.1 ms of a core: of 500 silent tables that was a third of one."""
    monkeypatch.setattr("spark_jobs.land._is_filled", lambda session, settings: False)
    stream: Any = SimpleNamespace(session=None, ended=lambda: False, wants_parcels=lambda filling: False)
    stream.wants_publishing = stream.wants_housekeeping = False

    def pause(tables: int) -> float:
        waited = list[float]()
        stop: Any = SimpleNamespace(is_set=lambda: bool(waited), wait=waited.append)
        lease, unused = SimpleNamespace(lost=False), cast(Any, None)
        _Job([_Landing(stream)] * tables, unused, Progress(), cast(Any, lease), once=False).watch(stop, unused)
        return waited[0]

    assert (pause(1), pause(30), pause(500)) == (0.1, 0.1, 1.5)


@pytest.mark.parametrize("filling", [False, True])
def test_what_fails_at_the_end_of_landing_once_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, filling: bool
) -> None:
    """A parcel of a backfill that could not be landed was told as a publication."""
    monkeypatch.setattr("spark_jobs.land._is_filled", lambda session, settings: False)

    def fails(**_: Any) -> None:
        raise LandingError("no space")

    def query(*_: Any) -> None:
        stream.query = None

    stream: Any = SimpleNamespace(name="ks.t", session=None, landed=False, query=object(), clean=query)
    stream.ended, stream.failure = lambda: True, lambda: None
    stream.may_have_parcels, stream.take_up, stream.publish = filling, fails, fails
    config = {"name": "j", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "w"}
    settings, progress, landing = load_settings(config), Progress(io.StringIO()), _Landing(stream)
    stop: Any = SimpleNamespace(is_set=lambda: landing.failures > 0, wait=lambda _: None)
    with _beside() as pool:
        _Job([landing], settings, progress, cast(Any, SimpleNamespace(lost=False)), once=True).watch(stop, pool)
    what = "landing what a backfill has read" if filling else "publishing"
    assert progress.of("ks.t").error == f"{what} failed: no space"


def test_a_session_that_somebody_else_has_made_is_not_ended(spark: subprocess.Popen[bytes]) -> None:
    class Failing:
        @property
        def _jvm(self) -> Any:
            until(lambda: sum(thread.name == "ending" for thread in threading.enumerate()) == 0, what="no end of it")
            raise ValueError("of its own")

    settings: Any = SimpleNamespace(session_config=dict)
    session: Any = Failing()
    stop = threading.Event()
    stop.set()
    land(settings, False, Progress(), stop, session=session)
    assert spark.poll() is None


def test_who_is_interrupted_while_spark_starts_leaves_no_jvm_behind() -> None:
    """It has no context yet, and would wait for connections for ever. What ran before is none of this."""
    with subprocess.Popen(["sleep", "600"]) as other:
        with pytest.raises(KeyboardInterrupt), leaving_nothing():
            started = subprocess.Popen(["sleep", "600"])
            raise KeyboardInterrupt
        assert started.wait(60) == -signal.SIGKILL and other.poll() is None
        other.kill()


def test_a_table_that_fails_for_days_is_tried_again_at_the_longest_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A doubled pause was no number any more after 1,024 failures, which ended the job and all of its tables."""
    config = {"name": "j", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "w"}
    settings, stream = load_settings(config), SimpleNamespace(name="ks.t", landed=False)
    landing, said = _Landing(cast(TableStream, stream)), io.StringIO()
    progress, now = Progress(err=said), 1024.0
    unused: Any = None
    monkeypatch.setattr("spark_jobs.land.time", SimpleNamespace(monotonic=lambda: now))

    def pause(once: bool = False) -> float:
        _Job([landing], settings, progress, unused, once=once).failed(landing, "why")
        assert landing.retry_at is not None
        return landing.retry_at - now

    assert [pause() for _ in range(3000)][:3] == [0.5, 1.0, 2.0] and pause() == 30.0
    stream.landed = True
    assert (pause(), pause()) == (0.5, 1.0), "something landed in between"
    stream.landed = True
    _Job([landing], settings, progress, unused, once=True).failed(landing, "why")
    assert landing.failures == 3 and "ks.t failed: why" in said.getvalue(), "once is tried three times at most"
