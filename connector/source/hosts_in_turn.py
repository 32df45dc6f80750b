"""Nodes that are up, each in its turn: who asks one of them now and then has asked all of them after a while.

In: an open connection. Out: its nodes, from the next one on. Everybody who asks has a turn of its own: of two who
shared one, and asked one after the other, each could meet the same nodes for ever.
"""

from __future__ import annotations

from typing import Any, Protocol

from connector.errors import RetriableSourceError


class Hosts(Protocol):
    def hosts(self) -> list[Any]: ...


class HostsInTurn:
    """``last``: the place of who counts as asked last."""

    def __init__(self, connection: Hosts, last: int = 0) -> None:
        self._connection = connection
        self._last = last

    def next(self) -> list[Any]:
        """All of them, in the order in which they are to be asked."""
        hosts = self._connection.hosts()
        if not hosts:
            raise RetriableSourceError("no node is known to be up")
        self._last = first = (self._last + 1) % len(hosts)
        return [*hosts[first:], *hosts[:first]]
