"""Of Spark as it runs: how far its tasks are, why it has ended, and its end.

In: a session. Out: one error that says why nothing can be done with it any more, instead of whatever Spark raises then.
"""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterator

from pyspark import SparkContext
from pyspark.sql import SparkSession

from connector.errors import LandingError


def why_ended(session: SparkSession) -> str | None:
    """Why nothing can be done with this session any more; None while Spark runs.

    What Spark itself raises then is a refused connection, or that the context is stopped: never who ended it.
    """
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None and (status := process.poll()) is not None:
        # A JVM that a signal ends in order, its shutdown hooks included, exits with 128 and the signal's number.
        number = -status if status < 0 else status - 128
        by = signal.Signals(number).name if number in set(signal.Signals) else f"status {status}"
        return f"Spark's JVM (process {process.pid}) was ended by {by}"
    try:
        if session.sparkContext._jsc.sc().isStopped():
            return "Spark's context was stopped by something else than this job"
    except OSError as error:
        return f"Spark's JVM does not answer: {error.strerror}"
    except Exception as error:
        # py4j's own errors, which are no OSError once its first connection has failed.
        return f"Spark's JVM does not answer: {type(error).__name__}"
    return None


@contextlib.contextmanager
def needing_spark(session: SparkSession) -> Iterator[None]:
    """Within it, the end of Spark is one error that says why, instead of a failure of whatever was being done."""
    try:
        yield
    finally:
        require_spark(session)


def require_spark(session: SparkSession) -> None:
    """Raises the error that says why Spark has ended, if it has."""
    if (why := why_ended(session)) is not None:
        raise LandingError(f"{why}; start it again: landing goes on where it stood")


def end_spark() -> bool:
    """At once, whatever it does: whoever waits for it, in whatever thread, gets an error. False: there is none yet.
    Under spark-submit, where the JVM is not this process's, only what runs there is given up."""
    if SparkContext._gateway is None:
        return False
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        if SparkContext._active_spark_context is None:
            return False
        SparkContext._active_spark_context.cancelAllJobs()
        return True
    process.kill()
    process.wait()
    return True


def tasks_done(session: SparkSession) -> str:
    """How far the stages are that run now, in words; nothing between two of them. May be asked by any thread."""
    try:
        tracker = session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception as error:  # of py4j, whatever it is when Spark ends: it is only asked for a word of progress
        logging.getLogger(__name__).debug("no progress is known: %s", error)
        return ""
    known = [stage for stage in stages if stage is not None]
    if not known:
        return ""
    return f"{sum(stage.numCompletedTasks for stage in known)} of {sum(stage.numTasks for stage in known)} tasks done"
