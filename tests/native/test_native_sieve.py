"""What the kernel's sieve keeps of a topic says what the whole of it says, message by message."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from connector.delivery import KafkaClients, TopicSpec, TransactionalProducer, ensure_topics, records
from connector.delivery.clients import READ_COMMITTED
from connector.delivery.records import COMMIT_HEADER, LEFT_HEADER, OwnKeys, compact_json, encode_offsets_key
from connector.delivery.slot_reader import Patience, SlotRecords, read_to_end
from connector.delivery.slots_reader import PlainReader, SievedReader, Sought, slots_reader
from connector.errors import RetriableDeliveryError
from connector.native import BulkClient, Kernel, NoKernel, Sieve, sieve
from tests.servers.patience import until

SLOTS = 3
NAMES = ["c", "cc", "c\\", 'c"', "ç", "c,{", "[", " c ", "other"]
EOF = KafkaError._PARTITION_EOF


def some_key(draw: random.Random, name: str) -> bytes | None:
    members: dict[str, Any] = {"table_name": draw.choice(["t", "t x", "u\\", "ü"]), "slot": draw.randrange(3)}
    key = encode_offsets_key(draw.choice([name, name, *NAMES]), members)
    kind = draw.random()
    if kind < 0.1:  # the same, spelled by somebody else
        return json.dumps(json.loads(key), ensure_ascii=draw.random() < 0.5).encode()
    if kind < 0.2:
        damaged = bytearray(key)
        damaged[draw.randrange(len(damaged))] = draw.choice(b'" \\,[]{}\x00\x1fx')
        return bytes(damaged[: draw.choice([draw.randrange(len(damaged) + 1), 999])])
    return draw.choice([None, b"", b"null"]) if kind < 0.23 else key


def some_messages(draw: random.Random, name: str) -> Iterator[Message]:
    offsets = [draw.randrange(2**40) for _ in range(SLOTS)]
    for _ in range(draw.randrange(150)):
        slot = draw.randrange(SLOTS)
        offsets[slot] += draw.randint(1, 3)
        if draw.random() < 0.03:
            yield Message("positions", slot, offsets[slot], error=KafkaError(draw.choice([EOF, 3])))
            continue
        value = draw.choice([None, b"", b"damaged", compact_json({"owner": draw.choice("uvw"), "n": offsets[slot]})])
        headers: Any = None
        if draw.random() < 0.3:
            left = compact_json([["topic", draw.choice("uvw"), offsets[slot]]])
            headers = [(COMMIT_HEADER, draw.randbytes(draw.randrange(40))), ("ÿ", None), (LEFT_HEADER, left), ("", b"")]
            headers = headers[: draw.randint(1, 4)]
        stamp = draw.randint(1, 2), draw.randrange(2**41)
        yield Message("positions", slot, offsets[slot], some_key(draw, name), value, headers, None, stamp)


class Told:
    """What the slots say in the end, and what was said of them meanwhile."""

    def __init__(self, name: str) -> None:
        self.noted: set[bytes] = set()
        self.events: set[tuple[Any, ...]] = set()
        self.slots = {slot: SlotRecords(name, slot, noted=self.noted.add) for slot in range(SLOTS)}

    def take(self, messages: list[Message]) -> None:
        for slot, kept in self.slots.items():
            run = [each for each in messages if each.partition() == slot]
            for event in kept.take(run):
                error = event.error()
                assert error is not None
                self.events.add((slot, event.offset(), error.code()))

    def all(self) -> list[Any]:
        said: list[Any] = [self.noted, self.events]
        for kept in self.slots.values():
            newest = kept.newest_owners(), kept.left(), kept.keys
            said += [newest, [(entry.offset, entry.key, entry.value) for entry in kept.restored().entries]]
        return said


def offered(sieve: Sieve, message: Message) -> None:
    error = message.error()
    sieve.offer(
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        message.headers() or [],
        message.timestamp(),
        0 if error is None else error.code(),
    )


def foreign(caplog: pytest.LogCaptureFixture) -> set[str]:
    """What was said of records that nobody of us wrote, but for where they are."""
    said = {line.partition("a foreign record")[2] for line in caplog.messages}
    caplog.clear()
    records._pass_over.cache_clear()
    return said


@pytest.mark.parametrize("seed", range(200))
def test_what_is_kept_says_what_everything_says(kernel: Kernel, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    draw = random.Random(seed)
    name = draw.choice(NAMES)
    plain, sieved = Told(name), Told(name)
    between = Sieve(kernel, "positions", OwnKeys(name).usual, range(SLOTS))
    messages = list(some_messages(draw, name))
    plain.take(messages)
    expected = plain.all(), foreign(caplog)
    ends = [0] * SLOTS
    for message in messages:
        if draw.random() < 0.02:
            sieved.take(between.drain())
        offered(between, message)
        if message.error() is None:
            ends[message.partition() or 0] = (message.offset() or 0) + 1
    sieved.take(between.drain())
    assert list(between.ends) == ends
    assert between.drain() == []
    between.close()
    assert (sieved.all(), foreign(caplog)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_each_record_that_none_follows_comes_as_it_was(kernel: Kernel, seed: int) -> None:
    draw = random.Random(seed)
    between, own = Sieve(kernel, "positions", OwnKeys("c").usual, range(SLOTS)), OwnKeys("c")
    messages, kept = list(some_messages(draw, "c")), {}
    for message in messages:
        offered(between, message)
        kept.update({(each.partition(), each.offset()): each for each in between.drain()})
    between.close()
    for message in messages:
        found = kept.pop((message.partition(), message.offset()), None)
        if message.error() is None and own.own(message) is None:
            continue  # a foreign one, which may be handed on
        assert found is not None
        for of in (Message.topic, Message.key, Message.headers, Message.timestamp):
            assert message.error() is not None or of(found) == of(message)
        assert message.error() is not None or found.value() == message.value()
    assert not kept


def test_of_another_connectors_records_none_comes_and_of_ours_each_key_once(kernel: Kernel) -> None:
    keys_alone = Sieve(kernel, "t", OwnKeys("c").usual, [1], values=False)
    for _ in range(2):
        for offset in range(5_000):
            for name in ("c", "d"):
                keys_alone.offer(1, offset, encode_offsets_key(name, {"x": offset % 2_000}), b"v", [("h", b"v")])
        found = keys_alone.drain()
        assert {each.key() for each in found} == {encode_offsets_key("c", {"x": at}) for at in range(2_000)}
        assert len(found) == 2_000 and {(each.value(), each.headers()) for each in found} == {(None, None)}
    keys_alone.close()


def test_a_kernel_that_sifts_wrongly_is_not_used(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "_EXPECTED", [2, 3, 4, 5, 6])
    with pytest.raises(NoKernel, match="otherwise"):
        BulkClient(kernel)


# -- on a broker -------------------------------------------------------------------------------------------------------


@pytest.fixture
def clients(kafka: Any, kernel: Kernel) -> KafkaClients:
    client = BulkClient(kernel)
    return KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}, bulk=lambda: client)


@pytest.fixture
def topic(clients: KafkaClients, unique: Any) -> str:
    name: str = unique("sieve")
    ensure_topics(clients.admin(), [TopicSpec(name, SLOTS, 1, compacted=True)])
    return name


def write(clients: KafkaClients, topic: str, records: int, commit: bool = True, first: int = 0) -> None:
    producer = TransactionalProducer(clients, f"p-{topic}", 15_000)
    producer.start(time.monotonic() + 60)
    producer.begin()
    for at in range(first, first + records):
        key = encode_offsets_key(("c", "other")[at % 2], {"x": at % 50})
        producer.produce_to(topic, at % SLOTS, key, str({"n": at}).replace("'", '"').encode())
    producer.flush(time.monotonic() + 60)
    producer.commit() if commit else producer.abort()
    producer.close()


def read(clients: KafkaClients, topic: str) -> tuple[dict[int, SlotRecords], Any]:
    found = {slot: SlotRecords("c", slot) for slot in range(SLOTS)}
    reader = slots_reader(clients, "g", READ_COMMITTED, Sought(topic, "c"))
    reader.assign(dict.fromkeys(found, 0))
    read_to_end(reader, found, set(found), {}, Patience(60), lambda: False)
    return found, reader


@pytest.mark.kafka
def test_a_topic_is_read_as_it_is_message_by_message(clients: KafkaClients, topic: str) -> None:
    write(clients, topic, 3_000)
    write(clients, topic, 500, commit=False, first=3_000)
    write(clients, topic, 30, first=4_000)
    said = []
    for each, kind in ((clients, SievedReader), (replace(clients, bulk=lambda: None), PlainReader)):
        found, reader = read(each, topic)
        assert isinstance(reader, kind)
        said.append([(slot.end, slot.restored().entries) for slot in found.values()])
        # From the beginning, when it is assigned anew.
        reader.assign({1: 0})
        again = {1: SlotRecords("c", 1)}
        read_to_end(reader, again, {1}, {}, Patience(60), lambda: False)
        assert again[1].restored().entries == said[0][1][1]
        reader.close()
    assert [len(entries) for _, entries in said[0]] == [25, 25, 25]
    assert said[0] == said[1]


@pytest.mark.kafka
def test_a_reader_goes_on_behind_the_end(clients: KafkaClients, topic: str) -> None:
    write(clients, topic, 6)
    found, reader = read(clients, topic)
    end = found[0].end
    write(clients, topic, 6, first=5_000)
    came: list[Any] = []
    until(lambda: any(run.slot == 0 and run.end > end for run in came), step=lambda: came.extend(reader.read(0.2)))
    reader.close()


@pytest.mark.kafka
def test_a_reader_can_be_closed_in_the_middle(clients: KafkaClients, topic: str) -> None:
    write(clients, topic, 3_000)
    reader = slots_reader(clients, "g", READ_COMMITTED, Sought(topic, "c"))
    reader.assign({0: 0})
    until(lambda: list(reader.read(0, waits=False)) or list(reader.read(0.001)))
    reader.close()


@pytest.mark.kafka
def test_a_topic_that_is_not_there_is_waited_for(clients: KafkaClients, topic: str) -> None:
    hasty = replace(clients, consumer_properties={"topic.metadata.propagation.max.ms": 100})
    reader = slots_reader(hasty, "g", READ_COMMITTED, Sought(topic + "-missing", "c"))
    reader.assign({0: 0})
    until(lambda: clients.health.error, step=lambda: list(reader.read(0.1)))
    assert "UNKNOWN_TOPIC" in str(clients.health.error)
    with pytest.raises(RetriableDeliveryError, match="nothing comes"):
        read_to_end(reader, {0: SlotRecords("c", 0)}, {0}, {}, Patience(0.5), lambda: False)
    reader.close()
