"""Several datacenters: which node is in which, as drivers and system tables see it, and whose tablets are where."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import DCAwareRoundRobinPolicy

from connector.errors import EmbeddedError
from embedded.scylla.process import EmbeddedScylla
from tests.servers.scylla import PATIENT

pytestmark = pytest.mark.scylla

PLACES = {"127.0.0.1": "east", "127.0.0.2": "west", "127.0.0.3": "west", "127.0.0.4": "east", "127.0.0.5": "west"}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedScylla]:
    with EmbeddedScylla(datacenters=["east", "west", "west"], nodes=5, ring_delay=0) as server:
        yield server


@pytest.fixture(scope="module")
def session(server: EmbeddedScylla) -> Iterator[Session]:
    cluster = Cluster([server.host], port=server.port, **PATIENT)
    yield cluster.connect()
    cluster.shutdown()


def test_nodes_are_in_them_in_turn(server: EmbeddedScylla, session: Session) -> None:
    assert {host.address: host.datacenter for host in session.cluster.metadata.all_hosts()} == PLACES
    assert {host.rack for host in session.cluster.metadata.all_hosts()} == {"rack1"}
    assert {node["address"]: node["datacenter"] for node in server.admin.nodes()} == PLACES


def test_system_tables_agree(session: Session) -> None:
    ids = {host.host_id: PLACES[host.address] for host in session.cluster.metadata.all_hosts()}
    topology = session.execute("SELECT host_id, datacenter FROM system.topology WHERE key = 'topology'")
    assert {row.host_id: row.datacenter for row in topology} == ids
    status = session.execute("SELECT host_id, dc FROM system.cluster_status")
    assert {row.host_id: row.dc for row in status} == ids
    loads = session.execute("SELECT node, dc FROM system.load_per_node")
    assert {row.node: row.dc for row in loads} == ids


@pytest.mark.parametrize(
    ("replication", "copies"),
    [
        ("'replication_factor': 2", {"east": 2, "west": 2}),
        ("'replication_factor': 1, 'west': 3", {"east": 1, "west": 3}),
        ("'west': 2", {"west": 2}),
        ("'east': 3", {"east": 2}),
        ("'east': 0, 'west': 1", {"west": 1}),
    ],
)
def test_tablets_are_where_the_keyspace_says(session: Session, replication: str, copies: dict[str, int]) -> None:
    keyspace = f"ks{uuid.uuid4().hex[:8]}"
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', {replication}}}"
    )
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY) WITH tablets = {{'min_tablet_count': 8}}")
    places = {host.host_id: host.datacenter for host in session.cluster.metadata.all_hosts()}
    rows = [
        row
        for row in session.execute("SELECT keyspace_name, replicas FROM system.tablets")
        if row.keyspace_name == keyspace
    ]
    assert len(rows) == 8
    for row in rows:
        there = [places[host] for host, _ in row.replicas]
        assert {place: there.count(place) for place in there} == copies
        assert len(dict(row.replicas)) == len(row.replicas), "on nodes of their own"
    if copies == {"west": 1}:
        assert len({host for row in rows for host, _ in row.replicas}) == 3, "the nodes take turns"


def test_a_driver_of_one_datacenter_asks_its_nodes_alone(server: EmbeddedScylla) -> None:
    profile = ExecutionProfile(load_balancing_policy=DCAwareRoundRobinPolicy("west"))
    profiles = {EXEC_PROFILE_DEFAULT: profile}
    with Cluster([server.host], port=server.port, execution_profiles=profiles, **PATIENT) as cluster:
        driver = cluster.connect()
        asked = {driver.execute("SELECT data_center FROM system.local").one().data_center for _ in range(10)}
    assert asked == {"west"}


def test_a_node_that_is_added_says_where() -> None:
    with EmbeddedScylla(datacenters=["east", "west"], ring_delay=0) as server:
        assert [node["datacenter"] for node in server.admin.nodes()] == ["east", "west"], "a node for each name"
        assert server.admin.add_node()["datacenter"] == "east"
        assert server.admin.add_node(datacenter="north")["datacenter"] == "north"


def test_a_datacenter_has_a_name() -> None:
    with pytest.raises(EmbeddedError, match="datacenters are names with commas between them, not 'east,,west'"):
        EmbeddedScylla(datacenters=["east", "", "west"]).start()
