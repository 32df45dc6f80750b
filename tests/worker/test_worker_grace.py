"""What is over within moments is no state."""

from __future__ import annotations

from connector.worker.grace import GRACE_SECONDS, Grace


def test_only_who_was_well_a_moment_ago_is_not_said_to_wait() -> None:
    now = 100.0
    grace = Grace(lambda: now)
    assert not grace.covers(waits=True, lasting=False), "it is not ready yet"
    assert not grace.covers(waits=False, lasting=False)
    now += GRACE_SECONDS - 0.1
    assert grace.covers(waits=True, lasting=False)
    assert not grace.covers(waits=True, lasting=True), "a background task has had its own grace"
    now += 0.2
    assert not grace.covers(waits=True, lasting=False), "it lasts"
    assert not grace.covers(waits=False, lasting=False)
    now += 1
    assert grace.covers(waits=True, lasting=False)
