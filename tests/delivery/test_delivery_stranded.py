"""Clients that lose all of their brokers for good are replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connector.delivery import KafkaClients, Lookout, ReportingProducer, SmallTopic, small_topic
from connector.delivery.stranded import STRANDED_SECONDS, Silence, is_stranded
from connector.delivery.topic_facts import TopicSpec
from connector.errors import RetriableDeliveryError, Stranded
from embedded.kafka import EmbeddedKafka
from tests.servers.patience import until


def polled(topic: SmallTopic) -> str | None:
    try:
        topic.poll(0.1)
    except RetriableDeliveryError as error:
        return str(error)
    return None


@dataclass
class Client:
    reaches: bool = True

    def list_topics(self, topic: str, timeout: float) -> None:
        if not self.reaches:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@dataclass
class Half:
    """A membership, or a follower."""

    client: Client = field(default_factory=Client)
    settled: bool = True
    member_id: str = "w-1"
    heard: int = 1


@dataclass
class Delivering:
    producers: list[Client] = field(default_factory=lambda: [Client()])
    commits: int = 0
    disowned: bool = False


class Clients:
    def __init__(self) -> None:
        self.new = Client()

    def admin(self) -> Client:
        return self.new


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A worker, as its lookout sees it."""

    def __init__(self) -> None:
        self.clients, self.membership, self.follower, self.clock = Clients(), Half(), Half(), Clock()
        self.delivery = Delivering()
        self.lookout = Lookout(
            self.clients,  # type: ignore[arg-type]
            "offsets",
            self.membership,  # type: ignore[arg-type]
            self.follower,  # type: ignore[arg-type]
            self.delivery,  # type: ignore[arg-type]
            self.clock,
        )

    def lives(self, seconds: float, commits: bool = False, fails: bool = False) -> None:
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now += 1.0
            self.delivery.commits += commits
            self.lookout.tick(fails)


@pytest.fixture
def worker() -> Watched:
    return Watched()


class Stranding(KafkaClients):
    """The first consumer has lost its brokers before it is used."""

    __slots__ = ()
    made: ClassVar[list[Any]] = []

    def consumer(self, group: str, isolation: str, **own: Any) -> Any:
        consumer = KafkaClients.consumer(self, group, isolation, **own) if self.made else Lost()
        self.made.append(consumer)
        return consumer


class Lost(Client):
    closed = False

    def __init__(self, error: int = KafkaError._TRANSPORT) -> None:
        super().__init__(reaches=False)
        self.error = error

    def poll(self, timeout: float) -> None:
        pass

    def consume(self, most: int, timeout: float) -> list[Any]:
        return []

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> None:
        raise KafkaException(KafkaError(self.error))

    def close(self) -> None:
        self.closed = True


def test_a_topic_is_read_on_by_another_client_when_the_first_has_lost_its_brokers(
    kafka: EmbeddedKafka, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, clock = unique("topic"), Clock()
    clients = Stranding({"bootstrap.servers": kafka.bootstrap_servers})
    topic = SmallTopic(clients, TopicSpec(name, 1, 1, compacted=True), "group")
    topic._failing = Silence(clock=clock)
    assert polled(topic) and polled(topic)
    clock.now += STRANDED_SECONDS
    assert polled(topic)
    topic.write(b"k", b"v")
    until(lambda: polled(topic) is None and topic.reading, what="the topic to be read")
    topic.close()
    assert len(clients.made) == 2 and clients.made[0].closed


def test_a_quiet_topic_is_asked_for_a_sign_of_life(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    name, clock = unique("topic"), Clock()
    topic = SmallTopic(
        KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}), TopicSpec(name, 1, 1, compacted=True), "group"
    )
    topic._quiet = Silence(1.0, clock)
    topic.write(b"k", b"v")
    until(lambda: polled(topic) is None and topic.complete and topic.reading)
    topic._consumer, real = Lost(), topic._consumer  # type: ignore[assignment]
    real.close()  # type: ignore[union-attr]
    assert polled(topic) is None
    clock.now += 1.0
    assert polled(topic) and not topic.reading


def test_a_topic_that_is_known_is_waited_for_while_brokers_do_not_tell_of_it() -> None:
    """As they start: librdkafka calls it an unknown partition then, and not a thing that passes."""
    topic = SmallTopic(KafkaClients({"bootstrap.servers": "127.0.0.1:1"}), TopicSpec("t", 1, 1), "group")
    topic._quiet = Silence(0.0)
    topic._consumer, topic.reading = Lost(KafkaError._UNKNOWN_PARTITION), True  # type: ignore[assignment]
    assert "_UNKNOWN_PARTITION" in (polled(topic) or "") and not topic.reading


