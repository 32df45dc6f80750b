"""The statements that drivers and CDC libraries send, word by word, over raw frames: every one has its answer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

import pytest

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from tests.embedded.scylla.raw_client import RawClient, Result, Value, parse_rows, text
from tests.servers.double import Double

Connect = Callable[..., RawClient]
Ask = Callable[..., Result]

VNODES = (
    "CREATE KEYSPACE v WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    " AND tablets = {'enabled': false}"
)
TABLETS = (
    "CREATE KEYSPACE t WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    " AND tablets = {'enabled': true, 'initial': 4}"
)
TABLE = (
    "CREATE TABLE {}.orders (pk int, ck text, v int, m map<text, int>, s set<int> static, PRIMARY KEY (pk, ck))"
    " WITH cdc = {{'enabled': true, 'ttl': 3600}}"
)


def long(value: int) -> bytes:
    return struct.pack(">q", value)


@pytest.fixture(scope="module")
def server() -> Iterator[Double]:
    with Double(ring_delay=0) as server:
        fill(server)
        yield server


@pytest.fixture
def scylla(server: Double) -> Double:
    """Fixtures that use the shared server use this module's own."""
    return server


def fill(scylla: EmbeddedScylla) -> None:
    for statement in (
        VNODES,
        TABLETS,
        TABLE.format("v"),
        TABLE.format("t"),
        "CREATE TYPE v.addr (street text, no int)",
    ):
        scylla.admin.cql(statement)
    for key in range(20):
        for keyspace in "vt":
            scylla.admin.cql(f"INSERT INTO {keyspace}.orders (pk, ck, v) VALUES ({key}, 'c', {key})")


def stream_ids(server: EmbeddedScylla, keyspace: str) -> list[bytes]:
    shown = server.admin.streams()
    if keyspace == "t":
        return [bytes.fromhex(stream["stream_id"]) for stream in shown["tables"]["t.orders"][-1]["streams"]]
    generation = shown["generations"][-1]
    return [bytes.fromhex(raw) for of_range in generation["ranges"] for raw in of_range["streams"]]


@pytest.fixture
def ask(server: EmbeddedScylla, connect: Connect) -> Ask:
    """Prepares and executes, as libraries do; the prepared metadata must fit the rows."""
    client = connect(server)

    def ask(statement: str, values: Sequence[Value] = (), **options: object) -> Result:
        prepared = client.prepare(statement)
        assert len(prepared.binds) == len(values)
        response = client.execute(prepared, values, **options)
        assert response.opcode == frame.RESULT, response.error
        result = parse_rows(response.body, prepared)
        assert (result.columns, result.types) == (prepared.columns, prepared.types)
        return result

    return ask


def test_peers_v2_is_refused(server: EmbeddedScylla, connect: Connect) -> None:
    assert connect(server).query("SELECT * FROM system.peers_v2").error == (0x2200, "unconfigured table peers_v2")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM system.local WHERE key='local'",
        "SELECT * FROM system.local WHERE key='local' USING TIMEOUT 5000ms",
        "select * from system.local where key = 'local'",
        "select cluster_name from system.local where key = 'local'",
        "SELECT cluster_name FROM system.local",
        "SELECT schema_version FROM system.local WHERE key='local'",
        "SELECT broadcast_address, cluster_name, data_center, host_id, listen_address, partitioner, rack,"
        " release_version, rpc_address, schema_version, tokens FROM system.local WHERE key='local'"
        " USING TIMEOUT 2000ms",
        "SELECT host_id, rpc_address, data_center, rack, tokens, cluster_name FROM system.local WHERE key='local'"
        " USING TIMEOUT 30000ms",
        "SELECT totimestamp(now()) FROM system.local",
        "\n  SELECT release_version FROM system.local WHERE key='local' ;",
    ],
)
def test_local_has_one_row(server: EmbeddedScylla, connect: Connect, statement: str) -> None:
    (row,) = connect(server).rows(statement).rows
    assert all(cell is not None for cell in row) or "*" in statement


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM system.peers",
        "SELECT * FROM system.peers USING TIMEOUT 5000ms",
        "SELECT peer, data_center, host_id, rack, release_version, rpc_address, schema_version, tokens"
        " FROM system.peers USING TIMEOUT 2000ms",
        "SELECT host_id, peer, data_center, rack, rpc_address, rpc_address, release_version, schema_version"
        " FROM system.peers",
    ],
)
def test_a_single_node_has_no_peers(server: EmbeddedScylla, connect: Connect, statement: str) -> None:
    result = connect(server).rows(statement)
    assert result.rows == []
    assert len(result.columns) >= 8


