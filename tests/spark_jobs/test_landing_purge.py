"""Forgotten deletes: what they covered is gone with them, what a reader sees stays, late changes come back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.jobs.upkeep import maintain
from spark_jobs.model.definitions import parse_definition
from spark_jobs.model.layout import Layout
from spark_jobs.stream.purging import OtherColumnsError, purge, tombstones
from spark_jobs.tables import levels
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.levels import runs_of
from spark_jobs.tables.notes import Known
from spark_jobs.tables.published_table import PublishedTable
from spark_jobs.tables.registration import open_publisher, open_sink
from tests.spark_jobs.history_comparison import landed_rows
from tests.spark_jobs.history_records import RANGES, TOPIC, Histories, definition
from tests.spark_jobs.landing_feed import cell, change, produce, schema_record
from tests.spark_jobs.landing_way import Way
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800), pytest.mark.usefixtures("interpreted")]


class Fed:
    """A landed table that records are fed to without Kafka."""

    def __init__(self, spark: SparkSession, warehouse: str, described: str, sink: str = ANY_FORMAT) -> None:
        self.spark = spark
        self.table = LandedTable(spark, open_sink(spark, {"warehouse": warehouse, "sink": sink}), "ks", "t")
        self.layout: Layout = self.table.prepare(Known((parse_definition(described),), buckets=2))
        register_functions(spark, self.layout)
        self.segment = 0

    def feed(self, records: list[tuple[str, bytes]], merge: bool = True) -> None:
        self.segment += 1
        rows = [(None, bytearray(value), topic, 0, at) for at, (topic, value) in enumerate(records)]
        schema = "key binary, value binary, topic string, partition int, offset bigint"
        batch = self.spark.createDataFrame(rows, schema).selectExpr("*", "current_timestamp() AS timestamp")
        self.table.append(decoded_json(batch, self.layout, self.segment, RANGES))
        if merge:
            self.table.merge(self.layout, self.segment)

    def shown(self) -> Any:
        return self.spark.sql(self.table.view_text(self.layout))


def test_random_histories_look_the_same_after_a_purge_at_any_time(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories = Histories(seed=11, count=60, length=30)
    fed = Fed(spark, warehouse, definition())
    monkeypatch.setattr(levels, "SHARE", 1e9)
    for half in (0, 1):
        fed.feed(histories.records[half::2])
    assert runs_of(fed.table.state.parts()), "what a delete covers may be in another part"
    before = landed_rows(fed.shown())
    times = [json.loads(value)["source"]["ts_us"] for _, value in histories.records]
    middle, last = sorted(times)[len(times) // 2], max(times)
    for limit in (middle, last):
        found = sum(tombstones(fed.table, fed.layout, limit).values())
        assert purge(fed.table, fed.layout, limit) == found > 0
        assert landed_rows(fed.shown()) == before
        assert not runs_of(fed.table.state.parts())
    assert tombstones(fed.table, fed.layout, max(times)) == {}
    rows = f"SELECT 1 FROM {fed.table.state.relation} WHERE kind IN (1, 2)"
    covered = "deleted IS NOT NULL OR ranges IS NOT NULL OR d_m IS NOT NULL OR exists(e_l, e -> e.v IS NULL)"
    assert spark.sql(f"{rows} AND ({covered})").count() == 0
    fed.feed(histories.records)
    assert landed_rows(fed.shown()) == before


def test_what_a_new_column_has_got_while_deletes_are_counted_stays(spark: SparkSession, warehouse: str) -> None:
    """The job that lands had given the table a column and merged its first values: these were written away."""
    columns = "pk partition_key int; v regular text"
    fed = Fed(spark, warehouse, schema_record("ks", "t", columns).decode())
    fed.feed([(TOPIC, change("c", 1000, {"pk": 1, "v": cell("a")})), (TOPIC, change("d", 2000, {"pk": 2}))])
    looked_at = fed.layout
    later = parse_definition(schema_record("ks", "t", f"{columns}; w regular text", version="2").decode())
    fed.layout = fed.table.prepare(Known((looked_at.definition, later), buckets=2, sequence=2))
    fed.feed([(TOPIC, change("u", 3000, {"pk": 1, "w": cell("new")}))])
    with pytest.raises(OtherColumnsError, match=r"ks\.t got another definition meanwhile"):
        purge(fed.table, looked_at, 2500)
    assert [tuple(row) for row in fed.shown().collect()] == [(1, "a", "new")]
    assert purge(fed.table, fed.layout, 2500) == 1


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_published_rows_of_a_table_that_was_created_again_go_at_once(
    spark: SparkSession, warehouse: str, sink: str
) -> None:
    """A million of them took ten times as long, one by one."""
    fed = Fed(spark, warehouse, schema_record("ks", "t", "pk partition_key int; v regular text").decode(), sink)
    publisher = open_publisher(spark, {"warehouse": warehouse, "sink": sink})
    assert publisher is not None
    published, relation = PublishedTable(publisher, fed.table), publisher.relation("ks/t")
    known, stand = fed.table.known(), None
    assert known is not None
    for lineage, values in enumerate(("aaaa", "ba", "c", "")):
        if lineage:
            fed.table.clear(fed.segment)
        fed.feed([(TOPIC, change("c", 1000, {"pk": pk, "v": cell(value)})) for pk, value in enumerate(values)])
        stand = published.publish(replace(known, lineage=lineage), stand, fed.segment, {})
        rows = publisher.session.sql(f"SELECT pk, v FROM {relation} ORDER BY pk").collect()
        assert [tuple(row) for row in rows] == list(enumerate(values))
        if not lineage:
            publisher.session.sql(f"ALTER TABLE {relation} ALTER COLUMN v COMMENT 'ours'")
            if sink == "delta":
                publisher.session.sql(f"ALTER TABLE {relation} CLUSTER BY (pk)")
        if sink == "delta":
            commit = publisher.session.sql(f"DESCRIBE HISTORY {relation}").where("userMetadata IS NOT NULL").first()
            assert commit is not None and commit["operation"] == ("MERGE" if values == "ba" else "WRITE")
    assert publisher.session.table(relation).schema["v"].metadata == {"comment": "ours"}
    if sink == "delta":
        detail = publisher.session.sql(f"DESCRIBE DETAIL {relation}").first()
        assert detail is not None and detail["clusteringColumns"] == ["pk"]


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_deletes_are_forgotten_when_nothing_older_can_come(spark: SparkSession, way: Way) -> None:
    way.config["sink"] = ANY_FORMAT
    deleted = {"source": {"ts_us": 1500}, "kind": "range", "partition": {"pk": 1}}
    bounds = {"start": {"values": [2], "inclusive": True}, "end": {"values": [], "inclusive": True}}
    produce(
        way.servers,
        [
            *((way.data, change("c", 1000, {"pk": 1, "ck": at, "v": cell("a")})) for at in (1, 2, 3)),
            (way.data, change("d", 2000, {"pk": 1, "ck": 1})),
            (f"{way.data}.range-deletes", json.dumps({**deleted, **bounds}).encode()),
        ],
    )
    way.land(spark, **{"merge.every.rows": 1})
    shown = way.rows(spark)
    produce(way.servers, [(way.data, change("c", 1000, {"pk": 2, "ck": 1}))])
    settings = way.settings()
    assert "not landed to its end" in maintain(spark, settings, dry_run=True)[0].tombstones_stay
    way.land(spark)
    (planned,) = maintain(spark, settings, dry_run=True)
    assert (planned.tombstones, planned.tombstones_stay) == (0, ""), "an unmerged change is older than both"
    produce(way.servers, [(way.data, change("c", 3000, {"pk": 2, "ck": 2}))])
    way.land(spark, **{"merge.every.rows": 1})
    assert maintain(spark, way.settings(**{"tombstone.retention.ms": 10**15}), dry_run=True)[0].tombstones == 0
    assert maintain(spark, settings, dry_run=True)[0].tombstones == 2
    assert maintain(spark, settings)[0].tombstones == 2
    assert way.rows(spark) == [*shown, (2, 1, None, None, None), (2, 2, None, None, None)]
    assert spark.table("ks.t__state").where("deleted IS NOT NULL OR ranges IS NOT NULL").count() == 0
    produce(way.servers, [(way.data, change("u", 1400, {"pk": 1, "ck": 3, "v": cell("late")}))])
    way.land(spark)
    assert (1, 3, None, None, "late") in way.rows(spark), "what is older than a forgotten delete appears again"
