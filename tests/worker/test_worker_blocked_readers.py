"""Topics whose readers stand at a transaction that none of our workers can have begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from connector.delivery import blocked_partitions
from connector.errors import RetriableDeliveryError
from connector.source import Background
from connector.worker.blocked_readers import COORDINATORS_SECONDS, BlockedReaders
from connector.worker.settings import kafka_clients
from connector.worker.topic_looks import LOOK_SECONDS
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.servers.patience import until

SLOTS = frozenset(range(25))


class Looks:
    """Time, and what is found at each look."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.answer: dict[tuple[str, int], int] | Exception = {}
        self.asked: list[list[str]] = []
        self.background = Background(lambda: self.now, lambda: self.now)
        self.clients, chores = kafka_clients(loaded()), self
        self.readers = BlockedReaders(
            self.clients,
            chores,
            self.background,
            slots=25,
            timeout_ms=20_000,
            read=self.read,  # type: ignore[arg-type]
        )

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        try:
            found = call()
        except RetriableDeliveryError as error:
            then(None, error)
        else:
            then(found, None)

    def read(self, clients: object, topics: Any) -> dict[tuple[str, int], int]:
        self.asked.append(list(topics))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def after(self, seconds: float, answer: dict[tuple[str, int], int] | Exception) -> list[str]:
        self.now, self.answer = self.now + seconds, answer
        self.readers.tick(["a", "b"], SLOTS)
        return [str(each) for each in self.background.failing()]


def test_what_stands_for_longer_than_a_transaction_of_ours_is_told_with_what_ends_it() -> None:
    looks = Looks()
    assert looks.after(LOOK_SECONDS - 1, {("b", 1): 7}) == [] and not looks.asked, "it is looked at now and then"
    assert looks.after(1, {("b", 1): 7}) == [], "it may be ours"
    assert looks.after(LOOK_SECONDS, {("b", 1): 8, ("a", 0): 3}) == [], "it moves"
    assert looks.after(LOOK_SECONDS, RetriableDeliveryError("away")) == []
    said = looks.after(LOOK_SECONDS, {("b", 1): 8, ("a", 0): 4})
    assert len(said) == 1 and said[0].startswith("topic b: those who read what is committed get nothing new since ")
    assert "partition 1 stands at offset 8 since 1970-01-01T00:18:40+00:00 or longer" in said[0]
    assert "abort --topic b --partition 1 --start-offset 8` ends it" in said[0]
    assert f"--bootstrap-server {looks.clients.address} describe-producers" in said[0]
    assert not any(each.holds for each in looks.background.failing())
    assert len(looks.after(LOOK_SECONDS, {("b", 1): 8, ("a", 0): 4})) == 2
    assert looks.after(LOOK_SECONDS, {("a", 0): 9}) == [], "both have moved"
    assert COORDINATORS_SECONDS + 20 < LOOK_SECONDS


def test_each_topic_is_looked_at_by_one_worker() -> None:
    asked: list[list[str]] = []
    for owned in (frozenset(range(12)), SLOTS - frozenset(range(12))):
        looks = Looks()
        looks.now += LOOK_SECONDS
        looks.readers.tick([f"t{number}" for number in range(20)], owned)
        asked += looks.asked
    assert len(asked) == 2 and sorted(asked[0] + asked[1]) == sorted(f"t{number}" for number in range(20))


@pytest.mark.kafka
def test_where_partitions_stand(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    topic, other = unique("stands"), unique("moves")
    clients = kafka_clients(loaded(worker={"bootstrap.servers": kafka.bootstrap_servers}))
    admin = clients.admin()
    made = admin.create_topics([NewTopic(topic, 2, 1), NewTopic(other, 1, 1)])
    assert all(future.result(60) is None for future in made.values())
    producer = clients.producer(transactional_id=unique("foreign"), transaction_timeout_ms=300_000)
    producer.init_transactions(60)
    producer.begin_transaction()
    for name in (topic, topic, other):
        producer.produce(name, b"x", partition=0)
    producer.flush(60)
    assert blocked_partitions(clients, [topic, "not there"]) == {(topic, 0): 0}
    producer.abort_transaction(60)
    until(lambda: not blocked_partitions(clients, [topic, other]), 60, "the end of it everywhere")
