"""The embedded broker: how soon it answers, and what one producer puts through it in transactions of a second."""

from __future__ import annotations

import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from embedded.kafka import EmbeddedKafka

RECORDS = 500_000
PARTITIONS = 6
VALUE = bytes(range(250)) * 2


def main() -> dict[str, str]:
    began = time.monotonic()
    with EmbeddedKafka() as broker:
        ready = time.monotonic() - began
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("bench", PARTITIONS, 1)])["bench"].result(timeout=30)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "log_level": 0,
                "transactional.id": "bench",
                "linger.ms": 20,
                "queue.buffering.max.messages": RECORDS,
            }
        )
        producer.init_transactions(30)
        seconds = _produce(producer)
    rate = f"{RECORDS / seconds / 1000:.0f}k records/s of {len(VALUE)} bytes"
    return {"ready": f"{ready:.1f} s", "transactional producer": rate}


def _produce(producer: Producer) -> float:
    began = cut = time.monotonic()
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce("bench", VALUE, partition=number % PARTITIONS)
        if number % 1000 == 0 and time.monotonic() - cut >= 1:
            producer.commit_transaction()
            producer.begin_transaction()
            cut = time.monotonic()
    producer.commit_transaction()
    return time.monotonic() - began
