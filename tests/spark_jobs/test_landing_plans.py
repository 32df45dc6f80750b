"""What Spark makes of the jobs' SQL: work that must not be repeated, and work that must be spread evenly."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import parse_definition
from spark_jobs.model.layout import Layout
from spark_jobs.sinks.delta import DeltaSink
from spark_jobs.tables.checkpoints import checkpointed
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from spark_jobs.tables.small_plans import configured
from tests.spark_jobs.landing_feed import cell, change, schema_record

pytestmark = pytest.mark.spark

PLAIN = "pk partition_key int; ck clustering int; s static text; v regular text; n regular bigint; m regular set<text>"
KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"


def _known(columns: str) -> Known:
    return Known((parse_definition(schema_record("ks", "t", columns).decode()),))


def _plan(frame: DataFrame) -> str:
    """The physical plan, whole."""
    whole = {"spark.sql.maxPlanStringLength": "10000000", "spark.sql.debug.maxToStringFields": "10000"}
    with configured(frame.sparkSession, whole):
        return str(frame._jdf.queryExecution().executedPlan().toString())


def _decoded(spark: SparkSession, layout: Layout, with_schemas: bool) -> DataFrame:
    register_functions(spark, layout)
    batch = spark.range(2).selectExpr(
        "CAST('k' AS binary) AS key",
        "CAST(uuid() AS binary) AS value",
        "'t' AS topic",
        "0 AS partition",
        "id AS offset",
        "current_timestamp() AS timestamp",
    )
    frame = decoded_json(batch, layout, 1, "t.range-deletes", with_schemas)
    counts = [F.count_if(F.col("reason") == reason).alias(reason) for reason in ("CORRUPT", "NO_KEY")]
    return frame.observe(Observation(), F.count(F.lit(1)).alias("rows"), *counts)


@pytest.mark.parametrize("with_schemas", [False, True])
def test_a_record_is_parsed_once_however_many_columns_and_checks_use_it(
    spark: SparkSession, with_schemas: bool
) -> None:
    plan = _plan(_decoded(spark, _known(PLAIN).layout(), with_schemas))
    assert len(re.findall(r"\bfrom_json\(", plan)) == 1
    assert len(re.findall(r"\bget_json_object\(", plan)) == 1


def test_only_types_that_sql_cannot_serialise_are_handed_to_python(spark: SparkSession) -> None:
    assert "EvalPython" not in _plan(_decoded(spark, _known(PLAIN).layout(), False))
    assert "EvalPython" in _plan(_decoded(spark, _known(PLAIN + "; d regular decimal").layout(), False))


def test_batches_run_the_code_that_was_made_for_the_first_of_them(spark: SparkSession) -> None:
    """Whatever stands in it as a number, as the segment or the time, has Spark compile a batch anew."""
    layout = _known(PLAIN).layout()
    register_functions(spark, layout)
    batch = _batch(spark, [change("c", 1000, {"pk": 1, "ck": 1, "v": cell("x")})])
    batch = batch.selectExpr("* EXCEPT (timestamp)", "timestamp_millis(offset) AS timestamp")
    first, second = (_code(decoded_json(batch, layout, segment, "t.range-deletes")) for segment in (1, 2))
    assert first and first == second


def _code(frame: DataFrame) -> list[str]:
    """What Spark compiles of a plan, each part by itself."""
    found = frame._jdf.queryExecution().debug().codegenToSeq()
    return sorted(str(found.apply(at)._2()) for at in range(found.size()))


def test_merges_spread_the_buckets_over_the_tasks(spark: SparkSession, warehouse: str) -> None:
    landed = LandedTable(spark, DeltaSink(spark, warehouse), "ks", "t")
    known = _known("id partition_key int; v regular text")
    layout = landed.prepare(known)
    values = [change("c", 1000 + at, {"id": at, "v": cell("x")}) for at in range(400)]
    landed.append(decoded_json(_batch(spark, values), layout, 1, "none"))
    with configured(spark, {"spark.sql.adaptive.coalescePartitions.enabled": "false"}):
        landed.merge(layout, 1)
    files: Counter[int] = Counter()
    tasks: Counter[str] = Counter()
    placed = f"SELECT bucket, input_file_name() AS file FROM {landed.state.relation} WHERE bucket >= 0"
    for row in spark.sql(f"SELECT bucket, file, count(*) AS rows FROM ({placed}) AS placed GROUP BY 1, 2").collect():
        files[row["bucket"]] += 1
        written = re.search(r"part-(\d+)", row["file"])
        assert written is not None
        tasks[written[1]] += row["rows"]
    assert files == dict.fromkeys(range(known.buckets), 1)
    assert len(tasks) == 2 and sum(tasks.values()) == 400 and max(tasks.values()) < 260


def test_rows_that_are_made_once_are_kept_until_nobody_looks_at_them(spark: SparkSession) -> None:
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = set(kept())
    with checkpointed(spark.range(3).selectExpr("id + 1 AS n")) as rows:
        assert [row["n"] for row in rows.orderBy("n").collect()] == [1, 2, 3] and set(kept()) - before
    assert set(kept()) <= before


def _batch(spark: SparkSession, values: list[bytes]) -> DataFrame:
    rows: list[tuple[Any, ...]] = [(None, bytearray(value), "t", 0, at) for at, value in enumerate(values)]
    assert json.loads(values[0])["op"] == "c"
    return spark.createDataFrame(rows, KAFKA.replace(", timestamp timestamp", "")).selectExpr(
        "*", "current_timestamp() AS timestamp"
    )


def test_nothing_is_inferred_of_each_column_of_each_step(spark: SparkSession) -> None:
    """Of a table of 500 columns that took Spark seven eighths of the time in which it plans its view."""
    frame = spark.range(3).where("id > 1").selectExpr("id AS a", "id AS b")
    assert frame._jdf.queryExecution().optimizedPlan().constraints().size() == 0
