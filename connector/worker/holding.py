"""Connectors that were asked to pause: they hold their positions, and the log does not wait for them.

In: what is asked of one, what its workers said last. Out: what is to be said of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from connector.worker.status_document import WorkerStatus


class Target(Enum):
    """What a connector is to do. PAUSED and STOPPED are the same but in what is shown of its tasks."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


def held_reason(
    name: str, target: Target, last: Iterable[WorkerStatus], now_ms: int, unheard: str | None = None
) -> str:
    """Why it is not read, and until when nothing is lost by that. ``unheard``: by whom it is read all the same."""
    ends = [
        (table.position_ms + 1000 * table.log_ttl_seconds, which)
        for status in last
        for which, table in status.tables.items()
        if table.position_ms and table.log_ttl_seconds
    ]
    text = f"connector {name} is {target.value} by request"
    if unheard is not None:
        return f"{text}; {unheard}"
    if not ends:
        return text
    end, table = min(ends)
    if end <= now_ms:
        return f"{text}; the log of {table} has begun to lose changes that are not delivered"
    return f"{text}; the log of {table} keeps what is not delivered for {_span((end - now_ms) // 1000)} more"


def _span(seconds: int) -> str:
    for length, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
