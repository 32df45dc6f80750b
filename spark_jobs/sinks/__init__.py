"""Table formats: Delta and Iceberg behind one contract, in few verbs.

In: the configured format. Out: a ``Sink``.
"""

from __future__ import annotations

from spark_jobs.sinks.formats import DEFAULT, FORMATS, table_format
from spark_jobs.sinks.sink import Sink, replace_made

__all__ = [
    "DEFAULT",
    "FORMATS",
    "Sink",
    "replace_made",
    "table_format",
]
