"""The ScyllaDB side of Spark jobs: executors connect by themselves and read token ranges or single partitions.

In: ``SourceAccess``. Out: frames of the source's rows.
"""

from __future__ import annotations

from spark_jobs.source.access import (
    SourceAccess,
    SourceTable,
    described,
    ranges_of,
    source_access,
    time_to_live,
)
from spark_jobs.source.reader import (
    Counts,
    ReadPlan,
    end_name,
    new_counts,
    read_partitions,
    read_plan,
    read_source,
    reading_tasks,
    source_keys,
)

__all__ = [
    "Counts",
    "ReadPlan",
    "SourceAccess",
    "SourceTable",
    "described",
    "end_name",
    "new_counts",
    "ranges_of",
    "read_partitions",
    "read_plan",
    "read_source",
    "reading_tasks",
    "source_access",
    "source_keys",
    "time_to_live",
]
