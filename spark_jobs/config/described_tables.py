"""Tables that the landing configuration describes itself, for topics whose connector writes no schemas topic.

In: ``Settings`` with CQL files. Out: their definitions, by table.
"""

from __future__ import annotations

from connector.config import of_deltas
from spark_jobs.config.settings import Settings
from spark_jobs.model import TableDefinition, read_definitions


def described_tables(settings: Settings) -> dict[str, TableDefinition]:
    """The tables of the configured CQL files, with the output format that their records have."""
    form = settings.definitions_format
    output = {"format": form, "collections": "skip", "range_deletes": "skip"}
    if not of_deltas(form):
        output["after"] = "full"
    return read_definitions(settings.definitions, output)
