"""What is said of a connector that was asked to pause: until when nothing is lost by it."""

from __future__ import annotations

import pytest

from connector.worker.holding import Target, held_reason
from connector.worker.state import State
from connector.worker.status_document import TableStatus, WorkerStatus

DAY = 86_400
NOW = 1_800_000_000_000


def worker(**positions: tuple[int, int]) -> WorkerStatus:
    tables = {
        name: TableStatus(state=State.RUNNING, position_ms=NOW - 1000 * behind, log_ttl_seconds=ttl or None)
        for name, (behind, ttl) in positions.items()
    }
    return WorkerStatus(
        worker="w",
        fingerprint="f",
        tables_configured=(),
        time_ms=NOW,
        state=State.RUNNING,
        slots=(),
        slot_count=1,
        tables=tables,
    )


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "connector shop is PAUSED by request"),
        ([worker(a=(10, 0))], "connector shop is PAUSED by request"),
        ([worker(a=(3600, DAY), b=(0, DAY))], "; the log of a keeps what is not delivered for 23 hours more"),
        ([worker(a=(0, DAY)), worker(a=(DAY - 90, DAY))], "; the log of a keeps what is not delivered for 90 s more"),
        ([worker(a=(DAY, 8 * DAY))], "; the log of a keeps what is not delivered for 7 days more"),
        ([worker(a=(DAY + 1, DAY))], "; the log of a has begun to lose changes that are not delivered"),
    ],
)
def test_the_log_does_not_wait(workers: list[WorkerStatus], said: str) -> None:
    assert held_reason("shop", Target.PAUSED, workers, NOW).endswith(said)


def test_who_does_not_hear_of_it_is_told_in_place_of_what_expires() -> None:
    """Its workers have all slots, and deliver."""
    said = held_reason("shop", Target.PAUSED, [worker(a=(0, DAY))], NOW, "process other hears of nothing")
    assert said == "connector shop is PAUSED by request; process other hears of nothing"
