"""The system tables: their columns as ScyllaDB has them, their rows in agreement with nodes, tablets and streams."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Cluster, Session

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN
from embedded.scylla.versions import VERSIONS
from tests.servers.scylla import PATIENT

pytestmark = pytest.mark.scylla
RECORDED = Path(__file__).parents[2] / "recordings" / "2026.1" / "answers-tablets.json"
# Of ScyllaDB's own, but not among the keyspaces that were recorded.
NOT_RECORDED = {"system_traces.sessions", "system_traces.events"}


def network(copies: int) -> str:
    return f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedScylla]:
    with EmbeddedScylla(nodes=3, shards=2, ring_delay=0) as server:
        server.admin.cql(f"CREATE KEYSPACE two WITH replication = {network(2)}")
        server.admin.cql(
            "CREATE TABLE two.t (k int PRIMARY KEY, v int) WITH cdc = {'enabled': true}"
            " AND tablets = {'min_tablet_count': 8}"
        )
        server.admin.cql("CREATE TABLE two.plain (k int PRIMARY KEY)")
        server.admin.cql(f"CREATE KEYSPACE ring WITH replication = {network(1)} AND tablets = {{'enabled': false}}")
        server.admin.cql("CREATE TABLE ring.t (k int PRIMARY KEY) WITH cdc = {'enabled': true}")
        yield server


@pytest.fixture(scope="module")
def session(server: EmbeddedScylla) -> Iterator[Session]:
    cluster = Cluster([server.host], port=server.port, **PATIENT)
    yield cluster.connect()
    cluster.shutdown()


def ids(session: Session, keyspace: str) -> dict[str, uuid.UUID]:
    rows = session.execute("SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,))
    return {row.table_name: row.id for row in rows}


def columns(session: Session) -> dict[str, list[list[Any]]]:
    found: dict[str, list[list[Any]]] = {}
    for row in session.execute("SELECT * FROM system_schema.columns"):
        if row.keyspace_name.startswith("system"):
            column = [row.column_name, row.kind, row.position, row.type, row.clustering_order]
            found.setdefault(f"{row.keyspace_name}.{row.table_name}", []).append(column)
    return found


def test_columns_are_those_that_were_recorded(session: Session) -> None:
    recorded = json.loads(RECORDED.read_text())["columns"]
    here = columns(session)
    assert set(here) - set(recorded) == NOT_RECORDED
    assert {name: sorted(here[name]) for name in recorded} == {name: sorted(recorded[name]) for name in recorded}


def test_every_system_table_can_be_read(session: Session) -> None:
    for name in sorted(columns(session)):
        keyspace, table = name.split(".")
        list(session.execute(f'SELECT * FROM {keyspace}."{table}"'))


def test_tablets_cover_the_ring_and_lie_where_the_tables_say(session: Session) -> None:
    tables = ids(session, "two")
    rows = list(session.execute("SELECT * FROM system.tablets WHERE table_id = %s", (tables["t"],)))
    assert [row.last_token for row in rows] == sorted(row.last_token for row in rows) and rows[
        -1
    ].last_token == MAX_TOKEN
    assert {(row.keyspace_name, row.table_name, row.tablet_count, row.resize_type) for row in rows} == {
        ("two", "t", 8, "none")
    }
    assert len(rows) == 8 and {len(row.replicas) for row in rows} == {2}
    hosts = {row.host_id for row in session.execute("SELECT host_id FROM system.topology")}
    assert {host for row in rows for host, _ in row.replicas} == hosts and len(hosts) == 3
    assert {shard for row in rows for _, shard in row.replicas} == {0, 1}
    ring = list(session.execute("SELECT * FROM system.token_ring WHERE keyspace_name = 'two' AND table_name = 't'"))
    assert {int(row.end_token) for row in ring} == {row.last_token for row in rows} and len(ring) == 16
    assert str(MIN_TOKEN) in {row.start_token for row in ring}
    streams = session.execute(
        "SELECT stream_id FROM system.cdc_streams WHERE keyspace_name = 'two' AND table_name = 't' AND timestamp = %s"
        " AND stream_state = 0",
        (session.execute("SELECT timestamp FROM system.cdc_timestamps LIMIT 1").one().timestamp,),
    )
    assert sorted(int.from_bytes(row.stream_id[:8], "big", signed=True) for row in streams) == [
        row.last_token for row in rows
    ]


def test_a_log_lies_beside_its_table(session: Session) -> None:
    tables = ids(session, "two")
    (log,) = session.execute("SELECT * FROM system.tablets WHERE table_id = %s", (tables["t_scylla_cdc_log"],))
    assert (log.base_table, log.table_name, log.last_token, log.replicas) == (
        tables["t"],
        "t_scylla_cdc_log",
        None,
        None,
    )
    assert not list(session.execute("SELECT * FROM system.tablets WHERE table_id = %s", (ids(session, "ring")["t"],)))


def test_nodes_and_their_loads(session: Session, server: EmbeddedScylla) -> None:
    nodes = {uuid.UUID(node["host_id"]): node for node in server.admin.nodes()}
    topology = list(session.execute("SELECT * FROM system.topology WHERE key = 'topology'"))
    assert {row.host_id for row in topology} == set(nodes)
    local = session.execute("SELECT host_id, tokens, supported_features FROM system.local").one()
    of_local = next(row for row in topology if row.host_id == local.host_id)
    assert set(of_local.tokens) == set(local.tokens) and of_local.num_tokens == len(local.tokens)
    assert (
        set(of_local.supported_features) == set(local.supported_features.split(",")) == set(of_local.enabled_features)
    )
    assert {(row.node_state, row.shard_count, row.upgrade_state) for row in topology} == {("normal", 2, "done")}
    assert len(of_local.committed_cdc_generations) == 1
    loads = list(session.execute("SELECT * FROM system.load_per_node"))
    assert {row.node for row in loads} == set(nodes)
    # 8 tablets of one table, one for each of six shards rounded up to 8 of the other, two copies of each.
    assert sum(row.tablets_allocated for row in loads) == 2 * (8 + 8)
    sizes = list(session.execute("SELECT * FROM system.tablet_sizes WHERE table_id = %s", (ids(session, "two")["t"],)))
    assert len(sizes) == 8 and all(len(row.replicas) == 2 for row in sizes)
    status = list(session.execute("SELECT * FROM system.cluster_status"))
    assert {row.host_id for row in status} == set(nodes) and not any(row.draining or row.excluded for row in status)


@pytest.mark.parametrize("line", sorted(VERSIONS))
def test_older_lines_have_fewer_tables_and_columns(line: str) -> None:
    with EmbeddedScylla(like=line, ring_delay=0) as server:
        answer = server.admin.cql("SELECT keyspace_name, table_name, column_name FROM system_schema.columns")
        here = {tuple(row) for row in answer["rows"]}
        tables = {row[:2] for row in here}
        features = set(server.admin.cql("SELECT supported_features FROM system.local")["rows"][0][0].split(","))
        compression = {"LZ4WithDictsCompressor"} if line >= "2025.4" else {"LZ4Compressor"}
        server.admin.cql(f"CREATE KEYSPACE k WITH replication = {network(1)} AND tablets = {{'enabled': false}}")
        server.admin.cql("CREATE TABLE k.t (a int PRIMARY KEY)")
        shown = server.admin.cql("SELECT compression FROM system_schema.tables WHERE keyspace_name = 'k'")
        assert any(each in str(shown["rows"]) for each in compression)
    assert (("system", "cdc_streams") in tables) is (line >= "2025.4")
    assert (("system", "tablets", "base_table") in here) is (line >= "2025.4")
    assert (("system", "load_per_node") in tables) is (line >= "2025.2")
    assert (("system_schema", "scylla_tables", "tablets") in here) is (line >= "2025.2")
    assert (("system", "compaction_history", "shard_id") in here) is (line >= "2025.3")
    assert (("system", "client_routes") in tables) is (line >= "2026.1")
    assert (("system_schema", "keyspaces", "replication_v2") in here) is (line >= "2026.1")
    assert ("CDC_WITH_TABLETS" in features) is (line >= "2025.4")
    assert ("CLIENT_ROUTES" in features) is (line >= "2026.1")
    assert {("system", "local"), ("system", "tablets"), ("system", "topology")} <= tables and "CDC" in features


def test_older_lines_refuse_what_they_cannot_do() -> None:
    with EmbeddedScylla(like="2025.1", ring_delay=0) as server:
        server.admin.cql(f"CREATE KEYSPACE k WITH replication = {network(1)}")
        server.admin.cql("CREATE TABLE k.t (a int PRIMARY KEY, v int)")
        for statement, words in (
            ("CREATE TABLE k.u (a int PRIMARY KEY) WITH cdc = {'enabled': true}", "because keyspace uses tablets"),
            ("ALTER TABLE k.t WITH cdc = {'enabled': true}", "k.t, because keyspace uses tablets. See issue #16317."),
            ("INSERT INTO k.t (a) VALUES (1) IF NOT EXISTS", "k.t: LWT is not yet supported with tablets"),
            ("ALTER TABLE k.t WITH tablets = {'min_tablet_count': 2}", "Unknown property 'tablets'"),
        ):
            with pytest.raises(Exception, match=words.replace("(", r"\(")):
                server.admin.cql(statement)


def test_the_first_lightweight_transaction_makes_a_table_of_its_state(session: Session, server: EmbeddedScylla) -> None:
    server.admin.cql("CREATE TABLE two.w (k int PRIMARY KEY, v int)")
    server.admin.cql("CREATE TABLE ring.w (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO two.w (k, v) VALUES (1, 1)")
    assert "w$paxos" not in ids(session, "two")
    session.execute("UPDATE two.w SET v = 2 WHERE k = 9 IF v = 1")
    session.execute("INSERT INTO ring.w (k, v) VALUES (1, 1) IF NOT EXISTS")
    assert "w$paxos" in ids(session, "two") and "w$paxos" not in ids(session, "ring")
    session.execute("INSERT INTO two.w (k, v) VALUES (2, 1) IF NOT EXISTS")
    described = {
        row.column_name: row.type
        for row in session.execute(
            "SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = 'two' AND table_name = 'w$paxos'"
        )
    }
    assert described == {
        "row_key": "blob",
        "promise": "timeuuid",
        "most_recent_commit": "blob",
        "most_recent_commit_at": "timeuuid",
        "proposal": "blob",
        "proposal_ballot": "timeuuid",
    }
    (beside,) = session.execute("SELECT * FROM system.tablets WHERE table_id = %s", (ids(session, "two")["w$paxos"],))
    assert beside.base_table == ids(session, "two")["w"]
    assert "w$paxos" not in {row.name for row in session.execute("DESCRIBE TABLES")}
    statement = session.execute('DESCRIBE TABLE two."w$paxos"').one().create_statement
    assert "A paxos state table is created automatically" in statement and "tombstone_gc" not in statement
    for refused in ('DROP TABLE two."w$paxos"', 'ALTER TABLE two."w$paxos" ADD v int'):
        with pytest.raises(Exception, match=r"Cannot (DROP|ALTER) <table two.w\$paxos>"):
            session.execute(refused)
    session.execute("DROP TABLE two.w")
    assert "w$paxos" not in ids(session, "two")