def test_the_number_of_peers(ask: Ask) -> None:
    assert ask("SELECT COUNT(*) FROM system.peers").rows == [[long(0)]]


SCHEMA_TABLES = ["keyspaces", "tables", "columns", "types", "functions", "aggregates", "triggers", "indexes", "views"]


@pytest.mark.parametrize("suffix", ["", " USING TIMEOUT 2000ms"])
@pytest.mark.parametrize("table", SCHEMA_TABLES)
def test_schema_tables_in_pages(server: EmbeddedScylla, connect: Connect, table: str, suffix: str) -> None:
    client = connect(server)
    statement = f"SELECT * FROM system_schema.{table}{suffix}"
    whole = client.rows(statement)
    rows: list[list[bytes | None]] = []
    state, pages = None, 0
    while pages == 0 or state is not None:
        # A paging state is good on any connection.
        page = connect(server).rows(statement, page_size=40, paging_state=state)
        assert len(page.rows) <= 40
        rows += page.rows
        state, pages = page.paging_state, pages + 1
    assert rows == whole.rows
    assert pages >= len(rows) / 40


@pytest.mark.parametrize("table", [*SCHEMA_TABLES, "scylla_tables", "dropped_columns", "view_virtual_columns"])
def test_schema_tables_of_one_keyspace(ask: Ask, server: EmbeddedScylla, connect: Connect, table: str) -> None:
    client = connect(server)
    plain = client.rows(f"SELECT * FROM system_schema.{table} WHERE keyspace_name='v' LIMIT 1000")
    prepared = ask(f"SELECT * FROM system_schema.{table} WHERE keyspace_name = ? USING TIMEOUT 60000ms", [text("v")])
    assert prepared.rows == plain.rows
    listed = client.rows(f"SELECT * FROM system_schema.{table} WHERE keyspace_name IN ('v', 't')")
    assert [row for row in listed.rows if row[0] == b"v"] == plain.rows


def test_java_pages_schema_tables_itself(server: EmbeddedScylla, connect: Connect) -> None:
    client = connect(server)
    whole = client.rows("SELECT * FROM system_schema.columns WHERE keyspace_name='v'").dicts()
    assert len(whole) > 20
    read: list[dict[str, bytes | None]] = []
    statement = "SELECT * FROM system_schema.columns WHERE keyspace_name='v' LIMIT 7"
    while page := client.rows(statement).dicts():
        read += page
        table, column = ((page[-1][name] or b"").decode() for name in ("table_name", "column_name"))
        statement = (
            "SELECT * FROM system_schema.columns WHERE keyspace_name='v'"
            f" AND (table_name, column_name) > ('{table}','{column}') LIMIT 7"
        )
    assert read == whole
    tables = client.rows(
        "SELECT * FROM system_schema.tables WHERE keyspace_name='v' AND table_name > 'orders' LIMIT 1000"
    )
    assert [row["table_name"] for row in tables.dicts()] == [b"orders_scylla_cdc_log"]


def test_schema_as_rust_reads_it(ask: Ask) -> None:
    for columns, table in (
        ("keyspace_name, type_name, field_names, field_types", "types"),
        ("keyspace_name, initial_tablets", "scylla_keyspaces"),
        ("keyspace_name, table_name, column_name, kind, position, type", "columns"),
        ("keyspace_name, table_name, partitioner", "scylla_tables"),
        ("keyspace_name, table_name", "tables"),
        ("keyspace_name, view_name, base_table_name", "views"),
        ("keyspace_name, replication, durable_writes", "keyspaces"),
    ):
        result = ask(
            f"SELECT {columns} FROM system_schema.{table} USING TIMEOUT 30000ms", page_size=1024, consistency=6
        )
        assert result.columns == columns.split(", ")


