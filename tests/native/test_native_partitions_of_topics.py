"""Which partitions the records of blocks go to, and in which order they stand there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewPartitions

from connector.delivery.records import OutgoingRecord
from connector.delivery.topic_facts import TopicSpec, topic_partitions
from connector.delivery.topics import ensure_topics
from connector.delivery.transactional_producer import TransactionalProducer
from connector.errors import TransactionAborted
from connector.formats.encoder import Encoder
from connector.native import BlockClient, BlockEncoder, Kernel, RecordBlock
from connector.native.library import RECORD_WORDS
from tests.delivery.conftest import World
from tests.formats.options import output_options
from tests.formats.rows import Log, table
from tests.native.on_a_broker import block_of_rows, committed
from tests.servers.patience import until

pytestmark = pytest.mark.kafka

LOG = Log(table({"pk": "int", "v": "int"}))
KEYS = 25
Place = tuple[bytes | None, bytes | None]


def block_of(kernel: Kernel, topic: str, records: int) -> RecordBlock:
    """Records that can be told apart, several of each key."""
    encoder = BlockEncoder(kernel, Encoder(output_options()))
    return block_of_rows(kernel, encoder, LOG, topic, [{"pk": at % KEYS, "v": at} for at in range(records)])


def transact(
    world: World, blocks: BlockClient | None, write: Callable[[TransactionalProducer], None], **own: Any
) -> None:
    """In one transaction. A broker may refuse the first records of a topic that is new, and take later ones
    (KAFKA-15591): that transaction is taken back, and made once more."""
    producer = TransactionalProducer(world.clients, world.worker, 60_000, blocks=blocks, **own)
    producer.start(time.monotonic() + 60)

    def attempt() -> bool:
        producer.begin()
        try:
            write(producer)
            producer.flush(time.monotonic() + 60)
            producer.commit()
        except TransactionAborted as error:
            assert "later records of a partition were taken" in str(error)
            producer.abort()
            return False
        return True

    until(attempt, what="a transaction that brokers take")
    producer.close()


def topic_of(world: World, name: str, partitions: int) -> str:
    ensure_topics(world.clients.admin(), [TopicSpec(name, partitions, 1)])
    return name


def by_partition(world: World, topic: str, records: int) -> dict[int, list[Place]]:
    """So many records, in the order of their offsets."""
    found: dict[int, list[Place]] = {}
    for message in committed(world, topic, records):
        found.setdefault(message.partition(), []).append((message.key(), message.value()))
    return found


@pytest.mark.parametrize("partitions", [1, 3, 128, 129])
def test_records_stand_in_the_partitions_of_their_keys_in_the_order_of_the_block(
    world: World, kernel: Kernel, block_client: BlockClient, unique: Callable[[str], str], partitions: int
) -> None:
    """Also where the client's queue takes a few of them at a time, whatever order they are handed over in."""
    one_by_one, at_once = (topic_of(world, unique(name), partitions) for name in ("one", "block"))
    block = block_of(kernel, at_once, 400)

    def write_one_by_one(producer: TransactionalProducer) -> None:
        for record in block:
            producer.produce(OutgoingRecord(one_by_one, record.key, record.value))

    def write_twice(producer: TransactionalProducer) -> None:
        producer.produce_all(block)
        producer.flush(time.monotonic() + 60)
        # From the second block on it is known how many there are.
        producer.produce_all(block)

    transact(world, None, write_one_by_one)
    transact(world, block_client, write_twice, queue_buffering_max_messages=37)
    expected = by_partition(world, one_by_one, 400)
    assert len(expected) > 1 or partitions == 1
    assert by_partition(world, at_once, 800) == {number: places * 2 for number, places in expected.items()}


def test_a_topic_that_was_met_one_by_one_is_partitioned_all_the_same(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    """Who has a client ask for a topic first decides who is told of its partitions."""
    block = block_of(kernel, world.data, 200)

    def write(producer: TransactionalProducer) -> None:
        for record in block[:100]:
            producer.produce(OutgoingRecord(world.data, record.key, record.value))
        producer.flush(time.monotonic() + 60)
        producer.produce_all(block)

    transact(world, block_client, write)
    found = by_partition(world, world.data, 300)
    assert sorted(found) == [0, 1]
    keys = [{key for key, _ in places} for places in found.values()]
    assert not keys[0] & keys[1]
    for key in keys[0] | keys[1]:
        mine = [value for places in found.values() for of, value in places if of == key]
        written = [record.value for record in block if record.key == key]
        assert mine == written[: len(mine) - len(written)] + written


def test_partitions_that_a_topic_gets_later_are_used(
    world: World, kernel: Kernel, block_client: BlockClient, unique: Callable[[str], str]
) -> None:
    topic, at_once = topic_of(world, unique("grown"), 1), topic_of(world, unique("large"), 3)
    block, same = block_of(kernel, topic, 100), block_of(kernel, at_once, 100)
    reader = world.clients.consumer("reader", "read_uncommitted")
    written = 0

    def write_until_it_is_known(producer: TransactionalProducer) -> None:
        nonlocal written
        written = 0

        def write() -> None:
            nonlocal written
            producer.produce_all(block)
            producer.flush(time.monotonic() + 60)
            written += 1

        write()
        admin = world.clients.admin()
        if topic_partitions(admin)[topic] < 3:
            admin.create_partitions([NewPartitions(topic, 3)])[topic].result(60)
        until(lambda: _end(reader, topic, 2) > 0, step=write)
        write()
        producer.produce_all(same)

    transact(world, block_client, write_until_it_is_known, topic_metadata_refresh_interval_ms=100)
    reader.close()
    expected = by_partition(world, at_once, 100)
    found = by_partition(world, topic, 100 * written)
    assert sorted(found) == sorted(expected) == [0, 1, 2]
    for number, places in expected.items():
        assert _rows(found[number][-len(places) :]) == _rows(places)


def test_records_without_a_key_are_spread(
    world: World, kernel: Kernel, block_client: BlockClient, unique: Callable[[str], str]
) -> None:
    topic = topic_of(world, unique("keyless"), 3)
    block = block_of(kernel, topic, 300)
    for at in range(1, len(block)):
        block.places[RECORD_WORDS * at + 1] = -1
    assert [record.key for record in block] == [b'{"pk":0}'] + [None] * 299

    def write(producer: TransactionalProducer) -> None:
        for _ in range(2):
            producer.produce_all(block)
            producer.flush(time.monotonic() + 60)

    transact(world, block_client, write, sticky_partitioning_linger_ms=0)
    found = by_partition(world, topic, 600)
    assert all(100 < len(found[number]) < 300 for number in range(3))
    written = sorted(record.value for record in block for _ in range(2))
    assert sorted(value for places in found.values() for _, value in places) == written


def _rows(places: list[Place]) -> list[Any]:
    return [json.loads(value)["after"] for _, value in places if value is not None]


def _end(reader: Any, topic: str, partition: int) -> int:
    try:
        return int(reader.get_watermark_offsets(TopicPartition(topic, partition), 60)[1])
    except KafkaException:
        # A new partition is led by nobody for a moment.
        return 0
