"""The nodes of the double: each answers on its own loopback address, all of them on the same shared state.

In: where to listen, nodes that are added, stopped, started, made stale. Out: `Node` values that connections, system
tables and events ask for address, host id, shard loads and the view of the streams.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Final, Protocol

from embedded.scylla.engine import Prepared
from embedded.scylla.identity import DATACENTER
from embedded.scylla.schema import Remembered
from embedded.scylla.versions import Version

# ScyllaDB evicts prepared statements by memory; by count is enough to keep a careless client from eating ours.
MAX_PREPARED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Client:
    """Who is at the other end of a connection. `startup` is what it sent in STARTUP."""

    address: str
    port: int
    stage: str
    version: int
    user: str | None
    keyspace: str | None
    compression: str | None
    encrypted: bool
    startup: Mapping[str, str]


class Link(Protocol):
    """A connection, as far as its node is concerned."""

    def abort(self) -> None: ...

    def client(self) -> Client: ...

    def overdue(self, patience: float) -> bool: ...


@dataclass(slots=True, eq=False)
class Node:
    """One node. `stale_as_of` (ms) is set while it shows the streams as they were known at that time, `writes_as_of`
    while it writes to those, `schema` while it hears of no change of the schema; `version` is its own, since clusters
    are upgraded node by node. `missed`: nobody answers for its replicas."""

    number: int
    address: IPv4Address
    shards: int
    version: Version
    datacenter: str = DATACENTER
    host_id: uuid.UUID = field(default_factory=uuid.uuid4)
    up: bool = False
    missed: bool = False
    stale_as_of: int | None = None
    writes_as_of: int | None = None
    schema: Remembered | None = None
    links: dict[Link, int] = field(default_factory=dict)
    prepared: dict[bytes, Prepared] = field(default_factory=dict)

    def attach(self, link: Link, shard: int | None = None) -> int:
        """Give a new connection its shard: the wanted one, else that with the fewest connections, as ScyllaDB does."""
        if shard is None:
            loads = [0] * self.shards
            for taken in self.links.values():
                loads[taken] += 1
            shard = loads.index(min(loads))
        self.links[link] = shard
        return shard

    def detach(self, link: Link) -> None:
        self.links.pop(link, None)

    def remember(self, prepared: Prepared) -> None:
        self.prepared[prepared.id] = prepared
        if len(self.prepared) > MAX_PREPARED:
            del self.prepared[next(iter(self.prepared))]

    def describe(self) -> dict[str, object]:
        return {
            "node": self.number,
            "address": str(self.address),
            "host_id": str(self.host_id),
            "datacenter": self.datacenter,
            "up": self.up,
            "missed": self.missed,
            "shards": self.shards,
            "version": self.version.release,
            "offers": sorted(self.version.offered),
            "connections": len(self.links),
            "prepared": len(self.prepared),
            "stale_as_of": self.stale_as_of,
            "writes_as_of": self.writes_as_of,
            "schema": None if self.schema is None else str(self.schema.version),
        }


class Nodes:
    """All nodes by number. Node 0 has the base address, the next one the address above it, and so on. ``datacenters``:
    where each of them is; behind the last one they are taken in turn."""

    def __init__(
        self, base: IPv4Address, shards: int, version: Version, datacenters: Sequence[str] = (DATACENTER,)
    ) -> None:
        self._base = base
        self._shards = shards
        self._version = version
        self._datacenters = datacenters
        self._nodes: dict[int, Node] = {}
        self._next = 0

    def add(self, datacenter: str | None = None) -> Node:
        where = datacenter or self._datacenters[self._next % len(self._datacenters)]
        node = Node(self._next, self._base + self._next, self._shards, self._version, where)
        self._nodes[node.number] = node
        self._next += 1
        return node

    def remove(self, number: int) -> Node:
        return self._nodes.pop(number)

    def __getitem__(self, number: int) -> Node:
        return self._nodes[number]

    def __contains__(self, number: object) -> bool:
        return number in self._nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    def datacenters(self) -> list[str]:
        """Where nodes are, each once."""
        return list(dict.fromkeys(node.datacenter for node in self))

    def peers_of(self, node: Node) -> list[Node]:
        return [other for other in self if other is not node]
