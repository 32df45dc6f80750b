"""Making a landed table anew: from what its topics hold, and from the source where that is not all there ever was.

In: settings and a table, perhaps access to the source. Out: a landed table without positions: the next landing reads
from the beginning. Refused where neither the topics nor the source have everything: it could not equal its source then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.config import Settings
from spark_jobs.jobs.backfilling import Filled, Filling, told_by_kafka
from spark_jobs.source import SourceAccess
from spark_jobs.stream import Topics
from spark_jobs.tables import FORM, LandedTable, Restored, job_lease, lost_by_topics, open_sink


def rebuild(
    session: SparkSession,
    settings: Settings,
    table: TableName,
    truncated_at_ms: int | None = None,
    access: SourceAccess | None = None,
    skip_lists: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Filled | None:
    """Empties the table. With ``truncated_at_ms`` nothing that was written up to then will exist in it.

    The source is read only where the topics alone do not do, and then the result says what came from it.
    """
    if table not in settings.tables:
        raise LandingError(f"{table} is not one of the configured tables")
    sink = open_sink(session, settings.session_config())
    landed = LandedTable(session, sink, table.keyspace, table.name)
    with job_lease(session, settings, "rebuild") as lease:
        restored = landed.restore()
        known = restored.known
        lacking = _lacking(session, settings, table, restored)
        if lacking is not None and access is None:
            raise LandingError(
                f"{table}: {lacking}; with scylla.cluster.ip.addresses in the configuration the rest is read from "
                "the source"
            )
        if known is None:
            return None
        filling = versions = covered = None
        if lacking is not None and access is not None:
            filling = Filling(session, sink, settings, access, skip_lists)
            told, covered = told_by_kafka(session, settings, [table], say)
            versions = told.get(str(table), ())
            filling.check(table, versions)
        not_before = known.not_before if truncated_at_ms is None else truncated_at_ms * 1000
        emptied = replace(
            known,
            not_before=not_before,
            sequence=known.sequence + 1,
            form=FORM,
            filled_to=None,
            covered=None,
            lineage=known.lineage + 1,
        )
        # Noted before anything goes: a rebuild that ends before the source is read must not pass for a whole table.
        layout = landed.prepare(replace(emptied, incomplete=lacking, rebuilding=lacking is not None))
        # Changes and positions go first: a rebuild that ends here reads everything again, into what the state holds.
        landed.forget()
        # The view says what does not exist any more; one made before would go on to show it.
        landed.register(layout)
        return None if filling is None or versions is None else filling.fill(table, versions, lease, covered)


def _lacking(session: SparkSession, settings: Settings, table: TableName, restored: Restored) -> str | None:
    """Why the topics do not hold everything that the table had; None if they do."""
    if restored.known is not None and restored.known.backfilled is not None:
        return "it was backfilled, so it cannot be rebuilt from its topics alone"
    named = settings.topics_of(table)
    with contextlib.closing(Topics(session, settings.kafka())) as topics:
        begins, ends = topics.offsets(named, beginning=True), topics.offsets(named)
        return lost_by_topics(restored.known, restored.positions, begins, ends, topics.ids(named))
