"""A renamed key column, read without Kafka: what was logged before is an error, what comes later is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from cassandra.cluster import Session

from connector.changes import Change, changes_of
from connector.errors import PoisonRow
from connector.source.connection import Connection
from connector.source.descriptions import describe_table
from connector.table_name import TableName
from tests.servers.scylla import Scylla
from tests.source.conftest import reader

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., str]


def changes(scylla: Scylla, table: str, **options: Any) -> list[Change]:
    with reader(scylla, table, **options) as source:
        return [change for batch in source for change in changes_of(batch)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} (pk, ck, v) VALUES (1, 1, 'a')",
        "UPDATE {t} SET v = 'b' WHERE pk = 1 AND ck = 1",
        "DELETE v FROM {t} WHERE pk = 1 AND ck = 1",
        "DELETE FROM {t} WHERE pk = 1 AND ck = 1",
        "DELETE FROM {t} WHERE pk = 1 AND ck >= 1 AND ck <= 2",
        "DELETE FROM {t} WHERE pk = 1 AND ck > 1 AND ck < 3",
    ],
)
@pytest.mark.parametrize(("columns", "delta"), [("v text", "full"), ("v text, s text static", "keys")])
def test_what_was_logged_before_a_rename_is_an_error(
    scylla: Scylla, session: Session, table: Make, statement: str, columns: str, delta: str
) -> None:
    name = table(tablets=False, columns=columns, cdc=f"{{'enabled': true, 'delta': '{delta}'}}")
    session.execute(statement.format(t=name))
    assert len(changes(scylla, name)) == 1
    session.execute(f"ALTER TABLE {name} RENAME ck TO c")
    with pytest.raises(PoisonRow, match="column c of the key without a value"):
        changes(scylla, name)
    session.execute(f"INSERT INTO {name} (pk, c, v) VALUES (2, 3, 'c')")
    later = session.execute(f'SELECT "cdc$time" AS t FROM {name}_scylla_cdc_log WHERE c = 3 ALLOW FILTERING').one()
    from_ms = (later.t.time - 0x01B21DD213814000) // 10_000
    assert [change.key for change in changes(scylla, name, from_ms=from_ms)] == [{"pk": 2, "c": 3}]


def test_a_description_says_when_keys_were_lost(scylla: Scylla, session: Session, table: Make) -> None:
    name = table(tablets=True, columns="v text, w text")
    keyspace, _, table_name = name.partition(".")
    connection = Connection(scylla.settings())
    connection.open()
    try:
        described = describe_table(connection, TableName(keyspace, table_name))
        session.execute(f"ALTER TABLE {name} DROP w")
        dropped = describe_table(connection, TableName(keyspace, table_name))
        assert (described.description.keys_lost_us, dropped.description.keys_lost_us) == (0, 0)
        assert dropped.description.dropped and not dropped.description.dense
        now_us = scylla.now_us()
        session.execute(f"ALTER TABLE {name} RENAME ck TO c")
        lost_us = describe_table(connection, TableName(keyspace, table_name)).description.keys_lost_us
        # Versions before 2026.1 drop it at once.
        assert now_us - 6_000_000 < lost_us <= scylla.now_us() + 1_000_000
    finally:
        connection.close()


def test_a_dense_table_is_told_by_its_flags(scylla: Scylla, session: Session, table: Make) -> None:
    keyspace, _, name = table(tablets=True).partition(".")
    connection = Connection(scylla.settings())
    connection.open()

    class Flagged:
        """No server makes such a table any more, unless it is told to."""

        def query(self, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
            rows = connection.query(text, values)
            return [row | {"flags": {"compound", "dense"}} if "flags" in row else row for row in rows]

    try:
        plain = describe_table(connection, TableName(keyspace, name)).description
        dense = describe_table(Flagged(), TableName(keyspace, name)).description
        assert dense == replace(plain, dense=True)
        assert dense.fingerprint == plain.fingerprint, "schema records are as they were"
    finally:
        connection.close()
