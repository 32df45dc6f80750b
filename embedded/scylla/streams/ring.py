"""Vnodes: the token ring of the nodes and the stream generations made from it.

Comes in: nodes that join and leave, requests for a new generation, tokens and timestamps of writes. Goes out:
the stream a write belongs to, and the contents of `system_distributed.cdc_generation_timestamps`,
`cdc_streams_descriptions_v2` and of the `tokens` of `system.local` and `system.peers`.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from embedded.scylla.clock import Clock
from embedded.scylla.streams.ids import (
    first_token_of_shard,
    shard_of,
    stream_id,
)
from embedded.scylla.streams.selection import LEEWAY_US, select_generation
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN

#: The coordinator adds this to twice the ring delay, so that every node learns of a set before it counts.
MARGIN_MS = 5_000


def start_of_set(clock: Clock, ring_delay: float, previous: int | None) -> int:
    """The millisecond from which a new stream set counts.

    Without a delay it is the *next* millisecond: the writes already logged in this one went to the previous
    set, and a set covers whole milliseconds.
    """
    delay = round(2_000 * ring_delay) + MARGIN_MS if ring_delay else 1
    start = clock.now_ms() + delay
    return start if previous is None else max(start, previous + 1)


@dataclass(frozen=True, slots=True)
class RingNode:
    """A node's share of the ring."""

    number: int
    shards: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """One vnode generation: the streams of each token range, counting from `timestamp` (ms).

    `announced` (ms) is when it was made: a node whose view is older does not show it.
    """

    timestamp: int
    announced: int
    range_ends: tuple[int, ...]
    streams: tuple[tuple[bytes, ...], ...]

    def stream_for(self, token: int) -> bytes:
        at = bisect_left(self.range_ends, token)
        of_range = self.streams[at if at < len(self.range_ends) else 0]
        return of_range[shard_of(token, len(of_range))]

    def all_streams(self) -> list[bytes]:
        return [stream for of_range in self.streams for stream in of_range]


class VnodeStreams:
    """The ring and its generations, oldest first. The first one counts at once, without a delay, as in
    ScyllaDB."""

    def __init__(self, clock: Clock, *, ring_delay: float = 0.0, seed: int | None = None) -> None:
        self._clock = clock
        self.writer_knows: Callable[[], int | None] = lambda: None
        self._random = random.Random(seed)
        self.ring_delay = ring_delay
        self.nodes: dict[int, RingNode] = {}
        self.generations: list[Generation] = []
        self._starts_us: list[int] = []
        self._newest_us = 0

    def join(self, number: int, *, vnodes: int, shards: int) -> RingNode:
        """Put a node on the ring. Makes no generation: `renew` does, once per bootstrap."""
        if number in self.nodes:
            raise ValueError(f"node {number} is already on the ring")
        if vnodes < 1 or shards < 1:
            raise ValueError("a node has at least one vnode and one shard")
        taken = {token for node in self.nodes.values() for token in node.tokens}
        tokens: set[int] = set()
        while len(tokens) < vnodes:
            token = self._random.randint(MIN_TOKEN + 1, MAX_TOKEN)
            if token not in taken:
                tokens.add(token)
        node = RingNode(number, shards, tuple(sorted(tokens)))
        self.nodes[number] = node
        return node

    def leave(self, number: int) -> None:
        """Take a node off the ring. Makes no generation, as decommissioning does not in ScyllaDB."""
        if number not in self.nodes:
            raise KeyError(f"node {number} is not on the ring")
        if len(self.nodes) == 1:
            raise ValueError("the last node cannot leave the ring")
        del self.nodes[number]

    def renew(self, *, keep: Collection[int] = ()) -> Generation:
        """Make a new generation. Ranges whose end is in `keep` and whose bounds and shards stay, keep their
        streams."""
        owners = {token: node for node in self.nodes.values() for token in node.tokens}
        ends = tuple(sorted(owners))
        before = self.generations[-1] if self.generations else None
        kept = _kept_ranges(before, keep) if before else {}
        streams: list[tuple[bytes, ...]] = []
        for index, end in enumerate(ends):
            start, shards = ends[index - 1], owners[end].shards
            old = kept.get((start, end), ())
            streams.append(old if len(old) == shards else self._streams_of_range(start, end, index, shards))
        now = self._clock.now_ms()
        timestamp = now if before is None else start_of_set(self._clock, self.ring_delay, before.timestamp)
        generation = Generation(timestamp, now, ends, tuple(streams))
        self.generations.append(generation)
        self._index()
        return generation

    def backdate(self, timestamp: int) -> None:
        """Let the oldest generation count from an earlier time (for logs filled with the past)."""
        oldest = self.generations[0]
        if timestamp < oldest.timestamp:
            self.generations[0] = Generation(timestamp, timestamp, oldest.range_ends, oldest.streams)
            self._index()

    def stream_for(self, token: int, timestamp: int) -> bytes:
        """The stream of a write (µs), or the error that rejects it."""
        now = self._clock.now_us()
        as_of = self.writer_knows()
        if as_of is not None:
            known = self._visible(as_of) or self.generations[:1]
            return known[select_generation([each.timestamp * 1000 for each in known], timestamp, now)].stream_for(token)
        if self._newest_us <= timestamp <= now + LEEWAY_US and self._newest_us <= now - LEEWAY_US:
            return self.generations[-1].stream_for(token)
        return self.generations[select_generation(self._starts_us, timestamp, now)].stream_for(token)

    def timestamps(self, as_of: int | None = None) -> list[int]:
        """`cdc_generation_timestamps`: newest first, as known at `as_of` (ms)."""
        return [generation.timestamp for generation in reversed(self._visible(as_of))]

    def descriptions(self, timestamp: int, as_of: int | None = None) -> list[tuple[int, list[bytes]]]:
        """`cdc_streams_descriptions_v2` of one generation: (range_end, streams as a sorted set), by range
        end."""
        for generation in self._visible(as_of):
            if generation.timestamp == timestamp:
                return [(end, sorted(streams)) for end, streams in zip(generation.range_ends, generation.streams)]
        return []

    def _visible(self, as_of: int | None) -> Sequence[Generation]:
        if as_of is None:
            return self.generations
        return [generation for generation in self.generations if generation.announced <= as_of]

    def _index(self) -> None:
        self._starts_us = [generation.timestamp * 1000 for generation in self.generations]
        self._newest_us = self._starts_us[-1]

    def _streams_of_range(self, start: int, end: int, index: int, shards: int) -> tuple[bytes, ...]:
        return tuple(
            stream_id(_stream_token(start, end, shard, shards), index, self._random.getrandbits)
            for shard in range(shards)
        )


def _kept_ranges(generation: Generation, keep: Collection[int]) -> dict[tuple[int, int], tuple[bytes, ...]]:
    ends = generation.range_ends
    return {
        (ends[at - 1], end): streams for at, (end, streams) in enumerate(zip(ends, generation.streams)) if end in keep
    }


def _stream_token(start: int, end: int, shard: int, shards: int) -> int:
    """First token of (start, end] that the shard owns, else the end; the first range wraps around the
    ring."""
    found = first_token_of_shard(start, shard, shards)
    if start < end:
        return found if found is not None and found <= end else end
    if found is not None:
        return found
    found = first_token_of_shard(MIN_TOKEN, shard, shards)
    return found if found is not None and found <= end else end
