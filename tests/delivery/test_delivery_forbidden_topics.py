"""With `topic.creation.enable=false` a missing data topic is a problem, and stays missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from connector.delivery.topics import TopicSpec, check_topics, ensure_topics, topic_partitions
from connector.errors import ConfigurationError

pytestmark = pytest.mark.kafka


def test_missing_topics_are_named_and_not_created(kafka: Any, unique: Callable[[str], str]) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    forbidden, allowed = TopicSpec(unique("data"), create=False), TopicSpec(unique("offsets"))
    with pytest.raises(ConfigurationError, match=r"topic\.creation\.enable"):
        ensure_topics(admin, [forbidden, allowed])
    assert [problem.value for problem in check_topics(admin, [forbidden, allowed])] == [forbidden.name]
    assert forbidden.name not in topic_partitions(admin)
    ensure_topics(admin, [TopicSpec(forbidden.name), allowed])
    assert forbidden.name in ensure_topics(admin, [forbidden, allowed])
