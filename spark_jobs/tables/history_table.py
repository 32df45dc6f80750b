"""What a table with a history keeps in addition to its changelog, and the SQL of its versions.

In: the landed table's relations. Out: the SQL of the view ``ks.t__history``; upkeep that removes old changes. The
changelog is the history. Only where changes were removed this table holds, as the state does, what all of them came to;
everything up to its *horizon* counts as written at that time. Its row that holds the mark says how far it goes.

Changes are removed in two steps, so that no reader misses them: first they are folded into this table, in one commit
with the new horizon; the next upkeep removes them when every reader has seen that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession

from spark_jobs.fold import compacted, folded, versions
from spark_jobs.model import Layout, changes_patch, state_columns, state_patch
from spark_jobs.sinks import Sink, replace_made
from spark_jobs.tables.levels import MARK_PART

_ENDED = -1
"""The mark of a history that is no more, of which changes had been removed."""


@dataclass(frozen=True)
class History:
    """The history of one landed table. ``log`` is its changelog's relation, ``state`` the SQL of its state's rows."""

    session: SparkSession
    sink: Sink
    table: str
    changelog: str
    log: str
    state: Callable[[Layout], str]

    def exists(self) -> bool:
        return self.sink.exists(self.table)

    def text(self, layout: Layout) -> str:
        """All versions of all rows."""
        horizon = f"(SELECT max(horizon) FROM {self._relation} WHERE bucket = {MARK_PART})"
        return versions(layout, f"SELECT * FROM {self.log} WHERE segment > 0", self._kept, horizon)

    def prepare(self, layout: Layout, mark: int) -> None:
        """Makes the table fit. A history that begins when changes are gone already begins with the state as it is."""
        self.widen(layout)
        noted = self._noted()
        if noted is not None and noted["mark"] != _ENDED:
            return
        first = self.session.sql(f"SELECT min(segment) AS segment FROM {self.log} WHERE segment > 0").first()
        assert first is not None
        # Changes go from the first segment on: where that is there, other numbers were never used.
        if noted is None and (mark == 0 or first["segment"] == 1):
            self.sink.replace_buckets(self.table, self._mark_row(0, None))
            return
        rows = self.session.sql(self.state(layout))
        marked = self._mark_row(mark, int(time.time() * 1_000_000))
        self.sink.replace_buckets(self.table, rows.unionByName(marked, allowMissingColumns=True))

    def widen(self, layout: Layout) -> None:
        """Gives the table the columns of the layout."""
        columns = {**state_columns(layout), "horizon": "bigint", "noted_at": "timestamp"}
        self.sink.prepare(self.table, columns, "bucket")

    def restart(self) -> None:
        """Forgets what removed changes came to: they were another table's, or are landed anew."""
        noted = self._noted()
        if noted is None or noted["mark"] == _ENDED:
            # There is none: what the changes of the new table come to is not noted either.
            self.sink.delete(self.table, "true")
            return
        self.sink.delete(self.table, f"bucket <> {MARK_PART}")
        self.sink.replace_buckets(self.table, self._mark_row(0, None))

    def end(self) -> None:
        """There is no history any more: changes may go. That single ones are gone already, which no number of a segment
        tells, is noted for a history that begins later."""
        noted = self._noted()
        if noted is None or noted["mark"] == _ENDED:
            return
        if noted["horizon"] is None:
            self.sink.delete(self.table, "true")
            return
        self.sink.delete(self.table, f"bucket <> {MARK_PART}")
        self.sink.replace_buckets(self.table, self._mark_row(_ENDED, noted["horizon"]))

    def trim(self, layout: Layout, mark: int, retention_ms: int, grace_ms: int, dry_run: bool) -> int:
        """Removes what an earlier call folded, and folds what became too old since. Returns how many are removed."""
        noted = self._noted()
        removed = 0
        if noted is not None and noted["horizon"] is not None:
            gone = _old(noted["mark"], noted["horizon"])
            counted = self.session.sql(f"SELECT count(*) AS changes FROM {self.log} WHERE {gone}").first()
            assert counted is not None
            if counted["changes"] and noted["age_ms"] < grace_ms:
                return 0
            removed = int(counted["changes"])
            if removed and not dry_run:
                self.sink.delete(self.changelog, gone)
        if not dry_run:
            horizon = int(time.time() * 1000 - retention_ms) * 1000
            self.fold(layout, mark, max(horizon, (noted and noted["horizon"]) or horizon))
        return removed

    def fold(self, layout: Layout, mark: int, horizon: int) -> None:
        """Folds what is merged and not newer than the horizon; the changes themselves stay for now."""
        layout, old = layout.merging or layout, _old(mark, horizon)
        found = self.session.sql(
            f"SELECT DISTINCT bucket FROM {self.log} WHERE {old} AND bucket IS NOT NULL ORDER BY bucket"
        ).collect()
        if not found:
            return
        buckets = ", ".join(str(row["bucket"]) for row in found)
        patches = [
            state_patch(layout, f"{self._kept} AND bucket IN ({buckets})"),
            changes_patch(layout, f"SELECT * FROM {self.log} WHERE {old}"),
        ]

        def made() -> DataFrame:
            rows = self.session.sql(compacted(layout, folded(layout, patches, ["bucket"])))
            return rows.unionByName(self._mark_row(mark, horizon), allowMissingColumns=True)

        replace_made(self.sink, self.table, made)

    def _noted(self) -> Row | None:
        """How far the table goes; None if there is no history."""
        age = "unix_millis(current_timestamp()) - unix_millis(noted_at) AS age_ms"
        where = f"bucket = {MARK_PART}"
        return self.session.sql(f"SELECT mark, horizon, {age} FROM {self._relation} WHERE {where}").first()

    def _mark_row(self, mark: int, horizon: int | None) -> DataFrame:
        until = "CAST(NULL AS bigint)" if horizon is None else f"{horizon}L"
        return self.session.sql(
            f"SELECT {MARK_PART} AS bucket, 0 AS kind, {mark} AS mark, {until} AS horizon, "
            "current_timestamp() AS noted_at"
        )

    @property
    def _relation(self) -> str:
        return self.sink.relation(self.table)

    @property
    def _kept(self) -> str:
        return f"SELECT * FROM {self._relation} WHERE bucket <> {MARK_PART}"


def _old(mark: int, horizon: int) -> str:
    return f"segment > 0 AND segment <= {mark} AND ts <= {horizon}L"
