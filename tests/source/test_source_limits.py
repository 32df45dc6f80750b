"""Bounds of reading: so many queries a second, whatever the threads do, and so many bytes in memory."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest

from connector.source.limits import TokenBucket
from connector.source.log_reader import BYTES_AHEAD, LogReader, LogTable, ReadEvent, ReadRequest
from connector.source.pages import RawPage
from connector.source.settings import ReadingSettings


def taken(bucket: TokenBucket, now: float) -> int:
    count = 0
    while bucket.take(now):
        count += 1
    return count


def test_what_was_not_asked_is_not_saved_up() -> None:
    bucket = TokenBucket(100, 0.0)
    assert taken(bucket, 0.0) == 1
    assert taken(bucket, 0.1) == 10
    assert taken(bucket, 60.0) == 20
    assert bucket.wait(60.0) == 0.01


def test_pages_of_a_running_read_are_paid_for_later() -> None:
    bucket = TokenBucket(100, 0.0)
    for _ in range(11):
        bucket.charge()
    assert bucket.wait(0.0) == 0.11
    assert (taken(bucket, 0.1), taken(bucket, 0.125), taken(bucket, 0.2)) == (0, 2, 8)


def test_a_clock_that_steps_back_freezes_nothing() -> None:
    bucket = TokenBucket(100, 1000.0)
    assert (taken(bucket, 1000.0), taken(bucket, 10.0), taken(bucket, 10.125)) == (1, 0, 12)


def test_looks_for_late_changes_are_part_of_the_budget_and_leave_most_of_it_to_reads() -> None:
    now = [0.0]
    settings = ReadingSettings(max_queries_per_second=100)
    log = LogReader(cast(Any, None), settings, lambda event: None, clock=lambda: now[0])
    looks = reads = 0
    for _ in range(1000):
        now[0] += 0.01
        # As many as there is something to look at, from the first moment on.
        while log.may_look:
            log.charge_look()
            looks += 1
        reads += taken(log._bucket, now[0])
    assert 199 <= looks <= 201
    assert 999 <= looks + reads <= 1001


class Answering:
    """A connection whose answers are given when the test wants them: a page, and nothing behind it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def statement(self, query: str, values: object) -> Any:
        return type("Statement", (), {})()

    def page_async(self, statement: Any, done: Any, failed: Any, paging_state: bytes | None = None) -> None:
        self.asked.append(done)

    def answer(self, page: RawPage) -> None:
        waiting, self.asked = self.asked, []
        for done in waiting:
            done(page, None)


@pytest.mark.parametrize(("size", "rows"), [(1 << 20, 1), (1 << 20, 5_000), (16 << 20, 1), (1_000, 1)])
def test_what_lies_unprocessed_is_bounded_by_its_bytes(size: int, rows: int) -> None:
    """A worker that is slower than ScyllaDB, with more to read than fits."""
    events: list[ReadEvent] = []
    connection, now = Answering(), itertools.count(step=10)
    settings = ReadingSettings(max_queries_per_second=1_000_000)
    log = LogReader(cast(Any, connection), settings, events.append, clock=lambda: next(now))
    page = RawPage(("v",), (None,), [(b"",)] * rows, size)
    for number in range(1_000):
        log.submit(ReadRequest(number, LogTable("ks", "t"), (number.to_bytes(16, "big"),), 0, 1000))
    ahead = []
    for _ in range(200):
        log.pump()
        connection.answer(page)
        ahead.append(log.bytes_ahead)
        # What a page will be like is known from those before.
        assert len(events) <= settings.max_in_flight
        for event in events[:2]:
            log.consumed(event)
        del events[:2]
    assert log.waiting
    full = min(BYTES_AHEAD, settings.max_in_flight * size)
    assert full / 2 < max(ahead[100:]) <= BYTES_AHEAD + size + 1_000 * rows
