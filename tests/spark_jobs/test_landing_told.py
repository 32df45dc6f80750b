"""Rows that are read without Spark, in the form in which the soaks compare them."""

from __future__ import annotations

from pathlib import Path

import pyarrow
from pyspark.sql import SparkSession

from tests.spark_jobs.published_rows import read_elsewhere
from tests.spark_jobs.table_histories import told


def test_times_beyond_those_of_python_are_told_at_any_depth() -> None:
    """ScyllaDB has times after the year 9999; Python's datetime has none, and ended the soak of definitions."""
    beyond, time, day = 253402300800000_000, pyarrow.timestamp("us", "UTC"), pyarrow.date32()
    listed = pyarrow.list_(pyarrow.struct([("at", time), ("on", day)]))
    mapped = pyarrow.map_(pyarrow.string(), pyarrow.large_list(time))
    numbers = pyarrow.table(
        {
            "top": pyarrow.array([beyond, None], pyarrow.int64()).cast(time),
            "listed": pyarrow.array(
                [[{"at": beyond, "on": 2**31 - 1}], None],
                pyarrow.list_(pyarrow.struct([("at", pyarrow.int64()), ("on", pyarrow.int32())])),
            ).cast(listed),
            "mapped": pyarrow.array(
                [[("a", [beyond, None])], []], pyarrow.map_(pyarrow.string(), pyarrow.large_list(pyarrow.int64()))
            ).cast(mapped),
            "text": ["a", None],
        }
    )
    assert told(numbers) == [
        {"top": beyond, "listed": [{"at": beyond, "on": 2**31 - 1}], "mapped": [("a", [beyond, None])], "text": "a"},
        {"top": None, "listed": None, "mapped": [], "text": None},
    ]


def test_times_are_read_elsewhere_as_they_were_written(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own form of times in Parquet files, INT96, is nanoseconds for others: they end with the year 2262."""
    times = [-9223372036854775000, -62167219200000001, 0, 253402300800000000, 9223372036854775000]
    numbers = spark.createDataFrame([(time,) for time in times], "n bigint").selectExpr("n", "timestamp_micros(n) AS t")
    rows = numbers.selectExpr("n", "t", "named_struct('at', t) AS s", "array(t) AS l", "map('a', t) AS m")
    rows.write.format("delta").save(str(tmp_path))
    found = sorted(told(read_elsewhere(str(tmp_path), "delta")), key=lambda row: row["n"])
    assert found == [{"n": at, "t": at, "s": {"at": at}, "l": [at], "m": [("a", at)]} for at in times]
