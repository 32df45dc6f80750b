"""The whole double as one object: clock, schema, engine, streams, nodes, faults, counters. Opens no socket.

In: `Settings`. Out: a `Cluster` that connections, system tables and the admin interface share. Single-threaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address

from embedded.scylla.auth import Credentials
from embedded.scylla.availability import Availability
from embedded.scylla.cdc.tables import Cdc
from embedded.scylla.clock import Clock
from embedded.scylla.counters import Counters
from embedded.scylla.engine import Engine
from embedded.scylla.events import EventHub
from embedded.scylla.faults import Faults
from embedded.scylla.identity import DATACENTER
from embedded.scylla.nodes import Node, Nodes
from embedded.scylla.schema import Schema
from embedded.scylla.streams.service import StreamService
from embedded.scylla.system_tables import install
from embedded.scylla.versions import NEWEST, Version, version_like


@dataclass(frozen=True, slots=True)
class Settings:
    """How the double is to be. `ring_delay` is ScyllaDB's, in seconds: a new stream set counts twice this plus 5 s
    after it was made, or from now on if it is 0. `datacenters` are those of the nodes, in their order. `like` is a
    release line of ScyllaDB, `without` names extensions of the protocol that it shall not offer."""

    nodes: int = 1
    vnodes: int = 16
    shards: int = 1
    ring_delay: float = 30.0
    seed: int | None = None
    credentials: Credentials | None = None
    address: IPv4Address = field(default=IPv4Address("127.0.0.1"))
    datacenters: tuple[str, ...] = (DATACENTER,)
    like: str = NEWEST
    without: tuple[str, ...] = ()

    @property
    def version(self) -> Version:
        return version_like(self.like, self.without)


class Cluster:
    """Shared by all nodes. `answering` is the node whose request is being carried out: system tables differ by it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = Clock()
        self.started_ms = self.clock.now_ms()
        self.schema = Schema()
        self.streams = StreamService(
            self.clock,
            nodes=settings.nodes,
            vnodes=settings.vnodes,
            shards=settings.shards,
            ring_delay=settings.ring_delay,
            seed=settings.seed,
        )
        self.nodes = Nodes(settings.address, settings.shards, settings.version, settings.datacenters)
        for _ in range(settings.nodes):
            self.nodes.add()
        self.answering: Node = self.nodes[0]
        self.streams.let_writers_know(lambda: self.answering.writes_as_of)
        self.events = EventHub()
        self.faults = Faults()
        self.counters = Counters()
        self.cdc = Cdc(self.schema, self.clock, self.streams, seed=settings.seed, version=settings.version)
        self.engine = Engine(self.schema, self.clock, self.cdc, settings.version)
        self.engine.catalog.datacenters = self.nodes.datacenters
        self.engine.catalog.require = Availability(self).require
        install(self)
        self.schema.listen(self.events.schema_changed)
