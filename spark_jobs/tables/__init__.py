"""Landed tables: changelog, state and history of one table, its plan of versions, its lease, its registration.

In: a sink and a definition. Out: ``LandedTable``.
"""

from __future__ import annotations

from spark_jobs.tables.landed_table import Among, LandedTable, Restored, older_positions
from spark_jobs.tables.landed_topics import check_positions, check_same_topics, lost_by_topics
from spark_jobs.tables.landing_plan import (
    Plan,
    check_landed,
    check_rebuilt,
    check_same_table,
    lacking,
    notices,
    plan_table,
)
from spark_jobs.tables.lease import (
    BACKFILL,
    LAND,
    Folder,
    Lease,
    backfills,
    filling_lease,
    holds,
    job_lease,
    leases,
    upkeep_lease,
)
from spark_jobs.tables.levels import MARK_PART
from spark_jobs.tables.notes import FORM, Known
from spark_jobs.tables.parcels import Parcel, Parcels
from spark_jobs.tables.publishable import unpublishable, without_feed
from spark_jobs.tables.published_table import PublishedTable, Stand, free_segment
from spark_jobs.tables.registration import open_publisher, open_sink, register_landed
from spark_jobs.tables.small_plans import FEW_ROWS, uncompiled

__all__ = [
    "BACKFILL",
    "FEW_ROWS",
    "FORM",
    "LAND",
    "MARK_PART",
    "Among",
    "Folder",
    "Known",
    "LandedTable",
    "Lease",
    "Parcel",
    "Parcels",
    "Plan",
    "PublishedTable",
    "Restored",
    "Stand",
    "backfills",
    "check_landed",
    "check_positions",
    "check_rebuilt",
    "check_same_table",
    "check_same_topics",
    "filling_lease",
    "free_segment",
    "holds",
    "job_lease",
    "lacking",
    "leases",
    "lost_by_topics",
    "notices",
    "older_positions",
    "open_publisher",
    "open_sink",
    "plan_table",
    "register_landed",
    "uncompiled",
    "unpublishable",
    "upkeep_lease",
    "without_feed",
]
