"""Records that cannot be landed: one letter each, also of a snapshot's whose cells end at different times, and they end
so when they land. What is long is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from connector.values import NativeType
from spark_jobs.decode.records import decoded_json, not_fitting
from spark_jobs.functions.serialised_columns import register_functions
from spark_jobs.model.dead_reason import RETRIED
from spark_jobs.model.definitions import TableDefinition, parse_definition
from spark_jobs.model.names import literal
from spark_jobs.sinks.formats import FORMATS
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known
from tests.spark_jobs.landing_feed import cell, change, schema_record
from tests.spark_jobs.source_tables import ANY_FORMAT

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "planned_once")]

TABLE_ID = "5bc52802-de25-35ed-aeab-188eecebb090"
COLUMNS = "pk partition_key int; v regular text; n regular decimal; w regular timestamp"
TTLS = {"v": 100, "n": 200, "w": 300}
WRITTEN_S = 4_000_000_000


def _version(columns: str, version: str) -> TableDefinition:
    return parse_definition(schema_record("ks", "t", columns, version=version, table_id=TABLE_ID).decode())


def _batch(spark: SparkSession, *records: tuple[dict[str, Any], str | None]) -> DataFrame:
    """Of rows, each with the version that it was made by, if that is told."""
    rows = [
        (bytearray(change("r", WRITTEN_S * 1_000_000, row)), at, made_by and f"{TABLE_ID} {made_by}", json.dumps(TTLS))
        for at, (row, made_by) in enumerate(records)
    ]
    frame = spark.createDataFrame(rows, "value binary, offset bigint, made_by string, cell_ttls string")
    more = ("CAST(NULL AS binary) AS key", "'t' AS topic", "0 AS partition", "timestamp_seconds(4e9) AS timestamp")
    return frame.selectExpr("*", *more)


def test_a_record_that_names_a_known_version_is_not_looked_through_for_unknown_fields(
    spark: SparkSession, warehouse: str
) -> None:
    """It has none of its own: what somebody has put there on its way is nobody's column."""
    landed = LandedTable(spark, FORMATS[ANY_FORMAT].open(spark, warehouse), "ks", "t")
    known = Known((_version(COLUMNS, "1"),))
    layout = landed.prepare(known)
    register_functions(spark, layout)
    row = {"v": cell("a"), "odd": cell("b")}
    records = [({"pk": at, **row}, version) for at, version in enumerate(("1", "2", None))]
    landed.append(decoded_json(_batch(spark, *records), layout, 1, "t.range-deletes"))
    log = landed.sink.relation(landed.changelog)
    letters = spark.sql(f"SELECT offset, reason FROM {log} WHERE reason IS NOT NULL ORDER BY offset").collect()
    assert list(map(tuple, letters)) == [(1, "UNKNOWN_FIELD"), (2, "UNKNOWN_FIELD")]
    assert {row["pk"] for row in _shown(landed, known, 0)} == {0}


def test_records_of_the_next_table_wait_for_its_definition_and_those_of_the_former_are_nobodys(
    spark: SparkSession,
) -> None:
    """Both were passed over, and those of a table whose definition came later were lost without a word."""
    former = "ffffffff-ffff-11e4-8080-808080808080"
    own, following = (f"00000000-0000-{time}-8080-808080808080" for time in ("11e5", "11e6"))
    text = schema_record("ks", "t", COLUMNS, version="1", table_id=own).decode()
    layout = Known((parse_definition(text),)).layout()
    register_functions(spark, layout)
    tables = [own, former, following, TABLE_ID]
    made_by = " ".join(f"WHEN {at} THEN '{table} 1'" for at, table in enumerate(tables))
    rows = [({"pk": at, "v": cell({"of": "another type"}) if at == 2 else cell("a")}, None) for at in range(4)]
    frame = _batch(spark, *rows).selectExpr("* EXCEPT (made_by, cell_ttls)", f"CASE offset {made_by} END AS made_by")
    decoded = decoded_json(frame, layout, 1, "t.range-deletes").selectExpr("offset", "reason")
    assert sorted(map(tuple, decoded.collect())) == [(0, None), (2, "NO_DEFINITION")]


