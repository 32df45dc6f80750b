"""A record that is refused for a moment, while those behind it are taken: librdkafka calls all of them delivered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from connector.delivery.clients import KafkaClients
from connector.delivery.producer import ReportingProducer
from connector.delivery.records import BlockClient, KafkaRecord, OutgoingRecord
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import TransactionAborted
from tests.servers.mock_kafka import mock_kafka

RECORDS = [OutgoingRecord("t", b"key", b"%d" % at) for at in range(6)]
Made = TypeVar("Made", bound=ReportingProducer)
#: Longer than it takes to hand over all of them, also on a machine that is busy with something else.
ROUND_TRIP_MS = 1_000


@contextmanager
def given(make: Callable[[KafkaClients], Made], records: Sequence[KafkaRecord], **properties: Any) -> Iterator[Made]:
    """A producer that was given records for topic t, each of them a request of its own. The first one is refused, and
    again when it is sent together with others."""
    each = {"batch.num.messages": 1, "linger.ms": 0}
    with mock_kafka() as kafka:
        kafka.create("t")
        clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}, producer_properties=each | properties)
        producer = make(clients)
        producer.client.list_topics("t")
        kafka.answer_after(ROUND_TRIP_MS)
        kafka.refuse_records(2)
        producer.produce_all(records)
        yield producer
        producer.close()


def is_noticed(blocks: BlockClient | None, records: Sequence[KafkaRecord]) -> None:
    with (
        given(lambda clients: ReportingProducer(clients, blocks), records) as producer,
        pytest.raises(TransactionAborted, match=r"topic t: .*later records of a partition were taken"),
    ):
        producer.flush(time.monotonic() + 60)


def test_a_record_that_is_called_delivered_and_stands_nowhere_is_a_failed_one() -> None:
    is_noticed(None, RECORDS)


def test_a_transaction_that_the_client_has_given_up_is_not_waited_for() -> None:
    """As here, where the broker knows the producer and wants no record without those before it."""
    deadline = time.monotonic() + 300

    def begun(clients: KafkaClients) -> TransactionalProducer:
        producer = TransactionalProducer(clients, "w", 600_000, lasting=True)
        producer.start(deadline)
        producer.begin()
        return producer

    with given(begun, RECORDS, log_level=0) as producer:
        with pytest.raises(TransactionAborted, match=r"^the transaction has failed: .*OUT_OF_ORDER"):
            producer.flush(deadline)
        assert time.monotonic() < deadline


def test_who_asks_for_no_answer_misses_none() -> None:
    unasked = {"enable.idempotence": False, "acks": 0}
    with given(lambda clients: ReportingProducer(clients, freely=True), RECORDS, **unasked) as producer:
        producer.flush(time.monotonic() + 60)
