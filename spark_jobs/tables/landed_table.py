"""One landed table: its changelog, its state, and what moves rows from the one to the other.

In: a session, a sink and a table's name. Out: appends, merges, positions, known definitions, and the text of its view.
The changelog holds everything that a batch implies in one commit; the state holds the mark in the same commit as the
rows that the mark speaks of. A crash between any two steps leaves a state that the next start continues from.

A position counts only as long as the rows that it speaks of do: it names its segment, and a segment that is merged
already stands for the positions that the merge noted with its mark. So a batch that a paused job appends late, into a
segment that its successor has merged without it, is as if it had never been: its records are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.fold import NOW, certainly_ended, folded, partition_columns, visible_rows
from spark_jobs.model import (
    DEAD,
    DEFINITIONS,
    MARKER_TTL,
    POSITIONS,
    TTL,
    DeadReason,
    Layout,
    TableDefinition,
    changelog_columns,
    changes_patch,
    headers_of,
    literal,
    physical,
    quoted,
    reasons_sql,
    state_patch,
)
from spark_jobs.sinks import Sink
from spark_jobs.tables.history_table import History
from spark_jobs.tables.levels import MARK_PART
from spark_jobs.tables.notes import Known, Offsets, known_in
from spark_jobs.tables.state_table import State

SESSION_CATALOG = "spark_catalog"
LIVE = "__live"
"""Behind the name of the live view where the name itself is the published table's."""
_SEGMENTS_PASSED = 1000
_NEWEST = "max(struct(offset, note))"


@dataclass(frozen=True)
class Restored:
    """Where a table stands: ``segment`` is the next to append to, ``since_ms`` when the oldest unmerged row landed."""

    known: Known | None
    positions: Offsets
    mark: int
    segment: int
    unmerged: int
    since_ms: int | None
    ending: bool = False
    """Whether unmerged rows have a TTL."""
    letters: bool = False
    """Whether there are dead letters."""

    @property
    def has_rows(self) -> bool:
        """Whether anything was landed, or counted as landed."""
        return bool(self.positions or self.mark or self.unmerged)


@dataclass(frozen=True)
class Among:
    """Those rows that are told apart by these columns, and whose are in a relation."""

    relation: str
    identities: tuple[str, ...]


