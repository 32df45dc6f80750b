"""What Spark tells of its work: counts of what it has written, and in one line why a query has failed.

In: an observation, an exception. Out: numbers, text.
"""

from __future__ import annotations

import re
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import Observation, SparkSession

from connector.errors import LandingError

_TOLD_S = 60


def told(session: SparkSession, seen: Observation) -> dict[str, Any]:
    """What was counted while a batch was written. Spark tells it by an event, and drops events when it is overrun:
    whoever waited without end would never land this table again."""
    jvm: Any = session._jvm
    answer = cast(Any, seen)._jo.future()
    try:
        jvm.scala.concurrent.Await.ready(answer, jvm.scala.concurrent.duration.Duration.apply(_TOLD_S, "seconds"))
    except Py4JJavaError as error:
        raise LandingError(f"batch committed, but Spark reported no metrics within {_TOLD_S} s") from error
    return dict(seen.get)


def one_line(error: BaseException) -> str:
    """The cause of a failed query without Spark's stack traces."""
    text = str(error)
    for pattern in (
        r"LandingError: ([^\n]+)",
        r"Caused by: [\w.$]+: ([^\n]+)",
        r"(?:[\w.]+(?:Error|Exception)): ([^\n]+)",
    ):
        found = re.findall(pattern, text)
        if found:
            return str(found[-1]).strip()[:500]
    return text.strip().split("\n")[0][:500]
