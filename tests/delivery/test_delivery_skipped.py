"""A record that is refused for a moment, while those behind it are taken: librdkafka calls all of them delivered."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from connector.delivery.clients import KafkaClients
from connector.delivery.producer import ReportingProducer
from connector.delivery.records import BlockClient, KafkaRecord, OutgoingRecord
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import TransactionAborted
from tests.servers.mock_kafka import mock_kafka

RECORDS = [OutgoingRecord("t", b"key", b"%d" % at) for at in range(6)]
#: Longer than it takes to hand over all of them.
ROUND_TRIP_MS = 100


@contextmanager
def meeting_slow_leaders(blocks: BlockClient | None = None, **properties: Any) -> Iterator[ReportingProducer]:
    """A producer of which each record is a request of its own. The first one to topic t is refused, and again when it
    is sent together with others."""
    with mock_kafka() as kafka:
        kafka.create("t")
        clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}, producer_properties=properties)
        producer = ReportingProducer(clients, blocks, freely=True, batch_num_messages=1, linger_ms=0)
        producer.client.list_topics("t")
        kafka.answer_after(ROUND_TRIP_MS)
        kafka.refuse_records(2)
        yield producer
        producer.close()


def is_noticed(blocks: BlockClient | None, records: Sequence[KafkaRecord]) -> None:
    with meeting_slow_leaders(blocks) as producer:
        producer.produce_all(records)
        with pytest.raises(TransactionAborted, match=r"topic t: .*later records of a partition were taken"):
            producer.flush(time.monotonic() + 60)


def test_a_record_that_is_called_delivered_and_stands_nowhere_is_a_failed_one() -> None:
    is_noticed(None, RECORDS)


def test_a_transaction_that_the_client_has_given_up_is_not_waited_for() -> None:
    """As here, where the broker knows the producer and wants no record without those before it."""
    with mock_kafka() as kafka:
        kafka.create("t")
        clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        producer = TransactionalProducer(clients, "w", 600_000, lasting=True, batch_num_messages=1, linger_ms=0)
        deadline = time.monotonic() + 300
        producer.start(deadline)
        producer.begin()
        kafka.answer_after(ROUND_TRIP_MS)
        kafka.refuse_records(2)
        producer.produce_all(RECORDS)
        with pytest.raises(TransactionAborted, match=r"^the transaction has failed: .*OUT_OF_ORDER"):
            producer.flush(deadline)
        assert time.monotonic() < deadline
        producer.close()


def test_who_asks_for_no_answer_misses_none() -> None:
    with meeting_slow_leaders(**{"enable.idempotence": False, "acks": 0}) as producer:
        producer.produce_all(RECORDS)
        producer.flush(time.monotonic() + 60)