def test_contents_of_schema_tables(ask: Ask) -> None:
    (table,) = ask(
        "SELECT * FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?", [text("v"), text("orders")]
    ).dicts()
    assert b"compound" in (table["flags"] or b"")
    options = table["extensions"] or b""
    assert b"cdc" in options
    assert b"\x03\0\0\0ttl\x04\0\0\x003600" in options
    (extensions,) = ask(
        "SELECT extensions FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
        [text("v"), text("orders")],
    ).rows
    assert extensions == [options]
    statement = "SELECT * FROM system_schema.scylla_tables WHERE keyspace_name = ? AND table_name = ?"
    (base,) = ask(statement, [text("v"), text("orders")]).dicts()
    (log,) = ask(statement, [text("v"), text("orders_scylla_cdc_log")]).dicts()
    assert base["partitioner"] is None
    assert log["partitioner"] == b"com.scylladb.dht.CDCPartitioner"
    columns = ask("SELECT * FROM system_schema.columns WHERE keyspace_name = ?", [text("v")]).dicts()
    shown = {
        (row["column_name"] or b"").decode(): ((row["kind"] or b"").decode(), (row["type"] or b"").decode())
        for row in columns
        if row["table_name"] == b"orders"
    }
    assert shown == {
        "pk": ("partition_key", "int"),
        "ck": ("clustering", "text"),
        "v": ("regular", "int"),
        "m": ("regular", "map<text, int>"),
        "s": ("static", "set<int>"),
    }
    assert {row["clustering_order"] for row in columns} == {b"ASC", b"NONE"}


def test_which_keyspaces_use_tablets(ask: Ask) -> None:
    statement = "SELECT initial_tablets FROM system_schema.scylla_keyspaces WHERE keyspace_name = ?"
    ((tablets,),) = ask(statement, [text("t")]).rows
    assert tablets is not None
    assert ask(statement, [text("v")]).rows == []
    for keyspace in ("v", "system_schema"):
        (row,) = ask(
            "SELECT durable_writes, replication FROM system_schema.keyspaces WHERE keyspace_name = ?"
            " USING TIMEOUT 60000ms",
            [text(keyspace)],
        ).dicts()
        assert b"org.apache.cassandra.locator." in (row["replication"] or b"")
    assert ask("SELECT * FROM system_schema.scylla_keyspaces WHERE keyspace_name = ?", [text("t")]).rows


TIMES = "SELECT {} FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'"


def test_generations(ask: Ask, server: EmbeddedScylla) -> None:
    server.admin.new_generation()
    newest_first = [row[0] or b"" for row in ask(TIMES.format("time")).rows]
    assert newest_first == sorted(newest_first, reverse=True)
    assert len(newest_first) >= 2
    oldest, newest = newest_first[-1], newest_first[0]
    smallest = "SELECT min(time) FROM system_distributed.cdc_generation_timestamps WHERE key='timestamps' AND time>?;"
    assert ask(smallest, [long(0)], skip_metadata=True).rows == [[oldest]]
    assert ask(smallest, [newest], skip_metadata=True).rows == [[None]]
    before = TIMES.format("time") + " AND time <= ? ORDER BY time DESC LIMIT 1;"
    after = TIMES.format("time") + " AND time > ? ORDER BY time ASC LIMIT 1;"
    assert ask(before, [newest]).rows == [[newest]]
    assert ask(before, [long(0)]).rows == []
    assert ask(after, [long(0)]).rows == [[oldest]]
    assert ask(after, [newest]).rows == []
    descriptions = ask(
        "SELECT streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time=?;", [newest], page_size=5000
    )
    assert len(descriptions.rows) == 16
    assert b"".join(row[0] or b"" for row in descriptions.rows).count(b"\0\0\0\x10") >= 16
    assert ask("SELECT * FROM system.cdc_local WHERE key='rewritten'").rows == []


