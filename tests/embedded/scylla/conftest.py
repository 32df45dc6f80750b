"""Servers and raw connections for the tests of the embedded ScyllaDB."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from embedded.scylla.process import EmbeddedScylla
from tests.embedded.scylla.raw_client import RawClient
from tests.servers.double import Double
from tests.servers.plugin import server
from tests.servers.scylla import Scylla


@pytest.fixture(scope="session")
def scylla(request: pytest.FixtureRequest) -> Iterator[Scylla]:
    """The session's server: shared, so keyspaces need names of their own, and its clock and nodes stay as they are."""
    with server(request.config) as scylla:
        yield scylla


@pytest.fixture
def own_scylla() -> Iterator[Double]:
    """A server for one test, to be mistreated."""
    with Double(ring_delay=0) as server:
        yield server


@pytest.fixture
def connect() -> Iterator[Callable[..., RawClient]]:
    """Opens raw connections, started unless asked otherwise, and closes them after the test."""
    opened: list[RawClient] = []

    def connect(server: EmbeddedScylla, *, host: str | None = None, start: bool = True, **options: object) -> RawClient:
        client = RawClient(host or server.host, server.port, **options)  # type: ignore[arg-type]
        opened.append(client)
        if start:
            client.startup()
        return client

    yield connect
    for client in opened:
        client.close()


_numbers = itertools.count(1)


@pytest.fixture
def keyspace(scylla: Scylla) -> str:
    """A vnodes keyspace of this test's own on the shared server."""
    name = scylla.named(f"own{next(_numbers)}")
    if not isinstance(scylla, Double):
        scylla.execute(scylla.keyspace_ddl(name, tablets=False))
        return name
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    scylla.admin.cql(f"CREATE KEYSPACE {name} WITH replication = {replication} AND tablets = {{'enabled': false}}")
    return name
