"""Dead letters that may land by now: their definition has come since, or their schema.

In: a landed table with new definitions. Out: the letters as records, and which letters those are.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_jobs.decode import Registry, knows_any
from spark_jobs.model import OF_THE_NEXT_TABLE, RETRIED, UNNAMED, DeadReason
from spark_jobs.tables import LandedTable


@dataclass(frozen=True)
class Letters:
    """``records`` are those with these reasons that the newest definitions have not seen, and all with those that are
    ``always`` looked at."""

    records: DataFrame
    reasons: tuple[DeadReason, ...]
    always: tuple[DeadReason, ...]


def waiting_letters(landed: LandedTable, registry: Registry | None, created_again: bool) -> Letters | None:
    """None if there are none. Of a table that was created again only those wait that came before its definition.
    ``registry``: where schemas are asked for, of records that have any."""
    reasons = OF_THE_NEXT_TABLE if created_again else RETRIED
    always: tuple[DeadReason, ...] = ()
    if registry is not None and (unnamed := landed.letters((), UNNAMED)) is not None and knows_any(unnamed, registry):
        always = UNNAMED
    records = landed.letters(reasons, always)
    return None if records is None else Letters(records, reasons, always)
