"""Listening sockets, and connections from them that never exceed what the process can afford.

In: a host and a port. Out: bound sockets; accepted connections, at most a given number. When there are more, the one
that has been waiting longest for its request to arrive makes room: a crowd of silent clients cannot keep others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from connector.errors import CdcError

log = logging.getLogger(__name__)

BACKLOG = 128
# Of the connections that wait to be accepted, this many are taken before others have a turn.
AT_ONCE = 64
# Without file descriptors accepting fails, and the socket stays readable: asking again at once would be a busy loop.
PAUSE_SECONDS = 1.0
# While there is no room it is looked for so often.
LOOK_SECONDS = 0.01


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of the host, all on one port; 0 is a free one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CdcError(f"{host} cannot be listened on: {reason}") from None
    bound: list[socket.socket] = []
    failures: list[OSError] = []
    for family, _, _, _, address in dict.fromkeys(found):
        place = (address[0], bound[0].getsockname()[1] if bound else port, *address[2:])
        try:
            bound.append(_listening(family, place))
        except OSError as error:
            failures.append(error)
    taken = next((each for each in failures if each.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)), None)
    failed = taken or (failures[0] if failures and not bound else None)
    if failed is not None:
        for each in bound:
            each.close()
        raise CdcError(f"port {port} of {host} cannot be listened on: {failed.strerror}") from None
    return bound


def _listening(family: int, place: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # `::` means everybody, as it does to other servers; an address that is not `::` is IPv6 alone anyway.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.setblocking(False)
        made.bind(place)
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


class Closable(Protocol):
    def close(self) -> None: ...

    def closed(self) -> bool: ...


class Crowd:
    """The open connections, at most ``most``. Owned by the server's thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        # In order of the time since which they wait for a request; the longest first.
        self._waiting: dict[Closable, None] = {}
        self._busy: dict[Closable, None] = {}
        self._looks = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def times_full(self) -> int:
        """How often in a row whoever looks here has found no room that `make_room` could make, nobody having come or
        made way since. Not for how long: a process that had no turn for a while must not call its visitors slow."""
        if len(self) < self._most or self._waiting:
            return 0
        self._looks += 1
        return self._looks

    def make_room(self) -> bool:
        """Whether there is room for one more, if need be by closing one that asks nothing."""
        if len(self) < self._most:
            return True
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self.gone(oldest)
        oldest.close()
        return True

    def waits(self, connection: Closable) -> None:
        """A connection is new, or its answer is ready, or taken."""
        self._looks = 0
        self._busy.pop(connection, None)
        self._waiting.pop(connection, None)
        if not connection.closed():
            self._waiting[connection] = None

    def asks(self, connection: Closable) -> None:
        """A request has arrived as a whole."""
        if self._waiting.pop(connection, self) is None:
            self._busy[connection] = None
            self._looks = 0

    def gone(self, connection: Closable) -> None:
        self._looks = 0
        self._busy.pop(connection, None)
        self._waiting.pop(connection, None)


class Acceptor:
    """Accepts on sockets, in the running loop. Where there is no room, the kernel keeps who comes, for a moment."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        take: Callable[[socket.socket], None],
        is_full: Callable[[], bool] = lambda: False,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._sockets, self._take, self._is_full = sockets, take, is_full
        self._pause_seconds = pause_seconds
        self._loop = asyncio.get_running_loop()
        self._stopped = False
        for each in sockets:
            self._loop.add_reader(each, self._accept, each)

    def stop(self) -> None:
        self._stopped = True
        for each in self._sockets:
            self._loop.remove_reader(each)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            if self._is_full():
                self._rest(listening, LOOK_SECONDS)
                return
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                log.warning("connections cannot be accepted: %s; trying again in %.0f s", error, self._pause_seconds)
                self._rest(listening, self._pause_seconds)
                return
            try:
                connection.setblocking(False)
                self._take(connection)
            except Exception as error:
                log.debug("a connection was dropped: %s", error)
                with contextlib.suppress(OSError):
                    connection.close()

    def _rest(self, listening: socket.socket, seconds: float) -> None:
        self._loop.remove_reader(listening)
        self._loop.call_later(seconds, self._go_on, listening)

    def _go_on(self, listening: socket.socket) -> None:
        if not self._stopped:
            self._loop.add_reader(listening, self._accept, listening)
