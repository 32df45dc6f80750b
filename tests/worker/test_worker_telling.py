"""What a worker tells its supervisor: one that does not listen holds up nobody."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from connector.worker.messages import EndMessage, SlotsMessage, StatusMessage, StreamsMessage, WaitingMessage, from_line
from connector.worker.telling import Telling
from tests.servers.patience import patience
from tests.worker.test_worker_aging import said

# Together a multiple of what a pipe holds.
REPORTS = 3_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    yield reads, writes
    for each in (reads, writes):
        os.close(each)


def test_who_listens_again_is_told_how_it_is_by_then(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    telling = Telling(writes)

    def tell() -> None:
        telling(SlotsMessage(connector="shop", slots=6))
        for number in range(REPORTS):
            telling(StatusMessage(status=said([0], records=number)))
            telling(StreamsMessage(table="ks.t" if number % 2 else "ks.other", groups=(), count=number))
        telling(EndMessage(cause="over"))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    thread.join(60 * patience())
    assert not thread.is_alive(), "it waits for somebody who does not listen"
    telling.finish(0.0)
    messages = []
    with os.fdopen(os.dup(reads), "rb") as lines:
        for line in lines:
            messages.append(from_line(line))
            if isinstance(messages[-1], EndMessage):
                break
    telling.finish(60 * patience())
    assert messages[0] == SlotsMessage(connector="shop", slots=6) and len(messages) < REPORTS
    [other, status, streams] = messages[-4:-1]
    assert isinstance(status, StatusMessage) and isinstance(streams, StreamsMessage)
    assert isinstance(other, StreamsMessage) and {other.table, streams.table} == {"ks.t", "ks.other"}
    assert {other.count, streams.count} == {REPORTS - 2, REPORTS - 1}, "the newest of each"


def test_a_supervisor_that_is_gone_ends_nobody() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    telling = Telling(writes)
    try:
        for _ in range(2):
            telling(WaitingMessage(doing="connecting", error="no answer"))
            telling.finish(60 * patience())
            assert telling._said
    finally:
        os.close(writes)
