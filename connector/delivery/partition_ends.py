"""Where partitions end, and of which topic of their name they are.

In: topics. Out: for each of their partitions the offset behind everything that was written. It never goes back while
brokers keep what they have acknowledged.
"""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from connector.delivery.clients import CALL_SECONDS, KafkaClients
from connector.delivery.end_offsets import end_offsets
from connector.delivery.failures import FORBIDDEN, LEADER_CHANGES, translated
from connector.errors import RetriableDeliveryError

_UNSEEN = FORBIDDEN | LEADER_CHANGES | {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}


def partition_ends(clients: KafkaClients, topics: Collection[str]) -> dict[tuple[str, int], tuple[str, int]]:
    """The topic's id and the end of each partition; of topics that cannot be seen, or have no leaders, nothing."""
    # The client must outlive its futures, or those never complete.
    admin = clients.admin()
    # Of a topic that is named twice librdkafka says that nothing of the whole question is valid.
    asked = admin.describe_topics(TopicCollection(list(set(topics))), request_timeout=CALL_SECONDS)
    ids: dict[tuple[str, int], str] = {}
    try:
        for name, future in asked.items():
            try:
                described = future.result(timeout=2 * CALL_SECONDS)
            except KafkaException as caught:
                if caught.args[0].code() not in _UNSEEN:
                    raise
                continue
            ids |= {(name, each.id): str(described.topic_id) for each in described.partitions if each.leader}
        ends = end_offsets(admin, ids, leaderless=CALL_SECONDS)
    except KafkaException as caught:
        raise translated(caught.args[0], "looking where partitions end") from None
    except TimeoutError:
        raise RetriableDeliveryError("looking where partitions end: the broker did not answer in time") from None
    return {place: (ids[place], end) for place, end in ends.items()}
