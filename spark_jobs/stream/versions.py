"""What is told of a table: its versions in the schemas topic, or what a CQL file describes.

In: the schemas topic as far as it is read, the files' definitions. Out: versions, the last is current.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.table_name import TableName
from spark_jobs.model import TableDefinition, carried
from spark_jobs.stream.kafka_topics import SchemaTopic
from spark_jobs.tables import check_same_table


def told_versions(
    table: TableName, schemas: SchemaTopic, described: TableDefinition | None, say: Callable[[str], None]
) -> list[TableDefinition]:
    """The versions of the schemas topic; where it has nothing, what ``described`` has that records carry."""
    versions = schemas.versions(str(table))
    if described is None:
        return versions
    if versions:
        check_same_table(versions[-1], described)
        return versions
    if not described.output.images:
        described, left_out = carried(described)
        if left_out:
            say(f"{table}: these columns are not in the records, so not landed: {', '.join(left_out)}")
    return [described]
