"""When records go: in full batches by themselves, and the rest at a flush."""

from __future__ import annotations

import math
from typing import Any

import pytest

from connector.delivery.batches import LARGEST_BATCH, LINGER_MS, Batches, Bulk
from connector.delivery.topic_facts import TopicFacts


def facts(name: str, partitions: int, most: int = 2_000_000) -> TopicFacts:
    return TopicFacts(name, partitions, compacted=False, max_message_bytes=most)


def bulk(records: int, size: int, *topics: str) -> Bulk:
    found = Bulk()
    for topic in topics:
        found.add(topic, records, size)
    return found


@pytest.mark.parametrize(
    ("configured", "transaction", "expected"),
    [
        ({}, 60_000, LINGER_MS),
        # librdkafka makes no producer whose records linger until their time is up.
        ({}, 6_000, 2_000),
        ({"delivery.timeout.ms": 3_000}, 60_000, 1_000),
        ({"message.timeout.ms": "900"}, 60_000, 300),
        # None at all.
        ({"message.timeout.ms": 0}, 60_000, LINGER_MS),
        ({"linger.ms": "5"}, 60_000, LINGER_MS),
        ({"linger.ms": 8_000}, 60_000, 8_000),
        ({"queue.buffering.max.ms": "8000.4"}, 60_000, 8_000),
        # Without transactions a record is seen when it is sent.
        ({}, None, None),
    ],
)
def test_records_of_transactions_linger_as_long_as_is_allowed(
    configured: dict[str, Any], transaction: int | None, expected: int | None
) -> None:
    assert Batches({}).properties(configured, transaction).get("linger_ms") == expected


def test_batches_fit_all_topics_that_are_known_by_then() -> None:
    topics = {"a": facts("a", 1)}
    batches = Batches(topics)
    assert batches.properties({}, None)["batch_size"] == LARGEST_BATCH
    topics["b"] = facts("b", 1, most=1_000)
    assert batches.properties({}, None)["batch_size"] == 1_000


def test_as_many_may_wait_as_fill_no_batch_for_certain() -> None:
    batches = Batches({"a": facts("a", 3), "b": facts("b", 2)})
    assert batches.most_waiting(bulk(100, 50_000, "a"), {}) == 3 * LARGEST_BATCH / 500
    assert batches.most_waiting(bulk(100, 50_000, "a", "b"), {}) == 5 * LARGEST_BATCH / 500
    # A batch is full of records before it is full of bytes.
    assert batches.most_waiting(bulk(100, 1_000, "a"), {}) == 30_000
    assert batches.most_waiting(bulk(100, 1_000, "a"), {"batch.num.messages": "50"}) == 150


def test_nothing_waits_for_what_is_not_known_or_came_one_by_one() -> None:
    batches = Batches({"a": facts("a", 3)})
    assert batches.most_waiting(bulk(100, 50_000, "a", "new"), {}) == math.inf
    assert batches.most_waiting(Bulk(), {}) == math.inf
