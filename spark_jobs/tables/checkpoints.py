"""Rows that are made once and looked at several times.

In: a frame. Out: the same rows, kept by the executors for as long as a context lasts. Left to themselves they were kept
until garbage was collected both here and in Java, and crowded out what comes after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame


@contextmanager
def checkpointed(frame: DataFrame) -> Iterator[DataFrame]:
    made = frame.localCheckpoint()
    try:
        yield made
    finally:
        plan: Any = made._jdf.queryExecution().analyzed()
        plan.rdd().unpersist(False)
