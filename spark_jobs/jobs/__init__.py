"""The jobs other than ``land``: backfill, upkeep of landed tables, rebuild.

In: ``Settings`` and a session. Out: results for the command line.
"""

from __future__ import annotations

from spark_jobs.jobs.backfilling import backfill, refuse_lists
from spark_jobs.jobs.rebuilding import rebuild
from spark_jobs.jobs.upkeep import maintain

__all__ = [
    "backfill",
    "maintain",
    "rebuild",
    "refuse_lists",
]
