"""Values that have ended by their TTL are forgotten by merges once no clock can be behind their end."""

from __future__ import annotations

import json
import time

import pytest
from pyspark.sql import SparkSession

from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import parse_definition
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from tests.spark_jobs.landing_feed import schema_record
from tests.spark_jobs.source_tables import ANY_FORMAT, RECORD

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "planned_once")]


def test_a_clock_that_is_ahead_forgets_nothing_before_something_was_written_after_its_end(
    spark: SparkSession, warehouse: str
) -> None:
    """Whose clock was three hours ahead forgot what lived for two more, and nobody had it again when it was right."""
    landed = LandedTable(spark, FORMATS[ANY_FORMAT].open(spark, warehouse), "ks", "t")
    version = parse_definition(schema_record("ks", "t", "pk partition_key int; v regular text").decode())
    layout = landed.prepare(Known((version,), buckets=1))
    register_functions(spark, layout)
    # For this machine's clock it has ended; for that of whoever wrote it, nobody knows.
    written_s, ttl = int(time.time()) - 20_000, 5_000

    def merged(segment: int, key: int, at_s: int) -> dict[int, str | None]:
        row = {"pk": key, "v": {"value": "x"}}
        record = {"source": {"ts_us": at_s * 1_000_000, "ttl": ttl}, "before": None, "after": row, "op": "c"}
        batch = spark.createDataFrame([(None, bytearray(json.dumps(record).encode()), "t", 0, segment)], RECORD)
        batch = batch.selectExpr("*", "current_timestamp() AS timestamp")
        landed.append(decoded_json(batch, layout, segment, "t.range-deletes"))
        landed.merge(layout, segment)
        return {row["k_p0"]: row["v_v"] for row in spark.table(landed.state.relation).where("kind <> 0").collect()}

    assert merged(1, 1, written_s) == {1: "x"}
    assert merged(2, 2, written_s + ttl + 3_000) == {1: "x", 2: "x"}
    assert merged(3, 3, written_s + ttl + 4_000) == {1: None, 2: "x", 3: "x"}
    assert landed.session.sql(landed.view_text(Known((version,), expiring=True).layout())).count() == 0
