"""``HttpServer``: routes, served by a thread of its own.

In: an address, routes, who may ask. Out: answers. Nothing that a client does, or leaves undone, keeps more than its own
connection busy, and that for a bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from connector.http.access import Access
from connector.http.exchange import Route
from connector.http.sockets import LOOK_SECONDS, Acceptor, Crowd, bind

if TYPE_CHECKING:
    from tornado.httpserver import HTTPServer

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64
# From the beginning of a connection, or its last answer, until the last header has arrived: trickling does not help.
# Then the same again for the body.
REQUEST_SECONDS = 15.0
# For a handler, and for the client to take the answer.
ANSWER_SECONDS = 30.0
# Requests that all arrived in one moment are answered in the next: those who come behind them wait so long for one to
# make way before they are told that there are too many.
ROOM_SECONDS = 1.0
END_SECONDS = 2.0


class HttpServer:
    """A context manager; serves while it lasts."""

    def __init__(
        self,
        host: str,
        port: int,
        routes: Sequence[Route],
        access: Access | None = None,
        *,
        request_seconds: float = REQUEST_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        room_seconds: float = ROOM_SECONDS,
    ) -> None:
        self._request_seconds, self._answer_seconds, self._room_seconds = request_seconds, answer_seconds, room_seconds
        self.access = access or Access()
        self.host = host
        self._routes = tuple(routes)
        self._sockets = bind(host, port)
        self.port = int(self._sockets[0].getsockname()[1])
        self._crowd = Crowd(_affordable())
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="http")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.access.scheme}://{host}:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._crowd)

    def __enter__(self) -> HttpServer:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._end is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended already
                self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(2 * END_SECONDS)
        for each in self._sockets:
            each.close()

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as error:
            log.error("the HTTP server ended", exc_info=error)
        finally:
            self._started.set()

    async def _run(self) -> None:
        # Tornado is loaded by who serves: most that know of routes do not.
        from tornado.httpserver import HTTPServer

        from connector.http.conversation import BODY_BYTES, BUFFER_BYTES, HEADER_BYTES, Conversations

        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        crowd = self._crowd
        server = HTTPServer(
            Conversations(self._routes, self.access, self.host, crowd, self._answer_seconds),
            max_header_size=HEADER_BYTES,
            max_body_size=BODY_BYTES,
            max_buffer_size=BUFFER_BYTES,
            idle_connection_timeout=self._request_seconds,
            body_timeout=self._request_seconds,
        )
        acceptor = Acceptor(self._sockets, lambda connection: self._take(connection, server, crowd), self._is_full)
        self._started.set()
        try:
            await self._end.wait()
        finally:
            acceptor.stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(server.close_all_connections(), END_SECONDS)

    def _is_full(self) -> bool:
        return 0 < self._crowd.times_full() <= self._room_seconds / LOOK_SECONDS

    def _take(self, connection: socket.socket, server: HTTPServer, crowd: Crowd) -> None:
        from connector.http.conversation import raw_refusal, stream_of

        if not crowd.make_room():
            if self.access.tls is None:
                connection.send(raw_refusal(503, "too many requests at once"))
            connection.close()
            return
        address = connection.getpeername()
        stream = stream_of(connection, self.access.tls, crowd)
        crowd.waits(stream)
        server.handle_stream(stream, address)


def _affordable() -> int:
    """Connections are files too: workers need some to be started."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(4, min(MOST_CONNECTIONS, files // 4))
