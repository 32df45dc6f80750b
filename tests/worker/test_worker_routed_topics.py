"""Topics that only a transform names: created once, when a record goes there; refused ones fail their records."""

from __future__ import annotations

from typing import Any, cast

from connector.delivery.topic_facts import TopicFacts
from connector.errors import ConfigurationError
from connector.formats.encoder import Encoder
from connector.worker.pipeline import Pipeline
from tests.config.files import loaded


def pipeline(create: Any, **topics: TopicFacts) -> Pipeline:
    return Pipeline(loaded(), cast(Encoder, None), topics, 0, create)


def test_an_unknown_topic_is_created_once() -> None:
    asked: list[str] = []

    def create(topic: str) -> TopicFacts:
        asked.append(topic)
        return TopicFacts(topic, 1, False, 1_000_000)

    found = pipeline(create, known=TopicFacts("known", 1, False, 1_000_000))
    assert all(found.has_topic(topic) for topic in ("known", "routed", "routed"))
    assert asked == ["routed"]


def test_a_topic_that_may_not_be_created_holds_up_its_records_and_is_not_tried_again_at_once() -> None:
    asked: list[str] = []

    def create(topic: str) -> TopicFacts:
        asked.append(topic)
        raise ConfigurationError("not allowed")

    found = pipeline(create)
    assert not found.has_topic("routed") and not found.has_topic("routed")
    assert asked == ["routed"] and found.suspended_topics == {"routed": "not allowed"}
