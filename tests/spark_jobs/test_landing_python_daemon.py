"""What Spark's Python workers are forked from: what they have imported already, and what is on their path."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import zipimport
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs import python_daemon


def _seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    imported, frozen = "spark_jobs.source" in sys.modules, gc.get_freeze_count()
    archives = [path for path, kind in sys.path_importer_cache.items() if isinstance(kind, zipimport.zipimporter)]
    for batch in batches:
        more = [[imported] * len(batch), [frozen] * len(batch), [",".join(archives)] * len(batch)]
        yield pa.RecordBatch.from_arrays([pa.array(each) for each in more], ["imported", "frozen", "archives"])


@pytest.mark.spark
def test_workers_have_imported_what_they_need_and_look_into_no_archive(spark: SparkSession) -> None:
    kinds = "imported boolean, frozen bigint, archives string"
    for row in spark.range(0, 4, 1, 4).mapInArrow(_seen, kinds).collect():
        assert row["imported"] and row["frozen"] > 10_000 and row["archives"] == ""


def test_only_sparks_own_archives_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "spark" / "python" / "lib"
    folder.mkdir(parents=True)
    for file in (folder / "pyspark.zip", tmp_path / "mine.zip"):
        file.touch()
    others = [path for path in sys.path if os.path.isdir(path)]
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr(sys, "path", [str(folder / "pyspark.zip"), str(folder), str(tmp_path / "mine.zip"), *others])
    python_daemon.without_archives()
    assert sys.path == [str(folder), str(tmp_path / "mine.zip"), *others]


def test_where_pyspark_is_nowhere_else_its_archives_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "pyspark.zip"
    archive.touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    before = list(sys.path)
    found = importlib.util.find_spec
    monkeypatch.setattr(python_daemon, "find_spec", lambda name: None if name == "pyspark" else found(name))
    python_daemon.without_archives()
    assert sys.path == before
