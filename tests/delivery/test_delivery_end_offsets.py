"""Where partitions end, asked while their leaders change."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connector.delivery import READ_COMMITTED, KafkaClients, ends_of_topic, read_topic
from connector.delivery.end_offsets import ANSWER_SECONDS, end_offsets
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import ensure_topics
from connector.errors import RetriableDeliveryError
from tests.servers.mock_kafka import mock_kafka

pytestmark = pytest.mark.kafka
Unique = Callable[[str], str]


class Changing:
    """An admin client whose answer about one partition is an error, the first ``times``."""

    def __init__(self, clients: KafkaClients, partition: int, code: int, times: int) -> None:
        self._admin = clients.admin()
        self._partition = partition
        self._error = KafkaException(KafkaError(code))
        self.left = times
        self.asked: list[set[int]] = []

    def list_offsets(self, wanted: dict[TopicPartition, Any], **more: Any) -> dict[TopicPartition, Future[Any]]:
        self.asked.append({place.partition for place in wanted})
        answered: dict[TopicPartition, Future[Any]] = self._admin.list_offsets(wanted, **more)
        for place, answer in answered.items():
            if place.partition == self._partition and self.left > 0:
                self.left -= 1
                answer.result(timeout=60)
                answered[place] = Future()
                answered[place].set_exception(self._error)
        return answered


@pytest.fixture
def clients(kafka: object) -> KafkaClients:
    return KafkaClients({"bootstrap.servers": kafka.bootstrap_servers})  # type: ignore[attr-defined]


@pytest.fixture
def topic(clients: KafkaClients, unique: Unique) -> str:
    name = unique("offsets")
    ensure_topics(clients.admin(), [TopicSpec(name, 3, 1)])
    return name


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._NOENT,
    ],
)
def test_a_partition_whose_leader_changes_is_asked_about_again(clients: KafkaClients, topic: str, code: int) -> None:
    changing: Any = Changing(clients, 1, code, times=2)
    ends = end_offsets(changing, [(topic, number) for number in range(3)], leaderless=60)
    assert ends == {(topic, number): 0 for number in range(3)}
    assert changing.asked == [{0, 1, 2}, {1}, {1}]


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_of_one_that_nobody_leads_it_is_said(clients: KafkaClients, topic: str, seconds: float) -> None:
    changing: Any = Changing(clients, 1, KafkaError.LEADER_NOT_AVAILABLE, times=1 << 30)
    with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
        end_offsets(changing, [(topic, 1)], leaderless=seconds)
    assert (len(changing.asked) > 1) is (seconds > 0)


def test_another_error_is_said_at_once(clients: KafkaClients, topic: str) -> None:
    changing: Any = Changing(clients, 1, KafkaError.TOPIC_AUTHORIZATION_FAILED, times=1)
    with pytest.raises(KafkaException):
        end_offsets(changing, [(topic, 1)], leaderless=60)
    assert changing.left == 0 and len(changing.asked) == 1


def test_who_reads_a_topic_once_needs_to_know_nothing_of_it(
    clients: KafkaClients, topic: str, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = Changing(clients, 0, KafkaError.NOT_LEADER_FOR_PARTITION, times=3)
    monkeypatch.setattr(KafkaClients, "admin", lambda self: changing)
    try:
        assert list(read_topic(clients, topic, 3, unique("group"), READ_COMMITTED)) == []
    except RetriableDeliveryError as error:
        pytest.fail(f"a change of leaders ended it: {error}")
    assert changing.left == 0


class Unanswered(Future[Any]):
    """Whoever waits for it has waited in vain, which takes no time here: a real answer has as much as it needs."""

    def __init__(self, waited: list[float | None]) -> None:
        super().__init__()
        self._waited = waited

    def result(self, timeout: float | None = None) -> Any:
        self._waited.append(timeout)
        raise TimeoutError


class Silent:
    """An admin client whose broker has gone without a word."""

    def __init__(self) -> None:
        self.waited: list[float | None] = []

    def list_offsets(self, wanted: dict[TopicPartition, Any], **_: object) -> dict[TopicPartition, Future[Any]]:
        return {place: Unanswered(self.waited) for place in wanted}


def test_a_leader_that_does_not_answer_is_looked_for_by_another_client(
    clients: KafkaClients, topic: str, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Silent()
    admins: list[Any] = [silent, silent, clients.admin()]
    monkeypatch.setattr("connector.delivery.topic_reader.LEADERLESS_SECONDS", 600.0)
    monkeypatch.setattr(KafkaClients, "admin", lambda self: admins.pop(0))
    try:
        assert list(read_topic(clients, topic, 3, unique("group"), READ_COMMITTED)) == []
    except RetriableDeliveryError as error:
        pytest.fail(f"a broker's end ended it: {error}")
    assert silent.waited == [ANSWER_SECONDS] * 2 and not admins


def test_that_no_partition_has_a_leader_is_an_error_that_passes(unique: Unique) -> None:
    """As librdkafka says it, of a topic whose only broker is away."""
    with mock_kafka(brokers=2) as kafka:
        name = unique("t")
        kafka.create(name)
        kafka.leave_leaderless(name)
        with pytest.raises(RetriableDeliveryError, match="No leaders found"):
            ends_of_topic(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}), name, 1)
