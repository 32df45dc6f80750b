"""Building a session: its settings, its JVM, its words, the landed tables by their names.

In: a landing configuration. Out: a session; missing Java or jars are one line, not a stack trace.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.java_objects import java_class
from spark_jobs.jvm import tell_refusal, with_archive, with_class_path
from spark_jobs.session.jvm_start import choose_java, leaving_nothing, quiet_start, start_jvm
from spark_jobs.session.settings import JARS_VARIABLE, is_submitted, session_settings, with_submitted
from spark_jobs.sinks import table_format

# Workers of a JVM of our own find this package from their start on.
_PYTHON = {"spark.python.daemon.module": "spark_jobs.python_daemon"}
# With Spark's choice a JVM without Hadoop's native library starts a dozen processes (chmod, readlink) for each batch.
# It is for two runs with one checkpoint, and each run has one of its own. The name is that of the installed Spark.
_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    )
}


def _submitted() -> dict[str, str]:
    """What spark-submit was told, which counts for more than the defaults here; nothing when it is not used."""
    if not is_submitted():
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def open_session(config: Mapping[str, Any]) -> SparkSession:
    """A session for a landing configuration, with its landed tables registered."""
    session = start_session(config)
    from spark_jobs.tables import register_landed

    register_landed(session, config)
    return session


def start_session(config: Mapping[str, Any]) -> SparkSession:
    """A session without looking into the warehouse. Missing Java or jars are one line, not a stack trace."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Python workers import the product's own packages: a local session starts them outside the clone's folder.
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    choose_java()
    settings = session_settings(with_submitted(config, _submitted()))
    here = settings["spark.master"].startswith("local")
    if here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own = SparkContext._gateway is None
    if own:
        settings = with_archive(with_class_path(settings))
        if here:
            settings = {**_PYTHON, **({} if "SPARK_HOME" in os.environ else _CHECKPOINTS), **settings}
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    level = str(config.get("log.level", "OFF"))
    with quiet_start(level == "OFF") as said, leaving_nothing():
        try:
            start_jvm(settings)
            session = builder.getOrCreate()
        except Exception as error:
            raise LandingError(f"Spark did not start: {error}; {said()}") from error
    if own:
        tell_refusal(settings, getattr(getattr(SparkContext._gateway, "proc", None), "pid", None))
    _set_log_level(session, level)
    if own:
        _outlive_terminal(session)
    form = table_format(config)
    require_class(session, form.needs_class, form.coordinate)
    return session


def _set_log_level(session: SparkSession, level: str) -> None:
    session.sparkContext.setLogLevel(level)
    if level != "OFF":
        # A JVM that is told to end says by which signal.
        logger = java_class(session, "org.slf4j.LoggerFactory").getLogger("org.apache.spark.SparkContext")
        java_class(session, "org.apache.spark.util.SignalUtils").registerLogger(logger)
    else:
        # PySpark's own loggers repeat what is raised anyway, with every stack there is.
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _outlive_terminal(session: SparkSession) -> None:
    """A terminal that is gone tells all its processes at once. The JVM goes on: the program whose it is decides, and it
    ends with that."""
    signals, handlers = (java_class(session, f"sun.misc.{name}") for name in ("Signal", "SignalHandler"))
    signals.handle(signals("HUP"), handlers.SIG_IGN)


def require_class(session: SparkSession, name: str, coordinate: str) -> None:
    """Says which jar is missing before Spark says it in fifty lines."""
    try:
        loader = java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()
        java_class(session, "java.lang.Class").forName(name, False, loader)
    except Exception as error:
        raise LandingError(
            f"Spark has no {name.rsplit('.', 1)[-1]}: the jar of {coordinate} is missing; "
            f"set {JARS_VARIABLE} to a folder of jars, or give spark-submit --packages {coordinate}; "
            "`python -m spark_jobs.jvm jars` fetches all that landing needs into the cache"
        ) from error
