"""A topic that took no records is written to again when nothing that others left open stands in it."""

from __future__ import annotations

from typing import Any

import pytest

from connector.delivery import Field, KafkaClients, Standing, TopicFacts
from connector.errors import FatalDeliveryError
from connector.worker import writable_topics
from connector.worker.writable_topics import WritableTopics
from tests.config.files import loaded

FACTS = TopicFacts("t", 1, False, 1_000_000)
OWN, GONE = "shop-0", "shop-1"


class Stood(Standing):
    def __init__(self, blocked: str | None = None) -> None:
        super().__init__()
        self.blocked_by = blocked

    def look(self, clients: KafkaClients, topic: str) -> str | None:
        return self.blocked_by


def topics(stood: Standing | None = None, positions: Any = lambda: None) -> WritableTopics:
    clients = KafkaClients({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    return WritableTopics(loaded(), clients, OWN, stood or Stood(), positions)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    asked: list[set[str]] = []
    monkeypatch.setattr(writable_topics, "look_at_topic", lambda *_: FACTS)
    monkeypatch.setattr(writable_topics, "end_left_open", lambda clients, field, owners: asked.append(owners))
    return asked


def test_what_former_owners_left_open_is_ended_first_but_nothing_of_our_own(ended: list[set[str]]) -> None:
    assert topics().look("t", frozenset({OWN, GONE})) is FACTS and ended == [{GONE}]
    assert topics().look("t", frozenset()) is FACTS and len(ended) == 1


def test_what_cannot_be_ended_yet_is_why_the_topic_is_waited_for(
    ended: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unseen(clients: KafkaClients, field: Field, owners: set[str]) -> None:
        assert field.unseen is not None
        field.unseen("t", "it has no leader", owners)

    assert topics(Stood("blocked")).look("t", frozenset({GONE})) == "blocked" and not ended
    monkeypatch.setattr(writable_topics, "end_left_open", unseen)
    assert topics().look("t", frozenset({GONE})) == "it has no leader"


def test_an_offsets_topic_that_is_another_one_is_not_created_anew(ended: list[set[str]]) -> None:
    def another() -> None:
        raise FatalDeliveryError("the positions that were in it are gone")

    writable = topics(positions=another)
    assert (
        writable.look(loaded().connector.delivery.offset_topic, frozenset()) == "the positions that were in it are gone"
    )
    assert writable.look("t", frozenset()) is FACTS
