"""What the system tables show: the parts of a cluster that they read."""

from __future__ import annotations

from typing import Protocol

from embedded.scylla.auth import Credentials
from embedded.scylla.engine import Engine
from embedded.scylla.nodes import Node, Nodes
from embedded.scylla.schema import Schema
from embedded.scylla.streams.service import StreamService
from embedded.scylla.versions import Version


class ShownSettings(Protocol):
    @property
    def version(self) -> Version: ...

    @property
    def credentials(self) -> Credentials | None: ...


class ClusterState(Protocol):
    """`answering` is the node whose request is being carried out."""

    schema: Schema
    streams: StreamService
    nodes: Nodes
    answering: Node
    started_ms: int
    engine: Engine

    @property
    def settings(self) -> ShownSettings: ...
