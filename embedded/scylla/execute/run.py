"""One execution of a statement: what its compiled terms and operations ask for while they run.

In: bound values, the request's context, the clock. Out: times and fresh timeuuids. Compiled code takes a
`Run` and nothing else, so that plans are shared by all executions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from embedded.scylla.clock import Clock
from embedded.scylla.results import BoundValue, RequestContext

UUID_EPOCH_TICKS = 0x01B21DD213814000
"""100-nanosecond ticks from the Gregorian reform, where version-1 UUIDs count from, to 1970."""

_REFERENCE_US = 1_262_304_000_000_000
_SUBMICRO_LIMIT = 1 << 17


def time_uuid(ticks: int, low: bytes) -> bytes:
    """A version-1 UUID of a time in 100-ns ticks since 1970, with these low eight bytes."""
    stamp = ticks + UUID_EPOCH_TICKS
    return (
        (stamp & 0xFFFFFFFF).to_bytes(4, "big")
        + (stamp >> 32 & 0xFFFF).to_bytes(2, "big")
        + (stamp >> 48 & 0x0FFF | 0x1000).to_bytes(2, "big")
        + low
    )


def time_uuid_ticks(raw: bytes) -> int:
    """100-ns ticks since 1970 of a version-1 UUID."""
    high = int.from_bytes(raw[6:8], "big") & 0x0FFF
    stamp = high << 48 | int.from_bytes(raw[4:6], "big") << 32 | int.from_bytes(raw[:4], "big")
    return stamp - UUID_EPOCH_TICKS


class Ticker:
    """The engine's source of unique, growing times: write timestamps (µs) and timeuuids (100 ns)."""

    __slots__ = ("_clock", "_last_micros", "_last_ticks", "_node")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_micros = 0
        self._last_ticks = 0
        node = bytearray(os.urandom(8))
        node[0] = node[0] & 0x3F | 0x80
        self._node = bytes(node)

    def micros(self) -> int:
        """A write timestamp, later than every one given before unless the clock was moved back."""
        now = self._clock.now_us()
        last = self._last_micros
        # A clock that was moved back by more than a tick of bursts must not be held up by what it gave before.
        self._last_micros = now if now > last or last - now > 1_000_000 else last + 1
        return self._last_micros

    def uuid(self) -> bytes:
        """A fresh timeuuid of the present time."""
        now = self._clock.now_us() * 10
        last = self._last_ticks
        self._last_ticks = now if now > last or last - now > 10_000_000 else last + 1
        return time_uuid(self._last_ticks, self._node)


class Run:
    """One execution. In a batch `values`, `timestamp` (`explicit` if the text gives it), `ttl` and `expiry` are those
    of the statement at hand."""

    __slots__ = (
        "_appended",
        "_node",
        "context",
        "expiry",
        "explicit",
        "now_s",
        "ticker",
        "timestamp",
        "ttl",
        "values",
    )

    def __init__(self, values: Sequence[BoundValue], context: RequestContext, clock: Clock, ticker: Ticker) -> None:
        self.values = values
        self.context = context
        self.ticker = ticker
        self.now_s = clock.now_us() // 1_000_000
        self.timestamp = 0
        self.explicit = False
        self.ttl = 0
        self.expiry = 0
        self._appended = 0
        self._node = b""

    def append_key(self) -> bytes:
        """The key of the next appended list element: it has the write's own time, as ScyllaDB's, and counts up within a
        request. Under USING TIMESTAMP it has the present time instead: several statements may then give the same
        timestamp, and their elements must not fall together."""
        if self.explicit:
            return self.ticker.uuid()
        number = self._appended
        self._appended += 1
        return self._list_key(self.timestamp, number)

    def prepend_keys(self, count: int) -> list[bytes]:
        """Keys for elements that go to the front: their time lies before 2010 as far as the write's lies after."""
        if self.explicit or self.timestamp <= _REFERENCE_US:
            # Every tick is given out once, so going back in ticks keeps later statements before earlier ones.
            ticks = 2 * _REFERENCE_US * 10 - time_uuid_ticks(self.ticker.uuid())
            return [self._key(ticks, at) for at in range(count)]
        self._appended += count
        first = _SUBMICRO_LIMIT - self._appended
        past = 2 * _REFERENCE_US - self.timestamp
        return [self._list_key(past, first + at) for at in range(count)]

    def _list_key(self, micros: int, number: int) -> bytes:
        return self._key(micros * 10 + (number >> 14 & 7), number & 0x3FFF)

    def _key(self, ticks: int, sequence: int) -> bytes:
        if not self._node:
            self._node = os.urandom(6)
        # The low bytes are compared as signed ones: with this bit flipped the sequence sorts as it counts.
        return time_uuid(ticks, ((sequence ^ 0x0080) | 0x8000).to_bytes(2, "big") + self._node)


Bound = Callable[[Run], BoundValue]
"""A compiled term."""


class Fixed:
    """A compiled term that is always the same."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, run: Run) -> Any:
        return self.value
