"""One Spark session for all landing tests: starting another one costs more than most of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from embedded.kafka import EmbeddedKafka
from spark_jobs.jvm.jars import resolve
from spark_jobs.session import start_session
from spark_jobs.tables import small_plans
from tests.servers.java_options import HUGE_PAGES
from tests.servers.scylla import Scylla
from tests.spark_jobs.landing_way import Way
from tests.spark_jobs.source_tables import Ends, connected


@pytest.fixture(scope="session")
def spark_config(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        # As a user's, with the second compiler, which jobs of a few seconds do without here. It is asked for a tenth of
        # what it would make otherwise: it took a third of all, and what comes that often is nearly as fast.
        "spark.driver.extraJavaOptions": (
            # Plans are garbage at once: of much room for what is new little has to be copied.
            "-XX:+UseSerialGC -Xmn900m -XX:TieredStopAtLevel=4 -XX:CompileThresholdScaling=1 "
            "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
            f"-XX:Tier4BackEdgeThreshold=400000 -XX:ReservedCodeCacheSize=256m -XX:-UsePerfData {HUGE_PAGES}"
        ),
        # A log of a few commits is one part.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.jars": ",".join(map(str, [*resolve("spark"), *resolve("iceberg")])),
        "warehouse": str(tmp_path_factory.mktemp("session")),
    }


@pytest.fixture(scope="session")
def spark(spark_config: dict[str, Any]) -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = start_session(spark_config)
        # Otherwise Java looks at its stack for each step of each plan, to name a job by it that nobody looks at.
        for form in ("callSite.short", "callSite.long"):
            session.sparkContext.setLocalProperty(form, "a test")
        yield session
        session.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")


@pytest.fixture
def way(kafka: EmbeddedKafka, unique: Callable[[str], str], tmp_path: Path, spark_config: dict[str, Any]) -> Way:
    return Way(kafka.bootstrap_servers, unique("landing"), tmp_path, spark_config)


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Plans of wide tables run as they are: for a handful of rows, compiling them takes longer than everything else."""
    with small_plans.uncompiled(spark):
        yield


@pytest.fixture
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Plans are not thought over after each of their stages, which is most of what is done with a handful of rows."""
    with small_plans.planned_once(spark):
        yield


@pytest.fixture(scope="module")
def cql(scylla: Scylla) -> Iterator[Session]:
    with connected(scylla) as session:
        yield session


@pytest.fixture
def keyspace(scylla: Scylla, cql: Session, unique: Callable[[str], str]) -> str:
    """A new one, which the session uses."""
    name = unique("ks").replace("-", "_")
    cql.execute(scylla.keyspace_ddl(name))
    cql.set_keyspace(name)
    return name


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` finds every topic landed to its end, `backfill` none."""
    for job in ("spark_jobs.verify.job", "spark_jobs.jobs.backfilling"):
        monkeypatch.setattr(f"{job}.Topics", lambda *_: Ends({}))