def test_stream_sets_of_tablets(ask: Ask) -> None:
    names = [text("t"), text("orders")]
    of_table = "WHERE keyspace_name = ? AND table_name = ?"
    ((timestamp,),) = ask(f"SELECT timestamp FROM system.cdc_timestamps {of_table}", names).rows
    assert timestamp is not None
    statement = (
        f"SELECT timestamp FROM system.cdc_timestamps {of_table} AND timestamp <= ? ORDER BY timestamp DESC LIMIT 1;"
    )
    assert ask(statement, [*names, timestamp]).rows == [[timestamp]]
    statement = (
        f"SELECT timestamp FROM system.cdc_timestamps {of_table} AND timestamp > ? ORDER BY timestamp ASC LIMIT 1;"
    )
    assert ask(statement, [*names, timestamp]).rows == []
    smallest = (
        f"SELECT min(timestamp) FROM system.cdc_timestamps {of_table} AND timestamp > ? ORDER BY timestamp ASC LIMIT 1"
    )
    assert ask(smallest, [*names, long(0)]).rows == [[timestamp]]
    assert ask(smallest, [*names, timestamp]).rows == [[None]]
    statement = f"SELECT stream_id FROM system.cdc_streams {of_table} AND timestamp = ? AND stream_state = ?;"
    current, closed, opened = (
        [row[0] or b"" for row in ask(statement, [*names, timestamp, bytes([state])]).rows] for state in (0, 1, 2)
    )
    assert current == opened
    assert closed == []
    assert [raw[0] for raw in current] == [0xBF, 0xFF, 0x3F, 0x7F]


LOWEST = bytes.fromhex("00000000000010008080808080808080")
HIGHEST = bytes.fromhex("ffffffffffff1fff7f7f7f7f7f7f7f7f")
LOG = 'SELECT * FROM {}.orders_scylla_cdc_log WHERE "cdc$stream_id"'
LOG_READS = {
    "java": LOG + '=? AND "cdc$time">? AND "cdc$time"<=?;',
    "go": LOG + ' = ? AND "cdc$time" > ? AND "cdc$time" <= ? BYPASS CACHE',
    "rust": LOG + ' in ? AND "cdc$time" >= minTimeuuid(?) AND "cdc$time" < minTimeuuid(?)  BYPASS CACHE',
}


def log_values(library: str, stream: bytes) -> list[Value]:
    if library == "rust":
        return [struct.pack(">ii", 1, 16) + stream, long(0), long(4_000_000_000_000)]
    return [stream, LOWEST, HIGHEST]


@pytest.mark.parametrize("library", sorted(LOG_READS))
@pytest.mark.parametrize("keyspace", ["v", "t"])
def test_reading_a_log(ask: Ask, server: EmbeddedScylla, library: str, keyspace: str) -> None:
    read = []
    generations = server.admin.streams()["generations"]
    streams = {bytes.fromhex(raw) for made in generations for of_range in made["ranges"] for raw in of_range["streams"]}
    if keyspace == "t":
        streams = set(stream_ids(server, "t"))
    for stream in streams:
        result = ask(
            LOG_READS[library].format(keyspace),
            log_values(library, stream),
            page_size=5000,
            skip_metadata=library != "go",
        )
        assert result.columns[:3] == ["cdc$stream_id", "cdc$time", "cdc$batch_seq_no"]
        assert all(row["cdc$stream_id"] == stream for row in result.dicts())
        read += [row["pk"] for row in result.dicts()]
    assert sorted(read, key=str) == sorted((struct.pack(">i", key) for key in range(20)), key=str)


def test_routing_keys_of_prepared_statements(server: EmbeddedScylla, connect: Connect) -> None:
    client = connect(server)
    prepared = client.prepare("INSERT INTO v.orders (v, ck, pk) VALUES (?, ?, ?)")
    assert (prepared.binds, prepared.key_indexes, prepared.columns) == (["v", "ck", "pk"], [2], [])
    assert client.prepare("SELECT v FROM v.orders WHERE pk = 1 AND ck = ?").key_indexes == []


