"""Random histories: the landed view equals the model, in any order, cut anywhere, with duplicates, merges and TTLs."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from connector.values.binary import encode
from connector.values.types import NativeType
from spark_jobs.decode.records import decoded_json
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.definitions import parse_definition
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.stream.purging import purge
from spark_jobs.tables import levels
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from spark_jobs.tables.state_table import State
from tests.spark_jobs.history_comparison import expected_rows, landed_rows
from tests.spark_jobs.history_model import NOW_S
from tests.spark_jobs.history_records import CLUSTERING, RANGES, Histories, definition

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("seed", "sink", "count"), [(20261121, "iceberg", 150), (20261122, "delta", 60)])
def test_landed_view_equals_the_model_however_the_histories_arrive(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    sink: str,
    count: int,
) -> None:
    if count < 100:
        # The many are compiled, and thought over after each stage, as those of a job are.
        for setting in ("interpreted", "planned_once"):
            request.getfixturevalue(setting)
    histories = Histories(seed, count, 14, ttls=True)
    rnd = random.Random(seed)
    feed = histories.records + rnd.sample(histories.records, len(histories.records) // 5)
    rnd.shuffle(feed)
    cuts = sorted(rnd.sample(range(len(feed)), 2))
    landed = LandedTable(spark, FORMATS[sink].open(spark, warehouse), "ks", "t")
    layout = landed.prepare(Known((parse_definition(definition()),)))
    register_functions(spark, layout)
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    monkeypatch.setattr(levels, "SHARE", 1e9)
    monkeypatch.setattr(levels, "FAN", 2)
    for segment, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(feed)]), 1):
        rows = [(None, bytearray(value), topic, 0, at) for at, (topic, value) in enumerate(feed[first:last], first)]
        batch = spark.createDataFrame(rows, schema).selectExpr("*", "current_timestamp() AS timestamp")
        landed.append(decoded_json(batch, layout, segment, RANGES))
        if segment < 3:
            # Also with a layout that does not know of TTLs.
            landed.merge(layout, segment)
    assert spark.sql(f"SELECT * FROM {landed._log} WHERE reason IS NOT NULL").count() == 0
    known = landed.known()
    assert known is not None and known.expiring
    layout = known.layout()
    view = landed.view_text(layout)
    expected, found = expected_rows(histories.model), landed_rows(spark.sql(view))
    different = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    first_one = different[0] if different else None
    assert not different, (len(different), first_one, expected.get(first_one), found.get(first_one))
    assert parts(landed) == {"base", -3}
    with monkeypatch.context() as dying, pytest.raises(RuntimeError):
        dying.setattr(State, "drop", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        landed.merge(layout, 3, mark=0)
    assert parts(landed) == {"base", -3, -4}, "one run is part of the next, and still there"
    assert landed_rows(spark.sql(view)) == found
    landed.merge(layout, 3, mark=0)
    assert parts(landed) == {"base", -4}
    monkeypatch.setattr(levels, "SHARE", 0)
    landed.merge(layout, 4, mark=2)
    assert parts(landed) == {"base"}
    assert landed_rows(spark.sql(view)) == found
    if sink == "delta":
        assert purge(landed, layout, 10**9, ended_s=NOW_S) > 0, "what has ended is a tombstone"
        assert landed_rows(spark.sql(view)) == found


def parts(landed: LandedTable) -> set[int | str]:
    return {"base" if part >= 0 else part for part in landed.state.parts() if part != levels.MARK_PART}


def test_serialised_tie_of_the_model_is_the_binary_format() -> None:
    """The model's tie is the server's own: a check that the test's comparison would notice a wrong one."""
    assert encode(NativeType("int"), -1) > encode(NativeType("int"), 1)
    assert CLUSTERING[1][2]
