"""A session of Spark: what it asks its JVM, and what a job says when that is gone: who ended it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark import SparkContext
from pyspark.errors import ArithmeticException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from connector.errors import LandingError
from spark_jobs.java_objects import elements, hadoop_path, java_class
from spark_jobs.session import needing_spark, session_settings, start_session
from spark_jobs.stream import told
from tests.jvm.test_jvm_java import fake_java


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


@pytest.mark.parametrize(("version", "modules"), [("11", True), ("25", True), ("17", False)])
def test_spark_is_started_in_a_java_that_it_runs_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, modules: bool
) -> None:
    """The first one that there was was taken, whatever its release, though a wheel had brought another one; and who had
    named a small one was told of a module that is not found."""
    named = fake_java(tmp_path / "named", version, modules=modules)
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setattr(SparkContext, "_gateway", None)

    def started(settings: object) -> None:
        raise OSError(f"in {os.environ['JAVA_HOME']}")

    monkeypatch.setattr("spark_jobs.session.start.start_jvm", started)
    with pytest.raises(LandingError, match="Spark did not start: in ") as caught:
        start_session({"warehouse": str(tmp_path), "spark.jars": "", "spark.master": "local[1]"})
    assert f"in {named}" not in str(caught.value)


@pytest.mark.spark
def test_checkpoints_are_written_without_a_process_for_each_file(spark: SparkSession, tmp_path: Path) -> None:
    kinds = java_class(spark, "org.apache.spark.sql.execution.streaming.CheckpointFileManager")
    manager = kinds.create(hadoop_path(spark, str(tmp_path)), spark._jsparkSession.sessionState().newHadoopConf())
    assert manager.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that the JVM is asked for: of each that is no class it looks into all of its jars."""
    names: list[str] = []
    answer = GatewayClient.send_command

    def listening(client: GatewayClient, command: str, *more: Any, **others: Any) -> Any:
        if command.startswith("r\nu\n"):
            names.append(command.split("\n")[2])
        return answer(client, command, *more, **others)

    monkeypatch.setattr(GatewayClient, "send_command", listening)
    return names


@pytest.mark.spark
def test_a_class_of_the_jvm_is_looked_for_once_and_by_its_whole_name(spark: SparkSession, asked: list[str]) -> None:
    assert [java_class(spark, "java.util.concurrent.Phaser")().getPhase() for _ in range(2)] == [0, 0]
    assert asked == ["java.util.concurrent.Phaser"]
    listed = java_class(spark, "java.util.ArrayList")(["a", "b"])
    asked.clear()
    assert elements(listed) == ["a", "b"]
    assert not asked


@pytest.mark.spark
def test_of_columns_and_counts_the_jvm_is_told_nothing_that_nobody_reads(spark: SparkSession, asked: list[str]) -> None:
    seen = Observation()
    frame = spark.range(3).where(F.col("id") > 0).observe(seen, F.count("id").alias("rows"), F.max("id").alias("last"))
    frame.write.format("noop").mode("append").save()
    assert told(spark, seen) == {"rows": 2, "last": 2}
    # The place of each column in Python, and what an error is that ends a loop.
    assert not {"org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin", "py4j"} & set(asked)
    with pytest.raises(ArithmeticException) as error:
        spark.range(1).select(1 / F.col("id")).collect()
    assert "DIVIDE_BY_ZERO" in str(error.value) and "== DataFrame ==" not in str(error.value)


def test_what_our_sql_means_is_not_the_users_to_say() -> None:
    """With escapedStringLiterals a table landed whose own notes nobody could read any more, with the others none."""
    others = {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.legacy.createEmptyCollectionUsingStringType": "true",
        "spark.sql.legacy.setopsPrecedence.enabled": "true",
        "spark.sql.groupByOrdinal": "false",
    }
    settings = session_settings({"spark.master": "local", **others, "spark.sql.adaptive.enabled": "false"})
    assert not others.items() & settings.items() and settings["spark.sql.adaptive.enabled"] == "false"
