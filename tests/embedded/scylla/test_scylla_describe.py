"""DESCRIBE: what exists, and statements that create the same again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedded.scylla.process import EmbeddedScylla
from tests.embedded.scylla.raw_client import RawClient

Connect = Callable[..., RawClient]


@pytest.fixture
def client(scylla: EmbeddedScylla, keyspace: str, connect: Connect) -> RawClient:
    client = connect(scylla)
    client.done(f"USE {keyspace}")
    client.done('CREATE TYPE addr (street text, "No" int)')
    client.done(
        'CREATE TABLE t (a int, b text, c int, "D" int, s text static, m map<text, frozen<addr>>, v vector<float, 3>,'
        " PRIMARY KEY ((a, b), c, \"D\")) WITH CLUSTERING ORDER BY (c DESC, \"D\" ASC) AND comment = 'it''s'"
        " AND cdc = {'enabled': true, 'preimage': 'full', 'ttl': 60}"
    )
    return client


def texts(client: RawClient, statement: str) -> list[list[str]]:
    return [[(cell or b"").decode() for cell in row] for row in client.rows(statement).rows]


def test_names(client: RawClient, keyspace: str) -> None:
    assert [keyspace, "keyspace", keyspace] in texts(client, "DESCRIBE KEYSPACES;")
    assert ["system_schema", "keyspace", "system_schema"] in texts(client, "desc keyspaces")
    assert texts(client, "DESC TABLES") == [[keyspace, "table", "t"]]
    assert texts(client, "DESC TYPES") == [[keyspace, "type", "addr"]]
    assert len(texts(client, "DESCRIBE CLUSTER")[0]) == 3
    for wrong in ("DESC TABLE nothing", "DESC KEYSPACE nothing", "DESC"):
        assert client.query(wrong).error[0] in (0x2000, 0x2200)


def test_descriptions_create_the_same_again(client: RawClient, keyspace: str, scylla: EmbeddedScylla) -> None:
    rows = texts(client, f"DESCRIBE KEYSPACE {keyspace}")
    assert [(kind, name) for _, kind, name, _ in rows] == [
        ("keyspace", keyspace),
        ("type", "addr"),
        ("table", "t"),
        ("table", "t_scylla_cdc_log"),
    ]
    assert rows[3][3].startswith(f"ALTER TABLE {keyspace}.t_scylla_cdc_log WITH ")
    for option in ("'enabled': 'true'", "'preimage': 'full'", "'ttl': '60'", "'delta': 'full'"):
        assert option in rows[2][3]
    assert texts(client, "DESC TABLE t") == rows[2:]
    columns = f"SELECT * FROM system_schema.columns WHERE keyspace_name = '{keyspace}'"
    before = client.rows(columns).rows
    client.done(f"DROP KEYSPACE {keyspace}")
    for *_, statement in rows:
        client.done(statement)
    assert client.rows(columns).rows == before
    assert texts(client, f"DESCRIBE KEYSPACE {keyspace}") == rows
