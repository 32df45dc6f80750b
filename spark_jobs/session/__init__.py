"""The only place that builds a SparkSession.

In: a landing configuration (or parts of one). Out: a session with the settings that landed values depend on, with the
landed tables of the warehouse registered by name, so that ``session.table("ks.t")`` reads them.
"""

from __future__ import annotations

from pyspark.sql import SparkSession  # of `start_session`, for who names what it returns

from spark_jobs.session.running import end_spark, needing_spark, require_spark, tasks_done, why_ended
from spark_jobs.session.settings import DEFAULTS, JARS_VARIABLE, session_settings
from spark_jobs.session.start import open_session, require_class, start_session

__all__ = [
    "DEFAULTS",
    "JARS_VARIABLE",
    "SparkSession",
    "end_spark",
    "needing_spark",
    "open_session",
    "require_class",
    "require_spark",
    "session_settings",
    "start_session",
    "tasks_done",
    "why_ended",
]
