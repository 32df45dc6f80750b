"""Random tables under random alterations, landed late, twice, in no order, and once more from the beginning: the rows
of the source, whoever reads them. A seed of few landings, which cost what the test does; the soak has the others."""

from __future__ import annotations

import random

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from tests.servers.scylla import Scylla
from tests.spark_jobs.altered_tables import Altered
from tests.spark_jobs.source_tables import WITH_SOURCE
from tests.spark_jobs.table_histories import ALTERATIONS, NAMES, Histories, random_tables

pytestmark = [pytest.mark.timeout(3000), *WITH_SOURCE]
ROUNDS, TABLES = 3, 2


@pytest.mark.parametrize(("seed", "sink"), [(9, "iceberg")])
def test_random_histories_of_definitions_land_as_the_source(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str, seed: int, sink: str
) -> None:
    scylla.require("vector")
    rnd = random.Random(seed)
    altered = Altered(spark, scylla, cql, keyspace, warehouse, NAMES[:TABLES], rnd, sink)
    histories = Histories(altered, random_tables(rnd, keyspace)[:TABLES], rnd)
    happened = histories.live(ROUNDS)
    assert {"snapshot", "landed"} < set(happened) and len(set(happened) & set(ALTERATIONS)) > len(ALTERATIONS) // 2
    histories.ended()
    histories.same()
    altered.again()
    histories.same()
