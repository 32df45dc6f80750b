"""Which stream set a write belongs to: ScyllaDB's checks on the write timestamp, with their errors.

Comes in: write timestamp, server clock, the start times of the known sets. Goes out: the index of the set, or
an error that rejects the whole write.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from embedded.scylla.errors import InvalidRequest, ServerError

#: ScyllaDB's generation leeway: how far a write may lie before or after the server's clock across a change of
#: sets.
LEEWAY_US = 5_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ADVICE = (
    "{problem} ({timestamp}; current server time: {now}). With CDC you cannot send writes with timestamps {what}\n"
    "We *do* allow sending writes into the near {near}, but our ability to do that is limited. {hint}"
)


def format_timestamp(micros: int) -> str:
    """As ScyllaDB prints write timestamps, with nanoseconds: `2026/11/21 14:41:24.123456000`; a timestamp beyond any
    calendar as it is."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y/%m/%d %H:%M:%S.%f000")
    except OverflowError:
        return str(micros)


def _from_the_future(timestamp: int, now: int) -> InvalidRequest:
    return InvalidRequest(
        _ADVICE.format(
            problem='cdc: attempted to get a stream "from the future"',
            timestamp=format_timestamp(timestamp),
            now=format_timestamp(now),
            what="arbitrarily into the future, because we don't know what streams will be used at that time.",
            near="future",
            hint="If you really must use your own timestamps, then make sure your clocks are well-synchronized "
            " with the database's clocks.",
        )
    )


def _from_the_past(timestamp: int, now: int) -> InvalidRequest:
    return InvalidRequest(
        _ADVICE.format(
            problem='cdc: attempted to get a stream "from the past"',
            timestamp=format_timestamp(timestamp),
            now=format_timestamp(now),
            what="too far into the past, because that would break consistency properties.",
            near="past",
            hint="Are you using client-side timestamps? Make sure your clocks are well-synchronized with the "
            "database's clocks.",
        )
    )


def select_generation(starts_us: Sequence[int], timestamp: int, now: int) -> int:
    """Vnodes: the newest generation not younger than the write, if writes to it are still allowed."""
    if timestamp > now + LEEWAY_US:
        raise _from_the_future(timestamp, now)
    if timestamp <= now - LEEWAY_US:
        # Writes to a superseded generation are accepted for the leeway only, to the current one however old
        # they are.
        used = bisect_right(starts_us, now - LEEWAY_US) - 1
        superseded = 0 <= used < len(starts_us) - 1 and starts_us[used + 1] <= now
        if used < 0 or timestamp < starts_us[used] or superseded:
            raise _from_the_past(timestamp, now)
    found = bisect_right(starts_us, timestamp) - 1
    if found < 0:
        raise ServerError(
            "cdc::metadata::get_stream: could not find any CDC stream for timestamp "
            f"{format_timestamp(timestamp)}. Are we in the middle of a cluster upgrade?"
        )
    return found


def select_stream_set(starts_us: Sequence[int], timestamp: int, now: int, table_id: UUID) -> int:
    """Tablets: the newest set not younger than the write, however old the write is."""
    if timestamp > now + LEEWAY_US:
        raise _from_the_future(timestamp, now)
    found = bisect_right(starts_us, timestamp) - 1
    if found < 0:
        raise ServerError(
            f"cdc::metadata::get_stream: could not find any CDC streams for table {table_id} for timestamp {timestamp}."
        )
    return found
