"""All CDC streams of the server: one ring for the vnode keyspaces, one history per table for the tablets
keyspaces.

Comes in: cluster changes from the admin interface, table changes from the CDC room. Goes out: the stream of
each write, and the rows of the stream tables for the system tables, on request as an earlier time knew them
(a lagging node).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embedded.scylla.clock import Clock
from embedded.scylla.streams.ring import RingNode, VnodeStreams
from embedded.scylla.streams.tablets import TabletStreams, tablet_count


class StreamService:
    """`vnodes` and `tablets` hold the histories; here are the steps that a cluster takes with both."""

    def __init__(
        self,
        clock: Clock,
        *,
        nodes: int = 1,
        vnodes: int = 8,
        shards: int = 2,
        ring_delay: float = 0.0,
        seed: int | None = None,
    ) -> None:
        self._vnodes_per_node = vnodes
        self._shards = shards
        self.vnodes = VnodeStreams(clock, ring_delay=ring_delay, seed=seed)
        self.tablets = TabletStreams(clock, ring_delay=ring_delay, seed=seed)
        for number in range(nodes):
            self.vnodes.join(number, vnodes=vnodes, shards=shards)
        self.vnodes.renew()

    @property
    def ring_delay(self) -> float:
        """Seconds; a new set counts twice this, plus 5 s, after it is made. 0: from now on."""
        return self.vnodes.ring_delay

    @ring_delay.setter
    def ring_delay(self, seconds: float) -> None:
        self.vnodes.ring_delay = self.tablets.ring_delay = seconds

    def let_writers_know(self, as_of: Callable[[], int | None]) -> None:
        """``as_of`` tells, of whoever carries a write out, when it last heard of stream sets (ms; None: of all)."""
        self.vnodes.writer_knows = self.tablets.writer_knows = as_of

    def add_node(self, number: int) -> RingNode:
        """A node bootstraps: its tokens join the ring and a new generation is made."""
        node = self.vnodes.join(number, vnodes=self._vnodes_per_node, shards=self._shards)
        self.vnodes.renew()
        return node

    def remove_node(self, number: int, *, renew: bool = True) -> None:
        """A node leaves. ScyllaDB makes no generation by itself then; `renew` adds the usual repair."""
        self.vnodes.leave(number)
        if renew:
            self.vnodes.renew()

    def node_tokens(self, number: int) -> tuple[int, ...]:
        """`tokens` of `system.local` or `system.peers`; nothing for a node that is not on the ring."""
        node = self.vnodes.nodes.get(number)
        return node.tokens if node else ()

    def default_tablets(self) -> int:
        """Tablets of a new table when neither keyspace nor table say how many: one for each shard of the
        cluster."""
        return tablet_count(sum(node.shards for node in self.vnodes.nodes.values()))

    def generation_timestamps(self, as_of: int | None = None) -> list[int]:
        """`system_distributed.cdc_generation_timestamps`, partition 'timestamps': ms, newest first."""
        return self.vnodes.timestamps(as_of)

    def generation_streams(self, as_of: int | None = None) -> Iterator[tuple[int, int, list[bytes]]]:
        """`system_distributed.cdc_streams_descriptions_v2`: (time, range_end, streams)."""
        for timestamp in self.vnodes.timestamps(as_of):
            for end, streams in self.vnodes.descriptions(timestamp, as_of):
                yield timestamp, end, streams

    def table_timestamps(self, as_of: int | None = None) -> Iterator[tuple[str, str, int]]:
        """`system.cdc_timestamps`: (keyspace, base table, ms), newest first within a table."""
        for keyspace, table in sorted(self.tablets.tables):
            for timestamp in self.tablets.timestamps(keyspace, table, as_of):
                yield keyspace, table, timestamp

    def table_streams(self, as_of: int | None = None) -> Iterator[tuple[str, str, int, int, bytes]]:
        """`system.cdc_streams`: (keyspace, base table, ms, stream_state, stream_id), oldest first within a
        table."""
        for keyspace, table in sorted(self.tablets.tables):
            for timestamp in reversed(self.tablets.timestamps(keyspace, table, as_of)):
                for state, stream in self.tablets.streams(keyspace, table, timestamp, as_of):
                    yield keyspace, table, timestamp, state, stream
