"""With `topic.creation.enable=false` a missing data topic is waited for; one that is compacted is warned about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from connector.delivery.topics import (
    TopicFacts,
    TopicSpec,
    check_topics,
    ensure_topics,
    look_at_topic,
    topic_partitions,
)
from connector.errors import ConfigurationError

pytestmark = pytest.mark.kafka


def test_missing_topics_are_named_and_not_created(kafka: Any, unique: Callable[[str], str]) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    forbidden, allowed = TopicSpec(unique("data"), create=False, keeps_all=True), TopicSpec(unique("offsets"))
    with pytest.raises(ConfigurationError, match=r"topic\.creation\.enable"):
        ensure_topics(admin, [forbidden, allowed])
    assert [problem.value for problem in check_topics(admin, [forbidden, allowed]).problems] == [forbidden.name]
    waited = replace(forbidden, essential=False)
    assert [problem.value for problem in check_topics(admin, [waited, allowed]).awaited] == [forbidden.name]
    assert isinstance(why := look_at_topic(admin, waited), str) and "does not exist" in why
    assert forbidden.name not in topic_partitions(admin)
    ensure_topics(admin, [TopicSpec(forbidden.name), allowed])
    assert forbidden.name in ensure_topics(admin, [forbidden, allowed])
    assert isinstance(look_at_topic(admin, waited), TopicFacts)
    assert not check_topics(admin, [forbidden, allowed]).warnings


def test_a_compacted_data_topic_is_warned_about(kafka: Any, unique: Callable[[str], str]) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    there = TopicSpec(unique("data"), config={"cleanup.policy": "compact,delete"}, keeps_all=True)
    storage = TopicSpec(unique("offsets"), compacted=True)
    assert [there.name in warning for warning in check_topics(admin, [there, storage]).warnings] == [True]
    ensure_topics(admin, [there, storage])
    [warning] = check_topics(admin, [replace(there, config={}), storage]).warnings
    assert f"topic {there.name} is compacted" in warning and "cleanup.policy=delete" in warning


def test_topics_that_brokers_stamp_are_warned_about(kafka: Any, unique: Callable[[str], str]) -> None:
    """What a crash of a broker leaves open in them cannot be told from what was committed."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    stamped, plain = {"message.timestamp.type": "LogAppendTime"}, {"message.timestamp.type": "CreateTime"}
    data, offsets, others = (TopicSpec(unique(name), config=stamped) for name in ("data", "offsets", "others"))
    ensure_topics(admin, [data, offsets, others])
    asked = [replace(data, config={}, keeps_all=True), replace(offsets, config=plain), replace(others, config={})]
    first, second = check_topics(admin, asked).warnings
    assert f"topic {data.name} has message.timestamp.type=LogAppendTime" in first
    assert f"topic {offsets.name} has message.timestamp.type=LogAppendTime" in second
