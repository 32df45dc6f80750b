"""A topic that we have no right to see is not taken for one that was deleted: lists of topics leave out both."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AclOperation, AdminClient

from connector.delivery import (
    Follower,
    KafkaClients,
    LastingTopic,
    Membership,
    Standing,
    TopicFacts,
    check_topics,
    clients,
    follow,
    group_refusal,
    look_at_topic,
    topic_refusals,
    topics,
)
from connector.delivery.beginning import AGAIN_SECONDS
from connector.delivery.failures import translated
from connector.delivery.hanging_transactions import Field, end_hanging_transactions, ended_everywhere, stands_somewhere
from connector.delivery.producer import FailedRecord
from connector.delivery.slots_reader import Run
from connector.delivery.topic_creation import create_topics
from connector.delivery.topic_facts import TopicSpec
from connector.errors import MissingRight, RetriableDeliveryError, RightMissing

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


def test_who_does_not_answer_has_not_told_that_a_topic_was_deleted(admin: Hidden) -> None:
    admin.code = KafkaError._TIMED_OUT
    assert not ended_everywhere(KafkaClients({}), {TOPIC}, [], 0.0)
    where = Field("c", "offsets", "g", lambda: [TOPIC], lambda topic, why, owners: None)
    with pytest.raises(RetriableDeliveryError, match=f"describing topic {TOPIC}"):
        end_hanging_transactions(KafkaClients({}), where, [], 0.0)


def test_a_hidden_topic_that_is_not_to_be_created_is_not_called_missing(admin: Hidden) -> None:
    spec = TopicSpec(TOPIC, create=False)
    (problem,) = check_topics(cast(AdminClient, admin), [spec]).problems
    assert isinstance(problem, MissingRight), "a worker that begins waits for it"
    assert "no right to see the topic" in problem.problem and problem.suggestion is not None
    assert problem.suggestion.startswith("grant READ, WRITE and DESCRIBE")
    admin.code = KafkaError.UNKNOWN_TOPIC_OR_PART
    (problem,) = check_topics(cast(AdminClient, admin), [spec]).problems
    assert "does not exist" in problem.problem


def test_rights_are_asked_for_by_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer may log in as another one than who looks at topics (`producer.override.sasl.jaas.config`)."""
    logins: list[Any] = []

    class Admin(Hidden):
        def __init__(self, properties: dict[str, Any]) -> None:
            super().__init__(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            logins.append(properties["sasl.username"])

    monkeypatch.setattr(clients, "AdminClient", Admin)
    given = KafkaClients({"sasl.username": "worker"}, {"sasl.username": "writer"}, {"sasl.username": "reader"})
    for made in (given.admin, given.writers_admin, given.members_admin):
        made()
    assert logins == ["worker", "writer", "reader"]
    monkeypatch.setattr(topics, "may_write", lambda admin, name: admin == "writer's")
    monkeypatch.setattr(topics, "known_facts", lambda admin, there: {TOPIC: TopicFacts(TOPIC, 1, False, 1_000_000)})
    there = SimpleNamespace(error=None, partitions={0: SimpleNamespace(error=None, leader=1, isrs=[1], replicas=[1])})
    asks = SimpleNamespace(list_topics=lambda timeout: SimpleNamespace(topics={TOPIC: there}))
    look = partial(look_at_topic, cast(AdminClient, asks), TopicSpec(TOPIC))
    assert isinstance(look(cast(Any, lambda: "writer's")), TopicFacts)
    assert "grant DESCRIBE and WRITE" in str(look(cast(Any, lambda: "another's")))


class Granted:
    """Tells the rights of one login, by topics and groups; lists nothing."""

    def __init__(self, **rights: set[AclOperation]) -> None:
        self.rights = rights

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: self._answer(name) for name in wanted.topic_names}

    def describe_consumer_groups(self, wanted: list[str], **_: Any) -> dict[str, Future[Any]]:
        return {name: self._answer(name) for name in wanted}

    def _answer(self, name: str) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_result(SimpleNamespace(authorized_operations=self.rights.get(name, set()), members=[]))
        return answer


