"""The rows of a table as a snapshot of the connector's shows them, without a worker: for tests that land them.

In: how to connect, a table that nobody writes to meanwhile, a moment behind all its writes. Out: its rows, each a batch
whose changes become `r` records.
"""

from __future__ import annotations

import contextlib

from connector.changes import Batch
from connector.source.chunks import Question, read_chunk
from connector.source.connection import Connection
from connector.source.descriptions import describe_table
from connector.source.settings import ChunkSize, ConnectionSettings
from connector.table_name import TableName
from connector.timeuuid import time_uuid

_ALL = -(2**63), 2**63 - 1
_TICKS = 10


def snapshotted(settings: ConnectionSettings, table: TableName, at_us: int) -> list[Batch]:
    """All rows of the table, as they are at ``at_us``."""
    connection = Connection(settings)
    with contextlib.closing(connection):
        connection.open()
        question = Question(describe_table(connection, table).description, dated=True)
        chunk = read_chunk(connection, question, _ALL, None, ChunkSize(rows=10**6, bytes=10**9))
        shape = question.shape
        made: list[Batch] = []
        for rows in chunk.partitions.values():
            shown = list(shape.of_partition(rows, at_s=at_us // 1_000_000))
            if shown:
                made.append(Batch(shape.layout, bytes(16), time_uuid(at_us * _TICKS, 0), shown))
        return made
