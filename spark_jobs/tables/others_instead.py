"""Whether all rows of a published table go: then they go at once, where to look at each of them takes by the million.

In: what it shall show, as SQL, and the table. Out: these rows, where they are few and none of them is there already.
So it is where a table of the source was dropped and created again: hardly anything has come into the new one yet.
"""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.model import Layout, quoted
from spark_jobs.named_frames import named
from spark_jobs.tables.checkpoints import checkpointed
from spark_jobs.tables.shown_values import same

_FEW = 10_000


def others_instead(
    stack: ExitStack, session: SparkSession, layout: Layout, fresh: str, relation: str
) -> DataFrame | None:
    """The rows of ``fresh``, which are kept as long as the stack is; None where they are many, or some are in the
    table as they are."""
    rows = stack.enter_context(checkpointed(session.sql(fresh).limit(_FEW + 1)))
    count = rows.count()
    if count > _FEW:
        return None
    if not count:
        return rows
    types = {column.name: column.type for column in layout.definition.columns}
    equal = " AND ".join(same(types[each], f"o.{quoted(each)}", f"n.{quoted(each)}") for each in rows.columns)
    with named(rows, "instead") as name:
        kept = session.sql(f"SELECT /*+ BROADCAST(n) */ 1 FROM {relation} AS o JOIN {name} AS n ON {equal} LIMIT 1")
    return None if kept.collect() else rows
