"""The comparison of landed tables with their source, cell by cell.

In: ``Settings`` and ``SourceAccess``. Out: what differs, for people and for machines.
"""

from __future__ import annotations

from spark_jobs.verify.job import Limits, verify
from spark_jobs.verify.report import as_json, as_text, total

__all__ = [
    "Limits",
    "as_json",
    "as_text",
    "total",
    "verify",
]
