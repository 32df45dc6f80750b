"""What a connection wants of the server that accepted it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from embedded.scylla.answers import Answerer
from embedded.scylla.cluster import Cluster


class Listener(Protocol):
    """`encrypted` and `shard_aware_port` are told to clients; `tune` is called for each new connection."""

    cluster: Cluster
    answerer: Answerer
    shard_aware_port: int

    @property
    def encrypted(self) -> bool: ...

    def tune(self, transport: asyncio.Transport) -> None: ...
