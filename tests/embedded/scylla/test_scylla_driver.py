"""A real driver, as users have it: every way to connect, paging, values, batches, schema, nodes that go and come."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra import ReadTimeout, Unavailable
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.query import UNSET_VALUE, BatchStatement, SimpleStatement

from tests.embedded.scylla.certificates import certificate
from tests.servers.double import Double
from tests.servers.patience import patience, until
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
Open = Callable[..., Session]
DEADLINE_SECONDS = 90.0
TABLE = "CREATE TABLE {} (pk int, ck int, v text, PRIMARY KEY (pk, ck)) WITH cdc = {{'enabled': true}}"


@pytest.fixture
def open_session() -> Iterator[Open]:
    """Connects a driver that never retries by itself."""
    clusters: list[Cluster] = []

    def open_session(server: Scylla, **options: Any) -> Session:
        profile = ExecutionProfile(
            load_balancing_policy=RoundRobinPolicy(),
            retry_policy=FallthroughRetryPolicy(),
            request_timeout=20 * patience(),
        )
        options.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: profile})
        cluster = Cluster(**{**server.reached(), **options})
        clusters.append(cluster)
        return cluster.connect()

    yield open_session
    for cluster in clusters:
        cluster.shutdown()


@pytest.mark.parametrize("compression", [False, "lz4", "snappy"])
def test_schema_as_the_driver_sees_it(
    scylla: Scylla, keyspace: str, open_session: Open, compression: str | bool
) -> None:
    session = open_session(scylla, compression=compression)
    cluster = session.cluster
    assert cluster.protocol_version == 4
    assert cluster.is_shard_aware()
    session.execute(TABLE.format(f"{keyspace}.t"))
    tables = cluster.metadata.keyspaces[keyspace].tables
    assert list(tables["t"].columns) == ["pk", "ck", "v"]
    until(lambda: "t_scylla_cdc_log" in tables)
    assert [key.name for key in tables["t_scylla_cdc_log"].clustering_key] == ["cdc$time", "cdc$batch_seq_no"]
    # What the driver reads after a change may be overwritten by what it was still reading after the one before, until
    # it hears of the change as an event.
    session.execute(f"ALTER TABLE {keyspace}.t ADD w int")
    until(lambda: "w" in cluster.metadata.keyspaces[keyspace].tables["t"].columns)
    session.execute(f"DROP TABLE {keyspace}.t")
    until(lambda: "t" not in cluster.metadata.keyspaces[keyspace].tables)


def test_paging_over_base_and_log(scylla: Scylla, keyspace: str, open_session: Open) -> None:
    session = open_session(scylla)
    session.execute(TABLE.format(f"{keyspace}.t"))
    insert = session.prepare(f"INSERT INTO {keyspace}.t (pk, ck, v) VALUES (?, ?, ?)")
    for number in range(120):
        session.execute(insert, (number % 3, number, str(number)))
    for table in ("t", "t_scylla_cdc_log"):
        statement = SimpleStatement(f"SELECT ck FROM {keyspace}.{table}", fetch_size=7)
        assert sorted(row.ck for row in session.execute(statement)) == list(range(120))
    first = session.execute(SimpleStatement(f"SELECT ck FROM {keyspace}.t WHERE pk = 1", fetch_size=10))
    read = [row.ck for row in first.current_rows]
    other = open_session(scylla)
    rest = other.execute(
        SimpleStatement(f"SELECT ck FROM {keyspace}.t WHERE pk = 1", fetch_size=10), paging_state=first.paging_state
    )
    assert read + [row.ck for row in rest] == list(range(1, 120, 3))


def test_values_batches_and_conditions(scylla: Scylla, keyspace: str, open_session: Open) -> None:
    session = open_session(scylla)
    session.set_keyspace(keyspace)
    session.execute(TABLE.format("t"))
    session.execute("INSERT INTO t (pk, ck, v) VALUES (%(pk)s, %(ck)s, %(v)s)", {"pk": 1, "ck": 1, "v": "it's"})
    session.execute(session.prepare("INSERT INTO t (pk, ck, v) VALUES (?, ?, ?)"), (1, 1, UNSET_VALUE))
    assert session.execute("SELECT v FROM t").one().v == "it's"
    batch = BatchStatement()
    batch.add(session.prepare("INSERT INTO t (pk, ck, v) VALUES (?, ?, ?)"), (1, 2, "b"))
    batch.add(SimpleStatement("DELETE FROM t WHERE pk = 1 AND ck = 1"))
    session.execute(batch)
    assert [row.ck for row in session.execute("SELECT ck FROM t")] == [2]
    conditional = session.prepare("INSERT INTO t (pk, ck, v) VALUES (?, ?, ?) IF NOT EXISTS")
    assert session.execute(conditional, (1, 2, "c")).was_applied is False
    assert session.execute(conditional, (1, 3, "c")).was_applied is True


def test_prepared_statements_outlive_a_schema_change(scylla: Scylla, keyspace: str, open_session: Open) -> None:
    session = open_session(scylla)
    session.execute(TABLE.format(f"{keyspace}.t"))
    session.execute(f"INSERT INTO {keyspace}.t (pk, ck, v) VALUES (1, 1, 'a')")
    prepared = session.prepare(f"SELECT * FROM {keyspace}.t")
    session.execute(f"ALTER TABLE {keyspace}.t ADD a_first int")
    assert session.execute(prepared).one()._asdict() == {"pk": 1, "ck": 1, "a_first": None, "v": "a"}


@pytest.mark.only_double("a server of its own with a password and certificates")
def test_login_and_tls(tmp_path: Path, open_session: Open) -> None:
    certificate_file, key_file = certificate(tmp_path, "server")
    with Double(user="ann", password="pw", tls_cert=certificate_file, tls_key=key_file) as server:
        context = ssl.create_default_context(cafile=str(certificate_file))
        context.check_hostname = False
        session = open_session(server, ssl_context=context, auth_provider=PlainTextAuthProvider("ann", "pw"))
        assert session.execute("SELECT key FROM system.local").one().key == "local"
        with pytest.raises(NoHostAvailable):
            open_session(server, ssl_context=context, auth_provider=PlainTextAuthProvider("ann", "no"))


@pytest.mark.only_double("nodes stop, start and join")
def test_nodes_go_and_come(open_session: Open) -> None:
    with Double(nodes=3, vnodes=4, shards=2, ring_delay=0) as server:
        session = open_session(server)
        metadata = session.cluster.metadata
        assert {host.address for host in metadata.all_hosts()} == {"127.0.0.1", "127.0.0.2", "127.0.0.3"}

        def up(address: str) -> bool:
            return any(host.address == address and host.is_up for host in metadata.all_hosts())

        assert metadata.token_map is not None
        server.admin.stop_node(2)

        def answered() -> bool:
            try:
                return session.execute("SELECT key FROM system.local").one() is not None
            except (OSError, ConnectionException):
                return False

        # The driver believes what it sees more than what it is told: a lost connection shows when it is used.
        until(lambda: answered() and not up("127.0.0.3"))
        assert all(answered() for _ in range(6))
        server.admin.start_node(2)
        until(lambda: up("127.0.0.3"))
        server.admin.add_node()
        until(lambda: up("127.0.0.4"))


@pytest.mark.only_double("the server answers with errors at its tester's wish")
def test_errors_arrive_as_the_drivers_own(scylla: Scylla, keyspace: str, open_session: Open) -> None:
    session = open_session(scylla)
    session.execute(TABLE.format(f"{keyspace}.t"))
    for action, kind in (("read_timeout", ReadTimeout), ("unavailable", Unavailable)):
        fault = scylla.admin.add_fault(action, table=f"{keyspace}.t", count=1)
        with pytest.raises(kind):
            session.execute(f"SELECT * FROM {keyspace}.t")
        scylla.admin.remove_fault(fault)
