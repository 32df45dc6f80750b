"""A producer takes another client where brokers could take one of its transactions for another one.

On a real broker, by a path that loses answers and delays requests: what librdkafka makes of that, and what a broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from connector.delivery.clients import KafkaClients
from connector.delivery.records import BlockClient, KafkaRecord, OutgoingRecord
from connector.delivery.transactional_producer import TransactionalProducer
from tests.delivery.conftest import World
from tests.servers.mock_kafka import MockKafka, mock_kafka
from tests.servers.path import END_TRANSACTION, FarKafka, far_kafka
from tests.servers.patience import until

pytestmark = pytest.mark.kafka

#: What is not acknowledged when its connection ends is sent again so much later.
LATER_MS = 12_000


@pytest.fixture(scope="module")
def far() -> Iterator[FarKafka]:
    with far_kafka() as kafka:
        yield kafka


class Stage:
    """A topic of one partition, and a producer for it."""

    def __init__(self, far: FarKafka, topic: str, again_ms: int = 100, blocks: BlockClient | None = None) -> None:
        self.far, self.topic = far, topic
        admin = AdminClient({"bootstrap.servers": far.bootstrap_servers, "log_level": 0})
        for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            created.result()
        later = {"retry.backoff.ms": again_ms, "retry.backoff.max.ms": max(1_000, again_ms)}
        clients = KafkaClients({"bootstrap.servers": far.bootstrap_servers}, later)
        self.producer = TransactionalProducer(clients, topic, 600_000, blocks=blocks, linger_ms=100_000)
        self.producer.start(self.deadline)

    @property
    def deadline(self) -> float:
        return time.monotonic() + 300

    def begin(self, records: Sequence[KafkaRecord]) -> None:
        self.producer.begin()
        self.producer.produce_all(records)
        self.producer.flush(self.deadline)

    def records(self, *values: str) -> list[OutgoingRecord]:
        return [OutgoingRecord(self.topic, b"k", value.encode()) for value in values]

    def committed(self) -> list[bytes | None]:
        """All of it, up to a last record by which everybody sees that there is no more to come."""
        self.begin(self.records("end"))
        self.producer.commit()
        world = World(self.far.bootstrap_servers, "g", "", "")
        found: list[bytes | None] = []

        def is_over() -> bool:
            found[:] = [value for _, value in world.read(self.topic)]
            return found[-1:] == [b"end"]

        until(is_over)
        return found[:-1]


def what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next(
    stage: Stage, first: Sequence[KafkaRecord], second: Sequence[KafkaRecord]
) -> None:
    """``first`` is written, and its answer gets lost; ``second`` is as much."""
    far, producer = stage.far, stage.producer
    stage.begin(stage.records("opening"))
    before = far.stored(stage.topic)
    far.path.swallows = True
    producer.produce_all(first)
    until(lambda: far.stored(stage.topic) > before, step=lambda: producer.client.flush(0.02))
    far.path.cut(all_of_them=False)
    far.path.swallows = False
    until(lambda: producer.has_lost, step=lambda: producer.client.poll(0.02))
    assert producer.pending(), "it waits to be sent again"
    producer.abort()
    stage.begin(second)
    producer.commit()
    assert stage.committed() == [record.value for record in second]
    producer.close()


def test_what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next(
    far: FarKafka, unique: Callable[[str], str]
) -> None:
    stage = Stage(far, unique("t"), LATER_MS)
    what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next(
        stage, stage.records("a", "b", "c"), stage.records("x", "y", "z")
    )


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_an_end_that_comes_late_ends_no_other_transaction(
    far: FarKafka, unique: Callable[[str], str], commit: bool
) -> None:
    """It was sent again when its connection had ended, and answered."""
    stage = Stage(far, unique("t"))
    path, producer = far.path, stage.producer
    stage.begin(stage.records("one"))
    path.hold()
    with ThreadPoolExecutor(1) as aside:
        ending = aside.submit(producer.commit if commit else producer.abort)
        until(lambda: END_TRANSACTION in path.under_way, what="the end to be sent")
        path.cut_clients()
        ending.result()
    stage.begin(stage.records("two"))
    path.arrive()
    until(lambda: path.answered, what="what came late to be answered")
    producer.produce_all(stage.records("three"))
    producer.flush(stage.deadline)
    producer.abort()
    stage.begin(stage.records("four"))
    producer.commit()
    assert stage.committed() == ([b"one", b"four"] if commit else [b"four"])
    producer.close()
    path.cut()


def test_an_abort_of_what_is_all_delivered_costs_no_client(far: FarKafka, unique: Callable[[str], str]) -> None:
    stage = Stage(far, unique("t"))
    client = stage.producer.client
    stage.begin(stage.records("gone"))
    stage.producer.abort()
    stage.begin(stage.records("kept"))
    stage.producer.commit()
    assert stage.producer.client is client
    assert stage.committed() == [b"kept"]
    stage.producer.close()


def test_every_connection_that_is_lost_is_heard_of() -> None:
    """librdkafka says of a broker only now and then what it has just said: each client hears of its first loss."""
    with mock_kafka() as kafka:
        kafka.create("t")
        producer = TransactionalProducer(
            KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}), "w", 600_000, linger_ms=0
        )
        deadline = time.monotonic() + 300
        producer.start(deadline)
        made = set()
        for at in range(6):
            producer.begin()
            made.add(producer.client)
            kafka.end_connections(1)
            producer.produce_to("t", 0, b"k", b"%d" % at)
            producer.flush(deadline)
            until(lambda: producer.has_lost, step=producer.poll)
            producer.commit()
        assert len(made) == 6
        producer.close()


def test_a_connection_that_the_client_ends_itself_is_heard_of() -> None:
    """Another broker is the coordinator now: what was on its way to the former one may arrive all the same."""
    with mock_kafka(brokers=2) as kafka:
        kafka.create("t")
        kafka.coordinate("w", 1)
        producer = on(kafka)
        client = producer.client
        for at in range(5):
            one_more(producer, b"%d" % at)
        assert producer.client is client, "that it knows its brokers now, and the configured addresses no more, is none"
        kafka.coordinate("w", 2)
        one_more(producer, b"moved")
        until(lambda: producer.has_lost, step=producer.poll)
        one_more(producer, b"another client")
        assert producer.client is not client
        producer.close()


def test_so_is_one_on_which_answers_do_not_come_in_time() -> None:
    with mock_kafka() as kafka:
        kafka.create("t")
        producer = on(kafka, **{"socket.timeout.ms": 1_000})
        one_more(producer, b"one")
        producer.begin()
        assert not producer.has_lost
        kafka.answer_after(60_000)
        producer.produce_to("t", 0, b"k", b"two")
        until(lambda: producer.has_lost, step=lambda: producer.client.flush(0.02))
        producer.close()


@pytest.mark.parametrize("contexts", ["all", "broker,eos"])
def test_who_asks_for_details_of_clients_has_the_same_ones(contexts: str) -> None:
    """They tell of connections, too."""
    with mock_kafka(brokers=2) as kafka:
        kafka.create("t")
        producer = on(kafka, debug=contexts)
        client = producer.client
        for at in range(5):
            one_more(producer, b"%d" % at)
        assert producer.client is client
        producer.close()


def on(kafka: MockKafka, **properties: object) -> TransactionalProducer:
    clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers, **properties})
    producer = TransactionalProducer(clients, "w", 600_000, linger_ms=0)
    producer.start(time.monotonic() + 300)
    return producer


def one_more(producer: TransactionalProducer, value: bytes) -> None:
    producer.begin()
    producer.produce_to("t", 0, b"k", value)
    producer.flush(time.monotonic() + 300)
    producer.commit()
