"""What librdkafka reads of blocks without having copied it: nobody writes there, or frees it, until it is done."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from connector.delivery.transactional_producer import TransactionalProducer, fence
from connector.errors import ProducerFenced, TransactionAborted, UnknownOutcome
from connector.formats.encoder import Encoder
from connector.native import BlockClient, BlockEncoder, Kernel, RecordBlock
from tests.delivery.conftest import World
from tests.formats.options import output_options
from tests.formats.rows import Log, table
from tests.native.on_a_broker import block_of_rows
from tests.native.variants import METADATA
from tests.servers.patience import until

pytestmark = pytest.mark.kafka

LOG = Log(table({"pk": "int", "v": "text"}))


class Blocks:
    """Of one encoder, as a worker makes them: one after the other."""

    def __init__(self, kernel: Kernel, topic: str, **properties: str) -> None:
        self._kernel, self._topic = kernel, topic
        self.encoder = BlockEncoder(kernel, Encoder(output_options(**properties)))
        self.values: list[bytes] = []

    def next(self, value: str, records: int = 20) -> RecordBlock:
        rows = [{"pk": at, "v": value} for at in range(records)]
        block = block_of_rows(self._kernel, self.encoder, LOG, self._topic, rows)
        self.values += [record.value for record in block if record.value is not None]
        return block


def started(world: World, client: BlockClient, **own: Any) -> TransactionalProducer:
    """One that sends nothing before it is flushed, however much later that is."""
    producer = TransactionalProducer(world.clients, world.worker, 60_000, blocks=client, linger_ms=30_000, **own)
    producer.start(time.monotonic() + 60)
    producer.begin()
    return producer


@pytest.mark.parametrize("properties", [{}, METADATA], ids=["plain", "with headers"])
def test_blocks_arrive_as_they_were_however_many_are_made_before_they_are_sent(
    world: World, kernel: Kernel, block_client: BlockClient, properties: dict[str, str]
) -> None:
    producer = started(world, block_client)
    blocks = Blocks(kernel, world.data, **properties)
    outputs = set()
    for letter in "abcdefgh":
        block = blocks.next(letter * 200)
        producer.produce_all(block)
        outputs.add(block.output)
    assert len(outputs) == 8 and all(output.lent for output in outputs)
    producer.flush(time.monotonic() + 60)
    producer.commit()
    producer.close()
    until(lambda: _values(world) == sorted(blocks.values))


def test_what_was_lent_is_used_again_as_soon_as_nothing_is_under_way(
    world: World, kernel: Kernel, block_client: BlockClient
) -> None:
    producer = started(world, block_client)
    blocks = Blocks(kernel, world.data)
    # The first transaction of all: a broker that is still busy with the one before may refuse to abort this one.
    aborted = blocks.next("a")
    producer.produce_all(aborted)
    assert aborted.output.lent
    producer.abort()
    producer.begin()
    assert not aborted.output.lent
    first, second = blocks.next("b"), blocks.next("c")
    assert aborted.output is first.output is second.output, "nobody reads the first two"
    producer.produce_all(second)
    third = blocks.next("d")
    assert third.output is not second.output
    producer.produce_all(third)
    producer.flush(time.monotonic() + 60)
    assert not second.output.lent and not third.output.lent
    assert blocks.next("e").output is first.output
    producer.commit()
    producer.close()
    until(lambda: len(_values(world)) == 40)


def test_more_than_there_is_room_for_is_copied(
    world: World, kernel: Kernel, block_client: BlockClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connector.native.kafka._MOST_LENT", 15_000)
    producer = started(world, block_client)
    blocks = Blocks(kernel, world.data)
    outputs = set()
    for letter in "abcdefgh":
        block = blocks.next(letter * 200)
        assert 5_000 < block.size < 15_000
        producer.produce_all(block)
        outputs.add(block.output)
    assert [output.lent for output in outputs].count(True) == 1 and len(outputs) == 2
    producer.flush(time.monotonic() + 60)
    producer.commit()
    producer.close()
    until(lambda: _values(world) == sorted(blocks.values))


def test_what_another_client_was_lent_is_copied(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    """He gives it back when he is done, whoever else reads it."""
    producer = started(world, block_client)
    other = TransactionalProducer(world.clients, world.named("other"), 60_000, blocks=block_client, linger_ms=30_000)
    other.start(time.monotonic() + 60)
    other.begin()
    blocks = Blocks(kernel, world.data)
    block = blocks.next("a")
    producer.produce_all(block)
    other.produce_all(block)
    producer.flush(time.monotonic() + 60)
    producer.commit()
    assert not block.output.lent
    # In the place of the one that the other has not sent yet.
    assert blocks.next("b").output is block.output
    other.flush(time.monotonic() + 60)
    other.commit()
    until(lambda: _values(world) == sorted(2 * blocks.values[:20]))
    producer.close()
    other.close()


def test_what_is_lent_outlives_all_who_know_it(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    """The client's threads do not know Python's references: when it ends, they may still read."""
    producer = started(world, block_client)
    block = Blocks(kernel, world.data).next("a")
    before = sys.getrefcount(block.bytes)
    producer.produce_all(block)
    lent = sys.getrefcount(block.bytes)
    assert lent == before + 1
    producer.close()
    # Purged, and reported.
    until(lambda: not block.output.lent)
    after = sys.getrefcount(block.bytes)
    assert after == before
    assert world.read(world.data) == []


def test_what_a_fenced_client_was_lent_comes_back(world: World, kernel: Kernel, block_client: BlockClient) -> None:
    """Who is fenced again and again needs no more memory for it."""
    producer = started(world, block_client)
    block = Blocks(kernel, world.data).next("a")
    producer.produce_all(block)
    other = fence(world.clients, world.worker, time.monotonic() + 60)
    assert other is not None
    other.close()
    with pytest.raises((ProducerFenced, UnknownOutcome, TransactionAborted)):
        producer.flush(time.monotonic() + 60)
        producer.commit()
    assert block.output.lent
    producer.close()
    until(lambda: not block.output.lent)


def _values(world: World) -> list[bytes]:
    return sorted(value for _, value in world.read(world.data) if value is not None)
