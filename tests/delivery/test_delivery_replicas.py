"""What is kept nowhere else has several replicas, where nobody said how many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, BrokerMetadata, ClusterMetadata, NewTopic

from connector.delivery.clients import KafkaClients
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import check_topics, ensure_topics
from embedded.kafka import EmbeddedKafka


class Several:
    """An admin client of a cluster that has more brokers than one."""

    def __init__(self, admin: AdminClient, brokers: int) -> None:
        self._admin, self._brokers = admin, brokers
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    def list_topics(self, *args: Any, **more: Any) -> ClusterMetadata:
        listed = self._admin.list_topics(*args, **more)
        listed.brokers = {number: BrokerMetadata() for number in range(self._brokers)}
        return listed

    def create_topics(self, news: list[NewTopic], **more: Any) -> dict[str, Future[None]]:
        self.asked += [new.replication_factor for new in news]
        created: dict[str, Future[None]] = self._admin.create_topics(news, **more)
        return created


@pytest.mark.kafka
@pytest.mark.parametrize(("brokers", "asked"), [(1, [1]), (2, [2, -1]), (5, [3, -1])])
def test_what_is_kept_has_three_replicas_where_nobody_said_how_many(
    kafka: EmbeddedKafka, unique: Callable[[str], str], brokers: int, asked: list[int]
) -> None:
    """Brokers that take no such number choose one themselves."""
    spec = TopicSpec(unique("offsets"), 1, None, compacted=True)
    several: Any = Several(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}).admin(), brokers)
    ensure_topics(several, [spec])
    assert several.asked == asked
    warnings = check_topics(several, [spec, TopicSpec(unique("none"), 1, None, compacted=True)]).warnings
    assert warnings == (
        []
        if brokers == 1
        else [
            f"of what is kept in {spec.name} there is one replica, {asked[0]} are to be: it is gone with the only "
            "broker that has it, and cannot be written while that is away; add replicas "
            "(kafka-reassign-partitions.sh --execute), or set …storage.replication.factor to 1"
        ]
    )
