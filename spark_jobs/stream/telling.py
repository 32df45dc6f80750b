"""What Spark tells of its work: counts of what it has written, and in one line why a query has failed.

In: an observation, an exception. Out: numbers, text.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import Observation, SparkSession

from connector.errors import CdcError, LandingError
from spark_jobs.java_objects import elements, java_class

_TOLD_S = 60
_FULL = os.strerror(errno.ENOSPC)
_SAID = r"[^\n]+(?:\n - [^\n]+)*"
"""A line, and what Delta lists below it: the values of a row that a constraint of its users refuses."""
_REPEATED = "Full stacktrace of original"
"""What Spark hangs to an error that it raises once more: the stack of the first time, as an error of its own."""


def told(session: SparkSession, seen: Observation) -> dict[str, Any]:
    """What was counted while a batch was written. Spark tells it by an event, and drops events when it is overrun:
    whoever waited without end would never land this table again."""
    answer = cast(Any, seen)._jo.future()
    try:
        patience = java_class(session, "scala.concurrent.duration.Duration").apply(_TOLD_S, "seconds")
        java_class(session, "scala.concurrent.Await").ready(answer, patience)
    except Py4JJavaError as error:
        raise LandingError(f"batch committed, but Spark reported no metrics within {_TOLD_S} s") from error
    metrics = cast(Any, seen)._jo.getAsJava()
    return {name: metrics[name] for name in elements(java_class(session, "java.util.ArrayList")(metrics.keySet()))}


def one_line(error: BaseException) -> str:
    """The cause of a failure without Spark's stack traces."""
    text = str(error)
    if isinstance(error, CdcError):
        return text
    for before in ("LandingError", r"Caused by: [\w.$]+", r"[\w.]+(?:Error|Exception)"):
        found = [str(said) for said in re.findall(f"{before}: ({_SAID})", text) if not said.startswith(_REPEATED)]
        if found:
            return found[-1].replace(":\n - ", ": ").replace("\n - ", ", ").strip()[:500]
    return text.strip().split("\n")[0][:500]


def with_room(why: str, folders: Iterable[str]) -> str:
    """Java does not say which disk is full: how much is free now in each of the folders, as far as they are here."""
    if _FULL not in why:
        return why
    free: dict[str, int] = {}
    for folder in folders:
        path = Path(folder.removeprefix("file://") if folder.startswith("file:///") else folder)
        with contextlib.suppress(OSError):
            free[str(path)] = shutil.disk_usage(path).free
    told = ", ".join(f"{count // 2**20:,} MiB in {path}" for path, count in free.items())
    return f"{why} (free now: {told})" if told else why
