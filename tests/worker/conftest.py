"""A connector over a fresh keyspace of the shared servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from embedded.scylla.process import EmbeddedScylla
from tests.worker.harness import Service, cql


@pytest.fixture
def session(scylla: EmbeddedScylla) -> Iterator[Session]:
    with cql(scylla.address) as session:
        yield session


@pytest.fixture
def service(
    tmp_path: Path, scylla: EmbeddedScylla, kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> Iterator[Callable[..., Service]]:
    """Makes a service for tables; ends its processes after the test."""
    made: list[Service] = []

    def make(tables: list[str], **settings: dict[str, str]) -> Service:
        built = Service(tmp_path, scylla.address, kafka.bootstrap_servers, unique("c"), tables, **settings)
        made.append(built)
        return built

    yield make
    for each in made:
        each.close()
