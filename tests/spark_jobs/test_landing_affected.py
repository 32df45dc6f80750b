"""Of a published partition the rows that changed are looked at, and no others where that is enough."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.decode.records import decoded_json
from spark_jobs.fold import visible_rows
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model import Layout
from spark_jobs.model.definitions import parse_definition
from spark_jobs.sinks import DEFAULT, FORMATS
from spark_jobs.sinks.delta_published import DeltaPublisher
from spark_jobs.tables import affected, published_table
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from spark_jobs.tables.published_table import PublishedTable, Stand
from tests.spark_jobs.landing_feed import cell, change, schema_record

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("interpreted", "planned_once"),
]

TOPIC, RANGES = "p.ks.t", "p.ks.t.range-deletes"
COLUMNS = "pk partition_key text; a clustering double; b clustering timeuuid; v regular text; m regular map<text, int>"
DOUBLES = (0.0, -0.0, 1.5, -3.0)
UUIDS = tuple(f"8d1c5f0{at}-1234-11ee-8080-808080808080" for at in range(3))
RECORDS = "key binary, value binary, topic string, partition int, offset bigint"


class Published:
    """A landed table and its published double, fed without a broker."""

    def __init__(self, spark: SparkSession, warehouse: str, columns: str) -> None:
        self.spark = spark
        self.landed = LandedTable(spark, FORMATS[DEFAULT].open(spark, warehouse), "ks", "t")
        self.landed.prepare(Known((parse_definition(schema_record("ks", "t", columns).decode()),)))
        # As a job does when the first change with a TTL has landed.
        self.landed.expect_ends(self.layout)
        self.table = PublishedTable(DeltaPublisher(spark, warehouse), self.landed)
        self.segment, self.offset = 0, 0
        self.stand: Stand | None = None

    @property
    def known(self) -> Known:
        known = self.landed.known()
        assert known is not None
        return known

    @property
    def layout(self) -> Layout:
        return self.known.layout()

    def publish(self, *records: tuple[str, bytes]) -> None:
        self.segment += 1
        register_functions(self.spark, self.layout)
        rows = [(None, bytearray(value), topic, 0, self.offset + at) for at, (topic, value) in enumerate(records)]
        self.offset += len(rows)
        batch = self.spark.createDataFrame(rows, RECORDS).selectExpr("*", "current_timestamp() AS timestamp")
        self.landed.append(decoded_json(batch, self.layout, self.segment, RANGES))
        assert self.spark.sql(f"SELECT 1 FROM {self.landed._log} WHERE reason IS NOT NULL").count() == 0
        self.stand = self.table.publish(self.known, self.stand or self.table.stand(), self.segment, {})

    def differences(self) -> int:
        assert self.stand is not None
        return self.table.differences(self.known, self.stand)


class Writer:
    """Random changes of few rows, at times that are near each other."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)

    def changes(self, now_s: int, count: int, deletes: bool) -> list[tuple[str, bytes]]:
        return [self._delete(now_s) if deletes and not at else self._row(now_s) for at in range(count)]

    def _row(self, now_s: int) -> tuple[str, bytes]:
        rnd, row = self.rnd, self._place()
        op = rnd.choice("ccuud")
        if op != "d":
            elements = [{"key": rnd.choice("xy"), "value": rnd.choice([1, 2, None])}]
            row["m"] = rnd.choice([None, cell({"mode": rnd.choice(["modify", "overwrite"]), "elements": elements})])
            row["v"] = rnd.choice([None, cell(None), cell(rnd.choice("abc"))])
        value = json.loads(change(op, now_s * 1_000_000 - rnd.randrange(4_000_000), row))
        if op != "d" and rnd.random() < 0.4:
            value["source"]["ttl"] = rnd.randrange(1, 12)
        return TOPIC, json.dumps(value).encode()

    def _place(self) -> dict[str, Any]:
        return {"pk": self.rnd.choice("pq"), "a": self.rnd.choice(DOUBLES), "b": self.rnd.choice(UUIDS)}

    def _delete(self, now_s: int) -> tuple[str, bytes]:
        rnd = self.rnd
        value: dict[str, Any] = {"source": {"ts_us": now_s * 1_000_000 - rnd.randrange(4_000_000)}, "kind": "partition"}
        value |= {"partition": {"pk": rnd.choice("pq")}, "start": None, "end": None}
        if rnd.random() < 0.8:
            bounds = sorted(rnd.sample(DOUBLES, 2))
            sides = ({"values": [bound], "inclusive": rnd.random() < 0.5} for bound in bounds)
            value |= {"kind": "range", **dict(zip(("start", "end"), sides))}
        return RANGES, json.dumps(value).encode()


def test_published_rows_are_those_of_the_view_whichever_were_looked_at(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = list[list[bool]]()

    picked = affected.Affected.picked

    def noted(*arguments: Any) -> list[affected.Picked]:
        found = picked(*arguments)
        looked_at.append([any(key.clustering for key in each.keys) for each in found])
        return found

    now_s = 1000
    monkeypatch.setattr(affected.Affected, "picked", noted)
    monkeypatch.setattr(published_table, "time", SimpleNamespace(time=lambda: now_s))
    published, writer = Published(spark, warehouse, COLUMNS), Writer(20261130)
    published.publish(*writer.changes(now_s, 30, deletes=False))
    for number in range(5):
        now_s += 3
        # None at all: then what has ended is all that there is.
        published.publish(*writer.changes(now_s, number % 4 * 2, deletes=number % 3 == 2))
        assert published.differences() == 0, (number, looked_at)
        if number % 3 == 1:
            published.landed.merge(published.layout, published.segment)
    assert [True] in looked_at and [False, True] in looked_at, "rows alone, and beside whole partitions"


def test_one_change_of_a_wide_partition_is_not_made_of_all_of_it(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a partition of 100,000 rows a single change took several seconds of a core."""
    published = Published(spark, warehouse, "pk partition_key int; ck clustering int; v regular text")
    rows = [change("c", 1000, {"pk": 1, "ck": ck, "v": cell("a")}) for ck in range(500)]
    published.publish(*((TOPIC, row) for row in rows))
    published.landed.merge(published.layout, published.segment)
    folded = list[int]()

    def counted(layout: Layout, patches: str, now: str) -> str:
        folded.append(published.table.landed.session.sql(patches).count())
        return visible_rows(layout, patches, now)

    monkeypatch.setattr(published_table, "visible_rows", counted)
    published.publish((TOPIC, change("u", 2000, {"pk": 1, "ck": 7, "v": cell("b")})))
    assert published.differences() == 0 and folded == [1]
    monkeypatch.setattr(affected, "_MOST_ROWS", 0)
    published.publish((TOPIC, change("u", 3000, {"pk": 1, "ck": 8, "v": cell("b")})))
    assert published.differences() == 0 and folded == [1, 500], "of very many changes all of their partitions are"
