"""The name of a base table, shared by all rooms.

In: a keyspace and a table. Out: a value that compares, sorts, is a key of dictionaries, and whose ``str`` is what users
write and what slots are computed from.
"""

from __future__ import annotations

from typing import NamedTuple


class TableName(NamedTuple):
    """``keyspace.table`` of a base table."""

    keyspace: str
    name: str

    def __str__(self) -> str:
        return f"{self.keyspace}.{self.name}"
