"""Which partitions no broker leads at the moment: nothing can be written to them, nor read.

In: what brokers say of topics. Out: words for whoever waits for one.
"""

from __future__ import annotations

from confluent_kafka.admin import ClusterMetadata, TopicMetadata


def leaderless(there: ClusterMetadata) -> dict[str, str]:
    """Topics with a partition that no broker leads at the moment, and which."""
    return {name: why for name, topic in there.topics.items() if (why := led_by_nobody(topic))}


def led_by_nobody(topic: TopicMetadata) -> str | None:
    """Which partitions no broker leads, if there are any."""
    numbers = sorted(number for number, partition in topic.partitions.items() if partition.leader < 0)
    return f"no broker leads its partition {', '.join(map(str, numbers))}" if numbers else None
