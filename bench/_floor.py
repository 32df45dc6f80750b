"""What records cost that are there already: the least that a service spends which hands them to the Kafka client.

In: records of a topic, a broker. Out: records per CPU-second of this process: blocks of them go to librdkafka's own
batch call, in transactions, with the client as a worker configures it. Nothing is read, nothing is made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from ctypes import c_int32, c_uint8
from struct import Struct

from confluent_kafka import Message

from connector.changes import WriteTimes
from connector.config import Configuration
from connector.delivery.batches import Batches
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import ensure_topics
from connector.delivery.transactional_producer import TransactionalProducer
from connector.native import BlockClient, Kernel, RecordBlock
from connector.worker.settings import kafka_clients

RECORDS_OF_A_TRANSACTION = 20_000
PARTITIONS = 3
_PATIENCE = 60.0
_TIMEOUT_MS = 60_000
_HEADER = Struct("<ii")


class StoredBlock(RecordBlock):
    """Records as they were read, in the kernel's form."""

    def __init__(self, topic: str, messages: Sequence[Message]) -> None:
        self.topic, self.headers = topic, ()
        names: dict[str, int] = {}
        text, body, places = bytearray(), bytearray(), list[int]()
        for message in messages:
            for part in (message.key(), message.value()):
                places += (len(body), -1 if part is None else len(part))
                body += part or b""
            begin = len(body)
            for name, value in message.headers() or ():
                if name not in names:
                    names[name] = len(text)
                    text += name.encode() + b"\0"
                body += _HEADER.pack(names[name], -1 if value is None else len(value)) + (value or b"")
            places += (begin, len(body) - begin)
        self.names = bytes(text) if names else None
        self.ends, self.times = range(1, len(messages) + 1), WriteTimes.of((0,) * len(messages))
        self.size = len(body)
        self.places = (c_int32 * len(places))(*places)
        self.bytes = (c_uint8 * len(body)).from_buffer(body)


def floor(configuration: Configuration, messages: Sequence[Message], topic: str, count: int) -> float:
    """Records per CPU-second, of ``count`` or somewhat more."""
    block = StoredBlock(topic, messages)
    blocks, clients = BlockClient(Kernel()), kafka_clients(configuration)
    batches = Batches(ensure_topics(clients.admin(), [TopicSpec(topic, PARTITIONS, 1)]))
    producer = TransactionalProducer(clients, f"{topic}-floor", _TIMEOUT_MS, blocks=blocks, batches=batches)
    try:
        producer.start(time.monotonic() + _PATIENCE)
        began, done = time.process_time(), 0
        while done < count:
            producer.begin()
            for _ in range(0, min(RECORDS_OF_A_TRANSACTION, count - done), len(block)):
                producer.produce_all(block)
                done += len(block)
            producer.flush(time.monotonic() + _PATIENCE)
            producer.commit()
        return done / (time.process_time() - began)
    finally:
        producer.close()
