"""Tablets: the stream sets of each table, with splits, merges and partial changes.

Comes in: tables created and dropped, tablet counts, streams to close and tokens to open. Goes out: the stream
a write belongs to, and the contents of the virtual tables `system.cdc_timestamps` and `system.cdc_streams`.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from embedded.scylla.clock import Clock
from embedded.scylla.errors import ServerError
from embedded.scylla.streams.ids import stream_id, stream_order
from embedded.scylla.streams.ring import start_of_set
from embedded.scylla.streams.selection import LEEWAY_US, select_stream_set
from embedded.scylla.streams.shuffle import random_partial_change
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN, cdc_token

#: `system.cdc_streams.stream_state`
CURRENT, CLOSED, OPENED = 0, 1, 2
#: The first set of a table counts from a little before its creation, so that writes are accepted at once.
HEAD_START_MS = 5_000


@dataclass(frozen=True, slots=True)
class StreamSet:
    """The streams of a table from `timestamp` (ms) on, ordered by token; `announced` (ms) is when it was
    made."""

    timestamp: int
    announced: int
    streams: tuple[bytes, ...]
    tokens: tuple[int, ...]

    def stream_for(self, token: int) -> bytes:
        return self.streams[bisect_left(self.tokens, token)]


@dataclass(slots=True)
class TabletTable:
    """The history of one table's stream sets, oldest first."""

    log_id: UUID
    ttl: int
    sets: list[StreamSet] = field(default_factory=list)
    starts_us: list[int] = field(default_factory=list)

    def append(self, streams: StreamSet) -> None:
        self.sets.append(streams)
        self.starts_us.append(streams.timestamp * 1000)


