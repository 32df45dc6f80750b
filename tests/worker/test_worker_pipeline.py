"""The pipeline makes records of whole batches, as many as there is room for, and stops before what can have none."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from connector.changes import Batch
from connector.delivery.records import record_size
from connector.delivery.topic_facts import TopicFacts
from connector.errors import PoisonRow, RetriableDeliveryError
from connector.formats.encoder import Encoder
from connector.worker.pipeline import RECORDS_AT_ONCE, Pipeline
from tests.config.files import loaded
from tests.formats.options import output_options
from tests.formats.rows import TIME, Log, table

LOG = Log(table({"pk": "int", "v": "text"}))
LETTERS: dict[str, Any] = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}
PLENTY = 1_000_000


def pipeline(connector: dict[str, Any] | None = None, max_bytes: int = PLENTY) -> Pipeline:
    transforms = {name: text for name, text in (connector or {}).items() if name.startswith("transforms")}
    encoder = Encoder(output_options(**transforms))
    topic = encoder.options.names.data_topic("ks", "t")
    return Pipeline(loaded(connector), encoder, {topic: TopicFacts(topic, 1, False, max_bytes)}, 0)


def batches(*values: str, bad: Sequence[int] = ()) -> list[Batch]:
    """One insert each; those in ``bad`` have an operation that nobody knows."""
    return [
        LOG.batch(LOG.row(99 if at in bad else 2, 0, True, uuid.UUID(int=TIME.int + (at << 64)), pk=at, v=value))
        for at, value in enumerate(values)
    ]


def test_all_batches_come_in_order_with_their_sizes() -> None:
    done = pipeline().encode(batches("a", "b", "c"), PLENTY)
    assert done.ends == [1, 2, 3]
    assert [record.key for record in done.records] == [b'{"pk":0}', b'{"pk":1}', b'{"pk":2}']
    assert done.bytes == sum(map(record_size, done.records))


@pytest.mark.parametrize(("room", "taken"), [(0, 1), (1, 1), (500, 2), (PLENTY, 3)])
def test_batches_are_taken_until_the_room_is_filled_and_at_least_one(room: int, taken: int) -> None:
    assert len(pipeline().encode(batches("a", "b", "c"), room).ends) == taken


def test_no_more_records_are_made_at_once_than_fit_between_two_looks_at_the_time() -> None:
    done = pipeline().encode(batches(*["a"] * (RECORDS_AT_ONCE + 10)), PLENTY)
    assert len(done.ends) == len(done.records) == RECORDS_AT_ONCE


def test_poison_stops_the_batches_before_it_from_nothing() -> None:
    found, given = pipeline(), batches("a", "b", "c", bad=[1])
    done = found.encode(given, PLENTY)
    assert done.ends == [1] and found.records["ks.t"] == 1
    with pytest.raises(PoisonRow, match="operation 99"):
        found.encode(given[1:], PLENTY)
    assert found.encode(given[2:], PLENTY).ends == [1] and found.records["ks.t"] == 2


def test_tolerated_poison_is_a_letter_in_its_place() -> None:
    found = pipeline(LETTERS)
    done = found.encode(batches("a", "b", "c", bad=[1]), PLENTY)
    assert [record.topic.rpartition(".")[2] for record in done.records] == ["t", "letters", "t"]
    assert done.ends == [1, 2, 3] and done.bytes == sum(map(record_size, done.records))
    assert found.records["ks.t"] == 2 and found.dead_letters["ks.t"] == 1


def test_a_delete_is_delivered_where_a_transform_fails_at_its_tombstone() -> None:
    copied = {"transforms": "op", "transforms.op.type": "HeaderFrom$Value", "transforms.op.operation": "copy"}
    copied |= {"transforms.op.fields": "op", "transforms.op.headers": "op"}
    given = [LOG.batch(LOG.row(3, 0, True, pk=1))]
    found = pipeline(LETTERS | copied)
    done = found.encode(given, PLENTY)
    assert [record.topic.rpartition(".")[2] for record in done.records] == ["t", "letters"]
    assert done.records[0].headers == [("op", b"d")] and done.ends == [2]
    assert done.bytes == sum(map(record_size, done.records))
    assert found.records["ks.t"] == 1 and "of its two records the tombstone cannot be made" in str(
        found.last_dead_letter
    )
    with pytest.raises(PoisonRow, match="the tombstone cannot be made: SmtRecordError"):
        pipeline(copied).encode(given, PLENTY)


def test_a_letter_that_cannot_be_sent_waits_behind_what_can() -> None:
    found, given = pipeline(LETTERS), batches("a", "b", bad=[1])
    found.suspend_topic("letters", "not allowed")
    assert found.encode(given, PLENTY).ends == [1]
    with pytest.raises(RetriableDeliveryError, match=r"not allowed; the dead letter is: .*operation 99"):
        found.encode(given[1:], PLENTY)
    assert not found.dead_letters["ks.t"]


def test_a_record_that_its_topic_does_not_take_is_poison() -> None:
    found = pipeline(max_bytes=2_000)
    assert found.encode(batches("a", "b" * 3_000), PLENTY).ends == [1]
    with pytest.raises(PoisonRow, match=r"larger than topic .* takes \(max.message.bytes is 2000\)") as caught:
        found.encode(batches("b" * 3_000), PLENTY)
    assert caught.value.stage == "KAFKA_PRODUCE"


def test_a_topic_that_fails_takes_nothing_until_it_is_mended() -> None:
    found, given = pipeline(), batches("a", "b")
    done = found.encode(given[:1], PLENTY)
    topic = done.records[0].topic
    found.suspend_topic(topic, "gone")
    with pytest.raises(RetriableDeliveryError, match="gone"):
        found.encode(given[1:], PLENTY)
    found.resume_topic(TopicFacts(topic, 1, False, PLENTY))
    assert found.encode(given[1:], PLENTY).ends == [1]


def test_a_batch_that_was_found_out_once_is_poison_again() -> None:
    found, given = pipeline(), batches("a", "b")
    found.poison[given[1].stream_id, given[1].time] = "refused"
    assert found.encode(given, PLENTY).ends == [1]
    with pytest.raises(PoisonRow, match="refused") as caught:
        found.encode(given[1:], PLENTY)
    assert caught.value.stage == "KAFKA_PRODUCE"


def test_what_kafka_refused_is_remembered_until_its_dead_letter_is_delivered() -> None:
    found, given = pipeline(LETTERS), batches("a", "b", "c")
    found.remember(given[1], "refused")
    for outcome in (found.aborted, found.committed):
        assert found.encode(given, PLENTY).ends == [1, 2, 3]
        assert found.poison, "not before the transaction has ended"
        outcome()
    assert not found.poison
    assert found.dead_letters["ks.t"] == 2


def test_what_kafka_refused_of_one_table_makes_others_no_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    found, given = pipeline(), batches("a", "b", "c")
    found.remember(given[0], "refused")
    monkeypatch.setattr(found.encoder, "encode", lambda change: pytest.fail("it was encoded by itself"))
    assert found.encode(given[1:], PLENTY).ends == [1, 2]


def test_batches_of_several_changes_keep_theirs_together() -> None:
    rows = [LOG.row(operation, at, at == 2, pk=at) for at, operation in enumerate((2, 3, 1))]
    done = pipeline().encode([*batches("a"), LOG.batch(*rows), *batches("b")], PLENTY)
    assert done.ends == [1, 5, 6]
    assert [(record.key, record.value is None) for record in done.records[1:5]] == [
        (b'{"pk":0}', False),
        (b'{"pk":1}', False),
        (b'{"pk":1}', True),
        (b'{"pk":2}', False),
    ]


def test_a_large_batch_is_not_divided() -> None:
    rows = [LOG.row(2, at, at == RECORDS_AT_ONCE, pk=at) for at in range(RECORDS_AT_ONCE + 1)]
    done = pipeline().encode([*batches("a"), LOG.batch(*rows), *batches("b")], PLENTY)
    assert done.ends == [1, 1 + len(rows)]


def test_a_topic_that_is_resumed_is_among_all_topics_at_each_moment() -> None:
    """Threads that restore slots look there for what former owners left: one that is missed is written to, unseen."""
    found, facts, seen = pipeline(), TopicFacts("new", 1, False, PLENTY), list[frozenset[str]]()

    class Suspended(dict[str, str]):
        def pop(self, *given: Any) -> Any:
            gone = super().pop(*given)
            seen.append(found.all_topics)
            return gone

    class Facts(dict[str, TopicFacts]):
        def __iter__(self) -> Any:
            yield from list(super().__iter__())
            if found.suspended_topics:
                found.resume_topic(facts)  # by another thread, once they were read

    found.suspended_topics = Suspended(new="hidden")
    found.resume_topic(facts)
    found.suspend_topic("other", "hidden")
    found.facts, facts = Facts(found.facts), TopicFacts("other", 1, False, PLENTY)
    seen.append(found.all_topics)
    assert ["new" in each for each in seen] == [True] * len(seen) and "other" in seen[-1]
