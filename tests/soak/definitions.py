"""Seeds of random tables that are written to, altered and snapshotted, landed late, twice and in no order, and read.

    .venv/bin/python -m tests.soak.definitions --seeds 1,2 --rounds 6 --sink iceberg

Each seed is landed in pieces and once more from the beginning, and compared with its source each time: the live view,
the published table as Spark reads it, and as delta-rs or PyIceberg do. Ends with 1 if a seed differs, and keeps its
folder.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile

from pyspark.sql import SparkSession

from spark_jobs.jvm.jars import resolve
from spark_jobs.session import start_session
from spark_jobs.tables import FEW_ROWS
from spark_jobs.verify import job
from tests.servers.double import Double
from tests.soak.each_seed import each_seed
from tests.spark_jobs.altered_tables import Altered
from tests.spark_jobs.source_tables import Ends, connected
from tests.spark_jobs.table_histories import NAMES, Histories, random_tables

_SESSION = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1500m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def session_config(warehouse: str) -> dict[str, str]:
    """Of a session for many small plans."""
    jars = ",".join(map(str, [*resolve("spark"), *resolve("iceberg")]))
    return {**_SESSION, **FEW_ROWS, "spark.jars": jars, "warehouse": warehouse}


def lived(spark: SparkSession, seed: int, sink: str, rounds: int, folder: str) -> list[str]:
    """What happened; an AssertionError says what differs."""
    rnd = random.Random(seed)
    keyspace = f"ks{seed}{sink}"
    with Double(ring_delay=0) as scylla, connected(scylla) as cql:
        cql.execute(scylla.keyspace_ddl(keyspace))
        cql.set_keyspace(keyspace)
        altered = Altered(spark, scylla, cql, keyspace, folder, NAMES, rnd, sink)
        histories = Histories(altered, random_tables(rnd, keyspace), rnd)
        happened = histories.live(rounds)
        histories.ended()
        histories.same()
        altered.again()
        histories.same()
    return happened


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.definitions", description=__doc__)
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument("--rounds", type=int, default=6, help="of writes and alterations (6)")
    parser.add_argument("--sink", choices=("delta", "iceberg"), default="delta")
    given = parser.parse_args()
    # No broker has a part in it: everything that there is has landed.
    job.Topics = lambda *_: Ends({})  # type: ignore[assignment,misc]
    folder = tempfile.mkdtemp(prefix="scylla-cdc-definitions-soak-")
    spark = start_session(session_config(f"{folder}/session"))
    return each_seed(
        spark,
        given.seeds,
        folder,
        f", {given.sink}",
        lambda seed, kept: lived(spark, seed, given.sink, given.rounds, kept),
    )


if __name__ == "__main__":
    sys.exit(main())
