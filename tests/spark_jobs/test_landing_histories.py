"""Random histories: the landed view equals the model, in any order, cut anywhere, with duplicates and merges."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connector.values.binary import encode
from connector.values.types import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType
from spark_jobs.decode import decoded_json
from spark_jobs.definitions import parse_definition
from spark_jobs.landed_table import Known, LandedTable
from spark_jobs.serialised_columns import register_functions
from spark_jobs.table_formats import FORMATS
from tests.spark_jobs.history_records import CLUSTERING, COLUMNS, RANGES, Histories, as_json, definition

pytestmark = pytest.mark.spark


def _same(type_: CqlType, value: Any) -> Any:
    """A value, from the model or from Spark, in a form in which equal values are equal and others are not."""
    if value is None:
        return None
    if isinstance(type_, NativeType):
        if type_.name == "decimal":
            return Decimal(str(value)).normalize() + 0
        if type_.name == "double":
            return "nan" if math.isnan(value) else repr(value)
        return bytes(value) if type_.name == "blob" else str(value)
    if isinstance(type_, ListType | SetType):
        return [_same(type_.element, item) for item in value]
    if isinstance(type_, MapType):
        return [(_same(type_.key, item[0]), _same(type_.value, item[1])) for item in value]
    if isinstance(type_, TupleType):
        return [_same(kind, item) for kind, item in zip(type_.elements, value)]
    assert isinstance(type_, UserType)
    return [_same(kind, item) for (_, kind), item in zip(type_.fields, value)]


def _shown(type_: CqlType, value: Any) -> Any:
    """The model's value as Spark shows it."""
    if isinstance(type_, NativeType) and type_.name in ("inet", "timeuuid"):
        return as_json(type_, value)
    return value


def _expected(histories: Histories) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, place, values in histories.model.rows():
        found[key, place] = {c.name: _same(c.type, _nested(c.type, values[c.name])) for c in COLUMNS}
    return found


def _nested(type_: CqlType, value: Any) -> Any:
    if value is None or isinstance(type_, NativeType):
        return None if value is None else _shown(type_, value)
    if isinstance(type_, ListType | SetType):
        return [_nested(type_.element, item) for item in value]
    return value


def _landed(session: SparkSession, landed: LandedTable, layout: Any) -> dict[Any, Any]:
    columns = [
        f"map_entries({c.name}) AS {c.name}"
        if isinstance(c.type, MapType)
        else f"unix_millis({c.name}) AS {c.name}"
        if c.type.cql() == "timestamp"
        else c.name
        for c in COLUMNS
    ]
    found: dict[Any, Any] = {}
    view = session.sql(landed.view_text(layout)).selectExpr("h", "p", "c", "d", *columns)
    for row in view.collect():
        place = None
        if row["c"] is not None:
            model = Histories(0, 0, 3).model
            import uuid

            place = model.order((Decimal(row["c"]), uuid.UUID(row["d"])))
        assert ((row["h"], repr(row["p"])), place) not in found
        found[(row["h"], repr(row["p"])), place] = {c.name: _same(c.type, row[c.name]) for c in COLUMNS}
    return found


@pytest.mark.parametrize(("seed", "sink", "count"), [(20261121, "delta", 2000), (20261122, "iceberg", 200)])
def test_landed_view_equals_the_model_however_the_histories_arrive(
    spark: SparkSession, warehouse: str, seed: int, sink: str, count: int
) -> None:
    histories = Histories(seed, count, 14)
    rnd = random.Random(seed)
    feed = histories.records + rnd.sample(histories.records, len(histories.records) // 5)
    rnd.shuffle(feed)
    cuts = sorted(rnd.sample(range(len(feed)), 2))
    landed = LandedTable(spark, FORMATS[sink].open(spark, warehouse), "ks", "t")
    layout = landed.prepare(Known((parse_definition(definition()),)))
    register_functions(spark, layout)
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    for segment, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(feed)]), 1):
        rows = [(None, bytearray(value), topic, 0, at) for at, (topic, value) in enumerate(feed[first:last], first)]
        batch = spark.createDataFrame(rows, schema).selectExpr("*", "current_timestamp() AS timestamp")
        landed.append(decoded_json(batch, layout, segment, RANGES))
        if segment < 3:
            landed.merge(layout, segment)
    assert spark.sql(f"SELECT * FROM {landed._log} WHERE reason IS NOT NULL").count() == 0
    expected, found = _expected(histories), _landed(spark, landed, layout)
    different = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    first_one = different[0] if different else None
    assert not different, (len(different), first_one, expected.get(first_one), found.get(first_one))
    landed.merge(layout, 3, mark=0)
    assert _landed(spark, landed, layout) == found


def test_serialised_tie_of_the_model_is_the_binary_format() -> None:
    """The model's tie is the server's own: a check that the test's comparison would notice a wrong one."""
    assert encode(NativeType("int"), -1) > encode(NativeType("int"), 1)
    assert CLUSTERING[1][2]
