"""Which nodes know which schema, and what a table is where they differ.

In: an open connection. Out: the version of the schema that each node tells; descriptions as `descriptions` has them,
but by one node of each version, of which the newest counts. Blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from connector.changes import TableDescription
from connector.errors import FatalSourceError, RetriableSourceError, SourceError
from connector.source import descriptions
from connector.source.connection import Connection
from connector.source.descriptions import DescribedTable
from connector.source.failures import NotReached
from connector.source.lagging import older
from connector.source.schema_rows import Asks, OneNode
from connector.table_name import TableName

log = logging.getLogger(__name__)

# A node that says nothing for so long has no say.
VERSION_SECONDS = 2.0
_VERSION = "SELECT schema_version FROM system.local WHERE key = 'local'"

Answers = dict[TableName, DescribedTable | FatalSourceError]


def schema_versions(connection: Connection, seconds: float = VERSION_SECONDS) -> dict[Any, Any]:
    """By node; None: it answers, and does not tell. Who says nothing for so many seconds is left out. Raises what ails
    the last one, where nobody answers."""
    told: dict[Any, Any] = {}
    silent: Exception = RetriableSourceError("no node is known to be up")
    for node in connection.hosts():
        try:
            rows = connection.rows(connection.statement(_VERSION, (), "ONE"), host=node, timeout=seconds)
        except (SourceError, ValueError) as error:
            log.debug("the schema's version at %s: %s", node.endpoint, error)
            if isinstance(error, RetriableSourceError | FatalSourceError) and not isinstance(error, NotReached):
                told[node] = None
            silent = error
        else:
            told[node] = rows[0]["schema_version"] if rows else None
    if not told:
        raise silent
    return told


def describe_tables(connection: Connection, tables: Sequence[TableName]) -> Answers:
    """What each of them is, or why nobody can tell. Raises what ails the servers."""
    found: Answers = {}
    for asks in _of_each_version(connection):
        for table, answer in descriptions.describe_tables(asks, tables).items():
            known = found.get(table)
            if not isinstance(known, DescribedTable) or _is_newer(answer, known):
                found[table] = answer
    return found


def describe_table(connection: Connection, table: TableName) -> DescribedTable:
    """What it is now. Raises TableMissing, CdcDisabled (there is no log), or what the connection raises."""
    found = describe_tables(connection, [table])[table]
    if isinstance(found, FatalSourceError):
        raise found
    return found


def describe_base(connection: Connection, keyspace: str, name: str) -> tuple[TableDescription, int]:
    """The table itself, whether or not it has a log, and its default time to live. Raises TableMissing."""
    first, *others = _of_each_version(connection)
    found = descriptions.describe_base(first, keyspace, name)
    for asks in others:
        answer = descriptions.describe_base(asks, keyspace, name)
        found = found if older(answer[0], found[0]) else answer
    return found


def _is_newer(answer: DescribedTable | FatalSourceError, known: DescribedTable) -> bool:
    return isinstance(answer, DescribedTable) and older(answer.description, known.description) is None


def _of_each_version(connection: Connection) -> list[Asks]:
    """Whom to ask: anybody, where all know the same."""
    try:
        nodes = {version: node for node, version in schema_versions(connection).items()}
    except (SourceError, ValueError):
        nodes = {}
    return [connection] if len(nodes) < 2 else [OneNode(connection, node) for node in nodes.values()]
