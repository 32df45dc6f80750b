"""Many tables are described by what their keyspaces say, each as if it had been asked for alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from connector.errors import CdcDisabled, TableMissing
from connector.source.connection import Connection
from connector.source.descriptions import TOGETHER, DescribedTable, describe_base, describe_table, describe_tables
from connector.source.schema_rows import STRANGERS
from connector.table_name import TableName
from tests.servers.scylla import Scylla


class Asked:
    """Counts the questions."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.questions: list[tuple[str, Sequence[Any]]] = []

    def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        self.questions.append((text, values))
        return self.connection.query(text, values)


@pytest.mark.scylla
@pytest.mark.any_scylla
def test_tables_are_the_same_whether_they_are_asked_for_together_or_alone(
    scylla: Scylla, unique: Callable[[str], str]
) -> None:
    keyspace, alone = unique("ks").replace("-", "_"), unique("alone").replace("-", "_")
    for each in (keyspace, alone):
        scylla.execute(scylla.keyspace_ddl(each, tablets=True))
        scylla.execute(f"CREATE TYPE {each}.point (x int, y int)")
    on = "WITH cdc = {'enabled': true"
    for number in range(TOGETHER):
        scylla.execute(
            f"CREATE TABLE {keyspace}.t{number} (id int, c{number} int, at point, PRIMARY KEY (id, c{number})) "
            f"{on}, 'preimage': 'full', 'ttl': {1000 + number}}} AND default_time_to_live = {number}"
        )
    scylla.execute(f"ALTER TABLE {keyspace}.t1 ADD note text")
    scylla.execute(f"ALTER TABLE {keyspace}.t1 DROP note")
    scylla.execute(f"CREATE TABLE {keyspace}.plain (id int PRIMARY KEY)")
    scylla.execute(f"CREATE TABLE {alone}.t (id int PRIMARY KEY, at point) {on}}}")
    names = [TableName(keyspace, f"t{number}") for number in range(TOGETHER)]
    missing = [TableName(keyspace, "plain"), TableName(keyspace, "nowhere"), TableName(unique("no"), "t")]
    connection = Connection(scylla.settings())
    connection.open()
    try:
        asked = Asked(connection)
        found = describe_tables(asked, [*names, *missing, TableName(alone, "t")])
        assert [type(found[name]) for name in missing] == [CdcDisabled, TableMissing, TableMissing]
        for name in (*names, TableName(alone, "t")):
            described = found[name]
            assert isinstance(described, DescribedTable) and described == describe_table(connection, name)
        assert len(asked.questions) < 2 * 8 + 3, "one of each kind for a keyspace"
        for number in range(STRANGERS * TOGETHER):
            scylla.execute(f"CREATE TABLE {keyspace}.more{number} (id int PRIMARY KEY)")
        asked.questions.clear()
        assert describe_tables(asked, names) == {name: found[name] for name in names}
        of_one = [values for text, values in asked.questions if "system_schema.columns" in text]
        assert all(len(values) == 2 for values in of_one), "a keyspace of mostly other tables is not read as a whole"
    finally:
        connection.close()


class Indexed:
    """A node that knows one table, whose options say nothing of a log, and an index of it."""

    def __init__(self, class_name: str | None) -> None:
        self.options = {} if class_name is None else {"class_name": class_name}

    def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """As a connection's."""
        if "system_schema.indexes" in text:
            return [{"options": self.options}]
        if "system_schema.columns" in text:
            key = {"kind": "partition_key", "position": 0, "clustering_order": "NONE"}
            return [{"column_name": "id", "type": "int", **key}]
        if "system_schema.tables" in text:
            return [{"id": "1", "extensions": None, "default_time_to_live": 0, "flags": ("compound",)}]
        return [{"keyspace_name": values[0]}] if "system_schema.keyspaces" in text else []


@pytest.mark.parametrize(
    ("class_name", "logged"), [("vector_index", True), ("Fulltext_Index", True), ("other", False), (None, False)]
)
def test_an_index_that_is_kept_by_the_log_has_one_without_the_option(class_name: str | None, logged: bool) -> None:
    assert describe_base(Indexed(class_name), "ks", "t")[0].cdc.enabled == logged


@pytest.mark.scylla
@pytest.mark.any_scylla
def test_a_table_that_is_created_again_while_it_is_described_is_none_without_columns(
    scylla: Scylla, unique: Callable[[str], str]
) -> None:
    table = TableName(unique("ks").replace("-", "_"), "t")
    create = f"CREATE TABLE {table} (id int PRIMARY KEY) WITH cdc = {{'enabled': true}}"
    scylla.execute(scylla.keyspace_ddl(table.keyspace, tablets=True))
    scylla.execute(create)

    class Gone(Asked):
        """Just when somebody asks for its columns."""

        def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
            if "system_schema.columns" not in text or table.name not in values:
                return super().query(text, values)
            scylla.execute(f"DROP TABLE {table}")
            found = super().query(text, values)
            scylla.execute(create)
            return found

    connection = Connection(scylla.settings())
    connection.open()
    try:
        with pytest.raises(TableMissing, match="was dropped just now"):
            describe_table(Gone(connection), table)
    finally:
        connection.close()
