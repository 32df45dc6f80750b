"""Table formats: Delta and Iceberg behind one contract, in few verbs.

In: the configured format. Out: a ``Sink``, and a ``Publisher`` where the format has one.
"""

from __future__ import annotations

from spark_jobs.sinks.columns import new_columns, other_types
from spark_jobs.sinks.formats import DEFAULT, FORMATS, table_format
from spark_jobs.sinks.sink import LostRaceError, Publisher, Sink, TableFormat, compact_all, replace_made

__all__ = [
    "DEFAULT",
    "FORMATS",
    "LostRaceError",
    "Publisher",
    "Sink",
    "TableFormat",
    "compact_all",
    "new_columns",
    "other_types",
    "replace_made",
    "table_format",
]
