"""What a job says when Spark itself is gone: who ended it, not what failed because of that."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from connector.errors import LandingError
from spark_jobs.session import needing_spark


class Refusing:
    """A session whose JVM is gone: py4j's first answer is a refused connection."""

    @property
    def sparkContext(self) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("kill -TERM $$", "was ended by SIGTERM"),
        ("exit 143", "was ended by SIGTERM"),
        ("kill -KILL $$", "was ended by SIGKILL"),
        ("exit 56", "was ended by status 56"),
    ],
)
def test_the_end_of_the_jvm_is_told_with_who_ended_it(monkeypatch: pytest.MonkeyPatch, command: str, said: str) -> None:
    process = subprocess.Popen(["sh", "-c", command])
    process.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    gone: Any = Refusing()
    told = f"process {process.pid}.*{said}.*goes on where it stood"
    with pytest.raises(LandingError, match=told), needing_spark(gone):
        raise OSError("whatever failed because of that")
    with pytest.raises(LandingError, match=said), needing_spark(gone):
        pass


def test_a_jvm_of_somebody_else_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    gone: Any = Refusing()
    with pytest.raises(LandingError, match="does not answer: Connection refused"), needing_spark(gone):
        pass
