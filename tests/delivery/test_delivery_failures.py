"""What Kafka says in a few words is told with what it means."""

from __future__ import annotations

from confluent_kafka import KafkaError

from connector.delivery.failures import translated
from connector.delivery.producer import FailedRecord
from connector.delivery.records import OutgoingRecord


def test_a_transaction_that_does_not_end_says_what_to_look_at() -> None:
    """As after the loss of so many brokers that its end cannot be written."""
    told = str(translated(KafkaError(KafkaError.CONCURRENT_TRANSACTIONS), "initialising transactions"))
    assert told.startswith("initialising transactions: CONCURRENT_TRANSACTIONS: ")
    assert "it has no leader, or fewer replicas in sync than min.insync.replicas" in told
    assert "its max.message.bytes was less than 78 for a while: raise that, then restart the broker" in told


def test_a_record_that_is_too_large_says_whose_limit_it_exceeds() -> None:
    """A client says of what it does not even send what a broker says: who raised the topic's limit learnt nothing."""
    error = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    refused, unsent = (
        str(FailedRecord("t", None, error)),
        str(FailedRecord("t", None, error, OutgoingRecord("t", None, b""))),
    )
    assert "raise its max.message.bytes" in refused and "max.request.size" not in refused
    assert "the producer's max.request.size" in unsent and "max.message.bytes" not in unsent


def test_a_full_disk_of_a_broker_is_thought_of() -> None:
    """Seen with a real broker: its partitions there have no leader, and nothing says why, until it is restarted."""
    for code in (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.KAFKA_STORAGE_ERROR):
        told = str(translated(KafkaError(code), "reading topic t"))
        assert "is full or has failed" in told and "restart the broker" in told