def test_nothing_of_a_topic_is_told_before_all_of_it_is_there(
    kafka: EmbeddedKafka, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = SmallTopic(
        KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}), TopicSpec(unique("topic"), 1, 1), "group"
    )
    assert [topic.write(b"k", value) for value in (b"1", b"2", b"3")] == [0, 1, 2]
    monkeypatch.setattr(small_topic, "MESSAGES_PER_CALL", 1)
    told = list[list[Any]]()

    def tell() -> bool:
        told.append([value for _, _, value in topic.poll_whole(0.1)])
        return topic.complete

    until(tell, what="its end")
    assert [each for each in told if each] == [[b"1", b"2", b"3"]]
    topic.reading = False
    told.clear()
    assert not tell() and not told[0], "all of it comes once more"
    until(tell, what="its end")
    assert [each for each in told if each] == [[b"1", b"2", b"3"]]
    topic.write(b"k", b"4")
    until(lambda: tell() and told[-1], what="the next one")
    assert told[-1] == [b"4"]
    topic.close()


def test_a_producer_is_stuck_that_gets_nothing_through_for_long() -> None:
    clock = Clock()
    producer = ReportingProducer(KafkaClients({"bootstrap.servers": "127.0.0.1:1"}))
    producer._silence = Silence(clock=clock)
    clock.now += 2 * STRANDED_SECONDS
    assert not producer.is_stuck()  # it has nothing to say
    producer.produce_to("topic", 0, b"k", b"v")
    assert not producer.is_stuck()
    clock.now += STRANDED_SECONDS
    assert producer.is_stuck()
    producer.close()


def test_a_client_is_stranded_that_reaches_nobody_where_a_new_one_does() -> None:
    clients: Any = Clients()
    assert is_stranded(clients, Client(reaches=False), "t")
    assert not is_stranded(clients, Client(), "t")
    clients.new.reaches = False
    assert not is_stranded(clients, Client(reaches=False), "t")


def test_a_worker_that_no_group_answers_ends_if_its_client_is_stranded(worker: Any) -> None:
    worker.membership.settled = False
    worker.lives(2 * STRANDED_SECONDS)  # the group has not settled: that is no reason
    worker.membership.client.reaches = False
    with pytest.raises(Stranded, match="consumer group"):
        worker.lives(STRANDED_SECONDS + 1)


def test_a_worker_without_slots_is_in_no_group_either(worker: Any) -> None:
    worker.membership.member_id = ""
    worker.membership.client.reaches = False
    with pytest.raises(Stranded, match="consumer group"):
        worker.lives(STRANDED_SECONDS + 1)


def test_whether_it_is_in_the_group_is_asked_once_a_second(worker: Any) -> None:
    """However often it looks: the client's thread answers, which may get no turn for a while."""
    asked = []

    class Member:
        settled, client = True, Client()

        @property
        def member_id(self) -> str:
            asked.append(worker.clock.now)
            return "w-1"

    worker.lookout._membership = Member()
    for tenth in range(30):
        worker.clock.now = tenth / 10
        worker.lookout.tick(False)
    assert asked == [0.0, 1.0, 2.0]


def test_a_worker_that_hears_nothing_of_its_own_commits_ends_if_its_client_is_stranded(worker: Any) -> None:
    worker.follower.client.reaches = False
    worker.lives(2 * STRANDED_SECONDS)  # nothing is committed, so there is nothing to hear
    with pytest.raises(Stranded, match="follows commits"):
        worker.lives(STRANDED_SECONDS + 2, commits=True)


def test_a_worker_whose_transactions_fail_ends_if_its_producer_is_stranded(worker: Any) -> None:
    worker.lives(2 * STRANDED_SECONDS, fails=True)  # somebody refuses them
    worker.delivery.producers[0].reaches = False
    worker.lives(2 * STRANDED_SECONDS)  # nothing is to be delivered
    with pytest.raises(Stranded, match="that delivers"):
        worker.lives(STRANDED_SECONDS + 2, fails=True)


def test_a_worker_that_its_group_does_not_know_ends_if_its_client_never_hears_of_it(worker: Any) -> None:
    """It asks a coordinator that hangs to be taken in again, which may take five minutes."""
    worker.delivery.disowned = True
    worker.lives(STRANDED_SECONDS - 1, fails=True)
    worker.lives(STRANDED_SECONDS, commits=True)
    with pytest.raises(Stranded, match="the consumer group does not know this worker"):
        worker.lives(2 * STRANDED_SECONDS, fails=True)


def test_a_worker_waits_while_kafka_is_away(worker: Any) -> None:
    worker.membership.settled = worker.membership.client.reaches = worker.clients.new.reaches = False
    worker.lives(3 * STRANDED_SECONDS)


def test_silence_lasts_until_it_is_broken() -> None:
    clock = Clock()
    silence = Silence(5.0, clock)
    told = []
    for clock.now in range(12):
        told.append(silence.lasts())
    assert [at for at, lasts in enumerate(told) if lasts] == [5, 10]
    silence.broken()
    assert not silence.lasts()
