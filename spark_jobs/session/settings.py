"""Every setting of a session, of whom it comes and who wins.

In: a landing configuration, what spark-submit was told. Out: Spark's settings; those that landed values depend on win.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from connector.errors import ConfigurationError
from spark_jobs.config import folder
from spark_jobs.jvm import cache_dir
from spark_jobs.sinks import table_format

JARS_VARIABLE = "SCYLLA_CDC_SPARK_JARS"

#: Settings that decide what a landed value is: they hold in every session, the user's settings cannot change them.
VALUES = {
    # A map with the keys -0.0 and 0.0 is legal in CQL; Spark otherwise makes one key of them and fails.
    "spark.sql.legacy.disableMapKeyNormalization": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Not INT96, which delta-rs and others read as nanoseconds: times beyond those of 1677 to 2262 became others.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Columns v and V are two, and so are tables; a name that contains ${...} means just that.
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    # What SQL means that is written here: a note with a quote in it, or a column named offset, must not depend on what
    # else a user's Spark is for.
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.groupByOrdinal": "true",
}

DEFAULTS = {
    "spark.app.name": "scylla-cdc-landing",
    "spark.driver.memory": "2g",
    # Merges and views of a cluster; on one machine there are as many as cores.
    "spark.sql.shuffle.partitions": "32",
    # Batches are short and cores few: parallel collection costs less than G1's concurrent threads.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-UsePerfData",
    # Listing files for a vacuum otherwise takes 10,000 tasks, however few the files are.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    # A batch is written to several partitions of the changelog at once; without this Spark sorts it first.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.session.localRelationCacheThreshold": "67108864",
    # The text of a wide table's plan is megabytes, and nobody reads it: Spark makes it of each query all the same.
    "spark.sql.maxPlanStringLength": "2000",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.codegen.logging.maxLines": "0",
    # What follows from conditions, for each column of each step of a plan, takes time by the square of a table's width:
    # most of all that a table of some hundred columns costs. Landing's conditions stand where they are to be met.
    "spark.sql.constraintPropagation.enabled": "false",
    # Every table has some twenty plans that come again with each batch: compiled code must outlive the other tables'.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Java is told of each column where in Python it is made, by half a dozen messages, and looks at its own stack; for
    # errors that end on one line.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def session_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Every Spark setting of a session for this configuration; values that landed data depends on win."""
    given = {name: str(value) for name, value in config.items() if name.startswith("spark.")}
    settings = {**DEFAULTS, **table_format(config).settings, **given}
    master = settings.setdefault("spark.master", os.environ.get("MASTER", "local[*]"))
    if master.startswith("local"):
        settings = {**settings, **LOCAL, "spark.sql.shuffle.partitions": str(_local_cores(master)), **given}
    warehouse = folder(str(config.get("warehouse", "warehouse")))
    settings.setdefault("spark.sql.warehouse.dir", f"{warehouse}/_catalog")
    if "spark.jars" not in settings and "spark.jars.packages" not in settings:
        # Under spark-submit the jars are its business.
        ours = [] if is_submitted() else _fetched(table_format(config).jar_sets)
        jars = [named] if (named := os.environ.get(JARS_VARIABLE)) else ours
        if jars:
            settings["spark.jars"] = ",".join(map(_jar_list, jars))
    return {**settings, **VALUES}


def is_submitted() -> bool:
    """Whether spark-submit has started this process, and the JVM before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _fetched(sets: Iterable[str]) -> list[str]:
    """The folders of jars that set-up, or a command as `land`, has left in the cache."""
    try:
        folders = [cache_dir() / "jars" / name for name in sets]
    except ConfigurationError:  # a user without a home has fetched nothing into it
        return []
    return [str(path) for path in folders if path.is_dir()]


def with_submitted(config: Mapping[str, Any], submitted: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with what spark-submit was told: where to run is its business, the rest the file's.

    >>> with_submitted({"spark.master": "local[*]", "spark.app.name": "a"}, {"spark.master": "yarn"})
    {'spark.master': 'yarn', 'spark.app.name': 'a'}
    >>> with_submitted({"spark.master": "yarn"}, {"spark.master": "local[*]", "spark.app.name": "a"})
    {'spark.master': 'yarn', 'spark.app.name': 'a'}
    """
    # Without --master it says so.
    untold = {"spark.master": "local[*]", "spark.submit.deployMode": "client"}
    told = {name: submitted[name] for name in untold if submitted.get(name, untold[name]) != untold[name]}
    return {**submitted, **config, **told}


def _local_cores(master: str) -> int:
    """How many tasks a local master runs at once.

    >>> _local_cores("local[2]"), _local_cores("local")
    (2, 1)
    """
    named = master.partition("[")[2].partition("]")[0].partition(",")[0]
    known = named.isascii() and named.isdigit() and len(named) < 10
    return int(named) if known else (os.cpu_count() or 1) if named else 1


def _jar_list(text: str) -> str:
    """Jar paths separated by commas, or one folder that holds them."""
    folder = Path(text)
    if "," not in text and folder.is_dir():
        return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
    return text
