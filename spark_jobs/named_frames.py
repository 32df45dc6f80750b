"""Frames under a name, for SQL that is about them.

In: a frame. Out: a name that means it, for no longer than the text that uses it is analysed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def named(frame: DataFrame, what: str) -> Iterator[str]:
    """A name that nobody else in the frame's session has; tables are landed side by side in one."""
    with _named(frame, f"scylla_cdc_{what}_{uuid.uuid4().hex}") as name:
        yield name


def over_frame(frame: DataFrame, name: str, text: str) -> DataFrame:
    """SQL over a frame that knows it by ``name``, in a session of the caller's own."""
    with _named(frame, name):
        return frame.sparkSession.sql(text)


@contextmanager
def _named(frame: DataFrame, name: str) -> Iterator[str]:
    frame.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)
