"""The streaming query of a table: topics, micro-batches, progress, and the forgetting of old deletes.

In: a session and a plan. Out: appended changes and merged state.
"""

from __future__ import annotations

from spark_jobs.stream.declared_types import check_fitting
from spark_jobs.stream.housekeeping import YOUNG_MS
from spark_jobs.stream.kafka_topics import Offsets, SchemaTopic, Topics
from spark_jobs.stream.progress import Progress, TableProgress
from spark_jobs.stream.purging import Limit, OtherColumnsError, purge, purge_limit, tombstones, unread
from spark_jobs.stream.table_stream import TableStream
from spark_jobs.stream.telling import one_line, told, with_room

__all__ = [
    "YOUNG_MS",
    "Limit",
    "Offsets",
    "OtherColumnsError",
    "Progress",
    "SchemaTopic",
    "TableProgress",
    "TableStream",
    "Topics",
    "check_fitting",
    "one_line",
    "purge",
    "purge_limit",
    "told",
    "tombstones",
    "unread",
    "with_room",
]
