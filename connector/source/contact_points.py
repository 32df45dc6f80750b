"""Contact points that are of little use: their name does not resolve, or not soon, or nothing answers there.

In: contact points, the nodes that the driver knows. Out: what to tell the user. The driver is content with one that
answers; whoever relies on the others learns of them when it is too late.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from connector.aside import aside
from connector.source.failures import bracketed
from connector.source.settings import ConnectionSettings

#: For all of them. Who resolves names has a patience of his own, which may be half a minute for each.
PATIENCE_SECONDS = 2.0
_LEAST_SECONDS = 0.3
_UNRESOLVED = "{}: the name does not resolve"
_SLOW = "{}: the name is not resolved in {:g} s, for which every start waits"

Point = tuple[str, int]


def unresolved(points: Sequence[Point]) -> list[str]:
    """Those whose name leads nowhere, or not in time, and which of the two it is."""
    deadline, found = time.monotonic() + PATIENCE_SECONDS, list[str]()
    for point, resolving in _resolving(points):
        trouble, _ = _resolved(point, resolving, deadline)
        found += [] if trouble is None else [trouble]
    return found


class Connected(Protocol):
    """A connection, as far as contact points are concerned."""

    @property
    def settings(self) -> ConnectionSettings: ...

    def hosts(self) -> list[Any]: ...


def useless_points(connection: Connected) -> list[str]:
    """What is wrong with those of a connection that stands, for people."""
    up = {(str(host.endpoint.address), host.endpoint.port) for host in connection.hosts()}
    return [f"a contact point is of little use: {why}" for why in _useless(connection.settings.contact_points, up)]


def _useless(points: Sequence[Point], up: Collection[Point]) -> list[str]:
    """Why each of them would not have led to the cluster. ``up``: nodes that are, as far as is known."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    found: list[str] = []
    for point, resolving in _resolving(points):
        trouble, addresses = _resolved(point, resolving, deadline)
        if trouble is not None:
            found.append(trouble)
        elif time.monotonic() <= deadline and not any(address in up for address in addresses):
            trouble = _trouble(addresses, deadline)
            found += [] if trouble is None else [f"{_shown(point)}: {trouble}"]
    return found


def _resolving(points: Sequence[Point]) -> list[tuple[Point, Future[list[Point]]]]:
    """All at once: none waits for another's name."""
    return [(point, aside(partial(_addresses, *point), "names")) for point in points]


def _resolved(point: Point, resolving: Future[list[Point]], deadline: float) -> tuple[str | None, list[Point]]:
    """What is wrong with its name, and where it leads."""
    try:
        addresses = resolving.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        return _SLOW.format(_shown(point), PATIENCE_SECONDS), []
    return (None if addresses else _UNRESOLVED.format(_shown(point))), addresses


def _shown(point: Point) -> str:
    return bracketed(f"{point[0]}:{point[1]}")


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