def test_conditional_statements_carry_the_mark_for_those_who_asked(server: EmbeddedScylla, connect: Connect) -> None:
    statement = "INSERT INTO v.orders (pk, ck) VALUES (?, ?) IF NOT EXISTS"
    asked = connect(server, start=False)
    asked.startup(SCYLLA_LWT_ADD_METADATA_MARK="LWT_OPTIMIZATION_META_BIT_MASK=2147483648")
    assert asked.prepare(statement).flags & 0x80000000
    assert not asked.prepare("INSERT INTO v.orders (pk, ck) VALUES (?, ?)").flags & 0x80000000
    assert not connect(server).prepare(statement).flags & 0x80000000


def test_a_schema_change_makes_clients_prepare_again(server: EmbeddedScylla, connect: Connect, keyspace: str) -> None:
    client = connect(server)
    client.done(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, a int)")
    prepared = client.prepare(f"SELECT * FROM {keyspace}.t")
    other = client.prepare("SELECT * FROM v.orders")
    client.done(f"ALTER TABLE {keyspace}.t ADD b int")
    assert client.execute(prepared).error[0] == 0x2500
    assert client.execute(other).opcode == frame.RESULT
    assert client.prepare(f"SELECT * FROM {keyspace}.t").columns == ["k", "a", "b"]


def test_values_by_name_unset_and_timestamps(server: EmbeddedScylla, connect: Connect, keyspace: str) -> None:
    client = connect(server)
    client.done(f"CREATE TABLE {keyspace}.t (k text PRIMARY KEY, a text, b text)")
    client.done(
        f"INSERT INTO {keyspace}.t (k, a, b) VALUES (:k, :a, :b)", {"b": b"B", "k": b"K", "a": b"A"}, timestamp=10
    )
    client.done(f"INSERT INTO {keyspace}.t (k, a, b) VALUES (?, ?, ?)", [b"K", None, "UNSET"], timestamp=11)
    assert client.rows(f"SELECT a, b, writetime(b) FROM {keyspace}.t").rows == [[None, b"B", long(10)]]
    insert = client.prepare(f"INSERT INTO {keyspace}.t (k, a) VALUES (?, ?)")
    batch = client.batch([(insert, [b"K1", b"x"]), (f"INSERT INTO {keyspace}.t (k, a) VALUES (?, 'y')", [b"K2"])])
    assert batch.opcode == frame.RESULT
    assert sorted(map(str, client.rows(f"SELECT k, a FROM {keyspace}.t").rows)) == sorted(
        map(str, [[b"K", None], [b"K1", b"x"], [b"K2", b"y"]])
    )


def test_use_and_schema_events(server: EmbeddedScylla, connect: Connect, keyspace: str) -> None:
    client, watcher = connect(server), connect(server)
    watcher.register("SCHEMA_CHANGE", "STATUS_CHANGE")
    assert watcher.register("NOTHING").error == (0x0A, "Invalid value 'NOTHING' for Event.Type")
    response = client.query(f'USE "{keyspace}"')
    assert response.body == struct.pack(">iH", 3, len(keyspace)) + keyspace.encode()
    created = client.query("CREATE TABLE logged (k int PRIMARY KEY) WITH cdc = {'enabled': true}")
    assert created.body.startswith(struct.pack(">i", 5))
    assert created.body.endswith(b"\x06logged")
    pushed = {watcher.event().body[-22:] for _ in range(2)}
    assert {body[-6:] for body in pushed} == {b"logged", b"dc_log"}
    assert client.query("DROP TABLE logged").opcode == frame.RESULT


def test_clients_are_listed(server: EmbeddedScylla, connect: Connect) -> None:
    client = connect(server, start=False)
    client.startup(DRIVER_NAME="raw", DRIVER_VERSION="1")
    rows = client.rows("SELECT driver_name, driver_version, connection_stage FROM system.clients").rows
    assert [b"raw", b"1", b"READY"] in rows
