"""The state of one landed table: what its merged changes come to, and the mark of how far that goes.

In: patches of changes. Out: commits, each with the mark that it stands for. The *base* are the table's buckets from 0
on; a *run* is a part of its own, with a negative number that no other run ever has: what a merge has made of changes,
and of the runs that it took with them. Rows are sorted by key in either, so that files tell which keys they may have.

Who reads folds base and runs together; seeing a row twice changes nothing. So runs that were taken into another go in a
commit of their own, after that: if it never comes, they are taken once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.fold import compacted, folded
from spark_jobs.model import (
    MARKED_POSITIONS,
    MARKER_TTL,
    Layout,
    bucket_of,
    identities,
    literal,
    quoted,
    state_columns,
    state_patch,
)
from spark_jobs.sinks import Sink, replace_made
from spark_jobs.tables.levels import MARK_PART, choose, runs_of
from spark_jobs.tables.notes import Offsets, noted_offsets, positions_in


@dataclass(frozen=True)
class Merged:
    """How far a state goes: its mark, and how far the topics are merged then, which an earlier version did not note."""

    mark: int
    positions: Offsets | None
    expiring: bool
    """Whether parts of its rows may end by themselves."""


@dataclass(frozen=True)
class State:
    """``table`` is the sink's name for it."""

    session: SparkSession
    sink: Sink
    table: str

    @property
    def relation(self) -> str:
        return self.sink.relation(self.table)

    @property
    def mark(self) -> str:
        """SQL of the greatest segment that is merged."""
        return f"(SELECT coalesce(max(mark), 0) FROM {self.relation} WHERE bucket = {MARK_PART})"

    def merged(self) -> Merged:
        """What is merged, read once: where SQL has it, each mention of the mark is a query of its own."""
        rows = self.session.table(self.relation)
        noted = MARKED_POSITIONS if MARKED_POSITIONS in rows.columns else "CAST(NULL AS string)"
        # One row, or none where nothing was merged. A maximum would be two stages of Spark's.
        marked = rows.where(f"bucket = {MARK_PART}").selectExpr("mark", f"{noted} AS noted").collect()
        mark = max((row["mark"] or 0 for row in marked), default=0)
        positions = max((row["noted"] for row in marked if row["noted"] is not None), default=None)
        return Merged(mark, None if positions is None else positions_in(positions), MARKER_TTL in rows.columns)

    def prepare(self, layout: Layout) -> None:
        self.sink.prepare(self.table, state_columns(layout), "bucket", [key.value for key in layout.keys])

    def rows(self, layout: Layout, buckets: Sequence[int] = (), where: str = "true") -> str:
        """Everything in it, each row in its bucket: of these buckets, if some are named, what meets ``where``."""
        chosen = f"bucket IN ({', '.join(map(str, buckets))}) OR bucket < {MARK_PART}" if buckets else "true"
        home = f"CASE WHEN bucket < {MARK_PART} THEN {bucket_of(layout)} ELSE bucket END AS bucket"
        met = f"bucket <> {MARK_PART} AND ({chosen}) AND ({where})"
        return f"SELECT * EXCEPT (bucket), {home} FROM {self.relation} WHERE {met}"

    def merge(
        self, layout: Layout, changes: str, new: int, through: int, positions: Offsets | None, ended: str | None = None
    ) -> None:
        """Takes in patches of changes, of which ``new`` bytes were landed, up to a segment that none was merged of.
        Values that ended up to the second ``ended`` go."""
        run, gone = MARK_PART - through, set[int]()

        def made() -> DataFrame:
            nonlocal gone
            marked = self.marked(through, positions)
            if not new:
                return marked
            there = self.parts()
            choice = choose(there, new)
            # A run of this number is of a merge that is done again: what it had taken is nowhere else.
            taken = {*choice.runs, run} & set(there)
            gone = taken if choice.base else taken - {run}
            parts = [f"bucket IN ({', '.join(map(str, sorted(taken)))})"] if taken else []
            parts += [f"bucket > {MARK_PART}"] if choice.base else []
            patches = [changes]
            if parts:
                patches.append(state_patch(layout, self.rows(layout, where=" OR ".join(parts))))
            return self.sorted(layout, self._made(layout, patches, None if choice.base else run, ended), marked)

        self.prepare(layout)
        self.replace(made)
        self.drop(gone)

    def rewrite(self, layout: Layout, rows: Callable[[], DataFrame]) -> None:
        """Makes the base what these rows are, and there is no run any more: all in one commit."""
        gone = set[int]()

        def made() -> DataFrame:
            nonlocal gone
            there = self.parts()
            gone = set(runs_of(there))
            # A part that nothing is left of must still be among those that are replaced.
            parts = ", ".join(map(str, sorted({*there, *range(layout.buckets)} - {MARK_PART})))
            return self.sorted(layout, rows(), self.session.sql(f"SELECT explode(array({parts})) AS bucket, 0 AS kind"))

        self.replace(made)
        self.drop(gone)

    def folded_text(self, layout: Layout) -> str:
        """One patch per key of everything in it."""
        return folded(layout, [state_patch(layout, self.rows(layout))], self._spread(layout))

    def replace(self, made: Callable[[], DataFrame]) -> None:
        """Replaces parts by what is made of the table's rows, made anew if another writer was first."""
        replace_made(self.sink, self.table, made)

    def drop(self, runs: Collection[int]) -> None:
        """Removes runs that are part of another one, or of the base."""
        if runs:
            self.sink.delete(self.table, f"bucket IN ({', '.join(map(str, sorted(runs)))})")

    def clear(self) -> None:
        self.sink.delete(self.table, f"bucket <> {MARK_PART}")

    def set_mark(self, through: int, positions: Offsets | None) -> None:
        self._know_positions()
        self.sink.replace_buckets(self.table, self.marked(through, positions))

    def marked(self, through: int, positions: Offsets | None) -> DataFrame:
        """The row that holds the mark."""
        noted = "CAST(NULL AS string)"
        if positions is not None:
            noted = literal(json.dumps(noted_offsets(positions)))
        return self.session.sql(
            f"SELECT {MARK_PART} AS bucket, 0 AS kind, {through} AS mark, {noted} AS {MARKED_POSITIONS}"
        )

    def parts(self) -> Mapping[int, int]:
        """The bytes of each part."""
        return self.sink.sizes(self.table)

    def sorted(self, layout: Layout, rows: DataFrame, others: DataFrame) -> DataFrame:
        return rows.unionByName(others, allowMissingColumns=True).sortWithinPartitions(
            "bucket", *map(quoted, identities(layout))
        )

    def _made(self, layout: Layout, patches: Sequence[str], run: int | None, ended: str | None) -> DataFrame:
        text = compacted(layout, folded(layout, patches, self._spread(layout)), ended)
        if run is not None:
            text = f"SELECT * EXCEPT (bucket), {run} AS bucket FROM ({text}) AS made"
        return self.session.sql(text)

    def _spread(self, layout: Layout) -> list[str]:
        """By what the bucket is the hash of: tasks are of one size, and each has few buckets to write."""
        return identities(layout, partition_only=True)

    def _know_positions(self) -> None:
        """A state that an earlier version has made gets the column for them, and what else tables have now."""
        self.sink.prepare(self.table, {MARKED_POSITIONS: "string"}, "bucket")
