"""What Spark's Python workers are forked from: what they have imported already, and what is on their path."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import zipimport
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
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


@pytest.mark.parametrize("where", ["there", "elsewhere", "nowhere else"])
def test_only_archives_of_the_spark_that_is_installed_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The user's own stay, and so does another version's PySpark, which fits its JVM."""
    home = tmp_path / "spark"
    folder = home / "python" / "lib"
    folder.mkdir(parents=True)
    for file in (folder / "pyspark.zip", tmp_path / "mine.zip"):
        file.touch()
    found = importlib.util.find_spec

    def spec(name: str) -> ModuleSpec | None:
        if name != "pyspark" or where == "elsewhere":
            return found(name)
        made = ModuleSpec(name, None, is_package=True)
        made.submodule_search_locations = [str(home)]
        return made if where == "there" else None

    kept = [str(folder), str(tmp_path / "mine.zip"), *(path for path in sys.path if os.path.isdir(path))]
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setattr(sys, "path", [str(folder / "pyspark.zip"), *kept])
    monkeypatch.setattr(python_daemon, "find_spec", spec)
    python_daemon.without_archives()
    assert sys.path == (kept if where == "there" else [str(folder / "pyspark.zip"), *kept])
