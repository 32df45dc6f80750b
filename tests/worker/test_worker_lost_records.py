"""Records that brokers had acknowledged and have no more are told, and nothing else is taken for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from connector.delivery import partition_ends
from connector.errors import RetriableDeliveryError
from connector.source import Background
from connector.worker.lost_records import SURE_SECONDS, LostRecords
from connector.worker.settings import kafka_clients
from connector.worker.topic_looks import LOOK_SECONDS
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded

Ends = dict[tuple[str, int], tuple[str, int]]

SLOTS = frozenset(range(25))


class Looks:
    """Time, and where partitions end at each look."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.answer: Ends | Exception = {}
        self.asked: list[list[str]] = []
        self.doubted: list[str] = []
        self.background = Background(lambda: self.now, lambda: self.now)
        clients, chores = kafka_clients(loaded()), self
        self.records = LostRecords(
            clients,
            chores,  # type: ignore[arg-type]
            self.background,
            slots=25,
            positions="positions",
            descriptions="schemas",
            apart=("status",),
            doubt=self.doubted.append,
            read=self.read,
        )

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        try:
            found = call()
        except RetriableDeliveryError as error:
            then(None, error)
        else:
            then(found, None)

    def read(self, clients: object, topics: Iterable[str]) -> Ends:
        self.asked.append(sorted(topics))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def after(
        self, seconds: float, answer: Ends | Exception, owned: frozenset[int] = SLOTS, ready: bool = True
    ) -> list[str]:
        self.now, self.answer = self.now + seconds, answer
        # A worker knows the topic of positions among those that it writes to.
        self.records.tick(["a", "b", "positions", "status"], owned, ready)
        return [str(each) for each in self.background.failing()]


def test_an_end_that_goes_back_is_told_once_it_is_certain() -> None:
    looks = Looks()
    assert looks.after(0, {("a", 0): ("x", 5), ("b", 1): ("y", 80)}) == []
    assert looks.after(LOOK_SECONDS, {("a", 0): ("x", 5), ("b", 1): ("y", 100)}) == []
    assert looks.after(LOOK_SECONDS, {("a", 0): ("x", 6), ("b", 1): ("y", 90)}) == []
    (said,) = looks.after(SURE_SECONDS, {("a", 0): ("x", 7), ("b", 1): ("y", 93)})
    assert said.startswith("topic b: records that were delivered are gone since ")
    assert "partition 1 ends at offset 90, and had records up to 100 at 1970-01-01T00:17:40+00:00" in said
    # What is written at one time is of changes that are older than that, and of one stream more than of another.
    assert (
        "`scylla-cdc offsets reset --to` a time before the last record that is left was written, by more than the lag"
        in said
    )
    assert not any(each.holds for each in looks.background.failing())
    assert len(looks.after(LOOK_SECONDS, {("a", 0): ("x", 8), ("b", 1): ("y", 200)})) == 1, "nobody gives them back"
    looks.after(LOOK_SECONDS, {("b", 1): ("y", 150)})
    (said,) = looks.after(SURE_SECONDS, {("b", 1): ("y", 150)})
    assert "ends at offset 90, " in said and "ends at offset 150, " in said


def test_positions_that_are_gone_are_told_for_what_follows_from_that() -> None:
    looks = Looks()
    looks.after(0, {("positions", 3): ("x", 80)})
    looks.after(LOOK_SECONDS, {("positions", 3): ("x", 60)})
    (said,) = looks.after(SURE_SECONDS, {("positions", 3): ("x", 60)})
    assert said.startswith("topic positions: positions that were committed are gone since ")
    assert "partition 3 ends at offset 60, " in said and "delivered again" in said and "offsets reset" not in said


def test_descriptions_that_are_gone_are_looked_for_and_no_change_is_delivered_again_for_them() -> None:
    looks = Looks()
    for seconds, end in ((0, 3), (LOOK_SECONDS, 2)):
        looks.after(seconds, {("schemas", 0): ("x", end)})
    looks.doubted.clear()
    (said,) = looks.after(SURE_SECONDS, {("schemas", 0): ("x", 2)})
    assert "described in it again" in said and "offsets reset" not in said
    assert "schemas" in looks.doubted


