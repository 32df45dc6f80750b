"""What a backfill reads while a job lands: parcels, which that job takes up as it takes changes.

In: changelog rows of a range of the source's tokens. Out: a table beside the changelog, a commit for each parcel, with
how far the source is read with it. Whoever backfills adds parcels, whoever holds the lease takes them up in their
order: nobody but the holder writes a landed table. A parcel that is taken up twice changes nothing; one that was made
for a table that began anew since is dropped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from connector.errors import LandingError
from spark_jobs.model import DEAD, Layout, changelog_columns
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.notes import Known

_NOTED = 0
"""The kind of the row that says what a parcel is: no change has it."""


@dataclass(frozen=True)
class Parcel:
    """``filled_to`` is the token up to which the source is read with it; None if that is all. ``left_out`` are the
    columns that were not read, ``lineage`` and ``version`` those of the table that it was made for, ``without_values``
    how many of its versions were known to have records without values."""

    number: int
    filled_to: int | None
    left_out: tuple[str, ...]
    lineage: int
    version: str
    without_values: int = 0

    def is_for(self, known: Known) -> bool:
        """Whether the table is still the one that it was made for."""
        return self.lineage == known.lineage

    def continues(self, known: Known, left_out: tuple[str, ...]) -> bool:
        """Whether the reading can go on behind it."""
        made = self.version, self.left_out, self.without_values
        return self.is_for(known) and made == (known.definitions[-1].version, left_out, known.without_values)

    def taken_into(self, known: Known) -> Known:
        """What is known when it is taken up."""
        backfilled = tuple(sorted({*self.left_out, *(known.backfilled or ())}))
        taken = replace(known, backfilled=backfilled, filled_to=self.filled_to, sequence=known.sequence + 1)
        if self.without_values != known.without_values:
            # Rows that were read already may have got values since that no record has: all is to be read once more.
            return replace(taken, filled_to=None)
        return taken if self.filled_to is not None else replace(taken, incomplete=None, rebuilding=False)


class Parcels:
    """Those of one landed table."""

    def __init__(self, landed: LandedTable) -> None:
        self._landed = landed
        self._session = landed.session
        self._sink = landed.sink
        self.table = landed.parcels

    def exist(self) -> bool:
        """Whether there ever was one."""
        return self._sink.exists(self.table)

    def waiting(self) -> list[Parcel]:
        """Those that nobody has taken up, in their order."""
        if not self.exist():
            return []
        noted = f"SELECT segment, note FROM {self._relation} WHERE kind = {_NOTED} ORDER BY segment"
        return [_parcel(row["segment"], row["note"]) for row in self._session.sql(noted).collect()]

    def add(self, parcel: Parcel, rows: DataFrame | None, layout: Layout) -> None:
        """In one commit."""
        self._sink.prepare(self.table, changelog_columns(layout), "segment")
        note = json.dumps({name: value for name, value in vars(parcel).items() if name != "number"})
        made = self._session.createDataFrame([(parcel.number, _NOTED, note)], "segment int, kind int, note string")
        if rows is not None:
            made = rows.selectExpr("* EXCEPT (segment)", f"{parcel.number} AS segment").unionByName(
                made, allowMissingColumns=True
            )
        self._sink.append(self.table, made)

    def rows(self, parcel: Parcel, segment: int) -> DataFrame:
        """Its changes and dead letters, as rows of a segment of the changelog."""
        return self._session.sql(
            f"SELECT * EXCEPT (segment), CASE WHEN reason IS NULL THEN {segment} ELSE {DEAD} END AS segment "
            f"FROM {self._relation} WHERE segment = {parcel.number} AND kind <> {_NOTED}"
        )

    def remove(self, through: int) -> None:
        """All up to this one are taken up."""
        self._sink.delete(self.table, f"segment <= {through}")

    @property
    def _relation(self) -> str:
        return self._sink.relation(self.table)


def _parcel(number: int, note: str) -> Parcel:
    try:
        noted: dict[str, Any] = json.loads(note)
        return Parcel(
            number=number,
            filled_to=None if noted["filled_to"] is None else int(noted["filled_to"]),
            left_out=tuple(map(str, noted["left_out"])),
            lineage=int(noted["lineage"]),
            version=str(noted["version"]),
            without_values=int(noted.get("without_values", 0)),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise LandingError(f"what a backfill has left cannot be read ({error!r}): something else wrote it") from error
