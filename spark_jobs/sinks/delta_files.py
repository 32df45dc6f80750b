"""The files that a Delta table consists of, from its log: no file is opened.

In: a session and a table's folder. Out: a frame with a row for each file, of the columns of the log's ``add`` entries.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession


def data_files(session: SparkSession, path: str) -> DataFrame:
    """Those of the newest version."""
    jvm: Any = session._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
    snapshot = log.update(*(getattr(log, f"update$default${at}")() for at in (1, 2, 3)))
    return DataFrame(snapshot.allFiles().toDF(), session)