def test_a_record_is_one_letter_and_its_cells_end_when_it_lands_later(spark: SparkSession, warehouse: str) -> None:
    landed = LandedTable(spark, FORMATS[ANY_FORMAT].open(spark, warehouse), "ks", "t")
    older, newer = _version(COLUMNS, "1"), _version(f"{COLUMNS}; x regular text", "2")
    known = Known((older,))
    layout = landed.prepare(known)
    register_functions(spark, layout)
    row = {"pk": 1, "v": cell("a"), "n": cell("1.5"), "w": cell(1), "x": cell("new")}
    records = [
        (row, "2"),
        ({**row, "pk": 2}, None),
        # Of these two each has a cell that cannot be landed, and another one that could.
        ({"pk": 3, "v": cell("a"), "n": cell("no number")}, "1"),
        ({"pk": 4, "v": cell("a"), "w": cell(2**62)}, "1"),
        ({"pk": 5, "v": cell("a")}, "1"),
    ]
    landed.append(decoded_json(_batch(spark, *records), layout, 1, "t.range-deletes"))
    log = landed.sink.relation(landed.changelog)
    letters = spark.sql(f"SELECT offset, reason FROM {log} WHERE reason IS NOT NULL ORDER BY offset").collect()
    assert list(map(tuple, letters)) == [
        (0, "UNKNOWN_FIELD"),
        (1, "UNKNOWN_FIELD"),
        (2, "CORRUPT"),
        (3, "OUT_OF_RANGE"),
    ]
    assert {row["pk"] for row in _shown(landed, known, 0)} == {5}

    # The clock was ahead.
    spark.sql(f"UPDATE {log} SET landed_at = landed_at + INTERVAL 1 HOUR WHERE reason IS NOT NULL AND offset < 2")
    known = Known((older, newer), sequence=1)
    layout = landed.prepare(known)
    register_functions(spark, layout)
    waiting = landed.letters(RETRIED)
    assert waiting is not None
    landed.replace_letters(decoded_json(waiting, layout, 2, "t.range-deletes"), RETRIED)
    layout = landed.expect_ends(layout)
    known = Known((older, newer), sequence=1, expiring=True)
    whole = [(pk, "a", "1.5", True, "new") for pk in (1, 2)]
    assert _values(landed, known, 0) == [*whole, (5, "a", None, False, None)]
    assert _values(landed, known, 250) == [
        *((pk, None, None, True, "new") for pk in (1, 2)),
        (5, *[None] * 2, False, None),
    ]
    # A row of which one value stays, stays.
    assert _values(landed, known, 350) == [(pk, None, None, False, "new") for pk in (1, 2)]
    letters = spark.sql(f"SELECT offset FROM {log} WHERE reason IS NOT NULL").collect()
    assert sorted(row["offset"] for row in letters) == [2, 3]


def _shown(landed: LandedTable, known: Known, after_s: int) -> list[Any]:
    return landed.session.sql(landed.view_text(known.layout(), f"{WRITTEN_S + after_s}L")).collect()


def _values(landed: LandedTable, known: Known, after_s: int) -> list[tuple[Any, ...]]:
    shown = _shown(landed, known, after_s)
    return sorted((row["pk"], row["v"], row["n"], row["w"] is not None, row["x"]) for row in shown)


def test_numbers_that_a_declared_type_does_not_hold_are_found_however_long_they_are(spark: SparkSession) -> None:
    """To round 1E-10000000 took Spark 40 s, and the next ones ten times as long and more, in which no table landed."""
    register_functions(spark, Known((_version(COLUMNS, "1"),), {"n": "decimal(10,2)"}).layout())
    fits = [None, "0", "-1.5", "1.500", "1.5E+3", "12345678.99"]
    odd = ["1.239", "1E+8", "1E-100000000", "-2E-2000000000", "1E+2000000000", "no number"]
    frame = spark.createDataFrame([(text,) for text in (*fits, *odd)], "n string")
    (condition,) = not_fitting(NativeType("decimal"), "n", "decimal(10,2)")
    assert [row[0] for row in frame.where(condition).collect()] == odd


def test_a_text_may_be_longer_than_the_parser_takes_by_itself(spark: SparkSession) -> None:
    """It was a dead letter, CORRUPT."""
    layout, length = Known((_version(COLUMNS, "1"),)).layout(), 20_000_001
    register_functions(spark, layout)
    record = change("c", WRITTEN_S * 1_000_000, {"pk": 1, "v": cell("?")}).decode()
    value = f"CAST(replace({literal(record)}, '?', repeat('x', {length})) AS binary) AS value"
    frame = _batch(spark, ({}, None)).selectExpr("* EXCEPT (value, cell_ttls)", value)
    found = decoded_json(frame, layout, 1, "t.range-deletes").selectExpr("reason", "length(v_v.v) AS length").collect()
    assert list(map(tuple, found)) == [(None, length)]
