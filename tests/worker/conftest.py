"""A connector over a fresh keyspace of the shared servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from tests.debian_programs import leave_out
from tests.servers.plugin import server
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, cql, create_table


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out(config, items)


@pytest.fixture(scope="session")
def scylla(request: pytest.FixtureRequest) -> Iterator[Scylla]:
    """With as many streams in a group as a node has shards, as every real cluster has them."""
    with server(request.config, shards=8) as scylla:
        yield scylla


@pytest.fixture
def session(scylla: Scylla) -> Iterator[Session]:
    with cql(scylla) as session:
        yield session


@pytest.fixture
def make_table(scylla: Scylla, session: Session, unique: Callable[[str], str]) -> Callable[..., str]:
    """Makes a table in a keyspace of its own."""
    return lambda **options: create_table(scylla, session, unique("ks").replace("-", "_"), **options)


@pytest.fixture
def service(
    tmp_path: Path, scylla: Scylla, kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> Iterator[Callable[..., Service]]:
    """Makes a service for tables; ends its processes after the test."""
    made: list[Service] = []

    def make(tables: list[str], **settings: dict[str, str]) -> Service:
        built = Service(tmp_path, scylla, kafka.bootstrap_servers, unique("c"), tables, **settings)
        made.append(built)
        return built

    yield make
    for each in made:
        each.close()
        print(f"the end of {each.name}'s log:\n{each.last_words()}")  # pytest shows it if the test failed
