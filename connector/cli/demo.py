"""`scylla-cdc demo`: shows on one machine what works, with real servers, and leaves nothing behind.

Starts a Kafka broker, writes one transaction that is committed and one that is aborted, reads the topic as a consumer
of committed records does, and compares.
"""

from __future__ import annotations

import argparse
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from connector.cli.output import Output
from connector.errors import RetriableDeliveryError

if TYPE_CHECKING:
    from confluent_kafka import Producer

_TOPIC = "demo"


class DemoCommand:
    name = "demo"
    help = "the whole way on one machine"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rows", type=_count, default=1000, metavar="N", help="records to write (1000)")
        parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the broker's data in this folder")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from embedded.kafka import EmbeddedKafka

        began = time.monotonic()
        output.say("starting a Kafka broker ...")
        with EmbeddedKafka(data=args.keep) as broker:
            output.say(f"Kafka answers on {broker.bootstrap_servers} after {time.monotonic() - began:.1f} s")
            topic = f"{_TOPIC}-{uuid.uuid4().hex[:8]}"
            _create_topic(broker.bootstrap_servers, topic)
            written = [f"row {number}" for number in range(args.rows)]
            aborted = max(1, args.rows // 2)
            producer = _producer(broker.bootstrap_servers, topic)
            _transaction(producer, topic, written[: args.rows // 2], commit=True)
            _transaction(producer, topic, [f"aborted {number}" for number in range(aborted)], commit=False)
            _transaction(producer, topic, written[args.rows // 2 :], commit=True)
            output.say(f"wrote {args.rows} records in two transactions, and {aborted} in one that was aborted")
            read = _read_committed(broker.bootstrap_servers, topic)
        differences = len(set(written) ^ set(read)) + len(read) - len(set(read))
        value = {"written": len(written), "aborted": aborted, "read": len(read), "differences": differences}
        output.result(value, f"read back {len(read)} records, none of the aborted ones: {differences} differences")
        return 0 if differences == 0 else 1


def _client(servers: str) -> dict[str, str | int]:
    # What goes wrong is raised; the library would also tell that a broker ended which was stopped on purpose.
    return {"bootstrap.servers": servers, "log_level": 0}


def _create_topic(servers: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    client = AdminClient(_client(servers))
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)


def _producer(servers: str, topic: str) -> Producer:
    from confluent_kafka import Producer

    producer = Producer(_client(servers) | {"transactional.id": topic, "linger.ms": 5})
    producer.init_transactions(30)
    return producer


def _transaction(producer: Producer, topic: str, values: list[str], *, commit: bool) -> None:
    producer.begin_transaction()
    for number, value in enumerate(values):
        producer.produce(topic, value.encode())
        if number % 10_000 == 0:
            producer.flush(30)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def _read_committed(servers: str, topic: str) -> list[str]:
    """Everything in the topic that was committed, from its beginning to its end."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(_client(servers) | {"group.id": topic, "isolation.level": "read_committed"})
    partition = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=30)
    consumer.assign([partition])
    values: list[str] = []
    deadline = time.monotonic() + 60
    # The position passes aborted records and the markers that end transactions, which are never returned.
    while consumer.position([partition])[0].offset < end:
        if time.monotonic() > deadline:
            raise RetriableDeliveryError(f"topic {topic} was not read to its end within 60 s")
        for message in consumer.consume(1000, timeout=0.2):
            if message.error() is None:
                values.append(message.value().decode())
    consumer.close()
    return values


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of 1 or more")
    return int(text)


COMMAND = DemoCommand()
