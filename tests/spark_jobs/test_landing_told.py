"""Rows that are read without Spark, in the form in which the soaks compare them."""

from __future__ import annotations

import pyarrow

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
