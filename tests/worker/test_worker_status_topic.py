"""What a worker writes into the status topic, on a real broker."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException

from connector.delivery import ensure_topics
from connector.delivery.end_offsets import end_offsets
from connector.source import Background
from connector.worker import status_topic
from connector.worker.settings import identity, kafka_clients, status_spec
from connector.worker.state import State
from connector.worker.status_document import HistogramStatus, TableStatus, WorkerStatus
from connector.worker.status_topic import StatusTopic
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded
from tests.servers.patience import seldom, until

pytestmark = pytest.mark.kafka

TABLES = 2_000


def test_a_worker_of_thousands_of_tables_is_told_of(
    kafka: EmbeddedKafka, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is larger than records may be by default: who reads the topic took the worker for gone."""
    monkeypatch.setattr(status_topic, "PUBLISH_SECONDS", 0.0)
    name = unique("status")
    configuration = loaded(worker={"bootstrap.servers": kafka.bootstrap_servers, "status.storage.topic": name})
    clients, background = kafka_clients(configuration), Background()
    ensure_topics(clients.admin(), [status_spec(configuration)])
    topic = StatusTopic(clients, configuration, identity(configuration, 0), background)
    consumer = clients.consumer(name, "read_uncommitted")
    consumer.subscribe([name])
    try:
        told = status_of(TABLES)
        assert len(told.model_dump_json()) > 2_000_000
        found: list[WorkerStatus] = []

        def read() -> bool:
            topic.publish(told)
            message = consumer.poll(0.2)
            if message is not None and message.error() is None and message.value() is not None:
                found.append(WorkerStatus.model_validate_json(message.value()))
            return bool(found)

        def well_told() -> bool:
            topic.publish(told)
            return not background.failing()

        until(read, 30, "the status in the topic")
        assert found[0] == told
        # A broker that gets no processor for a while lets several of them wait.
        until(well_told, 30, "a status that nothing delays", step=seldom)
    finally:
        consumer.close()
        topic.close()


def test_a_topic_that_was_deleted_is_made_anew(
    kafka: EmbeddedKafka, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`scylla-cdc status` said STOPPED of what ran, for ever."""
    monkeypatch.setattr(status_topic, "PUBLISH_SECONDS", 0.0)
    name = unique("status")
    configuration = loaded(worker={"bootstrap.servers": kafka.bootstrap_servers, "status.storage.topic": name})
    clients, background = kafka_clients(configuration), Background()
    admin = clients.admin()
    ensure_topics(admin, [status_spec(configuration)])
    topic = StatusTopic(clients, configuration, identity(configuration, 0), background)
    told = status_of(1)

    def in_the_topic() -> bool:
        topic.publish(told)
        places = [(name, number) for number in range(configuration.worker.status.partitions)]
        try:
            return any(end_offsets(admin, places).values()) and not background.failing()
        except KafkaException:
            return False  # there is none, or not quite

    try:
        until(in_the_topic, 60, "a status in the topic")
        admin.delete_topics([name])[name].result(60)
        until(lambda: name not in admin.list_topics(timeout=60).topics, 60, "the end of the topic")
        until(in_the_topic, 120, "a status in the new topic")
    finally:
        topic.close()


def status_of(tables: int) -> WorkerStatus:
    rnd = random.Random(1)
    return WorkerStatus(
        worker="w",
        fingerprint="f",
        tables_configured=tuple(f"ks.t{number}" for number in range(tables)),
        time_ms=1,
        state=State.RUNNING,
        slots=tuple(range(25)),
        slot_count=25,
        tables={f"ks.t{number}": table(rnd) for number in range(tables)},
    )


def table(rnd: random.Random) -> TableStatus:
    """Figures are what compresses worst."""
    figures = [rnd.randrange(10**9) for _ in range(40)]
    histogram = HistogramStatus(bounds=tuple(map(float, range(39))), counts=tuple(figures), sum=rnd.random() * 10**6)
    return TableStatus(
        state=State.RUNNING,
        position_ms=rnd.randrange(10**12),
        lag_ms=rnd.randrange(10**6),
        groups=rnd.randrange(1000),
        records=rnd.randrange(10**9),
        latency_seconds=histogram,
        batch_rows=histogram,
    )