class LandedTable:
    """``keyspace.table`` in the warehouse."""

    def __init__(self, session: SparkSession, sink: Sink, keyspace: str, table: str) -> None:
        self.session = session
        self.sink = sink
        self.keyspace = keyspace
        self.table = table
        self.folder = folder = f"{physical(keyspace)}/{physical(table)}"
        self.changelog = f"{folder}/changelog"
        self.parcels = f"{folder}/parcels"
        self.state = State(session, sink, f"{folder}/state")
        self.history = History(session, sink, f"{folder}/history", self.changelog, self._log, self.state.rows)

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.table}"

    def exists(self) -> bool:
        return self.sink.exists(self.changelog) and self.sink.exists(self.state.table)

    def known(self) -> Known | None:
        """The newest noted definitions; None for a table that was never prepared."""
        if not self.exists():
            return None
        noted = self.session.table(self._log).where(f"segment = {DEFINITIONS}").select("offset", "note")
        # A maximum would be two stages of Spark's, the second planned when the first is done.
        newest = noted.orderBy(F.desc("offset"), F.desc("note")).first()
        return None if newest is None else replace(known_in(newest["note"], newest["offset"]), expiring=self.expires())

    def restore(self) -> Restored:
        """Everything a job must know to go on, in a query of the state and then one of the changelog.

        What a paused job merges between the two is counted as unmerged: folding it again changes nothing. It removes no
        change of that: before it does, it asks whether it still has the lease.
        """
        if not self.exists():
            return Restored(None, {}, 0, 1, 0, None)
        merged, log = self.state.merged(), self.session.table(self._log)
        unmerged = "true" if merged.positions is None else f"(note IS NULL OR try_cast(note AS int) > {merged.mark})"
        placed, ttl = f"segment = {POSITIONS}", TTL if TTL in log.columns else "CAST(NULL AS bigint)"
        grouped = (
            f"CASE WHEN segment > 0 THEN 0 WHEN segment = {DEFINITIONS} OR segment = {DEAD} AND reason IS NOT NULL "
            f"OR {placed} AND {unmerged} THEN segment END AS what",
            f"CASE WHEN {placed} THEN topic END AS topic",
            f"CASE WHEN {placed} THEN partition END AS partition",
        )
        counted = (
            f"{_NEWEST} AS newest",
            "max(segment) AS segment",
            "count(*) AS rows",
            f"count({ttl}) AS ttls",
            "unix_millis(min(landed_at)) AS since",
        )
        # By segments alone, which Delta has of each file: to look at what it notes of rows takes it another query.
        chosen = log.where(f"segment IN ({DEAD}, {POSITIONS}, {DEFINITIONS}) OR segment > {merged.mark}")
        rows = chosen.groupBy(*map(F.expr, grouped)).agg(*map(F.expr, counted)).collect()
        noted = [row["newest"] for row in rows if row["what"] == DEFINITIONS]
        tail = [row for row in rows if row["what"] == 0]
        positions = dict(merged.positions or {})
        for row in rows:
            if row["what"] == POSITIONS:
                place = (row["topic"], row["partition"])
                positions[place] = max(row["newest"]["offset"], positions.get(place, 0))
        known = known_in(noted[0]["note"], noted[0]["offset"]) if noted else None
        return Restored(
            known=known and replace(known, expiring=merged.expiring),
            positions=positions,
            mark=merged.mark,
            segment=max([merged.mark, *(row["segment"] for row in tail)]) + 1,
            unmerged=sum(row["rows"] for row in tail),
            since_ms=min((row["since"] for row in tail), default=None),
            ending=any(row["ttls"] for row in tail),
            letters=any(row["what"] == DEAD for row in rows),
        )

    def widen(self) -> None:
        """Gives a changelog that an earlier version has made the columns that every table has now."""
        if self.exists():
            self.sink.prepare(self.changelog, {TTL: "bigint"}, "segment")

    def widen_for(self, layout: Layout) -> None:
        """Gives the tables the columns of a layout that is not noted yet."""
        self.sink.prepare(self.changelog, changelog_columns(layout), "segment")
        self.state.prepare(layout)

    def expect_ends(self, layout: Layout) -> Layout:
        """From now on parts of the table may end by themselves, and state and history say when."""
        layout = layout.with_ends()
        if self.history.exists():
            self.history.widen(layout)
        self.state.prepare(layout)
        return layout

    def expires(self) -> bool:
        """Whether parts of it may end by themselves."""
        return MARKER_TTL in self.session.table(self.state.relation).columns

    def prepare(self, known: Known) -> Layout:
        """Makes the tables fit the definitions and notes these, so that every later reader sees both."""
        layout = known.layout()
        self.widen_for(layout)
        if known.history:
            self.history.prepare(layout, self.mark())
        elif self.history.exists():
            self.history.end()
        self.sink.append(self.changelog, self.note_row(known))
        return layout

    def note_row(self, known: Known) -> DataFrame:
        """The row that says what is known; it counts from the commit on that has it."""
        return self.session.sql(
            f"SELECT {DEFINITIONS} AS segment, 0 AS kind, CAST({known.sequence} AS bigint) AS offset, "
            f"current_timestamp() AS landed_at, {literal(known.note())} AS note"
        )

    def position_rows(self, ends: Offsets, segment: int) -> DataFrame:
        """Rows that say how far a batch of this segment went; appended together with the batch."""
        values = ", ".join(
            f"({POSITIONS}, 0, {literal(topic)}, {number}, CAST({offset} AS bigint))"
            for (topic, number), offset in sorted(ends.items())
        )
        rows = self.session.sql(
            f"SELECT *, current_timestamp() AS landed_at, '{segment}' AS note "
            f"FROM VALUES {values} AS p(segment, kind, topic, partition, offset)"
        )
        # Spark gives each core some of them, and each would write a file of its own, which every reader opens.
        return rows.coalesce(1)

    def append(self, frame: DataFrame) -> None:
        self.sink.append(self.changelog, frame)

    def letters(self, reasons: Sequence[DeadReason], always: Sequence[DeadReason] = ()) -> DataFrame | None:
        """The dead letters with these reasons that the newest definitions have not seen, and all with those that are
        ``always`` looked at; None if there is none."""
        where = f"segment = {DEAD} AND {self._waiting(reasons, always)}"
        if self.session.sql(f"SELECT 1 FROM {self._log} WHERE {where} LIMIT 1").first() is None:
            return None
        return self.session.sql(
            "SELECT raw_key AS key, raw_value AS value, topic, partition, offset, "
            f"timestamp_millis(kafka_ms) AS timestamp, {headers_of('note')} FROM {self._log} WHERE {where}"
        )

    def letters_since(self, positions: Offsets) -> dict[str, int]:
        """How many letters there are, by reason, of records behind these positions."""
        behind = f"topic IS NOT NULL AND NOT ({_before(positions)})"
        counted = self.session.sql(
            f"SELECT reason, count(*) AS letters FROM {self._log} "
            f"WHERE segment = {DEAD} AND reason IS NOT NULL AND {behind} GROUP BY reason"
        )
        return {row["reason"]: row["letters"] for row in counted.collect()}

    def replace_letters(
        self, decoded: DataFrame, reasons: Sequence[DeadReason], always: Sequence[DeadReason] = ()
    ) -> None:
        """Replaces the letters that ``letters`` told by what they decode to now, in one commit.

        The decoded rows must be of a segment that has none yet. The row without a reason keeps the dead segment's
        partition among those that are replaced when no letter is left.
        """
        waiting = self._waiting(reasons, always)
        others = self.session.sql(
            f"SELECT * FROM {self._log} WHERE segment = {DEAD} AND reason IS NOT NULL AND NOT {waiting}"
        )
        blank = self.session.sql(f"SELECT {DEAD} AS segment, 0 AS kind")
        frame = decoded.unionByName(others, allowMissingColumns=True).unionByName(blank, allowMissingColumns=True)
        self.sink.replace_buckets(self.changelog, frame)

    def _waiting(self, reasons: Sequence[DeadReason], always: Sequence[DeadReason]) -> str:
        noted = f"(SELECT max(landed_at) FROM {self._log} WHERE segment = {DEFINITIONS})"
        # A clock that was ahead has made some that are newer than any definition for a while.
        unseen = f"(landed_at <= {noted} OR landed_at > current_timestamp())"
        return f"({reasons_sql(always)} OR {reasons_sql(reasons)} AND {unseen})"

    def has_changes_beyond(self, segment: int) -> bool:
        """Whether a segment after this one has changes, merged ones as well."""
        return bool(self.session.sql(f"SELECT 1 FROM {self._log} WHERE segment > {segment} LIMIT 1").collect())

    def remove_changes(self, through: int) -> None:
        """Removes the changes of all segments up to this one: nobody reads them, as they are merged."""
        self.sink.delete(self.changelog, f"segment > 0 AND segment <= {through}")

    def compact_changes(self, through: int, after: int | None) -> int | None:
        """Makes larger files of those that batches have left up to this segment, dead letters among them: a portion,
        behind the one that ended ``after``. Returns where it ended, if there are more."""
        return self.sink.compact(self.changelog, after, through)

    def remove_positions(self, newer: Offsets) -> None:
        """Removes positions that these stand for."""
        if newer:
            self.sink.delete(self.changelog, older_positions(newer))

    def folders(self) -> list[str]:
        """The sink's names of what it consists of."""
        others = [table for table in (self.history.table, self.parcels) if self.sink.exists(table)]
        return [self.changelog, self.state.table, *others]

    def mark(self) -> int:
        """The greatest segment that is merged into the state."""
        return self.state.merged().mark

    def merge(
        self,
        layout: Layout,
        through: int,
        mark: int | None = None,
        positions: Offsets | None = None,
        ending: bool | None = None,
    ) -> None:
        """Folds the segments up to ``through`` into the state; the mark moves in the same commit.

        What is read and written is in proportion to the changes. Doing it twice changes nothing.
        ``mark`` saves a query where the caller knows it; too small a one only folds something again.
        ``positions`` are those of the rows in these segments that the caller has appended or found; without any,
        whatever the changelog says counts.
        ``ending``: whether any of them has a TTL, where the caller knows of all that are its own. What a paused job has
        appended beside them is read again from the topics, and of two writes of one time the one with a TTL counts.
        """
        layout = layout.merging or layout
        mark = self.mark() if mark is None else mark
        if through <= mark:
            return
        # Tables that earlier versions have made get what tables have now.
        self.widen()
        window = f"segment > {mark} AND segment <= {through}"
        if not layout.expiring and (self.expires() or (self._has_ttls(window) if ending is None else ending)):
            layout = self.expect_ends(layout)
        new = sum(size for segment, size in self.sink.sizes(self.changelog).items() if mark < segment <= through)
        changes = changes_patch(layout, f"SELECT * FROM {self._log} WHERE {window}")
        self.state.merge(layout, changes, new, through, positions, self._ended(window) if layout.expiring else None)

    def _ended(self, window: str) -> str | None:
        """The second up to which values that have ended are not asked for any more, as far as these changes tell."""
        newest = self.session.sql(f"SELECT max(ts) AS ts FROM {self._log} WHERE {window}").first()
        return None if newest is None or newest["ts"] is None else certainly_ended(newest["ts"])

    def _has_ttls(self, window: str) -> bool:
        found = f"SELECT 1 FROM {self._log} WHERE {window} AND {TTL} IS NOT NULL LIMIT 1"
        return self.session.sql(found).first() is not None

    def clear(self, through: int, positions: Offsets | None = None) -> None:
        """Empties the state and counts everything up to ``through`` as merged: a new or rebuilt source table."""
        self.state.clear()
        self.state.set_mark(through, positions)
        if self.history.exists():
            self.history.restart()

    def forget(self) -> None:
        """Removes every position, then every change and letter, then the state; definitions stay.

        The mark goes on, beyond all segments that a job which was paused meanwhile may still append to.
        """
        self.state.set_mark(self.restore().segment + _SEGMENTS_PASSED, {})
        self.sink.delete(self.changelog, f"segment <> {DEFINITIONS}")
        self.state.clear()
        if self.history.exists():
            self.history.restart()

    def folded_text(
        self,
        layout: Layout,
        among: Sequence[Among] = (),
        buckets: Sequence[int] = (),
        near: str = "true",
        whole: tuple[int, int] | None = None,
    ) -> str:
        """Patches of everything landed: the state, and the changes after the mark that this very state carries.

        Only rows are looked at that are in one of ``among``, if there are any. They are in these ``buckets`` if some
        are named, and their keys meet ``near``, by which files are skipped. Of the segments after the first of
        ``whole``, up to the second, every change is of such a row: none is looked for. Later ones are left out then.
        """
        chosen = f"bucket IN ({', '.join(map(str, buckets))})" if buckets else "true"
        kept = self.state.rows(layout, buckets, near)
        tail = f"{self.tail_text()} AND {chosen} AND ({near})"
        changes = [tail]
        if among:
            kept = _of_those(kept, among)
            changes = [_of_those(tail, among)]
            if whole is not None:
                changes = [f"{tail} AND segment > {whole[0]} AND segment <= {whole[1]}"]
                if self.mark() < whole[0]:
                    changes.append(_of_those(f"{tail} AND segment <= {whole[0]}", among))
        patches = [state_patch(layout, kept), *(changes_patch(layout, some) for some in changes)]
        return folded(layout, patches, partition_columns(layout))

    def tail_text(self) -> str:
        """The changes that the state has not."""
        return f"SELECT * FROM {self._log} WHERE segment > {self.state.mark}"

    def view_text(self, layout: Layout, now: str = NOW) -> str:
        return visible_rows(layout, self.folded_text(layout), now)

    def register(self, layout: Layout) -> None:
        """Makes ``ks.t`` and its companions known to the session's catalog."""
        self.session.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(self.keyspace)}")
        self._view(LIVE if self._has_way_made() else "", self.view_text(layout))
        self._view("__changelog", f"SELECT * FROM {self._log} WHERE segment > 0")
        self._view("__state", f"SELECT * FROM {self.state.relation} WHERE bucket <> {MARK_PART}")
        letters = "topic, partition, offset, reason, raw_key, raw_value, landed_at"
        self._view("__dead_letters", f"SELECT {letters} FROM {self._log} WHERE segment = {DEAD} AND reason IS NOT NULL")
        if layout.history:
            self._view("__history", self.history.text(layout))
        else:
            self.session.sql(f"DROP VIEW IF EXISTS {quoted(self.keyspace, self.table + '__history')}")

    def make_way(self) -> None:
        """Leaves the table's name in the session's catalog to the published table."""
        if not self._has_way_made():
            self.session.sql(f"DROP VIEW IF EXISTS {quoted(SESSION_CATALOG, self.keyspace, self.table)}")

    def _has_way_made(self) -> bool:
        """Whether the name is a table's, not a view's."""
        name = quoted(SESSION_CATALOG, self.keyspace, self.table)
        catalog = self.session.catalog
        return bool(catalog.tableExists(name)) and catalog.getTable(name).tableType != "VIEW"

    def _view(self, suffix: str, text: str) -> None:
        self.session.sql(f"CREATE OR REPLACE VIEW {quoted(self.keyspace, self.table + suffix)} AS {text}")

    @property
    def _log(self) -> str:
        return self.sink.relation(self.changelog)


def _of_those(rows: str, among: Sequence[Among]) -> str:
    """The rows that are in one of these relations."""
    found = []
    for each in among:
        same = " AND ".join(f"a.{name} <=> r.{name}" for name in map(quoted, each.identities))
        found.append(f"SELECT r.* FROM ({rows}) AS r LEFT SEMI JOIN {each.relation} AS a ON {same}")
    return " UNION ALL ".join(found)


def older_positions(newer: Offsets) -> str:
    """SQL of the rows with positions that these stand for."""
    return f"segment = {POSITIONS} AND ({_before(newer)})"


def _before(positions: Offsets) -> str:
    """Whether a row's record, or position, lies before these."""
    places = (
        f"(topic = {literal(topic)} AND partition = {number} AND offset < {offset})"
        for (topic, number), offset in sorted(positions.items())
    )
    return " OR ".join(places) or "false"


def same_versions(one: Sequence[TableDefinition], other: Sequence[TableDefinition]) -> bool:
    return [definition.text for definition in one] == [definition.text for definition in other]
