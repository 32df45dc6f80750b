"""Blocks on a broker: their records arrive as all others do, and each that does not is known."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from connector.delivery.batches import Batches
from connector.delivery.clients import KafkaClients
from connector.delivery.topic_facts import TopicFacts, TopicSpec
from connector.delivery.topics import ensure_topics, look_at_topic
from connector.delivery.transaction import Delivery, DeliverySettings
from connector.delivery.transactional_producer import TransactionalProducer, fence
from connector.errors import ProducerFenced, TransactionAborted, UnknownOutcome
from connector.formats.encoder import Encoder
from connector.native import BlockClient, BlockEncoder, Kernel, RecordBlock
from embedded.kafka import EmbeddedKafka
from tests.delivery.conftest import World, close, make_world, mark
from tests.delivery.test_delivery_skipped import is_noticed
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import TIME, Log, table
from tests.native.both_ways import PLENTY, uncut
from tests.native.on_a_broker import block_of_rows, committed
from tests.native.variants import EXTRACT, HEADERS, METADATA, unwrapped
from tests.servers.patience import until

pytestmark = pytest.mark.kafka

VERSION = "scylla.table.id scylla.schema.version"
LOG = Log(table({"pk": "int", "v": "text"}))
#: The second of them is null.
COPIES = {
    "add.headers": "op,ttl:t",
    "add.headers.prefix": "",
    "delete.handling.mode": "none",
    "drop.tombstones": "false",
}


def block_of(kernel: Kernel, topic: str, *values: str, **properties: str) -> RecordBlock:
    encoder = BlockEncoder(kernel, Encoder(output_options(**properties)))
    return block_of_rows(kernel, encoder, LOG, topic, [{"pk": at, "v": value} for at, value in enumerate(values)])


def started(world: World, client: BlockClient, name: str = "w", **settings: Any) -> Delivery:
    name = world.named(name)
    membership, _ = world.member(name)
    delivery = Delivery(
        world.clients,
        DeliverySettings("c", world.offsets, name, **settings),
        membership,
        topics=lambda: [world.data],
        group=world.group,
        blocks=client,
    )
    delivery.start()
    world.deliveries.append(delivery)
    return delivery


def producer_of(delivery: Delivery) -> Any:
    assert delivery._producer is not None and delivery._producer._blocks is not None
    return delivery._producer._blocks


def test_a_record_of_a_block_that_is_called_delivered_and_stands_nowhere_is_a_failed_one(
    kernel: Kernel, block_client: BlockClient
) -> None:
    is_noticed(block_client, block_of(kernel, "t", *"abcdef"))


def test_blocks_and_single_records_arrive_in_one_transaction(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    delivery = started(world, block_client)
    block = block_of(kernel, world.data, *(f"v{at}" for at in range(700)))
    expected = sorted((record.key, record.value) for record in block)
    delivery.add(0, block)
    assert world.read(world.data) == []
    delivery.commit([mark(0, world.worker)])
    until(lambda: sorted(world.read(world.data)) == expected)  # type: ignore[type-var]
    # The client tells the kernel of every record, those of the offsets topic too.
    assert producer_of(delivery).delivered == 701
    assert producer_of(delivery).failure is None


def test_a_block_goes_to_the_partitions_of_its_keys(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    block = block_of(kernel, world.data, *["x"] * 40)
    found = []
    for blocks in (block_client, None):
        producer = TransactionalProducer(world.clients, world.named(f"p-{blocks is None}"), 15_000, blocks=blocks)
        producer.start(_deadline())
        producer.begin()
        producer.produce_all(block)
        producer.flush(_deadline())
        producer.commit()
        producer.close()
        found.append(_partitions(world, 40 * (len(found) + 1)))
    assert len(found[0]) == 40
    assert found[1] == {key: places * 2 for key, places in found[0].items()}


@pytest.mark.parametrize(
    ("properties", "expected_names"),
    [
        (METADATA, ["", VERSION, VERSION]),
        (METADATA | HEADERS, ["pk.pk", f"pk.pk {VERSION}", f"pk.pk {VERSION}"]),
        (METADATA | unwrapped("extract-new-state"), [VERSION, VERSION]),
        (METADATA | unwrapped(EXTRACT, **COPIES), ["op", f"op t {VERSION}", f"op t {VERSION}"]),
    ],
    ids=["metadata", "keys", "unwrapped", "copies"],
)
def test_headers_of_a_block_arrive_but_for_tombstones(
    world: World, kernel: Kernel, block_client: BlockClient, properties: dict[str, str], expected_names: list[str]
) -> None:
    encoder = Encoder(output_options(**properties))
    rows = [LOG.row(code, 0, True, uuid.UUID(int=TIME.int + (code << 64)), pk=code) for code in (2, 3)]
    block = BlockEncoder(kernel, encoder).encode(uncut(kernel, LOG.layout, rows), PLENTY, PLENTY)
    assert block is not None
    block.topic = world.data
    producer = TransactionalProducer(world.clients, world.named("with-headers"), 15_000, blocks=block_client)
    producer.start(_deadline())
    producer.begin()
    producer.produce_all(block)
    producer.flush(_deadline())
    producer.commit()
    assert producer._blocks is not None
    assert producer._blocks.delivered == len(expected_names)  # type: ignore[attr-defined]
    producer.close()
    found = [
        (message.key(), message.value(), message.headers() or [])
        for message in committed(world, world.data, len(block))
    ]
    expected = [(record.key, record.value, list(record.headers)) for record in block]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert sorted(" ".join(name for name, _ in headers) for _, _, headers in found) == expected_names


def test_texts_of_keys_arrive_in_headers_as_they_are(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    log = Log(table({"pk": "text", "at": "timestamp", "day": "date", "v": "int"}, clustering=("at", "day")))
    encoder = Encoder(output_options(**HEADERS))
    rows = [
        log.row(2, 0, True, uuid.UUID(int=TIME.int + (number << 64)), pk=text, at=NOW_NS // 10**6, day=19884, v=1)
        for number, text in enumerate(("", 'a "quoted" größe😀'))
    ]
    block = BlockEncoder(kernel, encoder).encode(uncut(kernel, log.layout, rows), PLENTY, PLENTY)
    assert block is not None
    block.topic = world.data
    delivery = started(world, block_client)
    delivery.add(0, block)
    delivery.commit([mark(0, world.worker)])
    found = sorted(((message.headers() or []) for message in committed(world, world.data, 2)), key=str)
    assert found == sorted((list(record.headers) for record in block), key=str)
    assert {dict(headers)["pk.pk"] for headers in found} == {b"", 'a "quoted" größe😀'.encode()}


@pytest.mark.parametrize("properties", [METADATA, HEADERS], ids=["metadata", "keys"])
def test_a_record_with_headers_that_the_client_refuses_stops_the_block(
    world: World, kernel: Kernel, block_client: BlockClient, properties: dict[str, str]
) -> None:
    delivery = started(world, block_client)
    values = ["a", "b" * 1_010_000, "c"]
    if properties is HEADERS:
        # With its key twice it is too large, and neither its key nor its value is.
        log = Log(table({"pk": "text", "v": "text"}))
        encoder = Encoder(output_options(**properties))
        rows = [
            log.row(2, 0, True, uuid.UUID(int=TIME.int + (at << 64)), pk=text[:510_000], v="")
            for at, text in enumerate(values)
        ]
        block = BlockEncoder(kernel, encoder).encode(uncut(kernel, log.layout, rows), PLENTY, PLENTY)
        assert block is not None
        block.topic = world.data
    else:
        block = block_of(kernel, world.data, *values, **properties)
    delivery._opened()
    taken = producer_of(delivery).produce(block, 0)
    assert (taken.count, taken.broken) == (1, False) and taken.code != 0
    with pytest.raises(TransactionAborted):
        delivery.add(0, block)
    delivery.abort()
    assert world.read(world.data) == []


def test_a_block_with_headers_waits_for_a_full_queue(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    producer = TransactionalProducer(
        world.clients, world.named("small-queue"), 15_000, blocks=block_client, queue_buffering_max_messages=50
    )
    producer.start(_deadline())
    producer.begin()
    producer.produce_all(block_of(kernel, world.data, *map(str, range(300)), **{"cdc.include.metadata": "true"}))
    producer.flush(_deadline())
    producer.commit()
    producer.close()
    until(lambda: len(world.read(world.data)) == 300)


def test_an_aborted_block_leaves_no_trace_and_no_failure(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    delivery = started(world, block_client)
    delivery.add(0, block_of(kernel, world.data, "gone"))
    delivery.abort()
    block = block_of(kernel, world.data, "kept")
    delivery.add(0, block)
    delivery.commit([mark(0, world.worker)])
    until(lambda: [value for _, value in world.read(world.data)] == [block[0].value])
    assert producer_of(delivery).failure is None


def test_a_record_that_the_client_refuses_aborts_and_no_topic_is_blamed(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    delivery = started(world, block_client)
    with pytest.raises(TransactionAborted):
        delivery.add(0, block_of(kernel, world.data, "a", "b" * 1_010_000, "c"))
    assert delivery.last_failure is None
    delivery.abort()
    assert world.read(world.data) == []


def test_a_record_that_the_broker_refuses_is_told_with_its_topic(
    world: World, kernel: Kernel, block_client: BlockClient, unique: Callable[[str], str]
) -> None:
    small = unique("small")
    ensure_topics(world.clients.admin(), [TopicSpec(small, 1, 1, config={"max.message.bytes": "1000"})])
    delivery = started(world, block_client)
    # Its report may come at once, or when it is waited for.
    with pytest.raises(TransactionAborted, match=r"MSG_SIZE_TOO_LARGE: .*raise its max\.message\.bytes"):
        delivery.add(0, block_of(kernel, small, "x" * 5_000))
        delivery.commit([mark(0, world.worker)])
    assert delivery.last_failure is not None and delivery.last_failure.topic == small
    delivery.abort()
    block = block_of(kernel, world.data, "next")
    delivery.add(0, block)
    delivery.commit([mark(0, world.worker)])
    until(lambda: [value for _, value in world.read(world.data)] == [block[0].value])


def test_the_topic_of_a_block_is_among_those_that_may_be_to_blame(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    delivery = started(world, block_client)
    delivery.add(0, block_of(kernel, world.data, "x"))
    assert delivery._producer is not None and delivery._producer._topics == {world.data}
    delivery.abort()


def test_a_fenced_producer_says_so(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    delivery = started(world, block_client)
    delivery.add(0, block_of(kernel, world.data, "lost"))
    other = fence(world.clients, world.worker, _deadline())
    assert other is not None
    with pytest.raises((ProducerFenced, UnknownOutcome, TransactionAborted)):
        delivery.commit([mark(0, world.worker)])
    other.close()
    assert world.read(world.data) == []


def test_a_full_queue_is_waited_for(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    world_clients = world.clients
    producer = TransactionalProducer(
        world_clients, world.named("small-queue"), 15_000, blocks=block_client, queue_buffering_max_messages=50
    )
    producer.start(_deadline())
    producer.begin()
    block = block_of(kernel, world.data, *(str(at) for at in range(400)))
    producer.produce_all(block)
    producer.flush(_deadline())
    producer.commit()
    producer.close()
    until(lambda: len(world.read(world.data)) == 400)


def test_a_client_that_was_made_by_others_has_no_blocks(block_client: BlockClient) -> None:
    with block_client.making() as beside:
        Producer({"bootstrap.servers": "127.0.0.1:1"})
        assert beside() is None


def _deadline() -> float:
    return time.monotonic() + 60


class _Paced(TransactionalProducer):
    """Tells whether its flush hurried the client, since nothing moved for a moment: as on a machine with other work."""

    hurried = False

    def _keep_pace(self, batches: int, *waiting: Any) -> bool:
        moves = super()._keep_pace(batches, *waiting)
        assert self._batches is not None
        most = batches * self._batches.most_waiting(self._bulk, self._configured)
        self.hurried |= batches == 1 and self.pending() > most
        return moves


def test_a_client_whose_requests_are_under_way_is_left_alone(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    """Its thread counts how often it woke up: a few times for each request, ten thousands where it is hurried."""
    block, batches = _half_a_batch(world, kernel)
    for _ in range(5):
        hurried, woken = _woken(world, block_client, block, batches)
        if woken < 2_000:
            return
        assert hurried, woken
    pytest.fail("it is hurried each time")


def test_a_client_is_not_hurried_all_the_time_while_kafka_stands_still(
    own_kafka: EmbeddedKafka, unique: Callable[[str], str], kernel: Kernel, block_client: BlockClient
) -> None:
    """Its thread looks for room ten thousand times in each of nine moments of a second; all the time, a million."""
    world = make_world(own_kafka.bootstrap_servers, unique)
    block, batches = _half_a_batch(world, kernel)
    told, clients = _counting(world)
    producer = TransactionalProducer(clients, "still", 60_000, blocks=block_client, batches=batches)
    producer.start(_deadline())
    producer.begin()
    for _ in range(10):
        producer.produce_all(block)
    stands_still = time.monotonic() + 1.5
    own_kafka.pause()
    try:
        producer.flush(_deadline(), lambda: own_kafka.resume() if time.monotonic() > stands_still else None)
    finally:
        own_kafka.resume()
    assert time.monotonic() > stands_still
    producer.commit()
    _tell(producer, told)
    producer.close()
    close(world)
    assert told[-1] < 400_000


def _woken(world: World, block_client: BlockClient, block: RecordBlock, batches: Batches) -> tuple[bool, int]:
    """Of a client that delivers a transaction: whether it was hurried, and how often it woke up."""
    told, clients = _counting(world)
    producer = _Paced(clients, "paced", 60_000, blocks=block_client, batches=batches)
    producer.start(_deadline())
    producer.begin()
    for _ in range(80):
        producer.produce_all(block)
    producer.flush(_deadline())
    producer.commit()
    _tell(producer, told)
    producer.close()
    return producer.hurried, told[-1]


def _half_a_batch(world: World, kernel: Kernel) -> tuple[RecordBlock, Batches]:
    """As one block, and what a client is told of its topic's batches."""
    facts = look_at_topic(world.clients.admin(), TopicSpec(world.data, 2, 1))
    assert isinstance(facts, TopicFacts)
    return block_of(kernel, world.data, *["x" * 1_000] * 500), Batches({world.data: facts})


def _counting(world: World) -> tuple[list[int], KafkaClients]:
    """Clients whose threads count how often they woke up, and what they have told."""
    told: list[int] = []

    def count(text: str) -> None:
        told.append(sum(broker["wakeups"] for broker in json.loads(text)["brokers"].values()))

    return told, KafkaClients(world.clients.common, {"statistics.interval.ms": 100, "stats_cb": count}, {}, {})


def _tell(producer: TransactionalProducer, told: list[int]) -> None:
    so_far = len(told)
    until(lambda: len(told) > so_far, step=producer.poll)


def _partitions(world: World, records: int) -> dict[bytes, list[int]]:
    """Of each key the partitions of its records."""
    found: dict[bytes, list[int]] = {}
    for message in committed(world, world.data, records):
        found.setdefault(message.key(), []).append(message.partition())
    return found
