"""Several datacenters: with `local_dc` only nodes of one are asked; without it, local levels are any datacenter's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from connector.errors import RetriableSourceError
from connector.source.connection import Connection
from connector.source.datacenters import loose_datacenter
from connector.source.failures import NotReached
from connector.source.settings import ConnectionSettings
from tests.servers.double import Double
from tests.servers.patience import until
from tests.source.conftest import Following, create_table, logged, reader
from tests.source.test_source_watch import Watched

EAST, WEST = "127.0.0.1", "127.0.0.2"


@pytest.fixture(scope="module")
def two_places() -> Iterator[Double]:
    """The lowest address is in the east, and so is one between those of the west."""
    with Double(datacenters=["east", "west", "east", "west"], ring_delay=0) as scylla:
        yield scylla


def settings(scylla: Double, point: str = EAST, **options: str) -> ConnectionSettings:
    return replace(scylla.settings(**options), contact_points=((point, scylla.port),))


@pytest.mark.scylla
@pytest.mark.only_double("datacenters")
@pytest.mark.parametrize("point", [EAST, WEST], ids=["by a remote node", "by one of ours"])
@pytest.mark.parametrize("tablets", [True, False], ids=["tablets", "vnodes"])
def test_everything_is_read_by_the_nodes_of_one_datacenter(
    two_places: Double, tablets: bool, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    keyspace = f"{'tablets' if tablets else 'vnodes'}_{point.replace('.', '_')}"
    cluster = two_places.cluster()
    try:
        session = cluster.connect()
        session.use_client_timestamp = False
        table = create_table(two_places, session, keyspace, tablets)
        write = session.prepare(f"INSERT INTO {table} (pk, ck, v) VALUES (?, ?, 'v')")
        follower = Following(reader(two_places, table, connection=settings(two_places, point, local_dc="west")))
        follower.source._follow = True
        follower.start()
        for turn in range(3):
            for pk in range(20):
                session.execute(write, (pk, turn))
            if tablets:
                two_places.admin.change_streams(table, tablets=8 << turn)
            else:
                two_places.admin.new_generation()
        follower.until(lambda: logged(session, table))
        assert follower.source.failing() == []
        follower.finish()
        follower.in_order()
    finally:
        cluster.shutdown()
    assert [text for text in caplog.messages if "marked down" in text] == []


@pytest.mark.scylla
@pytest.mark.only_double("datacenters")
@pytest.mark.parametrize("tablets", [True, False], ids=["tablets", "vnodes"])
def test_nodes_of_other_datacenters_are_not_watched(two_places: Double, tablets: bool) -> None:
    cluster = two_places.cluster()
    table = create_table(two_places, cluster.connect(), f"watched_{'tablets' if tablets else 'vnodes'}", tablets)
    cluster.shutdown()
    watched = Watched(two_places, table, local_dc="west")
    try:
        watched.run(120)
        assert watched.background.failing() == []
        polled_at = watched.planner.tables[watched.table].polled_at
        assert polled_at is not None
        assert {host.partition(":")[0] for host in watched.watch._clocks} == {WEST, "127.0.0.4"}
        assert watched.connection.datacenters() == {"east", "west"}
        assert watched.connection.host_count() == 4, "generations are asked at a quorum of all"
    finally:
        watched.close()


@pytest.mark.scylla
@pytest.mark.only_double("datacenters")
def test_who_answers_is_looked_for_among_those_who_are_asked() -> None:
    with Double(datacenters=["east", "west", "west"], ring_delay=0) as scylla:
        connection = Connection(settings(scylla, local_dc="west"))
        connection.open()
        try:
            connection.require_an_answer()
            connection.sample_clocks()
            scylla.admin.stop_node(1)
            connection.require_an_answer()
            connection.sample_clocks()
            scylla.admin.stop_node(2)
            with pytest.raises(RetriableSourceError, match=r"127\.0\.0\.[23]:\d+: connection refused"):
                connection.require_an_answer()

            def told() -> str:
                with pytest.raises(NotReached) as caught:
                    connection.query("SELECT key FROM system.local WHERE key = 'local'")
                return str(caught.value)

            nobody = f"asking datacenter west of {scylla.address}: no node is known to be up"
            until(lambda: told() == nobody, 20, told)
        finally:
            connection.close()


@pytest.mark.scylla
@pytest.mark.only_double("datacenters")
def test_a_datacenter_without_nodes_is_named_with_those_that_there_are(two_places: Double) -> None:
    connection = Connection(settings(two_places, local_dc="wset"))
    with pytest.raises(RetriableSourceError) as caught:
        connection.open()
    assert str(caught.value).endswith("no node is in datacenter wset (scylla.local.dc), only in east, west")


@pytest.mark.scylla
@pytest.mark.only_double("datacenters")
def test_local_reads_of_no_datacenter_are_warned_of_once(two_places: Double, caplog: pytest.LogCaptureFixture) -> None:
    cluster = two_places.cluster()
    table = create_table(two_places, cluster.connect(), "warned", tablets=False)
    cluster.shutdown()
    for level, datacenter, expected in (
        ("LOCAL_QUORUM", None, 1),
        ("LOCAL_ONE", None, 1),
        ("LOCAL_QUORUM", "west", 0),
        ("QUORUM", None, 0),
    ):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "connector.source"):
            given = settings(two_places, WEST, consistency=level)
            with reader(two_places, table, connection=replace(given, local_dc=datacenter)) as opened:
                assert list(opened) == []
        said = [text for text in caplog.messages if "scylla.local.dc" in text]
        assert len(said) == expected, level
        assert all(f"{level} reads in" in text and "(east, west)" in text for text in said)


def test_local_levels_are_loose_where_there_is_another_datacenter() -> None:
    loose = ConnectionSettings((("db", 9042),), consistency="LOCAL_ONE")
    assert loose_datacenter(loose, {"east"}) is None
    assert loose_datacenter(loose, set()) is None
    assert loose_datacenter(loose, {"east", "west"}) is not None
    assert loose_datacenter(replace(loose, local_dc="east"), {"east", "west"}) is None
    assert loose_datacenter(replace(loose, consistency="ALL"), {"east", "west"}) is None