def uniform_tokens(count: int) -> tuple[int, ...]:
    """The last tokens of `count` tablets of equal size."""
    return tuple(i * ((1 << 64) - 1) // count + MIN_TOKEN for i in range(1, count + 1))


def tablet_count(wanted: int) -> int:
    """ScyllaDB rounds a wanted number of tablets up to a power of two."""
    return 1 << max(0, wanted - 1).bit_length()


class TabletStreams:
    """The stream sets of all CDC tables in tablets keyspaces, by (keyspace, base table)."""

    def __init__(self, clock: Clock, *, ring_delay: float = 0.0, seed: int | None = None) -> None:
        self._clock = clock
        self.writer_knows: Callable[[], int | None] = lambda: None
        self._random = random.Random(seed)
        self.ring_delay = ring_delay
        self.tables: dict[tuple[str, str], TabletTable] = {}

    def create(self, keyspace: str, table: str, log_id: UUID, *, tablets: int, ttl: int) -> StreamSet:
        """The log table was created: one stream for each tablet. `ttl` is the log's, for forgetting old
        sets."""
        created = TabletTable(log_id, ttl)
        self.tables[keyspace, table] = created
        now = self._clock.now_ms()
        first = self._stream_set(now - HEAD_START_MS, now, uniform_tokens(tablet_count(tablets)), ())
        created.append(first)
        return first

    def drop(self, keyspace: str, table: str) -> None:
        self.tables.pop((keyspace, table), None)

    def drop_keyspace(self, keyspace: str) -> None:
        for key in [key for key in self.tables if key[0] == keyspace]:
            del self.tables[key]

    def set_ttl(self, keyspace: str, table: str, ttl: int) -> None:
        if (known := self.tables.get((keyspace, table))) is not None:
            known.ttl = ttl

    def resize(self, keyspace: str, table: str, tablets: int) -> StreamSet | None:
        """Split or merge to this many tablets; every stream is replaced. None if the count stays."""
        history = self._history(keyspace, table)
        newest = history.sets[-1]
        tokens = uniform_tokens(tablet_count(tablets))
        if tokens == newest.tokens:
            return None
        return self._append(history, tokens, ())

    def replace_all(self, keyspace: str, table: str) -> StreamSet:
        """New streams for the same tablets."""
        history = self._history(keyspace, table)
        return self._append(history, history.sets[-1].tokens, ())

    def change(self, keyspace: str, table: str, *, close: Iterable[bytes], open_tokens: Iterable[int]) -> StreamSet:
        """A partial change: close these streams, open one at each of these tokens, keep the rest.

        A token opened inside the range of a kept stream shrinks that stream; a range that is closed and not
        opened again widens the next stream. The ring must stay covered: the greatest token belongs to some
        stream.
        """
        history = self._history(keyspace, table)
        current = history.sets[-1]
        closed, opened = set(close), list(open_tokens)
        if unknown := closed.difference(current.streams):
            raise ValueError(f"not in the newest set: {', '.join(sorted(raw.hex() for raw in unknown))}")
        kept = tuple(raw for raw in current.streams if raw not in closed)
        tokens = [cdc_token(raw) for raw in kept] + opened
        if len(set(tokens)) != len(tokens):
            raise ValueError("two streams of one set cannot have the same token")
        if not all(MIN_TOKEN < token <= MAX_TOKEN for token in opened):
            raise ValueError("a token lies between -2^63 (exclusive) and 2^63-1")
        if MAX_TOKEN not in tokens:
            raise ValueError("the greatest token, 2^63-1, must belong to some stream")
        if not closed and not opened:
            raise ValueError("nothing to close and nothing to open")
        return self._append(history, tuple(opened), kept)

    def random_change(self, keyspace: str, table: str, *, seed: int | None = None) -> StreamSet:
        """One partial change of a random kind: split, merge, shifted boundary, growth, shrinking,
        replacement."""
        current = self._history(keyspace, table).sets[-1]
        source = self._random if seed is None else random.Random(seed)
        close, opened = random_partial_change(current.streams, current.tokens, source)
        return self.change(keyspace, table, close=close, open_tokens=opened)

    def backdate(self, keyspace: str, table: str, timestamp: int) -> None:
        """Let the oldest set count from an earlier time (for logs filled with the past)."""
        history = self._history(keyspace, table)
        oldest = history.sets[0]
        if timestamp < oldest.timestamp:
            history.sets[0] = StreamSet(timestamp, timestamp, oldest.streams, oldest.tokens)
            history.starts_us[0] = timestamp * 1000

    def stream_for(self, keyspace: str, table: str, token: int, timestamp: int) -> bytes:
        """The stream of a write (µs), or the error that rejects it."""
        history = self.tables.get((keyspace, table))
        if history is None:
            raise ServerError(
                f"cdc::metadata::get_stream: could not find stream metadata for table {keyspace}.{table}."
            )
        now = self._clock.now_us()
        as_of = self.writer_knows()
        if as_of is not None:
            known = [each for each in history.sets if each.announced <= as_of] or history.sets[:1]
            starts = [each.timestamp * 1000 for each in known]
            return known[select_stream_set(starts, timestamp, now, history.log_id)].stream_for(token)
        if history.starts_us[-1] <= timestamp <= now + LEEWAY_US:
            return history.sets[-1].stream_for(token)
        found = select_stream_set(history.starts_us, timestamp, now, history.log_id)
        return history.sets[found].stream_for(token)

    def timestamps(self, keyspace: str, table: str, as_of: int | None = None) -> list[int]:
        """`system.cdc_timestamps`: newest first, as known at `as_of` (ms)."""
        return [each.timestamp for each in reversed(self._visible(keyspace, table, as_of))]

    def streams(self, keyspace: str, table: str, timestamp: int, as_of: int | None = None) -> list[tuple[int, bytes]]:
        """`system.cdc_streams` at one timestamp: (stream_state, stream_id), within a state by signed
        token."""
        visible = self._visible(keyspace, table, as_of)
        for at, each in enumerate(visible):
            if each.timestamp == timestamp:
                return list(_states(visible[at - 1] if at else None, each))
        return []

    def _visible(self, keyspace: str, table: str, as_of: int | None) -> Sequence[StreamSet]:
        history = self.tables.get((keyspace, table))
        if history is None:
            return []
        self._forget(history)
        if as_of is None:
            return history.sets
        return [each for each in history.sets if each.announced <= as_of]

    def _forget(self, history: TabletTable) -> None:
        """Sets whose rows have all expired are forgotten; the oldest that stays then shows all its streams
        opened."""
        if not history.ttl:
            return
        horizon = self._clock.now_ms() - history.ttl * 1000
        while len(history.sets) > 1 and history.sets[1].timestamp <= horizon:
            del history.sets[0], history.starts_us[0]

    def _history(self, keyspace: str, table: str) -> TabletTable:
        try:
            return self.tables[keyspace, table]
        except KeyError:
            raise KeyError(f"{keyspace}.{table} has no stream sets of its own") from None

    def _append(self, history: TabletTable, opened: tuple[int, ...], kept: tuple[bytes, ...]) -> StreamSet:
        timestamp = start_of_set(self._clock, self.ring_delay, history.sets[-1].timestamp)
        made = self._stream_set(timestamp, self._clock.now_ms(), opened, kept)
        history.append(made)
        return made

    def _stream_set(
        self, timestamp: int, announced: int, opened: tuple[int, ...], kept: tuple[bytes, ...]
    ) -> StreamSet:
        new = [stream_id(token, 0, self._random.getrandbits) for token in opened]
        streams = tuple(sorted([*kept, *new], key=stream_order))
        return StreamSet(timestamp, announced, streams, tuple(cdc_token(raw) for raw in streams))


def _states(previous: StreamSet | None, current: StreamSet) -> Iterator[tuple[int, bytes]]:
    before = frozenset(previous.streams) if previous else frozenset()
    after = frozenset(current.streams)
    yield from ((CURRENT, raw) for raw in current.streams)
    yield from ((CLOSED, raw) for raw in (previous.streams if previous else ()) if raw not in after)
    yield from ((OPENED, raw) for raw in current.streams if raw not in before)
