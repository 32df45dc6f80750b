"""Where Spark's class path is ours, its pinned jars are on it, with the archive of their classes if there is one."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from spark_jobs.jvm import archive_path, find_java, tell_refusal, with_archive, with_class_path
from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.spark_classes import _FOREIGN

CLASS_PATH, OPTIONS = "spark.driver.extraClassPath", "spark.driver.extraJavaOptions"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A session with two pinned jars and somebody's own, beside a cache whose path has a blank."""
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(tmp_path / "the cache"))
    pinned = cache_dir() / "jars" / "spark"
    pinned.mkdir(parents=True)
    for name in ("b.jar", "a.jar"):
        (pinned / name).touch()
    return {
        "spark.master": "local[2]",
        "spark.jars": f"{pinned}/b.jar,/their/own.jar,{pinned}/a.jar",
        OPTIONS: "-Xmn9m",
    }


def test_pinned_jars_come_on_the_class_path_and_others_stay(settings: dict[str, str]) -> None:
    made = with_class_path(settings)
    pinned = cache_dir() / "jars" / "spark"
    assert made[CLASS_PATH] == f"{pinned}/a.jar{os.pathsep}{pinned}/b.jar"
    assert made["spark.jars"] == "/their/own.jar"
    assert "spark.jars" not in with_class_path(settings | {"spark.jars": f"{pinned}/a.jar"})


@pytest.mark.parametrize("variable", _FOREIGN)
def test_where_somebody_else_sets_the_class_path_nothing_changes(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "/somewhere")
    assert with_archive(with_class_path(settings)) == settings


@pytest.mark.parametrize(
    "given", [{"spark.master": "yarn"}, {"spark.master": "local-cluster[2,1,1024]"}, {CLASS_PATH: "/x"}]
)
def test_executors_elsewhere_and_a_class_path_of_somebodys_own_are_left_alone(
    settings: dict[str, str], given: dict[str, str]
) -> None:
    assert with_class_path(settings | given) == settings | given


def test_an_archive_is_used_when_it_is_there(settings: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    made = with_class_path(settings)
    path = archive_path(made)
    assert path is not None
    with caplog.at_level(logging.INFO):
        assert with_archive(made) == made
        assert "without an archive" in caplog.text
        caplog.clear()
        path.parent.mkdir()
        path.touch()
        assert with_archive(made)[OPTIONS] == f"'-XX:SharedArchiveFile={path}' -Xmn9m"
        tell_refusal(made, os.getpid())
        assert caplog.text == ""
        tell_refusal(with_archive(made), os.getpid())
        assert "does not take the archive" in caplog.text


def test_another_state_of_a_jar_has_another_archive(settings: dict[str, str]) -> None:
    made = with_class_path(settings)
    before = archive_path(made)
    os.utime(cache_dir() / "jars" / "spark" / "a.jar", (1, 1))
    after = archive_path(made)
    assert before is not None and after is not None and before != after
    assert before.name.split("-")[:2] == after.name.split("-")[:2], "it takes the place of the other"
