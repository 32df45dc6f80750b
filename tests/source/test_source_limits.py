"""The budget of queries: no more than so many a second, whatever the threads do."""

from __future__ import annotations

from typing import Any, cast

from connector.source.limits import TokenBucket
from connector.source.log_reader import LogReader
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