def test_what_only_seems_to_be_gone_is_not_told() -> None:
    looks = Looks()
    looks.after(0, {("a", 0): ("x", 50)})
    assert looks.after(LOOK_SECONDS, {("a", 0): ("x", 40)}) == []
    assert looks.after(SURE_SECONDS, {("a", 0): ("x", 50)}) == [], "a former leader had answered"
    assert looks.after(LOOK_SECONDS, {}) == [], "nobody leads it"
    assert looks.after(LOOK_SECONDS, RetriableDeliveryError("away")) == []
    assert looks.after(LOOK_SECONDS, {("a", 0): ("another", 0)}) == [], "somebody has deleted the topic"
    assert looks.after(LOOK_SECONDS, {("a", 0): ("another", 0)}) == []


def test_a_topic_that_is_gone_or_another_one_is_doubted() -> None:
    looks = Looks()
    positions = {("positions", 0): ("p", 1)}
    looks.after(0, {("a", 0): ("x", 50), **positions})
    assert looks.doubted == ["b"], "it was there when the worker began"
    looks.after(LOOK_SECONDS, {("a", 0): ("x", 50), ("b", 0): ("y", 1), **positions})
    looks.after(LOOK_SECONDS, RetriableDeliveryError("away"))
    assert looks.doubted == ["b"]
    looks.after(LOOK_SECONDS, {("b", 0): ("z", 1), **positions})
    assert sorted(looks.doubted) == ["a", "b", "b"]
    looks.after(LOOK_SECONDS, {("b", 0): ("z", 1), **positions})
    assert sorted(looks.doubted) == ["a", "a", "b", "b"]
    looks.after(LOOK_SECONDS, {("a", 0): ("v", 1), ("b", 0): ("z", 1), **positions})
    looks.after(LOOK_SECONDS, {("a", 0): ("v", 1), ("b", 0): ("z", 1), **positions})
    assert len(looks.doubted) == 5, "the former one is forgotten"
    looks.after(LOOK_SECONDS, {("a", 0): ("v", 1), ("b", 0): ("z", 1), ("b", 1): ("z", 1), **positions})
    for _ in range(3):
        looks.after(LOOK_SECONDS, {("a", 0): ("v", 1), ("b", 0): ("w", 1), **positions})
    assert len(looks.doubted) == 6, "and the partitions that it had alone"


def test_who_has_looked_at_a_topic_does_it_at_once_when_brokers_were_away() -> None:
    """Its slot has gone to another worker, who does not know how far it went."""
    looks = Looks()
    looks.after(0, {("a", 0): ("x", 50), ("b", 0): ("y", 1)})
    assert looks.after(LOOK_SECONDS, {("a", 0): ("x", 40)}, frozenset(), ready=False) == [] and len(looks.asked) == 1
    looks.after(1, {("a", 0): ("x", 40)}, frozenset())
    assert looks.asked == [["a", "b", "positions"], ["a", "b"]]
    assert len(looks.after(SURE_SECONDS, {("a", 0): ("x", 40)}, frozenset())) == 1
    asked = len(looks.asked)
    looks.after(10, {}, frozenset(), ready=False)
    assert len(looks.asked) == asked
    looks.after(1, {}, frozenset())
    assert len(looks.asked) == asked + 1, "long before the next minute"


def test_transactions_that_fail_meanwhile_make_nothing_certain_sooner() -> None:
    looks = Looks()
    looks.after(0, {("a", 0): ("x", 50)})
    looks.after(LOOK_SECONDS, {("a", 0): ("x", 40)})
    for ready in (False, True) * 5:
        assert looks.after(0.2, {("a", 0): ("x", 40)}, ready=ready) == []
    assert len(looks.asked) == 2
    assert len(looks.after(SURE_SECONDS, {("a", 0): ("x", 40)})) == 1


@pytest.mark.kafka
def test_where_partitions_end(kafka: EmbeddedKafka, unique: Callable[[str], str]) -> None:
    topic = unique("ends")
    clients = kafka_clients(loaded(worker={"bootstrap.servers": kafka.bootstrap_servers}))
    admin = clients.admin()
    assert all(made.result(60) is None for made in admin.create_topics([NewTopic(topic, 2, 1)]).values())
    producer = clients.producer()
    producer.produce(topic, b"x", partition=1)
    assert not producer.flush(60)
    found = partition_ends(clients, [topic, topic, unique("none")])
    assert {place: end for place, (_, end) in found.items()} == {(topic, 0): 0, (topic, 1): 1}
    assert len({topic_id for topic_id, _ in found.values()}) == 1
