"""A job that is asked to end has a while for what is under way; then Spark is ended, and what waits for it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from spark_jobs.config import Settings
from spark_jobs.ending import Ending
from spark_jobs.land import land
from spark_jobs.stream import Progress
from tests.servers.patience import until


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
    spark: subprocess.Popen[bytes], tmp_path: Path
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

    settings: Any = Settings.model_construct()
    session: Any = Gone()
    for once in (False, True):
        stop = threading.Event()
        stop.set()
        assert land(settings, once, Progress(), stop, session=session) == once


def test_who_is_interrupted_while_spark_starts_leaves_no_jvm_behind() -> None:
    """It has no context yet, and would wait for connections for ever."""
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
        "from spark_jobs.session import start_session\n"
        "print('ready', flush=True)\n"
        "start_session({})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: bool(children.read_text()), what="the JVM to be started")
        started = Path(f"/proc/{children.read_text().split()[0]}")
        process.terminate()
        assert process.wait(60) == 3
        until(lambda: not started.exists() or ") Z " in started.joinpath("stat").read_text(), what="the JVM to be gone")
    finally:
        process.kill()
        process.communicate()
