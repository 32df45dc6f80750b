"""Where tablets live: which nodes, and which of their shards, hold the tablet of a token.

In: the cluster, a table, a token. Out: a `Tablet`, or None for tables of vnode keyspaces; who holds tokens, of either.
Every node answers for every token here; clients are told who holds it all the same, as ScyllaDB tells them
(`TABLETS_ROUTING_V1`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from embedded.scylla.cdc.log_schema import base_name, is_log
from embedded.scylla.nodes import Node, Nodes
from embedded.scylla.paxos import paxos_base_name
from embedded.scylla.protocol.primitives import INT, LONG
from embedded.scylla.schema import Schema, Table
from embedded.scylla.streams.service import StreamService
from embedded.scylla.streams.tablets import tablet_count, uniform_tokens
from embedded.scylla.tokens import MIN_TOKEN

_SYSTEM_OPTIONS: Final = ("class", "initial", "enabled")
_uniform = lru_cache(maxsize=64)(uniform_tokens)


class Placed(Protocol):
    """The parts of a cluster that tell where its tablets are."""

    schema: Schema
    streams: StreamService
    nodes: Nodes


@dataclass(frozen=True, slots=True)
class Tablet:
    """The tokens behind `first` up to `last`, and who holds them: nodes with the number of their shard."""

    first: int
    last: int
    replicas: tuple[tuple[Node, int], ...]

    def holds(self, node: Node, shard: int) -> bool:
        return any(holder is node and at == shard for holder, at in self.replicas)

    def routing(self) -> bytes:
        """As a client is told: `tuple<bigint, bigint, list<tuple<uuid, int>>>`."""
        parts = [INT.pack(8), LONG.pack(self.first), INT.pack(8), LONG.pack(self.last)]
        replicas = [INT.pack(len(self.replicas))]
        for node, shard in self.replicas:
            replicas += (INT.pack(28), INT.pack(16), node.host_id.bytes, INT.pack(4), INT.pack(shard))
        told = b"".join(replicas)
        return b"".join([*parts, INT.pack(len(told)), told])


def tablet_of(cluster: Placed, table: Table, token: int) -> Tablet | None:
    """The tablet of a table that has this token."""
    lasts = last_tokens(cluster, table)
    return None if lasts is None else _tablet(cluster, table, lasts, bisect_left(lasts, token))


def tablets_of(cluster: Placed, table: Table) -> list[Tablet]:
    """All tablets of a table, by token; none if it has vnodes."""
    lasts = last_tokens(cluster, table) or ()
    return [_tablet(cluster, table, lasts, at) for at in range(len(lasts))]


def replicas_of(cluster: Placed, table: Table, first: int, last: int) -> Iterator[Sequence[Node]]:
    """Who holds the tokens from one to another: of each tablet or vnode between them its replicas."""
    lasts = last_tokens(cluster, table)
    if lasts is not None:
        for at in range(bisect_left(lasts, first), bisect_left(lasts, last) + 1):
            yield [node for node, _ in _tablet(cluster, table, lasts, at).replicas]
        return
    owner = {token: node for node in cluster.nodes for token in cluster.streams.node_tokens(node.number)}
    ends = sorted(owner)
    holders = _holders(cluster, table.keyspace)
    for at in range(bisect_left(ends, first), bisect_left(ends, last) + 1):
        # Behind the last token the ring begins anew.
        owners: dict[Node, None] = {}
        for turn in range(len(ends)):
            owners[owner[ends[(at + turn) % len(ends)]]] = None
            if len(owners) == len(cluster.nodes):
                break
        yield [each for nodes, copies in holders for each in [node for node in owners if node in nodes][:copies]]


def base_of(cluster: Placed, table: Table) -> Table | None:
    """The table whose tablets this one shares, being its log or its state of lightweight transactions; else None."""
    name = base_name(table.name) if is_log(table) else paxos_base_name(table.name)
    keyspace = cluster.schema.keyspace(table.keyspace)
    if name is None or keyspace is None or not keyspace.uses_tablets:
        return None
    return cluster.schema.table(table.keyspace, name)


def last_tokens(cluster: Placed, table: Table) -> Sequence[int] | None:
    """Where each tablet of a table ends. A log has those of its base table, which are its newest streams."""
    keyspace = cluster.schema.keyspace(table.keyspace)
    if keyspace is None or not keyspace.uses_tablets:
        return None
    table = base_of(cluster, table) or table
    streams = cluster.streams.tablets.tables.get((table.keyspace, table.name))
    if streams is not None:
        return streams.sets[-1].tokens
    wanted = _wanted(table.options.get("tablets")) or int((keyspace.tablets or {}).get("initial", "0"))
    return _uniform(tablet_count(wanted or cluster.streams.default_tablets()))


def _wanted(options: object) -> int:
    given = options.get("min_tablet_count", "0") if isinstance(options, Mapping) else "0"
    return int(given)


def _tablet(cluster: Placed, table: Table, lasts: Sequence[int], at: int) -> Tablet:
    """The nodes of a datacenter take turns, and on each node its shards."""
    replicas = []
    for nodes, copies in _holders(cluster, table.keyspace):
        for turn in range(at, at + min(copies, len(nodes))):
            node = nodes[turn % len(nodes)]
            replicas.append((node, turn // len(nodes) % node.shards))
    return Tablet(lasts[at - 1] if at else MIN_TOKEN, lasts[at], tuple(replicas))


def _holders(cluster: Placed, keyspace: str) -> list[tuple[list[Node], int]]:
    """The nodes of each datacenter that the keyspace is in, and its copies there. Where it names none that is here, its
    copies are on nodes of whichever."""
    nodes = [node for node in cluster.nodes if cluster.streams.node_tokens(node.number)]
    counts = _copies(cluster, keyspace)
    there = {
        datacenter: [node for node in nodes if node.datacenter == datacenter]
        for datacenter in cluster.nodes.datacenters()
    }
    found = [(there[datacenter], count) for datacenter, count in counts.items() if count and there.get(datacenter)]
    return found or [(nodes, max(1, max(counts.values(), default=1)))]


def _copies(cluster: Placed, keyspace: str) -> dict[str, int]:
    """By datacenter, or by the option that has the number."""
    known = cluster.schema.keyspace(keyspace)
    named = known.replication.items() if known is not None else ()
    return {
        name: int(count)
        for name, count in named
        if name not in _SYSTEM_OPTIONS and count.isdecimal() and len(count) < 10
    }
