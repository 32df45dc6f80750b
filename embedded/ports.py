"""Loopback ports for the embedded servers: free ones, and a clear answer when a given one is taken."""

from __future__ import annotations

import contextlib
import random
import socket

from connector.errors import EmbeddedError

HOST = "127.0.0.1"

# Below the range from which Linux (32768) and the BSDs (49152) take the source ports of outgoing connections: while a
# server restarts, a client that keeps connecting to a port of that range can be given the very same port as its
# source, connects to itself, and keeps the server from ever binding it again.
_LOWEST, _HIGHEST = 10240, 32000
_range = range(_LOWEST, _HIGHEST + 1)


def keep_to_share(number: int, of: int) -> None:
    """Of so many processes that choose ports at the same time, to be bound seconds later, each has its own."""
    global _range
    size = (_HIGHEST - _LOWEST) // of
    _range = range(_LOWEST + size * number, _LOWEST + size * (number + 1))


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do, so that connections of a predecessor that are still timing out do not count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((host, port))
            return True
    return False


def free_port(host: str = HOST, beside: int | None = None) -> int:
    """A port nobody listens on, and another one than that ``beside``."""
    for _ in range(1000):
        port = random.choice(_range)
        if port != beside and is_free(port, host):
            return port
    raise EmbeddedError(f"no free port on {host} between {_range[0]} and {_range[-1]}")


def require_free(port: int, host: str = HOST) -> int:
    """The given port, or an error that names it."""
    if not is_free(port, host):
        raise EmbeddedError(f"port {port} on {host} is already taken")
    return port
