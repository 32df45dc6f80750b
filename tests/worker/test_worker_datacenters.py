"""A connector of a cluster with several datacenters: by the nodes of one of them, or warned that none is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.kafka import EmbeddedKafka
from tests.servers.double import Double
from tests.servers.patience import until
from tests.worker.harness import Service, cql, create_table, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.only_double("datacenters")]

LOOSE = "scylla.local.dc is not set, and scylla.consistency.level=LOCAL_QUORUM"


@pytest.fixture(scope="module")
def two_places() -> Iterator[Double]:
    """The lowest address, which is where the connector is sent, is in the east, and another node as well."""
    with Double(datacenters=["east", "west", "east", "west"], shards=2, ring_delay=0) as scylla:
        yield scylla


def test_a_connector_reads_by_the_nodes_of_its_datacenter(
    two_places: Double, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    with cql(two_places) as session:
        tables = [create_table(two_places, session, name, tablets=name == "tablets") for name in ("tablets", "vnodes")]
        chosen = {"scylla.local.dc": "west", "scylla.consistency.level": "local_quorum", "tasks.max": "1"}
        connector = Service(tmp_path, two_places, kafka.bootstrap_servers, "west", tables, chosen)
        try:
            run = connector.start("--http-port", "0")
            for table in tables:
                write = session.prepare(f"INSERT INTO {table} (pk, ck, v) VALUES (?, ?, 'v')")
                for ck in range(3):
                    for pk in range(10):
                        session.execute(write, (pk, ck))
                    two_places.admin.new_generation()
                    two_places.admin.change_streams(tables[0], tablets=8 << ck)
            for table in tables:
                assert exactly_once(connector, session, table) == 30
            until(lambda: connector.get("/health")[0] == 200, 90, "good health")
            checked = connector.command("validate")
            assert (checked.returncode, "scylla.local.dc" in checked.stderr) == (0, False), checked.stderr
            connector.stopped(run)
        finally:
            connector.close()
    assert "marked down" not in connector.log
    assert "scylla.local.dc" not in connector.log


def test_local_reads_of_no_datacenter_are_warned_of_when_it_starts(
    two_places: Double, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    with cql(two_places) as session:
        table = create_table(two_places, session, "loose", tablets=False)
        level = {"scylla.consistency.level": "local_quorum"}
        connector = Service(tmp_path, two_places, kafka.bootstrap_servers, "loose", [table], level)
        try:
            checked = connector.command("validate")
            assert checked.returncode == 0, checked.stderr
            assert checked.stderr.count(LOOSE) == 1
            assert "(east, west)" in checked.stderr
            session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (1, 1, 'v')")
            run = connector.start("--http-port", "0")
            assert exactly_once(connector, session, table) == 1, "it works all the same"
            connector.stopped(run)
        finally:
            connector.close()
    assert connector.log.count(LOOSE) == 1
