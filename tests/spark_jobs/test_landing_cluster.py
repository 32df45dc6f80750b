"""Landing by spark-submit with executors as processes of their own: one that is killed, and then the driver, cost
nothing.

The warehouse is on a Hadoop file system that knows it by another path than the machine does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.jvm import find_java, resolve
from spark_jobs.tables import FEW_ROWS
from tests.servers.patience import until
from tests.spark_jobs.landing_feed import cell, change, produce
from tests.spark_jobs.landing_way import Way

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
EXECUTOR = "CoarseGrainedExecutorBackend"


def _submitted(config: Path, *options: str) -> subprocess.Popen[bytes]:
    """As the documentation says, with jars that are here already instead of packages."""
    jars = ",".join(map(str, resolve("spark")))
    script = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    environment = {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_SCALA_VERSION": "2.13",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        **find_java().spark_environment(),
    }
    command = [script, *options, "--jars", jars, "spark_jobs/land.py", str(config)]
    with config.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)


def _executors(group: int) -> list[int]:
    """The processes of executors that this job has started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            mine = entry.name.isdecimal() and os.getpgid(int(entry.name)) == group
            if mine and EXECUTOR in (entry / "cmdline").read_text(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def _is_gone(group: int) -> bool:
    """Whether not even a process is left that somebody has still to hear of."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder, and the settings by which a session knows it as the lake's warehouse; the shared session does."""
    folder, mounted = tmp_path / "lake", "fs.viewfs.mounttable.lake.link./warehouse"
    folder.mkdir()
    configuration: Any = spark.sparkContext._jsc
    configuration = configuration.hadoopConfiguration()
    configuration.set(mounted, f"file://{folder}")
    yield folder, {"warehouse": "viewfs://lake/warehouse", f"spark.hadoop.{mounted}": f"file://{folder}"}
    configuration.unset(mounted)


@pytest.mark.usefixtures("interpreted", "planned_once")
def test_killed_executors_and_drivers_cost_nothing(
    spark: SparkSession, way: Way, tmp_path: Path, lake: tuple[Path, dict[str, str]]
) -> None:
    folder, place = lake
    config = tmp_path / "landing.json"
    # Most of what such a process does is to load classes, which are Spark's own: they need not be looked through.
    unverified = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    options = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {unverified}"
    way.config |= {**place, "publish.interval.ms": 1}
    settings: dict[str, Any] = {
        **way.config,
        **FEW_ROWS,
        # What spark-submit says counts for more.
        "spark.master": "local[1]",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.extraJavaOptions": options,
    }
    config.write_text(json.dumps(settings))

    def rows() -> list[int]:
        try:
            return sorted(DeltaTable(str(folder / "ks" / "t")).to_pyarrow_table()["ck"].to_pylist())
        except Exception:
            return []

    def feed(at: int) -> None:
        produce(way.servers, [(way.data, change("c", 1000 + at, {"pk": at, "ck": at, "v": cell("x")}))])

    feed(0)
    where = ["--master", "local-cluster[2,1,1024]", "--executor-memory", "600m", "--driver-memory", "1g"]
    job = _submitted(config, *where, "--driver-java-options", options)
    try:
        until(lambda: rows() == [0] or job.poll() is not None, 900, "the first row")
        assert job.poll() is None, config.with_suffix(".log").read_text()
        # The first row needs one of them.
        until(lambda: len(_executors(job.pid)) == 2, 300, "both executors")
        first = _executors(job.pid)
        os.kill(first[0], signal.SIGKILL)
        feed(1)
        until(lambda: rows() == [0, 1], 900, "a row after an executor was killed")
        until(lambda: len(set(_executors(job.pid)) - {first[0]}) == 2, 300, "another executor")
    finally:
        # The driver, its JVM and the executors.
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    until(lambda: _is_gone(job.pid), 60, "the end of all that the driver has started")
    feed(2)
    way.land(spark)
    assert rows() == [0, 1, 2]