def test_each_login_is_asked_for_the_rights_that_its_own_clients_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction commits offsets of the group, so producers need what consumers do, of the group and its topic."""
    read, write = AclOperation.READ, AclOperation.WRITE
    producers = Granted(offsets={write}, shop={write})
    consumers = Granted(offsets={read}, ours={read})
    monkeypatch.setattr(KafkaClients, "admin", lambda self: Granted(offsets={write}, shop={write}, schemas={write}))
    monkeypatch.setattr(KafkaClients, "writers_admin", lambda self: producers)
    monkeypatch.setattr(KafkaClients, "members_admin", lambda self: consumers)
    given, offsets, schemas, shop = KafkaClients({}), TopicSpec("offsets"), TopicSpec("schemas"), TopicSpec("shop")
    found = topic_refusals(given, written=[shop, schemas, offsets], read=[offsets, schemas], offsets=offsets)
    assert [(each.value, each.suggestion) for each in found] == [
        ("schemas", "grant WRITE on it to the login of producers"),
        ("offsets", "grant READ on it to the login of producers"),
        ("schemas", "grant READ on it to the login of consumers"),
    ]
    assert "login of producers" in str(group_refusal(given, "ours", transactions=True))
    assert group_refusal(given, "ours", transactions=False) is None
    producers.rights |= {"schemas": {write}, "offsets": {write, read}, "ours": {read}}
    consumers.rights["schemas"] = {read}
    assert topic_refusals(given, written=[shop, schemas], read=[schemas], offsets=offsets) == []
    assert group_refusal(given, "ours", transactions=True) is None
    consumers.rights.clear()
    assert "producers" not in str(group_refusal(given, "ours", transactions=True))
    monkeypatch.setattr(KafkaClients, "admin", lambda self: Hidden(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert topic_refusals(given, written=[], read=[schemas], offsets=None) == [], "that it cannot be created is told"
    monkeypatch.setattr(KafkaClients, "admin", lambda self: Hidden(KafkaError._TRANSPORT))
    (found,) = topic_refusals(given, written=[], read=[schemas], offsets=None)
    assert found.value == "schemas", "whoever lacks an answer of another login keeps what this one was told"


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


class Reader:
    """Of slots: hands out what it was given."""

    client, has_more = None, False

    def __init__(self, made: list[Reader]) -> None:
        self.events: list[Run] = []
        self.closed = False
        made.append(self)

    def assign(self, starts: Any) -> None: ...

    def read(self, seconds: float, waits: bool = True) -> list[Run]:
        came, self.events = self.events, []
        return came

    def close(self) -> None:
        self.closed = True


def event(code: int) -> Run:
    return Run(0, [Message(topic=TOPIC, partition=0, offset=0, error=KafkaError(code))])


def test_who_was_refused_the_commits_of_others_reads_them_by_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose look at all topics came while the offsets topic was hidden sees it only at its next look, which
    is five minutes later."""
    made: list[Reader] = []
    now, hidden = 0.0, True

    def positions() -> None:
        if hidden:
            raise RetriableDeliveryError(GRANT)

    monkeypatch.setattr(follow, "slots_reader", lambda *_: Reader(made))
    monkeypatch.setattr(follow, "high_watermarks", lambda *_: {0: 0})
    follower = Follower(KafkaClients({}), "c", TOPIC, "g", 1, clock=lambda: now, positions=positions)
    follower.start()
    made[0].events = [event(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    for _ in range(3):
        follower.poll()
        now += AGAIN_SECONDS
        assert GRANT in (follower.last_error or "") or "grant READ" in (follower.last_error or "")
    assert len(made) == 1 and not follower.caught_up
    hidden = False
    follower.poll()
    assert made[0].closed and len(made) == 2 and follower.caught_up == {0}
    made[1].events = [event(KafkaError._PARTITION_EOF)]
    follower.poll()
    assert follower.last_error is None


def test_who_assigns_slots_looks_often_whether_their_topic_may_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka looks every five minutes by itself; until then a topic that was hidden has no partitions to assign."""
    made: dict[str, Any] = {}
    monkeypatch.setattr(KafkaClients, "consumer", lambda self, group, isolation, **own: made.update(own))
    Membership(KafkaClients({}), TOPIC, "g", "w", slots=1)
    assert made["topic_metadata_refresh_interval_ms"] <= 10_000


def test_where_only_the_right_to_read_is_missing_clients_are_made_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each asks for a login, and the present one goes on by itself."""
    made: list[Reader] = []
    now = 0.0
    monkeypatch.setattr(follow, "slots_reader", lambda *_: Reader(made))
    monkeypatch.setattr(follow, "high_watermarks", lambda *_: {0: 1})
    follower = Follower(KafkaClients({}), "c", TOPIC, "g", 1, clock=lambda: now)
    follower.start()
    for _ in range(600):
        made[-1].events = [event(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
        follower.poll()
        now += 1.0
    assert 5 < len(made) < 20
    made[-1].events = [event(KafkaError._PARTITION_EOF)]
    follower.poll()
    assert follower.last_error is None
    before = len(made)
    made[-1].events = [event(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    for _ in range(3):
        follower.poll()
        now += AGAIN_SECONDS
    assert len(made) > before, "the next time at once"
