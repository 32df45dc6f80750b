"""Raw pages of prepared statements in every state: with and without the metadata id, on all nodes or on some, while the
columns of the log and its user types change."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from cassandra.cqltypes import BytesType
from cassandra.query import SimpleStatement

from connector.source.connection import Connection
from connector.source.pages import RawPage
from connector.source.settings import ConnectionSettings
from embedded.scylla.admin_client import AdminClient
from embedded.scylla.protocol import frame
from tests.embedded.scylla.raw_client import RawClient
from tests.servers.double import Double
from tests.source.conftest import Following, address, logged, reader
from tests.worker.harness import until

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("nodes with and without the metadata id")]

METADATA_ID = "SCYLLA_USE_METADATA_ID"
LOG = "SELECT * FROM ks.t_scylla_cdc_log"
CHANGES = {
    "added": ["ALTER TABLE ks.t ADD w bigint"],
    "dropped": ["ALTER TABLE ks.t DROP v"],
    "in place of another": ["ALTER TABLE ks.t DROP v", "ALTER TABLE ks.t ADD w bigint"],
    "of another type": ["ALTER TABLE ks.t DROP v", "ALTER TABLE ks.t ADD v blob"],
    "field added": ["ALTER TYPE ks.pair ADD c bigint"],
    "field renamed": ["ALTER TYPE ks.pair RENAME a TO z"],
}


@pytest.fixture(scope="module", params=["all nodes", "no node", "one of two nodes"])
def server(request: pytest.FixtureRequest) -> Iterator[Double]:
    """Which nodes offer the metadata id."""
    without = [METADATA_ID] if request.param == "no node" else []
    with Double(ring_delay=0, nodes=2, without=without) as scylla:
        if request.param == "one of two nodes":
            scylla.admin.stop_node(1)
            scylla.admin.start_node(1, without=[METADATA_ID])
        yield scylla


@pytest.fixture
def table(server: Double) -> Iterator[AdminClient]:
    """A table with a row in its log, made anew: its columns are `v` and a user type."""
    admin = server.admin
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    admin.cql(f"CREATE KEYSPACE ks WITH replication = {replication} AND tablets = {{'enabled': false}}")
    admin.cql("CREATE TYPE ks.pair (a int, b text)")
    admin.cql(
        "CREATE TABLE ks.t (pk int PRIMARY KEY, v text, p frozen<pair>, l list<int>) WITH cdc = {'enabled': true}"
    )
    admin.cql("INSERT INTO ks.t (pk, v, p, l) VALUES (1, 'x', {a: 1, b: 'y'}, [1, 2])")
    yield admin
    admin.clear_faults()
    admin.cql("DROP KEYSPACE ks")


@pytest.fixture
def opened(server: Double) -> Iterator[Callable[[], Connection]]:
    connections: list[Connection] = []

    def connection() -> Connection:
        made = Connection(ConnectionSettings((address(server.address),)))
        connections.append(made)
        made.open()
        return made

    yield connection
    for made in connections:
        made.close()


Arrived = queue.Queue[RawPage | Exception]


def ask(connection: Connection, statement: Any, host: Any = None) -> Arrived:
    arrived: Arrived = queue.Queue()
    connection.page_async(statement, lambda page, _: arrived.put(page), arrived.put, host=host)
    return arrived


def taken(arrived: Arrived) -> RawPage:
    found = arrived.get(timeout=90)
    if isinstance(found, Exception):
        raise found
    return found


def page(connection: Connection, statement: Any, host: Any = None) -> RawPage:
    return taken(ask(connection, statement, host))


def truth(connection: Connection) -> RawPage:
    """Without preparing anything: such an answer names its columns, whatever was agreed on."""
    return page(connection, SimpleStatement(LOG))


def same(found: RawPage, expected: RawPage) -> None:
    assert (found.columns, found.shape, found.rows) == (expected.columns, expected.shape, expected.rows)
    assert list(found.decoded()) == list(expected.decoded())


def remembers_no_blobs(statement: Any) -> None:
    """What the driver will read the next pages by."""
    kinds = {column[2]: column[3] for column in statement.prepared_statement.result_metadata}
    assert kinds["cdc$time"].typename == "timeuuid"
    assert [name for name, kind in kinds.items() if kind is BytesType] in (["cdc$stream_id"], ["cdc$stream_id", "v"])


def change(admin: AdminClient, steps: Sequence[str]) -> None:
    for step in steps:
        admin.cql(step)
        # The name of a dropped column is free after five seconds.
        admin.move_clock(6)


def neighbours_prepare(server: Double) -> None:
    """Others prepare the same text on every node: it is known there, and nobody is told to prepare it again."""
    for node in server.admin.nodes():
        with RawClient(node["address"], server.port) as client:
            assert client.startup().opcode == frame.READY
            client.prepare(LOG)


def test_prepared_anew(table: AdminClient, opened: Callable[[], Connection]) -> None:
    connection = opened()
    expected = truth(connection)
    assert "frozen<pair>" in dict(expected.signature).values()
    assert len(expected.rows) == 1
    for _ in range(3):
        for host in connection.hosts():
            statement = connection.statement(LOG, ())
            same(page(connection, statement, host), expected)
            remembers_no_blobs(statement)


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("known", [True, False], ids=["prepared by others", "unprepared"])
def test_columns_change(
    server: Double, table: AdminClient, opened: Callable[[], Connection], what: str, known: bool
) -> None:
    connection, other = opened(), opened()
    statements = [(each, each.statement(LOG, ())) for each in (connection, other)]
    for each, statement in statements:
        for host in each.hosts():
            page(each, statement, host)
    before = truth(connection).shape
    change(table, CHANGES[what])
    if known:
        neighbours_prepare(server)
    expected = truth(connection)
    assert expected.shape != before
    for _ in range(2):
        for each, statement in statements:
            for host in (*each.hosts(), *reversed(each.hosts())):
                same(page(each, statement, host), expected)
                remembers_no_blobs(statement)


def test_several_statements_of_one_text(server: Double, table: AdminClient, opened: Callable[[], Connection]) -> None:
    connection = opened()
    statements = [connection.statement(LOG, (), level) for level in ("ONE", "QUORUM", "ALL")]
    assert len({id(statement.prepared_statement) for statement in statements}) == 3
    for steps, asked in ((CHANGES["added"], statements[:2]), (CHANGES["dropped"], statements)):
        change(table, steps)
        neighbours_prepare(server)
        expected = truth(connection)
        for statement in (*asked, *asked):
            for host in connection.hosts():
                same(page(connection, statement, host), expected)
                remembers_no_blobs(statement)


def test_a_page_that_was_made_before_the_change_is_read_as_it_was_made(
    server: Double, table: AdminClient, opened: Callable[[], Connection]
) -> None:
    """And one that was asked for before the change and made after it, as it was made."""
    connection = opened()
    statement = connection.statement(LOG, ())
    for host in connection.hosts():
        page(connection, statement, host)
        before = truth(connection)
        for when in ("after", "before"):
            table.add_fault("delay", pattern="_scylla_cdc_log", opcode="EXECUTE", count=1, delay_ms=700, when=when)
        made, asked = ask(connection, statement, host), ask(connection, statement, host)
        wait_until_both_fired(table)
        change(table, CHANGES["added"] if "w" not in before.columns else CHANGES["dropped"])
        neighbours_prepare(server)
        expected = truth(connection)
        same(page(connection, statement, host), expected)
        same(taken(made), before)
        same(taken(asked), expected)
        same(page(connection, statement, host), expected)
        table.clear_faults()


def wait_until_both_fired(admin: AdminClient) -> None:
    until(lambda: sum(rule["fired"] for rule in admin.request("GET", "/embedded/faults")) == 2, 90, "both requests")


def test_small_tables_of_the_server(table: AdminClient, opened: Callable[[], Connection]) -> None:
    connection = opened()
    for _ in range(2):
        for host in connection.hosts():
            connection.sample_clock(host)
            rows = connection.query("SELECT key, tokens FROM system.local WHERE key = ?", ["local"], host=host)
            assert rows[0]["key"] == "local"


@pytest.mark.parametrize("upgrade", [("2025.1", "2026.1"), ("2026.1", "2025.1")], ids="→".join)
def test_a_reader_follows_through_an_upgrade_node_by_node(upgrade: tuple[str, str]) -> None:
    with Double(ring_delay=0, nodes=3, like=upgrade[0]) as scylla:
        cluster = scylla.cluster()
        session = cluster.connect()
        replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
        # ScyllaDB before 2025.4 has no CDC with tablets.
        session.execute(f"CREATE KEYSPACE ks WITH replication = {replication} AND tablets = {{'enabled': false}}")
        session.execute("CREATE TYPE ks.pair (a int)")
        session.execute(
            "CREATE TABLE ks.t (pk int, ck int, v text, p frozen<pair>, PRIMARY KEY (pk, ck))"
            " WITH cdc = {'enabled': true}"
        )
        following = Following(reader(scylla, "ks.t", follow=True))
        following.start()
        following.opened.wait(90)
        for number in range(3):
            for key in range(20):
                scylla.admin.cql(f"INSERT INTO ks.t (pk, ck, v, p) VALUES ({key}, 1, 'x', {{a: {number}}})")
            following.until(lambda: logged(session, "ks.t"))
            scylla.admin.stop_node(number)
            scylla.admin.start_node(number, like=upgrade[1])
            for step in (f"ALTER TABLE ks.t ADD w{number} int", f"ALTER TYPE ks.pair ADD f{number} text"):
                scylla.admin.cql(step)
                scylla.admin.cql(f"INSERT INTO ks.t (pk, ck, v, p) VALUES (1, 1, 'y', {{a: {number}}})")
                following.until(lambda: logged(session, "ks.t"))
        following.finish()
        following.in_order()
        cluster.shutdown()
