"""Spark Connect, which landing cannot use: it asks the driver's JVM for Kafka's offsets and for files.

In: what a landing file passes on to Spark, the process's environment. Out: what would make its session a remote one.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.errors import Problem

_REMOTE, _MODE, _MODE_VARIABLE = "spark.remote", "spark.api.mode", "SPARK_API_MODE"
_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""PySpark sets the second one itself, in a process that has opened a remote session."""


def connect_problems(passed_on: Mapping[str, str], environment: Mapping[str, str], file: str) -> list[Problem]:
    """One for each that asks for it."""
    found = [(name, file) for name in (_REMOTE,) if name in passed_on]
    found += [(name, "environment") for name in _VARIABLES if name in environment]
    # What the file says counts for more.
    mode, name, place = passed_on.get(_MODE), _MODE, file
    if mode is None:
        mode, name, place = environment.get(_MODE_VARIABLE, ""), _MODE_VARIABLE, "environment"
    if mode.lower() == "connect":
        found.append((name, place))
    text, remedy = "Spark Connect is not supported", "take it away, and name a master: spark.master, or spark-submit's"
    return [Problem(name, text, None, remedy, place) for name, place in found]
