"""Key columns whose landed values are stored in another way since their types were changed: rows are found again."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import parse_definition
from spark_jobs.model.layout import Layout
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.stream.moving_keys import move_keys
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from tests.spark_jobs.landing_feed import cell, change, schema_record
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "planned_once"), pytest.mark.timeout(900)]

RANGES = "p.ks.t.range-deletes"
COLUMNS = "pk partition_key {}; ck clustering {}; v regular text"


def _feed(spark: SparkSession, landed: LandedTable, layout: Layout, segment: int, *records: tuple[str, bytes]) -> None:
    register_functions(spark, layout)
    rows = [(None, bytearray(value), topic, 0, at) for at, (topic, value) in enumerate(records)]
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    batch = spark.createDataFrame(rows, schema).selectExpr("*", "current_timestamp() AS timestamp")
    landed.append(decoded_json(batch, layout, segment, RANGES))


def _rows(spark: SparkSession, landed: LandedTable, layout: Layout) -> list[tuple[str, str, str]]:
    return sorted((str(row[0]), str(row[1]), row[2]) for row in spark.sql(landed.view_text(layout)).collect())


def test_rows_and_ranges_are_found_by_keys_of_another_type(spark: SparkSession, warehouse: str) -> None:
    landed = LandedTable(spark, FORMATS[ANY_FORMAT].open(spark, warehouse), "ks", "t")
    versions = [
        parse_definition(schema_record("ks", "t", COLUMNS.format(kind, kind), version=kind).decode())
        for kind in ("smallint", "int", "varint")
    ]
    before = landed.prepare(Known(tuple(versions[:2]), buckets=3))
    deleted = {"source": {"ts_us": 2000}, "kind": "range", "partition": {"pk": 1}}
    bounds = {"start": {"values": [4], "inclusive": False}, "end": {"values": [], "inclusive": True}}
    written = [
        ("p.ks.t", change("c", 1000, {"pk": pk, "ck": ck, "v": cell("a")})) for pk, ck in ((1, 1), (1, 5), (-300, 2))
    ]
    _feed(spark, landed, before, 1, *written, (RANGES, json.dumps({**deleted, **bounds}).encode()))
    landed.merge(before, 1)
    expected = [("-300", "2", "a"), ("1", "1", "a")]
    assert _rows(spark, landed, before) == expected

    known = Known(tuple(versions), buckets=3, sequence=1)
    after = known.layout()
    for _ in range(2):
        # A job that was killed before the new version was noted does it again.
        move_keys(landed, before, after)
        assert _rows(spark, landed, before) == expected, "who knows of no new version goes on reading"
        assert _rows(spark, landed, after) == expected
    landed.prepare(known)
    late = change("u", 1500, {"pk": 1, "ck": 5, "v": cell("covered")})
    again = change("u", 3000, {"pk": -300, "ck": 2, "v": cell("b")})
    huge = change("c", 3000, {"pk": 10**30, "ck": 10**30, "v": cell("c")})
    _feed(spark, landed, after, 2, *(("p.ks.t", value) for value in (late, again, huge)))
    expected = [("-300", "2", "b"), ("1", "1", "a"), (str(10**30), str(10**30), "c")]
    assert _rows(spark, landed, after) == expected
    landed.merge(after, 2)
    assert _rows(spark, landed, after) == expected
