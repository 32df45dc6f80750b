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
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable

from spark_jobs.jvm import find_java, resolve
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
    spark = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_SCALA_VERSION": "2.13"}
    return _started([script, *options, "--jars", jars, "spark_jobs/land.py", str(config)], config, **spark)


def _started(command: list[str], config: Path, **more: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        **more,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        **find_java().spark_environment(),
    }
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


def test_killed_executors_and_drivers_cost_nothing(way: Way, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    config = tmp_path / "landing.json"
    settings: dict[str, Any] = {
        **way.config,
        "warehouse": "viewfs://lake/warehouse",
        "spark.hadoop.fs.viewfs.mounttable.lake.link./warehouse": f"file://{lake}",
        # What spark-submit says counts for more.
        "spark.master": "local[1]",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "publish.interval.ms": 1,
    }
    config.write_text(json.dumps(settings))

    def rows() -> list[int]:
        try:
            return sorted(DeltaTable(str(lake / "ks" / "t")).to_pyarrow_table()["ck"].to_pylist())
        except Exception:
            return []

    def feed(at: int) -> None:
        produce(way.servers, [(way.data, change("c", 1000 + at, {"pk": at, "ck": at, "v": cell("x")}))])

    feed(0)
    where = ["--master", "local-cluster[2,1,1024]", "--executor-memory", "600m", "--driver-memory", "1g"]
    options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
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
    feed(2)
    again = _started([sys.executable, "-m", "connector", "land", str(config), "--once"], config)
    until(lambda: again.poll() is not None, 900, "the end of the job")
    assert again.wait() == 0, config.with_suffix(".log").read_text()
    assert rows() == [0, 1, 2]
