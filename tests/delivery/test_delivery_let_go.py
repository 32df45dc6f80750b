"""A producer that is let go is gone: no thread of its client is left, wherever its transaction and its brokers are."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from connector.delivery.clients import KafkaClients
from connector.delivery.producer import ReportingProducer
from connector.delivery.records import OutgoingRecord
from connector.delivery.transactional_producer import TransactionalProducer
from tests.servers.mock_kafka import MockKafka, mock_kafka
from tests.servers.patience import until

TOPIC = "events"


def threads() -> set[str]:
    """Those of librdkafka's clients in this process."""
    names = {}
    for thread in Path("/proc/self/task").iterdir():
        try:
            names[thread.name] = (thread / "comm").read_text()
        except OSError:
            continue  # it has ended meanwhile
    return {thread for thread, name in names.items() if name.startswith("rdk:")}


def transactional(kafka: MockKafka) -> TransactionalProducer:
    clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers})
    producer = TransactionalProducer(clients, "id", 600_000)
    producer.start(time.monotonic() + 60)
    producer.begin()
    return producer


def plain(kafka: MockKafka) -> ReportingProducer:
    return ReportingProducer(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}))


@pytest.mark.parametrize("made", [transactional, plain])
@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("is_away", [True, False])
def test_nothing_is_left_of_a_producer(
    made: Callable[[MockKafka], ReportingProducer], is_flushed: bool, is_away: bool
) -> None:
    with ExitStack() as broker:
        kafka = broker.enter_context(mock_kafka())
        kafka.create(TOPIC)
        others = threads()
        producer = made(kafka)
        producer.produce(OutgoingRecord(TOPIC, b"k", b"v"))
        if is_flushed:
            producer.flush(time.monotonic() + 60)
        if is_away:
            broker.close()
        assert threads() - others
        producer.close()
        producer.close()
        until(lambda: not threads() - others, what="the client's threads to end")
