"""The pipeline makes blocks of batches that nobody has cut, and the plain way takes those that the kernel refuses."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from connector.changes import Batch, UncutBatches
from connector.delivery.records import record_size
from connector.delivery.topic_facts import TopicFacts
from connector.errors import PoisonRow, RetriableDeliveryError
from connector.formats.encoder import Encoder
from connector.native import BlockEncoder, Kernel, RecordBlock
from connector.worker.measures import Measures
from connector.worker.pipeline import Pipeline
from tests.config.files import loaded
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import TIME, Log, table
from tests.formats.test_formats_columnwise import advanced
from tests.native.both_ways import uncut
from tests.native.variants import HEADERS, METADATA, unwrapped

LOG = Log(table({"pk": "int", "v": "text"}))
PLENTY = 1_000_000
LETTERS: dict[str, Any] = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}


def pipelines(
    kernel: Kernel, connector: dict[str, Any] | None = None, max_bytes: int = PLENTY, **properties: str
) -> tuple[Pipeline, Pipeline]:
    """With blocks, and without."""
    made = []
    for native in (True, False):
        encoder = Encoder(output_options(**properties), clock=lambda: NOW_NS)
        topic = encoder.options.names.data_topic("ks", "t")
        blocks = BlockEncoder(kernel, encoder, clock=lambda: NOW_NS) if native else None
        facts = {topic: TopicFacts(topic, 1, False, max_bytes)}
        made.append(Pipeline(loaded(connector), encoder, facts, 0, blocks=blocks))
    return made[0], made[1]


def batches(kernel: Kernel, *values: str | bytes, log: Log = LOG) -> UncutBatches:
    """One insert each; of bytes that are no text no record can be made."""
    rows = []
    for at, value in enumerate(values):
        time = uuid.UUID(int=TIME.int + (at << 64))
        text = {"v": value} if isinstance(value, str) else {}
        raw = {"v": value} if isinstance(value, bytes) else {}
        rows.append(log.row(2, 0, True, time, pk=at, raw=raw, **text))
    return uncut(kernel, log.layout, rows)


def all_of(pipeline: Pipeline, given: Sequence[Batch]) -> tuple[list[Any], list[bool]]:
    """The records of all batches, and which calls made a block."""
    records, native = [], []
    while given:
        done = pipeline.encode(given, PLENTY)
        assert done.bytes == sum(map(record_size, done.records))
        records += list(done.records)
        native.append(isinstance(done.records, RecordBlock))
        given = given[len(done.ends) :]
    return records, native


@pytest.mark.parametrize(
    "properties",
    [{}, METADATA, HEADERS | METADATA, unwrapped("extract-new-state")],
    ids=["plain", "with headers", "with keys in headers", "unwrapped"],
)
def test_a_block_is_what_the_plain_way_makes(kernel: Kernel, properties: dict[str, str]) -> None:
    native, plain = pipelines(kernel, **properties)
    given = batches(kernel, "a", "b" * 300, "ü")
    assert native.takes_uncut(LOG.layout) and not plain.takes_uncut(LOG.layout)
    assert all_of(native, given) == (all_of(plain, given)[0], [True])
    assert native.records == plain.records


@pytest.mark.parametrize(("room", "taken"), [(0, 1), (1, 1), (500, 2), (PLENTY, 3)])
def test_a_block_ends_where_the_room_does(kernel: Kernel, room: int, taken: int) -> None:
    native, plain = pipelines(kernel)
    given = batches(kernel, "a", "b", "c")
    assert len(native.encode(given, room).ends) == len(plain.encode(given, room).ends) == taken


def test_a_refused_batch_alone_goes_the_plain_way(kernel: Kernel) -> None:
    native, _ = pipelines(kernel, LETTERS)
    records, ways = all_of(native, batches(kernel, "a", "b", b"\xff", "c", "d"))
    assert ways == [True, False, True]
    assert [record.topic.rpartition(".")[2] for record in records] == ["t", "t", "letters", "t", "t"]
    assert native.dead_letters["ks.t"] == 1 and native.records["ks.t"] == 4


KEYED = Log(table({"p": "int", "q": "int", "c": "int", "s": "text", "v": "text"}, ("p", "q"), ("c",), ("s",)))
PARTITION: dict[str, Any] = {"p": 1, "q": 2}
#: Of each row whether there is a record of it; with images, as a post-image tells what an update of keys only was.
LEFT_BY_A_RENAME: dict[str, tuple[bool, int, dict[str, Any]]] = {
    "an insert": (False, 2, {**PARTITION, "v": "x"}),
    "an update": (False, 1, {**PARTITION, "v": "x"}),
    "an update of nothing of a static row": (True, 1, {**PARTITION}),
    "an update of a static row": (True, 1, {**PARTITION, "s": "x"}),
    "an update of both": (False, 1, {**PARTITION, "s": "x", "v": "x"}),
    "a delete": (False, 3, {**PARTITION}),
    "a delete by ScyllaDB": (False, -3, {**PARTITION}),
    "an update without a partition": (False, 1, {"p": 1, "c": 3, "v": "x"}),
    "a static row without a partition": (False, 1, {"p": 1, "s": "x"}),
    "static columns of a row without a partition": (False, 1, {"p": 1, "c": 3, "s": "x"}),
    "a delete without a partition": (False, 3, {"q": 1, "c": 3}),
}


@pytest.mark.parametrize("name", LEFT_BY_A_RENAME)
@pytest.mark.parametrize("properties", [{}, METADATA, unwrapped("extract-new-state")], ids=["plain", "more", "rows"])
@pytest.mark.parametrize("letters", [{}, LETTERS], ids=["fails", "is tolerated"])
def test_what_lost_its_key_is_poison_in_every_way(
    kernel: Kernel, name: str, properties: dict[str, str], letters: dict[str, Any]
) -> None:
    is_record, code, values = LEFT_BY_A_RENAME[name]
    rows = [
        KEYED.row(2, 0, True, TIME, **PARTITION, c=3, v="x"),
        KEYED.row(code, 0, True, uuid.UUID(int=TIME.int + (1 << 64)), **values),
        KEYED.row(2, 0, True, uuid.UUID(int=TIME.int + (2 << 64)), **PARTITION, c=4, v="x"),
    ]
    native, plain = pipelines(kernel, letters, **properties)
    given = uncut(kernel, KEYED.layout, rows)
    if not is_record and not letters:
        for pipeline in (native, plain):
            assert list(pipeline.encode(given, PLENTY).ends) == [1]
            with pytest.raises(PoisonRow, match="of the key without a value"):
                pipeline.encode(given[1:], PLENTY)
            assert list(pipeline.encode(given[2:], PLENTY).ends) == [1]
        return
    records, ways = all_of(native, given)
    assert records == all_of(plain, given)[0]
    topics = [record.topic.rpartition(".")[2] for record in records]
    assert topics == ["t", "t" if is_record else "letters", "t"]
    assert native.dead_letters == plain.dead_letters and native.dead_letters["ks.t"] == (0 if is_record else 1)
    assert all(ways) == (is_record and "s" in values), "a static row needs no other way"
    assert all(record.value is not None for record in records), "no tombstone of a key that is none"


@pytest.mark.parametrize("properties", [{}, advanced("full", "full", "kafka-key")], ids=["legacy", "images"])
@pytest.mark.parametrize("of_images", [True, False], ids=["an image", "an update of nothing"])
def test_what_may_have_lost_its_key_is_not_made_natively(
    kernel: Kernel, properties: dict[str, str], of_images: bool
) -> None:
    lost = Log(replace(KEYED.description, keys_lost_us=1 << 60))
    rows = [lost.row(1, 0, not of_images, **PARTITION, **({"c": 3, "v": "x"} if of_images else {}))]
    if of_images:
        rows.append(lost.row(9, 1, True, **PARTITION, v="x"))
    for pipeline in pipelines(kernel, **properties):
        with pytest.raises(PoisonRow, match="column c of the key without a value"):
            pipeline.encode(uncut(kernel, lost.layout, rows), PLENTY)


def test_where_many_are_refused_the_kernel_is_not_asked_for_each(kernel: Kernel) -> None:
    native, _ = pipelines(kernel, LETTERS)
    given = batches(kernel, *["a", b"\xff"] * 200)
    records, ways = all_of(native, given)
    assert len(records) == 400 and len(ways) < 20
    assert native.dead_letters["ks.t"] == 200


def test_what_is_poison_fails_as_in_the_plain_way(kernel: Kernel) -> None:
    for pipeline in pipelines(kernel):
        given = batches(kernel, "a", b"\xff")
        assert list(pipeline.encode(given, PLENTY).ends) == [1]
        with pytest.raises(PoisonRow, match="column v"):
            pipeline.encode(given[1:], PLENTY)


def test_a_record_that_is_too_large_is_poison(kernel: Kernel) -> None:
    for pipeline in pipelines(kernel, max_bytes=2_000):
        given = batches(kernel, "a", "b" * 3_000)
        assert list(pipeline.encode(given, PLENTY).ends) == [1]
        with pytest.raises(PoisonRow, match=r"larger than topic .* takes \(max.message.bytes is 2000\)"):
            pipeline.encode(given[1:], PLENTY)


def test_records_of_any_size_have_room_in_a_block(kernel: Kernel) -> None:
    native, plain = pipelines(kernel, max_bytes=20_000_000)
    given = batches(kernel, "a" * 3_000_000, "b" * 100, "c" * 5_000_000)
    for at in range(3):
        assert list(native.encode(given[at:], 1).records) == list(plain.encode(given[at:], 1).records)


def test_a_topic_that_takes_nothing_gets_no_block(kernel: Kernel) -> None:
    native, _ = pipelines(kernel)
    given = batches(kernel, "a", "b")
    native.suspend_topic(native.encode(given[:1], PLENTY).records[0].topic, "gone")
    with pytest.raises(RetriableDeliveryError, match="gone"):
        native.encode(given, PLENTY)


def test_after_an_abort_records_are_made_one_by_one(kernel: Kernel) -> None:
    native, plain = pipelines(kernel)
    given = batches(kernel, "a", "b")
    native.plainly = True
    assert not native.takes_uncut(LOG.layout)
    assert all_of(native, given) == all_of(plain, given)
    native.plainly = False
    assert all_of(native, given)[1] == [True]


def test_remembered_poison_stays_poison(kernel: Kernel) -> None:
    native, _ = pipelines(kernel)
    given = batches(kernel, "a", "b", "c", "d")
    native.poison[given[1].stream_id, given[1].time] = "refused"
    assert list(native.encode(given, PLENTY).ends) == [1]
    assert isinstance(native.encode(given[2:], PLENTY).records, RecordBlock)
    with pytest.raises(PoisonRow, match="refused"):
        native.encode(given[1:], PLENTY)


def test_measures_of_a_block_are_those_of_its_batches(kernel: Kernel) -> None:
    given = batches(kernel, *["a"] * 50)
    native, _ = pipelines(kernel)
    block = native.encode(given, PLENTY).records
    assert isinstance(block, RecordBlock)
    one, other = Measures(), Measures()
    one.added(list(given), 50)
    other.added_at("ks.t", block.times, block.rows, len(block))
    for measures in (one, other):
        measures.committed(given[20].timestamp_us // 1000 + 700)
    assert one.latency["ks.t"].status() == other.latency["ks.t"].status()
    assert one.rows["ks.t"].status() == other.rows["ks.t"].status()
    assert one.records.status() == other.records.status()
