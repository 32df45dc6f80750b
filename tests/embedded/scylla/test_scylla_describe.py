"""DESCRIBE: what exists, and statements that create the same again."""

from __future__ import annotations

import uuid
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
    only = texts(client, f"DESC ONLY KEYSPACE {keyspace}")
    assert only == texts(client, f"DESC KEYSPACE {keyspace}")[:1]
    assert "system_schema" not in {row[0] for row in texts(client, "DESC SCHEMA")}
    assert "system_schema" in {row[0] for row in texts(client, "DESC FULL SCHEMA")}
    client.done('CREATE TABLE "Quoted" (a int PRIMARY KEY)')
    assert [keyspace, "table", '"Quoted"'] in texts(client, "DESC TABLES")
    assert "crc_check_chance = 1\n" in texts(client, 'DESC TABLE "Quoted"')[0][3]
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


def test_internals_are_the_id_and_what_was_dropped(client: RawClient, keyspace: str) -> None:
    (log,) = client.rows(f"SELECT id FROM system_schema.tables WHERE keyspace_name = '{keyspace}'").rows[1]
    client.done("CREATE TABLE u (a int, b int, s text static, m set<int>, PRIMARY KEY (a, b))")
    client.done("ALTER TABLE u DROP m")
    client.done("ALTER TABLE u DROP s USING TIMESTAMP 5")
    client.done("ALTER TABLE u ADD s text static")
    statement = texts(client, "DESC TABLE u WITH INTERNALS")[0][3]
    assert "\n    b int,\n    s text,\n    m set<int>,\n    PRIMARY KEY (a, b)\n) WITH ID = " in statement
    assert f"\nALTER TABLE {keyspace}.u DROP m USING TIMESTAMP " in statement
    assert f"DROP s USING TIMESTAMP 5;\nALTER TABLE {keyspace}.u ADD s text static;" in statement
    described = texts(client, "DESC TABLE t_scylla_cdc_log WITH INTERNALS")[0][3]
    assert described.startswith("/* Do NOT execute this statement!") and described.endswith("*/")
    assert f"WITH ID = {uuid.UUID(bytes=log)}" in described
    assert "tombstone_gc = {'mode': 'timeout', 'propagation_delay_in_seconds': '3600'}" in described
    for wrong in ('DROP "cdc$time"', "DROP nothing", "ADD a int", "ALTER a TYPE text"):
        error = client.query(f"ALTER TABLE t_scylla_cdc_log {wrong}").error
        assert error[1].startswith("You cannot modify the set of columns of a CDC log table directly.")
    assert client.query("ALTER TABLE t_scylla_cdc_log RENAME v TO w").error[1].startswith("Cannot rename a column")


def test_the_state_of_transactions_is_not_listed(client: RawClient, keyspace: str) -> None:
    name = f"{keyspace}_tablets"
    replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    client.done(f"CREATE KEYSPACE {name} WITH replication = {replication}")
    client.done(f"CREATE TABLE {name}.t (p int PRIMARY KEY)")
    client.rows(f"INSERT INTO {name}.t (p) VALUES (1) IF NOT EXISTS")
    assert [each[2] for each in texts(client, f"DESC KEYSPACE {name}")] == [name, "t"]
    ((_, _, _, statement),) = texts(client, f'DESC TABLE {name}."t$paxos"')
    assert "A paxos state table is created automatically when enabling LWT on a base table." in statement


def test_properties_are_those_of_scylladb(client: RawClient, keyspace: str) -> None:
    client.done("CREATE TABLE plain (a int PRIMARY KEY) WITH cdc = {'ttl': 5, 'enabled': false}")
    (row,) = texts(client, "DESC TABLE plain")
    assert row[3] == (
        f"CREATE TABLE {keyspace}.plain (\n    a int,\n    PRIMARY KEY (a)\n) WITH bloom_filter_fp_chance = 0.01\n"
        "    AND caching = {'keys': 'ALL', 'rows_per_partition': 'ALL'}\n    AND comment = ''\n"
        "    AND compaction = {'class': 'IncrementalCompactionStrategy'}\n"
        "    AND compression = {'sstable_compression': 'LZ4WithDictsCompressor'}\n    AND crc_check_chance = 1\n"
        "    AND default_time_to_live = 0\n    AND gc_grace_seconds = 864000\n    AND max_index_interval = 2048\n"
        "    AND memtable_flush_period_in_ms = 0\n    AND min_index_interval = 128\n"
        "    AND speculative_retry = '99.0PERCENTILE'\n"
        "    AND cdc = {'delta': 'full', 'enabled': 'false', 'postimage': 'false', 'preimage': 'false', 'ttl': '5'}\n"
        "    AND tombstone_gc = {'mode': 'timeout', 'propagation_delay_in_seconds': '3600'};\n"
    )
    given = "compaction = {'min_threshold': '4', 'class': 'SizeTieredCompactionStrategy', 'bucket_low': '0.1'}"
    client.done(f"ALTER TABLE plain WITH {given}")
    shown = texts(client, "DESC TABLE plain")[0][3]
    assert "{'class': 'SizeTieredCompactionStrategy', 'bucket_low': '0.1', 'min_threshold': '4'}" in shown
    assert all(statement.endswith(";\n") for *_, statement in texts(client, "DESC TABLE t"))


def test_tables_with_copies_on_tablets_wait_for_repair(client: RawClient, keyspace: str) -> None:
    name = f"{keyspace}_two"
    client.done(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 2}}")
    client.done(f"CREATE TABLE {name}.t (a int PRIMARY KEY) WITH cdc = {{'enabled': true}}")
    (base,), (log,) = ([row[3]] for row in texts(client, f"DESC TABLE {name}.t"))
    assert "tombstone_gc = {'mode': 'repair'," in base and "tombstone_gc = {'mode': 'timeout'," in log
    client.done(f"DROP KEYSPACE {name}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("TABLE nothing", "Table 'nothing' not found in keyspace '{k}'"),
        ("TABLE addr", "Table 'addr' not found in keyspace '{k}'"),
        ("TYPE t", "Type 't' not found in keyspace '{k}'"),
        ("INDEX i", "Table for existing index 'i' not found in '{k}'"),
        ("MATERIALIZED VIEW t", "Materialized view 't' not found in keyspace '{k}'"),
        ("FUNCTION f", "Function 'f' not found in keyspace '{k}'"),
        ("nothing", "'nothing' not found in keyspace '{k}'"),
        ("nothing.t", "'nothing' not found in keyspaces"),
        ("TABLE nothing.t", "'nothing' not found in keyspaces"),
    ],
)
def test_what_is_not_there(client: RawClient, keyspace: str, words: str, message: str) -> None:
    assert client.query(f"DESCRIBE {words}").error == (0x2200, message.replace("{k}", keyspace))
