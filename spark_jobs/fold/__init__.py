"""The fold and what is read from its result: patches of a key become one, rows that a reader sees, a row's history.

In: patches. Out: SQL expressions and frames.
"""

from __future__ import annotations

from spark_jobs.fold.fold import NEVER, NOW, certainly_ended, compacted, folded, has_not_ended, partition_columns, parts
from spark_jobs.fold.history import check_names, versions
from spark_jobs.fold.view import living_rows, range_cover, visible_rows

__all__ = [
    "NEVER",
    "NOW",
    "certainly_ended",
    "check_names",
    "compacted",
    "folded",
    "has_not_ended",
    "living_rows",
    "partition_columns",
    "parts",
    "range_cover",
    "versions",
    "visible_rows",
]
