"""A producer that is let go is gone, wherever its transaction and its brokers are."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from connector.delivery.clients import KafkaClients
from connector.delivery.producer import ReportingProducer
from connector.delivery.records import OutgoingRecord
from connector.delivery.transactional_producer import TransactionalProducer
from tests.servers.mock_kafka import MockKafka, mock_kafka
from tests.servers.patience import until

TOPIC = "events"


def transactional(clients: KafkaClients) -> TransactionalProducer:
    producer = TransactionalProducer(clients, "id", 600_000)
    producer.start(time.monotonic() + 60)
    producer.begin()
    return producer


def in_use(made: Callable[[KafkaClients], ReportingProducer], kafka: MockKafka) -> ReportingProducer:
    kafka.create(TOPIC)
    producer = made(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}))
    producer.produce(OutgoingRecord(TOPIC, b"k", b"v"))
    return producer


@pytest.mark.parametrize("made", [transactional, ReportingProducer])
@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("is_away", [True, False])
def test_nothing_is_left_of_a_producer(
    made: Callable[[KafkaClients], ReportingProducer], is_flushed: bool, is_away: bool
) -> None:
    with ExitStack() as broker:
        producer = in_use(made, broker.enter_context(mock_kafka()))
        # The binding lets go of who hears of a client's errors when all threads of the client have ended, not before.
        listener = weakref.ref(producer._clients.health)
        if is_flushed:
            producer.flush(time.monotonic() + 60)
        if is_away:
            broker.close()
        producer.close()
        producer.close()
        del producer
        until(lambda: listener() is None, what="the client's threads to end")
