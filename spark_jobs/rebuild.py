"""Making a landed table anew from what its topics still hold.

In: settings and a table. Out: an empty landed table without positions: the next landing reads from the beginning.
Refused where the topics no longer hold the beginning: the table could not equal its source then.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from connector.config.address import TableName
from connector.errors import LandingError
from spark_jobs.kafka_topics import Topics
from spark_jobs.landed_table import LandedTable
from spark_jobs.lease import Lease, open_folder
from spark_jobs.registration import open_sink
from spark_jobs.settings import Settings


def rebuild(session: SparkSession, settings: Settings, table: TableName, truncated_at_ms: int | None = None) -> None:
    """Empties the table. With ``truncated_at_ms`` nothing that was written up to then will exist in it."""
    if table not in settings.tables:
        raise LandingError(f"{table} is not one of the configured tables")
    topics = Topics(session, settings.kafka())
    try:
        _require_beginnings(settings, table, topics)
    finally:
        topics.close()
    landed = LandedTable(session, open_sink(session, settings.session_config()), table.keyspace, table.table)
    folder = open_folder(session, f"{settings.warehouse}/_leases")
    with Lease(folder, settings.name, settings["lease.timeout.ms"], "rebuild"):
        known = landed.known()
        if known is None:
            return
        # Changes and positions go first: a rebuild that ends here reads everything again, into what the state holds.
        landed.forget()
        not_before = known.not_before if truncated_at_ms is None else truncated_at_ms * 1000
        layout = landed.prepare(replace(known, not_before=not_before, sequence=known.sequence + 1))
        # The view says what does not exist any more; one made before would go on to show it.
        landed.register(layout)


def _require_beginnings(settings: Settings, table: TableName, topics: Topics) -> None:
    names = settings.names
    wanted = [names.data_topic(table.keyspace, table.table), names.range_deletes_topic(table.keyspace, table.table)]
    for (topic, number), offset in sorted(topics.offsets(wanted, beginning=True).items()):
        if offset > 0:
            raise LandingError(
                f"{table}: {topic}, partition {number} begins at offset {offset}: its first records are gone, "
                "so the table cannot be rebuilt from its topics"
            )
