"""Listening: a socket for each node on its own loopback address, all with the same port.

In: a cluster and where to listen. Out: connections. Nodes can be stopped (their sockets and connections go) and started
again while the others serve.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import uuid
from collections.abc import Iterable
from typing import Final

from connector.errors import EmbeddedError
from embedded.scylla.answers import Answerer
from embedded.scylla.cluster import Cluster
from embedded.scylla.connection import Connection
from embedded.scylla.nodes import Node

# A page of 5,000 log rows is about a megabyte: with room for it the kernel takes it in one call.
_SEND_BUFFER: Final = 4 * 1024 * 1024
_BACKLOG: Final = 1024
_PORT_ATTEMPTS: Final = 50
# Far more than any client takes, even one that was stopped for a while.
_PATIENCE_SECONDS: Final = 120.0


class Server:
    """All listening sockets of the double."""

    def __init__(self, cluster: Cluster, *, tls: ssl.SSLContext | None = None) -> None:
        self.cluster = cluster
        self.answerer = Answerer(cluster)
        self.port = 0
        self.shard_aware_port = 0
        self.patience = _PATIENCE_SECONDS
        self._tls = tls
        self._watching: asyncio.Task[None] | None = None
        self._listeners: dict[int, list[asyncio.Server]] = {}

    @property
    def encrypted(self) -> bool:
        return self._tls is not None

    async def start(self, port: int | None = None) -> None:
        """Bring all nodes up, on this port or on one that is free on all their addresses."""
        sockets = self._bind_all(port)
        try:
            aware = self._bind_all(None)
        except EmbeddedError:
            _close(sockets)
            raise
        self.port, self.shard_aware_port = (bound[0].getsockname()[1] for bound in (sockets, aware))
        for node, *bound in zip(self.cluster.nodes, sockets, aware):
            await self._serve(node, *bound)
        self._watching = asyncio.create_task(self._watch())

    def _bind_all(self, port: int | None) -> list[socket.socket]:
        """One port for all nodes, each on its address."""
        for attempt in range(_PORT_ATTEMPTS):
            sockets: list[socket.socket] = []
            try:
                for node in self.cluster.nodes:
                    chosen = sockets[0].getsockname()[1] if sockets else port or 0
                    sockets.append(self._bind(node, chosen))
            except EmbeddedError:
                _close(sockets)
                if port or attempt == _PORT_ATTEMPTS - 1:
                    raise
            else:
                return sockets
        raise AssertionError("the last attempt ends otherwise")

    async def _watch(self) -> None:
        """Cut connections that began something and do not go on with it."""
        while True:
            await asyncio.sleep(min(self.patience / 4, 1.0))
            for node in self.cluster.nodes:
                for link in [link for link in node.links if link.overdue(self.patience)]:
                    link.abort()

    @staticmethod
    def _bind(node: Node, port: int) -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((str(node.address), port))
        except OSError as error:
            bound.close()
            reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise EmbeddedError(f"{node.address}:{port} {reason}") from None
        return bound

    async def _serve(self, node: Node, bound: socket.socket, aware: socket.socket) -> None:
        """`aware` is where clients choose the shard: ScyllaDB has that port whatever the number of shards."""
        self._listeners[node.number] = [
            await self._listen(node, bound, shard_aware=False),
            await self._listen(node, aware, shard_aware=True),
        ]
        node.up = True

    def _bind_both(self, node: Node) -> tuple[socket.socket, socket.socket]:
        bound = self._bind(node, self.port)
        try:
            return bound, self._bind(node, self.shard_aware_port)
        except EmbeddedError:
            bound.close()
            raise

    async def _listen(self, node: Node, bound: socket.socket, *, shard_aware: bool) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(
            lambda: Connection(self, node, shard_aware=shard_aware),
            sock=bound,
            ssl=self._tls,
            backlog=_BACKLOG,
        )

    @staticmethod
    def tune(transport: asyncio.Transport) -> None:
        """Called for each new connection."""
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)

    async def start_node(self, node: Node, *, replaced: bool = False) -> None:
        """Let a stopped node listen again, and tell the clients of the others. ``replaced``: it is another one, at its
        address and with its tokens."""
        if node.up:
            return
        bound = self._bind_both(node)
        if replaced:
            # Before anybody can ask who it is.
            node.host_id = uuid.uuid4()
        await self._serve(node, *bound)
        node.missed = False
        if replaced:
            self.cluster.events.topology_changed("NEW_NODE", node.address, self.port)
        self.cluster.events.status_changed(node.address, self.port, up=True)

    async def stop_node(self, node: Node, *, missed: bool = False) -> None:
        """Close a node's sockets and connections, and tell the clients of the others. ``missed``: reads that need its
        replicas are refused."""
        if not node.up:
            return
        node.up, node.missed = False, missed
        for listener in self._listeners.pop(node.number, []):
            listener.close()
        self.drop_connections(node)
        node.prepared.clear()
        self.cluster.events.status_changed(node.address, self.port, up=False)

    async def add_node(self, datacenter: str | None = None, *, tokens: bool = True) -> Node:
        """A node bootstraps: it joins the ring, which makes a new generation, listens, and is announced. Without
        ``tokens`` it joins no ring: it coordinates, and holds nothing."""
        node = self.cluster.nodes.add(datacenter)
        try:
            bound = self._bind_both(node)
        except EmbeddedError:
            self.cluster.nodes.remove(node.number)
            raise
        if tokens:
            self.cluster.streams.add_node(node.number)
        await self._serve(node, *bound)
        self.cluster.events.topology_changed("NEW_NODE", node.address, self.port)
        self.cluster.events.status_changed(node.address, self.port, up=True)
        return node

    async def remove_node(self, node: Node) -> None:
        """A node leaves the cluster for good. As in ScyllaDB this alone makes no new generation."""
        if self.cluster.streams.node_tokens(node.number):
            self.cluster.streams.remove_node(node.number, renew=False)
        await self.stop_node(node)
        self.cluster.nodes.remove(node.number)
        self.cluster.events.topology_changed("REMOVED_NODE", node.address, self.port)

    @staticmethod
    def drop_connections(node: Node) -> int:
        """Cut all of a node's connections; the clients may come back."""
        links = list(node.links)
        for link in links:
            link.abort()
        return len(links)

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.close()
        self._listeners.clear()
        for node in self.cluster.nodes:
            node.up = False
            self.drop_connections(node)


def _close(sockets: Iterable[socket.socket]) -> None:
    for bound in sockets:
        bound.close()
