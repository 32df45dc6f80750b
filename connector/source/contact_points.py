"""Contact points that are of no use: their name does not resolve, or nothing answers there.

In: contact points, the nodes that the driver knows. Out: what to tell the user. The driver is content with one that
answers; whoever relies on the others learns of them when it is too late.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from connector.source.failures import bracketed
from connector.source.settings import ConnectionSettings

#: Until then another one is looked at; who resolves names has a patience of his own.
PATIENCE_SECONDS = 2.0
_LEAST_SECONDS = 0.3
_UNRESOLVED = "{}: the name does not resolve"

Point = tuple[str, int]


def unresolved(points: Sequence[Point]) -> list[str]:
    """Those whose name leads nowhere, and that it does."""
    return [_UNRESOLVED.format(bracketed(f"{host}:{port}")) for host, port in points if not _addresses(host, port)]


class Connected(Protocol):
    """A connection, as far as contact points are concerned."""

    @property
    def settings(self) -> ConnectionSettings: ...

    def hosts(self) -> list[Any]: ...


def useless_points(connection: Connected) -> list[str]:
    """What is wrong with those of a connection that stands, for people."""
    up = {(str(host.endpoint.address), host.endpoint.port) for host in connection.hosts()}
    return [f"a contact point is of no use: {why}" for why in _useless(connection.settings.contact_points, up)]


def _useless(points: Sequence[Point], up: Collection[Point]) -> list[str]:
    """Why each of them would not have led to the cluster. ``up``: nodes that are, as far as is known."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    found: list[str] = []
    for host, port in points:
        if time.monotonic() > deadline:
            break
        place, addresses = bracketed(f"{host}:{port}"), _addresses(host, port)
        if not addresses:
            found.append(_UNRESOLVED.format(place))
        elif not any(address in up for address in addresses):
            trouble = _trouble(addresses, deadline)
            found += [] if trouble is None else [f"{place}: {trouble}"]
    return found


def _addresses(host: str, port: int) -> list[Point]:
    try:
        return [(str(place[4][0]), port) for place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):  # the latter of what cannot be a name
        return []


def _trouble(addresses: Sequence[Point], deadline: float) -> str | None:
    """Why none of them takes connections."""
    trouble: str | None = None
    for address in addresses:
        try:
            socket.create_connection(address, max(_LEAST_SECONDS, deadline - time.monotonic())).close()
        except OSError as error:
            trouble = trouble or (error.strerror or str(error)).lower()
        else:
            return None
    return trouble
