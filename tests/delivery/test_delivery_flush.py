"""How a client is flushed: it is left alone as long as its requests are under way, and hurried for moments where
nothing of them moves. Of a client that counts for how long it was hurried, and for how long it was waited for."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from connector.delivery.batches import Batches
from connector.delivery.producer import STILL_SECONDS, WATCH_SECONDS, ReportingProducer
from connector.delivery.topic_facts import TopicFacts
from connector.errors import ProducerFenced

TOPICS = {"t": TopicFacts("t", partitions=2, compacted=False, max_message_bytes=2_000_000)}


class Client:
    """One whose records arrive as ``left`` says: how many are pending after so many calls."""

    def __init__(self, left: Callable[[int], int]) -> None:
        self._left = left
        #: Each with its patience, and how many were pending before it.
        self.calls: list[tuple[str, float, int]] = []

    def __len__(self) -> int:
        return self._left(len(self.calls))

    def poll(self, seconds: float) -> int:
        return self._called("poll", seconds) and 0

    def flush(self, seconds: float) -> int:
        return self._called("flush", seconds)

    def _called(self, name: str, seconds: float) -> int:
        self.calls.append((name, seconds, len(self)))
        return len(self)

    def seconds(self, name: str) -> float:
        return sum(seconds for called, seconds, _ in self.calls if called == name)


def flushed(left: Callable[[int], int], **more: Any) -> Client:
    client = Client(left)
    clients: Any = SimpleNamespace(producer_properties={}, producer=lambda **_: client)
    producer = ReportingProducer(clients, **more)
    # A thousand records of a thousand bytes each: as many fill a batch.
    producer._bulk.add("t", 1_000, 1_000_000)
    producer.flush(time.monotonic() + 60)
    return client


def test_a_client_without_news_is_hurried_for_moments() -> None:
    client = flushed(lambda calls: 10 if calls < 40 else 0)
    hurried = client.seconds("flush") - WATCH_SECONDS
    assert 0 < hurried < client.seconds("poll") / 5


def test_a_client_with_news_is_flushed_to_the_end() -> None:
    client = flushed(lambda calls: max(0, 100 - calls))
    assert {name for name, _, _ in client.calls} == {"flush"}
    assert {seconds for _, seconds, _ in client.calls} == {WATCH_SECONDS}


def test_a_client_whose_requests_are_under_way_is_left_alone() -> None:
    client = flushed(lambda calls: max(0, 9_000 - 1_500 * calls), batches=Batches(TOPICS))
    begins = [name for name, _, _ in client.calls].index("flush")
    # Until what is left is less than a batch of each partition.
    assert begins and all(seconds == STILL_SECONDS and left > 2_000 for _, seconds, left in client.calls[:begins])
    assert client.calls[begins][2] <= 2_000


def test_who_stands_still_while_requests_are_under_way_is_not_waited_for() -> None:
    client = flushed(lambda calls: 9_000 if calls < 30 else 0, batches=Batches(TOPICS))
    names = [name for name, _, _ in client.calls]
    assert names[:4] == ["poll", "flush", "poll", "flush"]
    assert client.seconds("flush") < client.seconds("poll") / 5


def test_an_error_that_is_no_exception_ends_no_process() -> None:
    """As the binding raises one now and then, where a client that was fenced is flushed."""

    def raising(_: float) -> int:
        # What no clause but a bare one catches: its type is no exception's.
        raised = ctypes.pythonapi.PyErr_SetObject
        raised.argtypes, raised.restype = [ctypes.py_object, ctypes.py_object], None
        raised(KafkaError, KafkaError(KafkaError._FENCED, "old epoch", fatal=True))
        return 0

    with pytest.raises(ProducerFenced, match="old epoch"):
        ReportingProducer._served(raising, 1.0)


def test_who_is_interrupted_hears_of_it() -> None:
    def interrupted(_: float) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ReportingProducer._served(interrupted, 1.0)
