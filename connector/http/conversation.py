"""One connection's requests and answers, in terms of Tornado: the only module that knows how it calls things.

In: streams of bytes. Out: each request given to its route, each answer written; to what is no request, or not allowed,
an error as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream, SSLIOStream, StreamClosedError, UnsatisfiableReadError
from tornado.netutil import ssl_wrap_socket

from connector.http.access import Access
from connector.http.exchange import Answer, Refused, Request, Route
from connector.http.origins import foreign, lent
from connector.http.sockets import Crowd
from connector.http.target import CLOSING, refuse_hidden_slash, target_of

log = logging.getLogger(__name__)

# A request line with all headers; a body; what is kept of one connection at most.
HEADER_BYTES = 16 * 1024
BODY_BYTES = 1024 * 1024
BUFFER_BYTES = BODY_BYTES + 128 * 1024

_ONLY_FROM_HERE = (
    "without rest.bearer.token, or clients' certificates (listeners.https.ssl.client.auth=required), "
    "only this machine may change anything"
)
# In the order in which Kafka Connect names them.
_METHODS = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT", "PATCH")
# What Tornado writes by itself to what is no HTTP, and to who waits before he sends a body.
_BARE_REFUSAL = b"HTTP/1.1 400 Bad Request\r\n\r\n"
_BARE_CONTINUE = b"HTTP/1.1 100 (Continue)\r\n\r\n"


def raw_refusal(status: int, message: str | None = None) -> bytes:
    """A whole answer, for whoever has not asked a whole question."""
    refused = Refused(status, message)
    answer = refused.answer()
    head = f"HTTP/1.1 {status} {refused.phrase}\r\nContent-Type: {answer.kind}\r\nContent-Length: {len(answer.body)}"
    return f"{head}\r\nConnection: close\r\n\r\n".encode() + answer.body


class _Member(IOStream):
    """A stream that counts as one of a crowd while it is open, and says no in JSON."""

    crowd: Crowd
    #: What it is to be refused with, if not as what is no HTTP.
    refusal: bytes | None = None

    def write(self, data: bytes | memoryview) -> asyncio.Future[None]:
        if data == _BARE_CONTINUE:
            data = b"HTTP/1.1 100 Continue\r\n\r\n"
        return super().write((self.refusal or raw_refusal(400)) if data == _BARE_REFUSAL else data)

    def close(self, exc_info: Any = False) -> None:
        if isinstance(exc_info, UnsatisfiableReadError) and not self.closed():
            with contextlib.suppress(OSError):
                self.write_to_fd(memoryview(raw_refusal(431)))
        self.crowd.gone(self)
        super().close(exc_info)


class _SecureMember(_Member, SSLIOStream):
    pass


def stream_of(connection: socket.socket, tls: ssl.SSLContext | None, crowd: Crowd) -> IOStream:
    """The stream of an accepted connection."""
    stream: _Member
    if tls is None:
        stream = _Member(connection, max_buffer_size=BUFFER_BYTES)
    else:
        wrapped = ssl_wrap_socket(connection, tls, server_side=True, do_handshake_on_connect=False)
        stream = _SecureMember(wrapped, max_buffer_size=BUFFER_BYTES)
    stream.crowd = crowd
    return stream


class Conversations(HTTPServerConnectionDelegate):
    """Begins an `_Exchange` for each request."""

    def __init__(
        self, routes: Sequence[Route], access: Access, own_host: str, crowd: Crowd, answer_seconds: float
    ) -> None:
        self.routes, self.access, self.own_host, self.crowd = tuple(routes), access, own_host, crowd
        self.answer_seconds = answer_seconds
        # Running tasks are held by nobody else.
        self.tasks: set[asyncio.Task[None]] = set()

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        return _Exchange(self, request_conn)

    async def answer(self, start: RequestStartLine, headers: HTTPHeaders, body: bytes, address: str) -> Answer:
        """What is answered to one request from an address; never raises."""
        try:
            _refuse_odd(start, headers)
            refused = foreign(headers, self.own_host, with_token=bool(self.access.token))
            if refused is not None:
                raise Refused(403, refused)
            path, query = target_of(start.path, headers.get("Host", ""))
            authorized = self.access.allows(headers.get("Authorization"))
            found = self._matching(path, authorized)
            if start.method == "OPTIONS":
                methods = _methods(found)
                return Answer(200, "text/plain", ", ".join(methods).encode(), {"Allow": ",".join(methods)})
            route, parts = _chosen(found, start.method)
            may_write = self.access.may_write(address)
            if route.writes and not may_write:
                raise Refused(403, _ONLY_FROM_HERE)
            if route.writes and (refused := lent(headers)) is not None:
                raise Refused(403, refused)
            request = Request(
                start.method, path, parts, query, dict(headers), body, authorized, may_write, self.access.scheme
            )
            given = route.handler(request)
            return await given if inspect.isawaitable(given) else given
        except Refused as no:
            return no.answer()
        except Exception as error:
            log.warning("an HTTP request failed", exc_info=error)
            return Refused(500, f"{type(error).__name__}: {error}").answer()

    def _matching(self, path: str, authorized: bool) -> Sequence[tuple[Route, Mapping[str, str]]]:
        found = [(route, parts) for route in self.routes if (parts := route.match(path)) is not None]
        if not authorized:
            # Nor do those learn what there is.
            found = [(route, parts) for route, parts in found if route.open]
            if not found:
                raise Refused(401, headers={"WWW-Authenticate": "Bearer"})
        if not found:
            refuse_hidden_slash(path)
            raise Refused(404)
        return found


def _refuse_odd(start: RequestStartLine, headers: HTTPHeaders) -> None:
    if start.version not in ("HTTP/1.0", "HTTP/1.1"):
        raise Refused(505)
    hosts = headers.get_list("Host")
    if (len(hosts) != 1 or not hosts[0].strip()) and (hosts or start.version != "HTTP/1.0"):
        raise Refused(400, headers=CLOSING)
    if start.method == "CONNECT":
        raise Refused(400, headers=CLOSING)


def _chosen(found: Sequence[tuple[Route, Mapping[str, str]]], method: str) -> tuple[Route, Mapping[str, str]]:
    wanted = "GET" if method == "HEAD" else method
    for route, parts in found:
        if route.method == wanted:
            return route, {name: unquote(text, errors="replace") for name, text in parts.items()}
    raise Refused(405, headers={"Allow": ",".join(_methods(found))})


def _methods(found: Sequence[tuple[Route, Mapping[str, str]]]) -> list[str]:
    methods = {route.method for route, _ in found}
    methods |= {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
    return sorted(methods, key=_METHODS.index)


class _Exchange(HTTPMessageDelegate):
    """One request, then its answer."""

    def __init__(self, conversations: Conversations, connection: HTTPConnection) -> None:
        self._all, self._connection = conversations, connection
        self._stream = cast(_Member, connection.stream)  # type: ignore[attr-defined]
        self._address = str(connection.context.remote_ip)  # type: ignore[attr-defined]
        self._start: RequestStartLine | None = None
        self._headers = HTTPHeaders()
        self._body = bytearray()

    def headers_received(self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> None:
        assert isinstance(start_line, RequestStartLine)
        self._start, self._headers = start_line, headers
        length = headers.get("Content-Length", "")
        if length.isdecimal() and (len(length) > len(str(BODY_BYTES)) or int(length) > BODY_BYTES):
            self._stream.refusal = raw_refusal(413, f"a body may have {BODY_BYTES // 1024} KiB")
        if headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers:
            # Nothing is to come: the answer itself is what is waited for.
            headers.pop("Expect", None)

    def data_received(self, chunk: bytes) -> None:
        self._body += chunk

    def finish(self) -> None:
        self._all.crowd.asks(self._stream)
        task = asyncio.get_running_loop().create_task(self._answer())
        self._all.tasks.add(task)
        task.add_done_callback(self._all.tasks.discard)

    def on_connection_close(self) -> None:
        self._body.clear()

    async def _answer(self) -> None:
        assert self._start is not None
        try:
            async with asyncio.timeout(self._all.answer_seconds):
                answer = await self._all.answer(self._start, self._headers, bytes(self._body), self._address)
                # Whoever does not take an answer may have to make room for others, like those who do not ask.
                self._all.crowd.waits(self._stream)
                await self._write(answer, with_body=self._start.method != "HEAD")
            if answer.headers.get("Connection") == "close":
                self._stream.close()
        except StreamClosedError:
            pass  # whoever asked has gone
        except TimeoutError:
            self._stream.close()
        except Exception as error:
            log.warning("an HTTP answer failed", exc_info=error)
            self._stream.close()
        finally:
            self._all.crowd.waits(self._stream)

    async def _write(self, answer: Answer, *, with_body: bool) -> None:
        headers = HTTPHeaders(
            {
                **({"Content-Type": answer.kind} if answer.kind else {}),
                **({} if answer.status == 204 else {"Content-Length": str(len(answer.body))}),
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                **answer.headers,
            }
        )
        # As Connect's server calls it.
        phrase = "Server Error" if answer.status == 500 else Refused(answer.status).phrase
        line = ResponseStartLine("HTTP/1.1", answer.status, phrase)
        written = self._connection.write_headers(line, headers, answer.body if with_body else None)
        self._connection.finish()
        await written
