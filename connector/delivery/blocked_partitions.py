"""Partitions whose read_committed readers do not get what stands in them, at this moment.

In: topics. Out: where each of their partitions stands that has an open transaction in front of its end; a look later
somebody may have ended it.
"""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka import KafkaException

from connector.delivery.clients import CALL_SECONDS, READ_COMMITTED, KafkaClients
from connector.delivery.end_offsets import end_offsets
from connector.delivery.failures import translated
from connector.delivery.topic_facts import topic_partitions
from connector.errors import RetriableDeliveryError


def blocked_partitions(clients: KafkaClients, topics: Collection[str]) -> dict[tuple[str, int], int]:
    """By partition the offset of the first record that is not readable, which is where an open transaction begins."""
    admin = clients.admin()
    existing = topic_partitions(admin)
    places = [(topic, number) for topic in topics for number in range(existing.get(topic, 0))]
    try:
        ends = end_offsets(admin, places, leaderless=CALL_SECONDS)
        stable = end_offsets(admin, places, READ_COMMITTED, leaderless=CALL_SECONDS)
    except KafkaException as caught:
        raise translated(caught.args[0], "looking for blocked partitions") from None
    except TimeoutError:
        raise RetriableDeliveryError("looking for blocked partitions: the broker did not answer in time") from None
    return {place: stable[place] for place in places if stable[place] < ends[place]}
