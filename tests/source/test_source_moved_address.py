"""A cluster whose name leads to another address than before is found again by who had connections to the old one."""

from __future__ import annotations

import socket
import uuid
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra.connection import DefaultEndPoint

from connector.errors import SourceError
from connector.source import Connection, connection_settings
from connector.source.persistent_cluster import cluster_by
from connector.source.settings import ConnectionSettings
from embedded.scylla.process import EmbeddedScylla
from tests.config.files import loaded
from tests.servers.patience import until

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("a server at an address of its own")]
NAME, QUESTION = "node.test", "SELECT cluster_name FROM system.local"


def test_a_node_that_comes_back_at_another_address_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    leads_to = ["127.0.0.1"]
    resolve = socket.getaddrinfo

    def resolved(host: Any, *rest: Any, **options: Any) -> Any:
        return resolve(leads_to[-1] if host == NAME else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with EmbeddedScylla() as before:
        port = int(before.address.rpartition(":")[2])
        properties = {"scylla.cluster.ip.addresses": f"{NAME}:{port}"}
        connection = Connection(connection_settings(loaded(properties).connector.connection))
        connection.open()
        assert connection.query(QUESTION)
    try:
        with pytest.raises(SourceError):
            connection.query(QUESTION)
        with EmbeddedScylla(host="127.0.0.2", port=port):
            leads_to.append("127.0.0.2")
            until(lambda: _answers(connection), 120, lambda: f"an answer of {connection.known_hosts()}")
            assert [host.endpoint.address for host in connection.known_hosts()] == ["127.0.0.2"]
            connection.require_an_answer()
    finally:
        connection.close()


def _answers(connection: Connection) -> bool:
    try:
        return bool(connection.query(QUESTION))
    except SourceError:
        return False


@pytest.mark.parametrize("anew", [True, False])
def test_a_node_that_is_no_more_is_not_called_any_more(anew: bool) -> None:
    """Else it would be for ever: an event tells of its end, which means nothing to a driver that forgot it before."""
    cluster = cluster_by(ConnectionSettings((("127.0.0.1", 1),)))
    try:
        cancelled: list[str] = []
        one, _ = cluster.add_host(DefaultEndPoint("10.0.0.1", 9042), signal=False, host_id=uuid.UUID(int=1))
        one.set_down()
        reconnector = SimpleNamespace(cancel=lambda: cancelled.append("10.0.0.1"))
        one.get_and_set_reconnection_handler(cast(Any, reconnector))
        if anew:
            # The driver does so where another one answers at its address.
            one.host_id = uuid.UUID(int=2)
            cluster.metadata.update_host(one, old_endpoint=one.endpoint)
        assert cluster.metadata.remove_host_by_host_id(uuid.UUID(int=1), one.endpoint)
        assert [host.host_id for host in cluster.metadata.all_hosts()] == ([uuid.UUID(int=2)] if anew else [])
        if anew:
            assert not cluster.scheduler._scheduled_tasks
        else:
            until(lambda: cancelled == ["10.0.0.1"], what="its reconnector to end")
    finally:
        cluster.shutdown()


def test_a_node_that_goes_down_after_the_others_forgot_it_is_not_called() -> None:
    cluster = cluster_by(ConnectionSettings((("127.0.0.1", 1),)))
    try:
        one, _ = cluster.add_host(DefaultEndPoint("10.0.0.1", 9042), signal=False, host_id=uuid.UUID(int=1))
        one.set_up()
        assert cluster.metadata.remove_host_by_host_id(uuid.UUID(int=1), one.endpoint)
        cluster._start_reconnector(one, False)
        assert one.get_and_set_reconnection_handler(None) is None
        until(lambda: one.is_up is False, what="it to be let go of")
    finally:
        cluster.shutdown()
