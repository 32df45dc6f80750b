"""What Kafka says in a few words is told with what it means."""

from __future__ import annotations

from confluent_kafka import KafkaError

from connector.delivery.failures import translated


def test_a_transaction_that_does_not_end_says_what_to_look_at() -> None:
    """As after the loss of so many brokers that its end cannot be written."""
    told = str(translated(KafkaError(KafkaError.CONCURRENT_TRANSACTIONS), "initialising transactions"))
    assert told.startswith("initialising transactions: CONCURRENT_TRANSACTIONS: ")
    assert "it has no leader, or fewer replicas in sync than min.insync.replicas" in told
    assert "its max.message.bytes was less than 78 for a while: raise that, then restart the broker" in told
