"""Which version of the table a record was made by, and the layout that understands it.

In: a batch of Kafka records, a ``Layout`` with its readings. Out: the batch in parts, each with its reading. The
connector says the version in headers; a record without them is read as the newest definitions have it. What an older
table of the same name has written is nobody's: it is left out. What a younger one has written waits for its definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import DataFrame

from spark_jobs.model import Layout, literal

_VERSION = "substring_index(made_by, ' ', -1)"
_TABLE = "substring_index(made_by, ' ', 1)"
_TABLE_HEADER, _VERSION_HEADER = "scylla.table.id", "scylla.schema.version"


def _header(name: str) -> str:
    return f"CAST(get(filter(headers, h -> h.key = {literal(name)}), 0).value AS string)"


def _value(at: int) -> str:
    return f"CAST(get(headers, {at}).value AS string)"


# The connector puts these two first, and most records have no others: looking through all of them is dear.
_FIRST = f"get(headers, 0).key = {literal(_TABLE_HEADER)} AND get(headers, 1).key = {literal(_VERSION_HEADER)}"
_ONLY = f"coalesce(size(headers) = 2 AND {_FIRST}, false)"

MADE_BY = (
    f"CASE WHEN {_FIRST} THEN concat({_value(0)}, ' ', {_value(1)}) "
    f"ELSE concat({_header(_TABLE_HEADER)}, ' ', {_header(_VERSION_HEADER)}) END AS made_by"
)
"""A column of a batch that has Kafka's headers; null where the record has not both."""

CELL_TTLS = f"CASE WHEN NOT {_ONLY} THEN {_header('scylla.cell.ttls')} END AS cell_ttls"
"""Of a snapshot's record: what is left of those of its cells that have a TTL, as JSON."""


def by_versions(batch: DataFrame, layout: Layout, read: Callable[[DataFrame, Layout], DataFrame]) -> DataFrame:
    """What ``read`` makes of the records, each with the reading of its version."""
    if "cell_ttls" not in batch.columns:
        batch = batch.selectExpr("*", "CAST(NULL AS string) AS cell_ttls")
    if "made_by" not in batch.columns:
        return read(batch.selectExpr("*", "CAST(NULL AS string) AS made_by"), layout)
    if (table := layout.definition.table_id) is not None:
        batch = batch.where(f"{is_own(layout)} OR coalesce({_created(_TABLE)} > {_created(literal(table))}, false)")
    if not layout.readings:
        return read(batch, layout)
    odd = ", ".join(literal(version) for version in layout.readings)
    named = batch.where(f"{_VERSION} IN ({odd})").selectExpr(f"{_VERSION} AS version").distinct().collect()
    parts = [read(batch.where(f"NOT coalesce({_VERSION} IN ({odd}), false)"), layout)]
    for version in sorted(row["version"] for row in named):
        parts.append(read(batch.where(f"{_VERSION} = {literal(version)}"), layout.readings[version]))
    return reduce(DataFrame.unionByName, parts)


def is_own(layout: Layout) -> str:
    """Whether a record is of the table that is known, as far as it says. Others that are not left out are of one that
    was created after it: the schemas topic has not told of that yet, or is not the connector's."""
    table = layout.definition.table_id
    return "true" if table is None else f"(made_by IS NULL OR startswith(made_by, {literal(table + ' ')}))"


def _created(table: str) -> str:
    """The time in a table's id, as text that sorts by it; null for ids that hold none."""
    parts = f"substring({table}, 16, 3), substring({table}, 10, 4), substring({table}, 1, 8)"
    return f"CASE WHEN substring({table}, 15, 1) = '1' THEN concat({parts}) END"


def kafka_ms(layout: Layout) -> str:
    """When Kafka got the record. One that is known to be this table's is not older than the table, whatever the clocks
    of its writer and of ScyllaDB say."""
    created = layout.definition.created_ms
    own = "unix_millis(timestamp)"
    return own if created is None else f"CASE WHEN made_by IS NULL THEN {own} ELSE greatest({own}, {created}L) END"
