"""Where a warehouse is: tables that name their files by whole paths are written where these lead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.sinks import FORMATS

pytestmark = pytest.mark.spark

_TABLE = "k$53/t/state"


def test_a_copied_folder_of_icebergs_is_refused_and_another_name_of_it_is_not(
    spark: SparkSession, warehouse: str, tmp_path: Path
) -> None:
    """What was landed into the copy went into the original's folder, and its upkeep deleted files there."""
    original = FORMATS["iceberg"].open(spark, warehouse)
    original.prepare(_TABLE, {"bucket": "int"}, "bucket")
    link, copy = tmp_path / "link", tmp_path / "copy"
    link.symlink_to(warehouse)
    assert FORMATS["iceberg"].open(spark, f"file://{link}").exists(_TABLE)
    shutil.copytree(warehouse, copy)
    for _ in range(2):
        with pytest.raises(LandingError, match=r"has its files in .*/warehouse/k\$53/t__state: .* copied"):
            FORMATS["iceberg"].open(spark, str(copy)).exists(_TABLE)
