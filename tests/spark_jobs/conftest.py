"""One Spark session for all landing tests: starting another one costs more than most of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from embedded.jars import resolve
from spark_jobs.session import start_session


@pytest.fixture(scope="session")
def spark_config(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "1500m",
        # Plans are many and small here: compiling them well costs more than they do.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
        "spark.jars": ",".join(map(str, [*resolve("spark"), *resolve("iceberg")])),
        "warehouse": str(tmp_path_factory.mktemp("session")),
    }


@pytest.fixture(scope="session")
def spark(spark_config: dict[str, Any]) -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = start_session(spark_config)
        yield session
        session.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")
