"""Reads of a log with tablets: the node that holds a stream's tablet is asked once a server has told of it."""

from __future__ import annotations

from collections import Counter

import pytest

from connector.source.connection import Connection
from connector.source.settings import ConnectionSettings
from tests.embedded.scylla.raw_client import RawClient
from tests.embedded.scylla.test_scylla_extensions import ROUTING, hint
from tests.servers.double import Double
from tests.source.conftest import address, create_table
from tests.source.test_source_routing import Counting, read

QUERY = 'SELECT * FROM ks.t_scylla_cdc_log WHERE "cdc$stream_id" = ?'


def holders(server: Double, streams: list[bytes]) -> Counter[str]:
    """How many of the streams each node holds, by the node's own word."""
    found: Counter[str] = Counter()
    for node in server.admin.nodes():
        with RawClient(node["address"], server.port) as client:
            client.startup(**{ROUTING: ""})
            prepared = client.prepare(QUERY)
            found[node["address"]] = sum(hint(client.execute(prepared, [stream])) is None for stream in streams)
    return found


@pytest.mark.scylla
@pytest.mark.only_double("which node answered is told by the admin interface")
@pytest.mark.parametrize("offered", [True, False])
def test_the_holder_of_a_stream_is_asked_once_it_is_known(offered: bool) -> None:
    with Double(nodes=3, vnodes=4, ring_delay=0, without=[] if offered else [ROUTING]) as scylla:
        cluster = scylla.cluster()
        create_table(scylla, cluster.connect(), "ks", True, count=32)
        cluster.shutdown()
        streams = [bytes.fromhex(each["stream_id"]) for each in scylla.admin.streams()["tables"]["ks.t"][-1]["streams"]]
        connection = Connection(ConnectionSettings((address(scylla.address),)))
        connection.open()
        try:
            assert read(connection, streams) == 0, "whoever is asked answers"
            counting = Counting(scylla.admin)
            assert read(connection, streams) == 0
            asked = counting.seen()
        finally:
            connection.close()
        assert sum(asked.values()) == len(streams) == 32
        if offered:
            assert asked == holders(scylla, streams)
            assert min(asked.values()) >= 10
