"""What the schema tables say of many tables: a question for each keyspace, instead of several for each table.

In: a connection. Out: the rows that `describe_table` asks for, as the connection would give them; or one of its nodes.
Of use for one look at many tables, and no longer: what was answered once is not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from connector.source.connection import Connection

#: The rows of one table, or those of its keyspace.
OF_TABLE: Final = " WHERE keyspace_name = ? AND table_name = ?"
OF_KEYSPACE: Final = " WHERE keyspace_name = ?"

#: A keyspace with so many times more tables than are wanted is not read as a whole.
STRANGERS: Final = 10


class Asks(Protocol):
    """A `Connection`, as far as it is asked for rows."""

    def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]: ...


class OneNode:
    """A connection's rows by one of its nodes: what it says of a table is of one mind."""

    def __init__(self, connection: Connection, node: Any) -> None:
        self._connection = connection
        self._node = node

    def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """As a connection's."""
        return self._connection.query(text, values, host=self._node)


class SchemaRows:
    """``wanted``: how many tables of each keyspace will be asked for."""

    def __init__(self, connection: Asks, wanted: Mapping[str, int]) -> None:
        self._connection = connection
        self._wanted = wanted
        self._tables: dict[str, int] = {}
        self._of_keyspace: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._of_tables: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}

    def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """As a connection's."""
        keyspace = str(values[0])
        if not text.endswith(OF_TABLE):
            return self._whole(text, keyspace)
        if not self._is_read_whole(keyspace):
            return self._connection.query(text, values)
        known = self._of_tables.get((text, keyspace))
        if known is None:
            known = self._of_tables[text, keyspace] = {}
            asked = text.removesuffix(OF_TABLE).replace("SELECT ", "SELECT table_name, ", 1) + OF_KEYSPACE
            for row in self._connection.query(asked, [keyspace]):
                known.setdefault(row.pop("table_name"), []).append(row)
        return known.get(str(values[1]), [])

    def _whole(self, text: str, keyspace: str) -> list[dict[str, Any]]:
        if (text, keyspace) not in self._of_keyspace:
            self._of_keyspace[text, keyspace] = self._connection.query(text, [keyspace])
        return self._of_keyspace[text, keyspace]

    def _is_read_whole(self, keyspace: str) -> bool:
        tables = self._tables.get(keyspace)
        if tables is None:
            found = self._connection.query("SELECT table_name FROM system_schema.tables" + OF_KEYSPACE, [keyspace])
            tables = self._tables[keyspace] = len(found)
        return tables <= STRANGERS * self._wanted[keyspace]
