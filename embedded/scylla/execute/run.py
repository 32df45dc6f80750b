"""One execution of a statement: what its compiled terms and operations ask for while they run.

In: bound values, the request's context, the clock. Out: times and fresh timeuuids. Compiled code takes a
`Run` and nothing else, so that plans are shared by all executions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from connector.timeuuid import EPOCH_TICKS, time_uuid
from embedded.scylla.clock import Clock
from embedded.scylla.errors import InvalidRequest, ServerError
from embedded.scylla.results import BoundValue, RequestContext

_REFERENCE_US = 1_262_304_000_000_000
_SUBMICRO_LIMIT = 1 << 17


class Ticker:
    """The engine's source of unique, growing times: write timestamps (µs) and timeuuids (100 ns)."""

    __slots__ = ("_clock", "_last_micros", "_last_ticks", "_node", "list_node")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_micros = 0
        self._last_ticks = 0
        #: The last six bytes of the keys of list elements: one constant of the process, so that equal times meet.
        self.list_node = int.from_bytes(os.urandom(6), "big")
        node = bytearray(os.urandom(8))
        node[0] = node[0] & 0x3F | 0x80
        self._node = int.from_bytes(node, "big")

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
    """One execution. In a batch `values`, `timestamp`, `ttl` and `expiry` are those of the statement at hand."""

    __slots__ = (
        "_elements",
        "context",
        "expiry",
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
        self.ttl = 0
        self.expiry = 0
        self._elements = 0

    def next_statement(self, values: Sequence[BoundValue], *, counting_on: bool) -> None:
        """Go on with a statement of a batch. List elements are counted on through a BATCH that is one text; statements
        that the protocol's message puts together count from zero each, as in ScyllaDB, and may meet on the same
        keys."""
        self.values = values
        if not counting_on:
            self._elements = 0

    def append_key(self) -> bytes:
        """The key of the next appended list element: the write's own time, and a running number below its microsecond.
        Writes of the same time meet on the same keys."""
        number = self._elements
        self._elements += 1
        return self._list_key(self.timestamp, number)

    def prepend_keys(self, count: int) -> list[bytes]:
        """Keys for elements that go to the front: their time lies before 2010 as far as the write's lies after."""
        if self.timestamp <= _REFERENCE_US:
            raise InvalidRequest("List prepend custom timestamp must be greater than Jan 1 2010 00:00:00")
        past = 2 * _REFERENCE_US - self.timestamp
        if self._elements + count >= _SUBMICRO_LIMIT:
            return [self._list_key(past, _SUBMICRO_LIMIT + at) for at in range(count)]
        self._elements += count
        first = _SUBMICRO_LIMIT - self._elements
        return [self._list_key(past, first + at) for at in range(count)]

    def _list_key(self, micros: int, number: int) -> bytes:
        if number >= _SUBMICRO_LIMIT:
            raise InvalidRequest("Too many list values per single CQL statement or batch")
        # The low bytes are compared as signed ones: with this bit flipped the number sorts as it counts.
        sequence = (number & 0x3FFF ^ 0x0080) | 0x8000
        ticks = micros * 10 + (number >> 14)
        if not 0 <= ticks + EPOCH_TICKS < 1 << 60:
            raise ServerError("timeuuid time must fit in 60 bits")
        return time_uuid(ticks, sequence << 48 | self.ticker.list_node)


Bound = Callable[[Run], BoundValue]
"""A compiled term."""


class Fixed:
    """A compiled term that is always the same."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, run: Run) -> Any:
        return self.value
