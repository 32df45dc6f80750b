"""What ScyllaDB answers around CDC, asked of a server: class and words of each error, as ScyllaDB 2026.1 gives them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import Reader
from tests.embedded.scylla.raw_client import RawClient, parse_rows

Connect = Callable[..., RawClient]
SERVER, INVALID, CONFIGURATION, UNAUTHORIZED, SYNTAX = 0x0000, 0x2200, 0x2300, 0x2100, 0x2000
LOGIN = "You have to be logged in and not anonymous to perform this request"
RESERVED = "names that begin with cdc$"


@pytest.fixture(params=[True, False], ids=["tablets", "vnodes"])
def client(request: pytest.FixtureRequest, scylla: EmbeddedScylla, connect: Connect) -> RawClient:
    kind = "tablets" if request.param else "vnodes"
    name = f"answers_{kind}"
    replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    client = connect(scylla)
    client.done(f"DROP KEYSPACE IF EXISTS {name}")
    tablets = f"{{'enabled': {str(request.param).lower()}}}"
    client.done(f"CREATE KEYSPACE {name} WITH replication = {replication} AND tablets = {tablets}")
    client.done(f"USE {name}")
    client.done("CREATE TYPE ut (a int)")
    client.done(
        "CREATE TABLE t (pk int, ck int, s int static, u ut, PRIMARY KEY (pk, ck)) WITH cdc = {'enabled': true}"
    )
    client.done('CREATE TABLE odd (pk int PRIMARY KEY, "cdc$time" int, v int)')
    client.done("CREATE TABLE off (pk int PRIMARY KEY, v int)")
    return client


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("CREATE TABLE x (pk int PRIMARY KEY) WITH cdc = true", SERVER, "Cannot create cdc info from string"),
        ("ALTER TABLE off WITH cdc = 'enabled'", SERVER, "Cannot create cdc info from string"),
        (
            "CREATE TABLE x (pk int PRIMARY KEY, v counter) WITH cdc = {'enabled': true}",
            INVALID,
            "Cannot create CDC log for table {k}.x. Counter support not implemented",
        ),
        ("CREATE TABLE x (pk int PRIMARY KEY, v counter)", INVALID, "The embedded server has no counters"),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM t_scylla_cdc_log WHERE pk IS NOT NULL PRIMARY KEY (pk)",
            INVALID,
            "Materialized views cannot be created on CDC Log tables",
        ),
        ("DROP TYPE ut", INVALID, "Cannot drop user type {k}.ut as it is still used by table {k}.t_scylla_cdc_log"),
        ("LIST ROLES", UNAUTHORIZED, LOGIN),
        ("LIST ALL PERMISSIONS", UNAUTHORIZED, LOGIN),
        ("LIST USERS", UNAUTHORIZED, LOGIN),
        ("CREATE ROLE x WITH PASSWORD = 'x'", UNAUTHORIZED, LOGIN),
        ("ALTER ROLE x WITH LOGIN = true", UNAUTHORIZED, LOGIN),
        ("DROP ROLE x", UNAUTHORIZED, LOGIN),
        ("CREATE USER x", UNAUTHORIZED, LOGIN),
        ("GRANT SELECT ON t TO nobody", UNAUTHORIZED, LOGIN),
        ("REVOKE x FROM y", UNAUTHORIZED, LOGIN),
        ("SELECT * FROM nowhere.t", INVALID, "Keyspace nowhere does not exist"),
        ("USE nowhere", INVALID, "Keyspace 'nowhere' does not exist"),
        ("SELECT cdc$time FROM t", SYNTAX, "line 1:11 : Syntax error"),
        ("PRUNE MATERIALIZED VIEW off", INVALID, "Ghost rows can only be deleted from materialized views"),
    ],
)
def test_refused(client: RawClient, statement: str, code: int, message: str) -> None:
    keyspace = (client.rows("DESC TABLES").rows[0][0] or b"").decode()
    assert client.query(statement).error == (code, message.replace("{k}", keyspace))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (pk int PRIMARY KEY, \"cdc$time\" int) WITH cdc = {'enabled': true}",
        "CREATE TABLE x (pk int PRIMARY KEY, v int, \"cdc$deleted_v\" boolean) WITH cdc = {'enabled': true}",
        "CREATE TABLE x (\"cdc$stream_id\" int PRIMARY KEY, v int) WITH cdc = {'enabled': true}",
        "ALTER TABLE odd WITH cdc = {'enabled': true}",
        'ALTER TABLE t ADD "cdc$ttl" int',
        'ALTER TABLE t RENAME ck TO "cdc$batch_seq_no"',
    ],
)
def test_names_of_the_log_are_reserved(client: RawClient, statement: str) -> None:
    code, message = client.query(statement).error
    assert code == INVALID and RESERVED in message
    columns = {cell for row in client.rows("SELECT column_name FROM system_schema.columns").rows for cell in row}
    assert b"cdc$deleted_u" in columns
    assert client.rows("SELECT pk, ck FROM t").rows == []
    assert client.query("SELECT * FROM odd_scylla_cdc_log").error[0] == INVALID


def test_reserved_names_are_free_without_cdc(client: RawClient) -> None:
    client.done('ALTER TABLE odd ADD "cdc$deleted_v" boolean')
    client.done('INSERT INTO odd (pk, "cdc$time") VALUES (1, 2)')
    client.done("ALTER TABLE odd WITH cdc = {'enabled': false}")
    assert client.query("ALTER TABLE odd WITH cdc = {'enabled': true}").error[0] == INVALID


def test_a_log_is_read_by_time_alone(client: RawClient) -> None:
    client.done("INSERT INTO t (pk, ck) VALUES (1, 1)")
    select = "SELECT pk FROM t_scylla_cdc_log WHERE \"cdc$time\" > minTimeuuid('2020-01-01')"
    response = client.query(select)
    reader = Reader(response.body)
    assert response.flags & frame.FLAG_WARNING
    assert reader.string_list() == ["This query should use ALLOW FILTERING and will be rejected in future versions."]
    assert parse_rows(reader.take(reader.remaining)).rows == [[b"\0\0\0\1"]]


def test_whoever_is_logged_in_is_told_what_is_missing(connect: Connect) -> None:
    with EmbeddedScylla(user="ann", password="secret", ring_delay=0) as server:
        client = connect(server, start=False)
        client.startup()
        client.login("ann", "secret")
        assert client.query("LIST ROLES").error == (INVALID, "The embedded server has no roles and permissions")
