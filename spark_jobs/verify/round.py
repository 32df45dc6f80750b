"""One reading of both sides of a table, and what they do not agree about.

In: a table, access to the source, and perhaps the rows that differed before. Out: a ``Round``: the differing rows, kept
by Spark, and their counts. Only these rows are read again, with their partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from connector.errors import LandingError
from connector.table_name import TableName
from connector.values import NativeType
from spark_jobs.config import Settings
from spark_jobs.functions import register_functions
from spark_jobs.model import Layout, identities, key_columns, quoted
from spark_jobs.named_frames import named
from spark_jobs.source import (
    Counts,
    ReadPlan,
    SourceAccess,
    SourceTable,
    described,
    new_counts,
    ranges_of,
    read_partitions,
    read_plan,
    read_source,
)
from spark_jobs.tables import Among, Known, LandedTable
from spark_jobs.verify.report import Difference, shown_difference
from spark_jobs.verify.sql import (
    EXTRA,
    MISSING,
    join_condition,
    joined_columns,
    landed_side,
    shown_key,
    signed,
    source_side,
)

_BY_KEY = 100_000
"""Up to so many partitions are read one by one; the whole table is read again for more."""
_KEPT = ["s_sig", "l_sig", "found", "stable"]


@dataclass(frozen=True)
class Round:
    """``rows`` are those that differ; ``moving`` of them changed since the round before. ``found`` counts the
    differences of the others, ``columns`` are differences of the tables themselves. The numbers of rows are those of
    the whole table in its first round only."""

    known: Known
    layout: Layout
    rows: DataFrame
    columns: list[Difference]
    skipped: tuple[str, ...]
    differing: int
    moving: int
    found: int
    source_rows: int
    landed_rows: int
    read_twice: int

    @property
    def equal(self) -> bool:
        return not self.differing and not self.columns

    def first(self, limit: int) -> list[Difference]:
        """Some of the differences."""
        chosen = self.rows.where("stable").selectExpr(f"{shown_key(self.layout)} AS key", "inline(found)")
        types = {key.name: key.type for key in self.layout.keys}
        types.update({column.name: column.type for column in self.layout.definition.columns})
        return [shown_difference(self.layout.definition.name, row, types) for row in chosen.limit(limit).collect()]


@dataclass(frozen=True)
class Rounds:
    """Where rounds of one table take place. ``tasks`` read the source at once."""

    session: SparkSession
    settings: Settings
    access: SourceAccess
    table: TableName
    landed: LandedTable
    tasks: int

    def read(self, before: Round | None) -> Round:
        """Both sides as they are now: all rows, or those that differed before."""
        known = self.landed.known()
        if known is None:
            raise LandingError("nothing of it has been landed yet; start with scylla-cdc land")
        source, layout = described(self.access, self.table), known.layout()
        created = known.definitions[-1].table_id
        if created is not None and created != source.table_id:
            raise LandingError("the source's table was re-created, and landing has not caught up yet")
        columns, left_out = self._columns(known, source)
        skipped = tuple(known.backfilled or ())
        plan = read_plan(layout, source, skipped)
        wanted = None if before is None else before.rows
        if layout.declared:
            register_functions(self.session, layout)
        counts = new_counts(self.session)
        sides = [
            self._source(layout, plan, wanted, counts).selectExpr(*source_side(layout, plan)),
            self._landed(layout, plan, wanted),
        ]
        left = sides[0].selectExpr("*", signed(plan)).alias("s")
        right = sides[1].selectExpr("*", signed(plan, ("marker", "ends"))).alias("l")
        joined = left.join(right, F.expr(join_condition(layout, "s", "l")), "full_outer")
        differing = joined.selectExpr(*joined_columns(layout, plan)).where("size(found) > 0")
        rows_now = _compared(layout, differing, wanted).localCheckpoint()
        counted = rows_now.selectExpr(
            "count(*) AS differing",
            "count_if(NOT stable) AS moving",
            "coalesce(sum(CASE WHEN stable THEN size(found) END), 0) AS found",
            f"count_if(found[0].what = '{EXTRA}') - count_if(found[0].what = '{MISSING}') AS more",
        ).first()
        assert counted is not None
        return Round(
            known,
            layout,
            rows_now,
            columns,
            tuple(sorted({*skipped, *left_out})),
            counted["differing"],
            counted["moving"],
            counted["found"],
            counts.rows.value,
            counts.rows.value + counted["more"],
            counts.twice.value,
        )

    def _source(self, layout: Layout, plan: ReadPlan, wanted: DataFrame | None, counts: Counts) -> DataFrame:
        if wanted is not None:
            # One row per partition by its identity: Spark itself would make one key of -0.0 and 0.0.
            keys = wanted.groupBy(*_quoted(identities(layout, partition_only=True))).agg(*_values(layout))
            if keys.count() <= _BY_KEY:
                return read_partitions(keys, self.access, layout, plan)
        ranges = ranges_of(self.access, self.tasks)
        return read_source(self.session, self.access, plan, ranges, self.tasks, counts)

    def _landed(self, layout: Layout, plan: ReadPlan, wanted: DataFrame | None) -> DataFrame:
        if wanted is None:
            return self.session.sql(landed_side(layout, plan, self.landed.folded_text(layout)))
        keys = identities(layout, partition_only=True)
        with named(wanted.select(*_quoted(keys)).distinct(), "verify") as name:
            patches = self.landed.folded_text(layout, [Among(name, tuple(keys))])
            return self.session.sql(landed_side(layout, plan, patches))

    def _columns(self, known: Known, source: SourceTable) -> tuple[list[Difference], list[str]]:
        """Columns that only one side has, and those that never can be on both."""
        mine = {c.name: c.type for c in known.definitions[-1].columns if c.kind in ("static", "regular")}
        theirs = {column.name: column.type for column in source.columns if not column.is_key}
        differences, left_out = [], []
        frozen = self.settings.frozen(self.table)
        carried = known.definitions[-1].output.collections == "delta" or known.layout().images
        for name in sorted(mine.keys() | theirs.keys()):
            if mine.get(name) == theirs.get(name):
                continue
            if frozen or (name not in mine and not carried and not isinstance(theirs[name], NativeType)):
                left_out.append(name)
                continue
            shown = [kinds[name].cql() if name in kinds else None for kinds in (theirs, mine)]
            differences.append(Difference(str(self.table), "column", {}, name, shown[0], shown[1], None, None))
        return differences, left_out


def _compared(layout: Layout, differing: DataFrame, before: DataFrame | None) -> DataFrame:
    """With ``stable``: whether the row is as it was before, on both sides."""
    names = ["kind", *_quoted(key_columns(layout)), *_KEPT]
    if before is None:
        return differing.selectExpr("*", "NOT ending AS stable").selectExpr(*names)
    was = ["kind", *_quoted(identities(layout)), "s_sig AS s_before", "l_sig AS l_before"]
    again = differing.alias("j").join(before.selectExpr(*was).alias("b"), F.expr(join_condition(layout, "j", "b")))
    stable = "s_sig <=> s_before AND l_sig <=> l_before AND NOT ending AS stable"
    return again.selectExpr("j.*", stable).selectExpr(*names)


def _values(layout: Layout) -> list[Column]:
    """The values of the partition key, of which there is one spelling for each identity."""
    names = [key for key in layout.partition if key.identity != key.value]
    return [F.any_value(quoted(key.value)).alias(key.value) for key in names] or [F.lit(1).alias("one")]


def _quoted(names: Iterable[str]) -> list[str]:
    return [quoted(name) for name in names]
