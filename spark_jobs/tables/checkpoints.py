"""Rows that are made once and looked at several times.

In: a frame. Out: the same rows, kept by the executors for as long as a context lasts. Left to themselves they were kept
until garbage was collected both here and in Java, and crowded out what comes after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame


@contextmanager
def checkpointed(frame: DataFrame) -> Iterator[DataFrame]:
    made = frame.localCheckpoint()
    try:
        yield made
    finally:
        # Where a build of Spark keeps it in another way, garbage collection remains.
        with suppress(Py4JError):
            plan: Any = made._jdf.queryExecution().analyzed()
            plan.rdd().unpersist(False)
