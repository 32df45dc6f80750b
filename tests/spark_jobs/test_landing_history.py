"""Versions of rows: at every write time, the history shows what the model shows of everything written up to then."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.decode.records import decoded_json
from spark_jobs.fold.history import check_names
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.jobs.upkeep import maintain
from spark_jobs.model.definitions import parse_definition
from spark_jobs.model.layout import Layout
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from spark_jobs.tables.registration import register_landed
from tests.spark_jobs import history_records
from tests.spark_jobs.history_comparison import expected_rows, landed_rows
from tests.spark_jobs.history_model import TableModel
from tests.spark_jobs.history_records import CLUSTERING, COLUMNS, RANGES, TOPIC, Histories, definition
from tests.spark_jobs.landing_feed import cell, change, produce, schema_record
from tests.spark_jobs.landing_way import TABLE, Way
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted"), pytest.mark.timeout(900)]

A_LONG_TIME_MS = 10**14


class RecordingModel(TableModel):
    """Remembers what was done at which time, so that it can be done again up to any time."""

    def __init__(self, *shape: Any) -> None:
        super().__init__(*shape)
        self.done: list[tuple[int, Callable[[TableModel], None]]] = []

    def write(self, key: Any, row_key: Any, time: int, insert: bool, cells: dict[str, Any]) -> None:
        self.done.append((time, lambda model: TableModel.write(model, key, row_key, time, insert, cells)))

    def delete_row(self, key: Any, row_key: Any, time: int) -> None:
        self.done.append((time, lambda model: TableModel.delete_row(model, key, row_key, time)))

    def delete_partition(self, key: Any, time: int) -> None:
        self.done.append((time, lambda model: TableModel.delete_partition(model, key, time)))

    def delete_range(self, key: Any, time: int, start: Any, end: Any) -> None:
        self.done.append((time, lambda model: TableModel.delete_range(model, key, time, start, end)))

    def until(self, time: int) -> TableModel:
        model = TableModel([(kind, desc) for _, kind, desc in CLUSTERING], COLUMNS)
        for when, operation in self.done:
            if when <= time:
                operation(model)
        return model


def test_the_version_valid_at_each_time_is_what_the_model_shows_then(
    spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_records, "TableModel", RecordingModel)
    histories = Histories(20261123, 150, 12)
    model = histories.model
    assert isinstance(model, RecordingModel)
    rnd = random.Random(5)
    feed = histories.records + rnd.sample(histories.records, len(histories.records) // 5)
    rnd.shuffle(feed)
    landed = LandedTable(spark, FORMATS[ANY_FORMAT].open(spark, warehouse), "ks", "t")
    layout = landed.prepare(Known((parse_definition(definition()),), history=True))
    late = len(feed) * 2 // 3
    _append(spark, landed, layout, 1, feed[:late])
    _append(spark, landed, layout, 2, feed[late:])
    times = sorted({time for time, _ in model.done})
    found = _versions(spark, landed.history.text(layout))
    _agree(model, times, found)
    _is_minimal(found)

    # Of the first segment only the newer half stays; the second has changes that are older than that.
    horizon = times[len(times) // 2]
    landed.history.fold(layout, 1, horizon)
    assert landed.history.trim(layout, 1, A_LONG_TIME_MS, A_LONG_TIME_MS, dry_run=False) == 0
    gone = landed.history.trim(layout, 1, A_LONG_TIME_MS, 0, dry_run=False)
    assert 0 < gone < late
    left = spark.sql(f"SELECT count(*) AS rows FROM {landed.sink.relation(landed.changelog)} WHERE segment > 0").first()
    assert left is not None and left["rows"] == len(feed) - gone
    _agree(model, [time for time in times if time >= horizon], _versions(spark, landed.history.text(layout)))


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_a_landed_history_goes_back_as_far_as_it_is_kept(spark: SparkSession, way: Way) -> None:
    way.config.update({"sink": "iceberg", "history": ["ks.t"]})
    way.schema(schema_record("ks", "t", TABLE + "; n regular tinyint", version="2"))
    row = {"pk": 1, "ck": 1}
    _feed(way, change("c", 1000, {**row, "v": cell("a"), "n": cell(5)}), change("u", 3000, {**row, "v": cell("c")}))
    way.land(spark, **{"merge.every.rows": 1})
    late = change("u", 2000, {**row, "v": cell("b"), "n": cell(None)})
    static = change("u", 1500, {"pk": 1, "ck": None, "s": cell("s")})
    _feed(way, late, change("u", 3000, {**row, "v": cell("c")}), change("d", 4000, row), static)
    way.land(spark)
    versions = [
        ("a", 5, None, 1000, 1500),
        ("a", 5, "s", 1500, 2000),
        ("b", None, "s", 2000, 3000),
        ("c", None, "s", 3000, 4000),
        (None, None, "s", 4000, None),
    ]
    assert _history(spark, way) == versions
    assert dict(spark.table("ks.t__history").dtypes)["n"] == "tinyint"

    assert maintain(spark, way.settings(**{"reader.grace.ms": 0}))[0].changes == 0
    forgetful = way.settings(**{"reader.grace.ms": 0, "history.retention.ms": 1})
    assert [maintain(spark, forgetful)[0].changes for _ in range(2)] == [0, 2]
    ((*values, since, until),) = _history(spark, way)
    assert values == [None, None, "s"] and since > 4000 and until is None


def test_a_history_that_begins_late_begins_with_the_rows_there_are(spark: SparkSession, warehouse: str) -> None:
    landed = LandedTable(spark, FORMATS[ANY_FORMAT].open(spark, warehouse), "ks", "t")
    definitions = (parse_definition(schema_record("ks", "t", "id partition_key int; v regular text").decode()),)
    layout = landed.prepare(Known(definitions, history=True))
    _append(spark, landed, layout, 1, [(TOPIC, change("c", 1000, {"id": 1, "v": cell("a")}))])
    landed.merge(layout, 1)
    _append(spark, landed, layout, 2, [(TOPIC, change("u", 2000, {"id": 1, "v": cell("b")}))])
    landed.prepare(Known(definitions))
    landed.sink.delete(landed.changelog, "segment = 1")
    landed.prepare(Known(definitions, history=True))
    text = landed.history.text(layout)
    ((_, value, since, until, current),) = spark.sql(text).collect()
    assert (value, until, current) == ("b", None, True) and since.year > 2020
    _append(spark, landed, layout, 3, [(TOPIC, change("d", 4 * 10**15, {"id": 1}))])
    ((_, value, _, until, current),) = spark.sql(text).collect()
    assert (value, current) == ("b", False) and until.year == 2096
    landed.forget()
    assert spark.sql(text).collect() == []


def test_a_history_that_is_switched_on_knows_what_is_gone(spark: SparkSession, warehouse: str) -> None:
    """It began with the rows as of now where a segment's number was unused, and lacked rows whose changes had gone
    while there was none."""
    sink = FORMATS[ANY_FORMAT].open(spark, warehouse)
    now = int(datetime.now(UTC).timestamp()) * 1_000_000

    def begun(table: str, history: bool) -> tuple[LandedTable, Known, Layout]:
        landed = LandedTable(spark, sink, "ks", table)
        columns = schema_record("ks", table, "id partition_key int; v regular text").decode()
        known = Known((parse_definition(columns),), history=history)
        return landed, known, landed.prepare(known)

    def shown(landed: LandedTable, layout: Layout) -> list[tuple[Any, ...]]:
        found = spark.sql(landed.history.text(layout)).selectExpr("id", "v", "unix_micros(valid_from) AS since")
        return sorted((*tuple(row)[:2], min(row["since"], now)) for row in found.collect())

    def insert(landed: LandedTable, layout: Layout, segment: int, *written: tuple[int, int, str]) -> None:
        rows = [(TOPIC, change("c", time, {"id": id, "v": cell(value)})) for id, time, value in written]
        _append(spark, landed, layout, segment, rows)
        landed.merge(layout, segment)

    landed, known, layout = begun("t", history=False)
    insert(landed, layout, 1, (1, 1000, "a"))
    insert(landed, layout, 3, (1, 2000, "b"))
    landed.prepare(replace(known, history=True))
    assert shown(landed, layout) == [(1, "a", 1000), (1, "b", 2000)], "nothing is in segment 2, nor was"
    landed.prepare(known)
    landed.forget()
    segment = landed.restore().segment
    insert(landed, layout, segment, (1, 3000, "c"))
    landed.remove_changes(segment)
    landed.prepare(replace(known, history=True))
    assert shown(landed, layout) == [(1, "c", now)]

    landed, known, layout = begun("u", history=True)
    insert(landed, layout, 1, (1, 1000, "a"), (2, 3000, "b"))
    landed.history.fold(layout, 1, 2000)
    assert landed.history.trim(layout, 1, A_LONG_TIME_MS, 0, dry_run=False) == 1
    for history in (False, False, True):
        landed.prepare(replace(known, history=history))
    assert shown(landed, layout) == [(1, "a", now), (2, "b", now)]


def test_what_has_a_ttl_ends_in_the_history_when_it_ends_in_the_source(spark: SparkSession, warehouse: str) -> None:
    landed = LandedTable(spark, FORMATS["delta"].open(spark, warehouse), "ks", "t")
    known = Known((parse_definition(schema_record("ks", "t", TABLE).decode()),), history=True, expiring=True)
    layout = landed.prepare(known)
    now_s = int(datetime.now(UTC).timestamp())
    key, added = {"pk": 1, "ck": 1}, {"mode": "modify", "elements": [{"key": "k", "value": 1}]}
    _append(
        spark,
        landed,
        layout,
        1,
        [
            (TOPIC, _ending(change("c", 10_000_000, {**key, "v": cell("a")}), 5)),
            (TOPIC, _ending(change("u", 11_000_000, {"pk": 1, "ck": None, "s": cell("s")}), 2)),
            (TOPIC, _ending(change("u", 12_000_000, {**key, "m": cell(added)}), 10)),
            (TOPIC, _ending(change("c", now_s * 1_000_000, {**key, "v": cell("later")}), 10_000)),
        ],
    )
    columns = "s", "v", "map_entries(m)[0].value AS m", "unix_seconds(valid_from)", "unix_seconds(valid_to)"
    expected = [
        (None, "a", None, 10, 11),
        ("s", "a", None, 11, 12),
        ("s", "a", 1, 12, 13),
        (None, "a", 1, 13, 15),
        (None, None, 1, 15, 22),
        (None, "later", None, now_s, None),
    ]
    for horizon_s in (None, 14):
        if horizon_s is not None:
            landed.merge(layout, 1)
            landed.history.fold(layout, 1, horizon_s * 1_000_000)
            landed.history.trim(layout, 1, A_LONG_TIME_MS, 0, dry_run=False)
            expected = [(None, "a", 1, 14, 15), *expected[4:]]
        found = spark.sql(landed.history.text(layout)).selectExpr(*columns).collect()
        assert sorted(map(tuple, found), key=lambda version: version[3]) == expected


def test_a_history_needs_its_names(spark: SparkSession) -> None:
    columns = "id partition_key int; valid_to regular text"
    with pytest.raises(LandingError, match=r"ks.t cannot have a history: it has columns valid_to"):
        check_names(parse_definition(schema_record("ks", "t", columns).decode()))


def _append(
    spark: SparkSession, landed: LandedTable, layout: Layout, segment: int, records: list[tuple[str, bytes]]
) -> None:
    register_functions(spark, layout)
    rows = [(None, bytearray(value), topic, 0, at) for at, (topic, value) in enumerate(records)]
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    batch = spark.createDataFrame(rows, schema).selectExpr("*", "current_timestamp() AS timestamp")
    landed.append(decoded_json(batch, layout, segment, RANGES))


def _ending(record: bytes, ttl: int) -> bytes:
    value = json.loads(record)
    value["source"]["ttl"] = ttl
    return json.dumps(value).encode()


def _feed(way: Way, *changes: bytes) -> None:
    produce(way.servers, [(way.data, value) for value in changes], way.prefix)


def _history(spark: SparkSession, way: Way) -> list[tuple[Any, ...]]:
    register_landed(spark, way.config)
    since, until = "unix_micros(valid_from) AS since", "unix_micros(valid_to) AS until"
    found = spark.table("ks.t__history").selectExpr("v", "n", "s", since, until).collect()
    return sorted(map(tuple, found), key=lambda version: version[3])


def _agree(model: RecordingModel, times: list[int], found: list[tuple[Any, int, int | None, Any]]) -> None:
    for time in times:
        expected = expected_rows(model.until(time))
        valid = {key: row for key, start, end, row in found if start <= time and (end is None or time < end)}
        wrong = [key for key in expected.keys() | valid.keys() if expected.get(key) != valid.get(key)]
        assert not wrong, (time, len(wrong), wrong[0], expected.get(wrong[0]), valid.get(wrong[0]))


def _versions(spark: SparkSession, text: str) -> list[tuple[Any, int, int | None, Any]]:
    view = spark.sql(text).selectExpr("*", "unix_micros(valid_from) AS since", "unix_micros(valid_to) AS until")
    found = landed_rows(view, "since", "until", "is_current")
    assert all(current == (end is None) for (_, _, _, end, current) in found)
    return [((key, place), start, end, row) for (key, place, start, end, _), row in found.items()]


def _is_minimal(found: list[tuple[Any, int, int | None, Any]]) -> None:
    """Versions of a row do not overlap, and neighbours differ."""
    by_key: dict[Any, list[tuple[int, int | None, Any]]] = {}
    for key, start, end, row in found:
        by_key.setdefault(key, []).append((start, end, row))
    neighbours = 0
    for several in by_key.values():
        several.sort(key=lambda version: version[0])
        for (_, end, row), (start, _, following) in pairwise(several):
            assert end is not None and end <= start
            neighbours += end == start
            assert end < start or row != following
    assert neighbours > 100
