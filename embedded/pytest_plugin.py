"""Fixtures for pytest: found by itself where scylla-cdc-embedded is installed.

`embedded_scylla` and `embedded_kafka` are servers that all tests of a session share, so keyspaces, topics and groups
need names of their own; `embedded_cdc` runs connectors between the two for one test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from embedded.connectors import EmbeddedCdc
    from embedded.kafka import EmbeddedKafka
    from embedded.scylla.process import EmbeddedScylla


@pytest.fixture(scope="session")
def embedded_scylla() -> Iterator[EmbeddedScylla]:
    """A double of ScyllaDB in which new stream sets count at once; ``address`` is where drivers connect."""
    from embedded.scylla.process import EmbeddedScylla

    with EmbeddedScylla(ring_delay=0) as server:
        yield server


@pytest.fixture(scope="session")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    """A real Kafka broker; ``bootstrap_servers`` is where clients connect."""
    from embedded.kafka import EmbeddedKafka

    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def embedded_cdc(
    embedded_scylla: EmbeddedScylla, embedded_kafka: EmbeddedKafka, tmp_path: Path
) -> Iterator[EmbeddedCdc]:
    """Connectors between both servers: ``embedded_cdc.start("ks.t")`` returns when its changes are being delivered."""
    from embedded.connectors import EmbeddedCdc

    with EmbeddedCdc(embedded_scylla, embedded_kafka, tmp_path) as connectors:
        yield connectors
