"""The landing configuration: its properties, their checks, and loading that reports every problem at once.

In: the landing file. Out: ``Settings``.
"""

from __future__ import annotations

from spark_jobs.config.described_tables import described_tables
from spark_jobs.config.file_systems import RENAMES
from spark_jobs.config.settings import BESIDE, Settings, folder, load_settings
from spark_jobs.config.source_settings import source_connection

__all__ = [
    "BESIDE",
    "RENAMES",
    "Settings",
    "described_tables",
    "folder",
    "load_settings",
    "source_connection",
]
