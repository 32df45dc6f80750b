"""Servers that tests share. A test that stops, kills or pauses a broker takes `own_kafka`; all others take `kafka`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from embedded.kafka import EmbeddedKafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """The session's broker: always running, shared, so topics and groups need names of their own."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def own_kafka() -> Iterator[EmbeddedKafka]:
    """A broker for one test, to be mistreated."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Makes a name that nothing else on a shared server has."""
    return lambda name: f"{name}-{uuid.uuid4().hex[:8]}"
