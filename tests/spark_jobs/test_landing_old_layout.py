"""A warehouse that an earlier version has left is taken on: where its tables were, with the columns that they had.

The tables are made by SQL as the version before published tables made them: no positions beside the mark, no TTL, no
segments of positions, notes without what they say today, and Delta's tables where the published one is now.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.model import DEFINITIONS, PARTITION, POSITIONS, ROW, SAME_TIME, literal
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.sinks.iceberg import IcebergSink
from spark_jobs.stream.kafka_topics import Topics
from spark_jobs.tables.levels import MARK_PART
from spark_jobs.tables.registration import open_publisher
from tests.spark_jobs.landing_feed import cell, change, produce, schema_record
from tests.spark_jobs.landing_way import TABLE, Way

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.usefixtures("interpreted", "planned_once"),
    pytest.mark.timeout(1800),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]

RANGE = "struct<s:struct<o:struct<o0:int>,l:int,i:boolean>,e:struct<o:struct<o0:int>,l:int,i:boolean>>"
CHANGELOG = (
    "segment int, bucket int, kind int, op string, ts bigint, kafka_ms bigint, topic string, partition int, "
    "offset bigint, landed_at timestamp, reason string, note string, raw_key binary, raw_value binary, k_p0 int, "
    f"k_c0 int, bounds {RANGE}, v_s struct<v:string>, v_v struct<v:string>, "
    "e_m struct<o:boolean,e:array<struct<k:string,v:int>>>"
)
STATE = (
    "bucket int, kind int, mark int, k_p0 int, k_c0 int, base bigint, marker bigint, deleted bigint, "
    f"ranges array<struct<i:{RANGE},t:bigint>>, v_s string, t_s bigint, v_v string, t_v bigint, d_m bigint, "
    "e_m array<struct<k:string,t:bigint,v:int>>"
)
BUCKET = "CAST(pmod(hash(1), 2) AS int) AS bucket, 1 AS k_p0"


def tables(spark: SparkSession, way: Way, sink: str) -> Callable[..., None]:
    """Makes a table with rows that a query selects."""
    warehouse = str(way.config["warehouse"])

    def made(name: str, columns: str, *rows: str) -> None:
        where: str
        append: Callable[[DataFrame], None]
        if sink == "delta":
            path = f"{warehouse}/ks/t/{name}"
            where = f"delta.`{path}`"

            def append(frame: DataFrame) -> None:
                frame.write.format("delta").mode("append").save(path)
        else:
            opened = FORMATS[sink].open(spark, warehouse)
            assert isinstance(opened, IcebergSink)
            opened.in_namespace("ks/t/state")
            where = opened.relation(f"ks/t/{name}")

            def append(frame: DataFrame) -> None:
                opened.append(f"ks/t/{name}", frame)

        spark.sql(f"CREATE TABLE {where} ({columns}) USING {sink} PARTITIONED BY ({columns.split()[0]})")
        for row in rows:
            append(spark.sql(f"SELECT {row}"))

    return made


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_what_an_earlier_version_has_landed_is_gone_on_from(spark: SparkSession, way: Way, sink: str) -> None:
    way.config.update({"sink": sink, "publish.interval.ms": 60_000, "state.buckets": 2})
    produce(way.servers, [(way.data, b"landed before, and not read again")] * 3)
    topics = Topics(spark, way.settings().kafka())
    ((place, number), end) = max(topics.offsets([way.data]).items(), key=lambda item: item[1])
    topics.close()
    note = {
        "definitions": [schema_record("ks", "t", TABLE).decode()],
        "declared": {},
        "buckets": 2,
        "not_before": None,
        "backfilled": None,
        "history": False,
        "incomplete": None,
        "rebuilding": False,
        "form": 1,
    }
    landed = "current_timestamp() AS landed_at"
    elements = "array(named_struct('k', 'old', 't', 1000L, 'v', 1))"
    made = tables(spark, way, sink)
    made(
        "changelog",
        CHANGELOG,
        f"{DEFINITIONS} AS segment, 0 AS kind, 0L AS offset, {landed}, {literal(json.dumps(note))} AS note",
        f"{POSITIONS} AS segment, 0 AS kind, {literal(place)} AS topic, {number} AS partition, {end}L AS offset, "
        f"{landed}",
        f"2 AS segment, {BUCKET}, {ROW} AS kind, 'u' AS op, 2000L AS ts, 2 AS k_c0, {landed}, "
        "named_struct('v', 'unmerged') AS v_v",
    )
    made(
        "state",
        STATE,
        f"{MARK_PART} AS bucket, 0 AS kind, 1 AS mark",
        f"{BUCKET}, {ROW} AS kind, 1 AS k_c0, 1000L AS base, 1000L AS marker, 'merged' AS v_v, {SAME_TIME} AS t_v, "
        f"{elements} AS e_m",
        f"{BUCKET}, {PARTITION} AS kind, 1000L AS base, 's' AS v_s, {SAME_TIME} AS t_s",
    )

    added = {"mode": "modify", "elements": [{"key": "new", "value": 2}]}
    produce(way.servers, [(way.data, change("u", 3000, {"pk": 1, "ck": 1, "m": cell(added)}))])
    progress = way.land(spark, **{"merge.every.rows": 1})
    assert progress.of("ks.t").dead == {}
    expected = [(1, 1, "s", {"new": 2, "old": 1}, "merged"), (1, 2, "s", None, "unmerged")]
    assert way.rows(spark) == expected
    produce(way.servers, [(way.data, change("d", 4000, {"pk": 1, "ck": 1}))])
    way.land(spark)
    assert way.rows(spark) == expected[1:]
    publisher = open_publisher(spark, way.config)
    assert publisher is not None
    published = spark.sql(f"SELECT pk, ck, s, v FROM {publisher.relation('ks/t')}").collect()
    assert [tuple(row) for row in published] == [(1, 2, "s", "unmerged")]
    assert not (Path(way.config["warehouse"]) / "ks" / "t" / "state").exists(), "others may vacuum what is below ks/t"
