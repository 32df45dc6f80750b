"""A topic that we have no right to see is not taken for one that was deleted: lists of topics leave out both."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from connector.delivery import KafkaClients, LastingTopic, Standing
from connector.delivery.failures import translated
from connector.delivery.hanging_transactions import Field, end_hanging_transactions, ended_everywhere, stands_somewhere
from connector.delivery.producer import FailedRecord
from connector.delivery.topic_creation import create_topics
from connector.delivery.topic_facts import TopicSpec
from connector.errors import RetriableDeliveryError, RightMissing

TOPIC = "shop.orders"
GRANT = f"no right to see topic {TOPIC}, if there is one: grant DESCRIBE, READ and WRITE on it"


class Hidden:
    """An admin client of a cluster whose list of topics is empty: ``code`` says why."""

    def __init__(self, code: int) -> None:
        self.code = code

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={}, brokers={})

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: self._refused() for name in wanted.topic_names}

    def list_offsets(self, wanted: Any, **_: Any) -> dict[Any, Future[Any]]:
        return {place: self._refused() for place in wanted}

    def create_topics(self, news: Any, **_: Any) -> dict[str, Future[Any]]:
        return {new.topic: self._refused() for new in news}

    def _refused(self) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(self.code)))
        return answer


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Hidden:
    admin = Hidden(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    monkeypatch.setattr(KafkaClients, "admin", lambda self: admin)
    return admin


def test_what_is_suspected_of_a_hidden_topic_is_not_forgotten(admin: Hidden) -> None:
    clients, stood = KafkaClients({}), Standing(60.0)
    stood.suspect((TOPIC, 0), 7)
    for _ in range(2):
        with pytest.raises(RightMissing, match=GRANT):
            stood.look(clients, TOPIC)
    admin.code = KafkaError.UNKNOWN_TOPIC_OR_PART
    assert stood.look(clients, TOPIC) is None, "it was deleted, and what stood in it is gone"


def test_nobody_knows_how_a_transaction_ended_in_a_hidden_topic(admin: Hidden) -> None:
    clients = KafkaClients({})
    assert not ended_everywhere(clients, {TOPIC}, [], 0.0)
    where = Field("c", "offsets", "g", lambda: [TOPIC], lambda topic, why, owners: None)
    assert stands_somewhere(clients, where, 0.0, lambda: False)
    admin.code = KafkaError.UNKNOWN_TOPIC_OR_PART
    assert ended_everywhere(clients, {TOPIC}, [], 0.0)


def test_that_positions_may_not_be_seen_is_said_as_what_it_is(admin: Hidden) -> None:
    where = Field("c", TOPIC, "g", lambda: ["another"], lambda topic, why, owners: None)
    with pytest.raises(RightMissing, match=GRANT):
        end_hanging_transactions(KafkaClients({}), where, [], 0.0)
    with pytest.raises(RetriableDeliveryError, match=GRANT):
        LastingTopic(KafkaClients({}), TOPIC, "its positions are gone").check()


@pytest.mark.parametrize("doing", ["reading topic cdc-offsets", "producing to cdc-status"])
def test_the_right_to_a_topic_that_is_missing_is_named(doing: str) -> None:
    """Also of the topics of positions and status, which are read as well: `DESCRIBE and WRITE` would not be enough."""
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    error = translated(refused, doing)
    assert isinstance(error, RightMissing), "no worker ends for it"
    assert str(error).endswith("; grant READ, WRITE and DESCRIBE on the topic")
    assert str(FailedRecord("cdc-offsets", None, refused)).endswith("; grant READ, WRITE and DESCRIBE on the topic")


def test_who_may_not_create_a_topic_is_told_that_it_may_be_there(admin: Hidden) -> None:
    (problem,) = create_topics(cast(AdminClient, admin), [TopicSpec(TOPIC)])
    assert problem.suggestion is not None and problem.suggestion.startswith("if it is there, grant READ, WRITE")
