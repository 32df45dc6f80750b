"""A server of some paths, and clients that ask it well, badly, or not to the end."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message

from connector.http import Access, Answer, HttpServer, Refused, Request, Route, answer_json
from tests.servers.patience import patience

CLIENT_SECONDS = 20
LARGE = b"x" * 30_000_000


def _broken(request: Request) -> Answer:
    raise RuntimeError("cannot log in with hunter22secret")


def _unwell(request: Request) -> Answer:
    raise Refused(400, "no")


async def _later(request: Request) -> Answer:
    await asyncio.to_thread(lambda: None)
    return answer_json({"body": request.body.decode(), "query": dict(request.query), "parts": dict(request.parts)})


def _refused(request: Request) -> Answer:
    raise Refused(409, "it is running")


ROUTES = (
    Route("GET", "/health", lambda request: answer_json({"state": "RUNNING"}), open=True),
    Route("GET", "/status", lambda request: answer_json({"authorized": request.authorized})),
    Route("GET", "/broken", _broken),
    Route("GET", "/unwell", _unwell),
    Route("GET", "/page", lambda request: Answer(200, "text/plain", LARGE[:1_000_000])),
    Route("GET", "/large", lambda request: Answer(200, "text/plain", LARGE)),
    Route("PUT", "/things/{thing}/config", _later),
    Route("DELETE", "/things/{thing}", _refused),
)


@contextmanager
def served(host: str = "127.0.0.1", access: Access | None = None, **limits: float) -> Iterator[HttpServer]:
    with HttpServer(host, 0, ROUTES, access, **limits) as server:
        yield server


def ask(
    server: HttpServer,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> tuple[int, Message, bytes]:
    host = "127.0.0.1" if server.host in ("0.0.0.0", "::") else server.host
    connection = (
        http.client.HTTPConnection(host, server.port, timeout=CLIENT_SECONDS * patience())
        if tls is None
        else http.client.HTTPSConnection(host, server.port, timeout=CLIENT_SECONDS * patience(), context=tls)
    )
    try:
        connection.request(method, path, body, {"Host": "localhost", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def raw(server: HttpServer, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=CLIENT_SECONDS * patience())
    if sent:
        made.sendall(sent)
    return made


def everything(connection: socket.socket) -> bytes:
    """What comes until the server closes; nothing if it does so rudely."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def ipv6() -> bool:
    """Whether this machine has it."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def healthy(server: HttpServer, tls: ssl.SSLContext | None = None) -> bool:
    return ask(server, "/health", tls=tls)[0] == 200


def healthy_if_quick(server: HttpServer, tls: ssl.SSLContext | None = None) -> bool:
    """False also where the server did not wait for the request, or for the handshake."""
    try:
        return healthy(server, tls)
    except (ConnectionError, http.client.HTTPException, ssl.SSLError):
        return False


ODD = {
    "noise": b"\x00\xff\xfe garbage\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "nul": b"GET /hea\x00lth HTTP/1.1\r\nHost: [::1]\r\n\r\n",
    "no_host": b"GET /health HTTP/1.1\r\n\r\n",
    "bad_header": b"GET /health HTTP/1.1\r\nHost: [::1]\r\nNo colon here\r\n\r\n",
    "bad_encoding": b"GET /health HTTP/1.1\r\nHost: [::1]\r\nX: \xff\xfe\x80\r\n: empty\r\n\r\n",
    "two_lengths": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length_and_chunks": b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
    "negative_length": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nContent-Length: -1\r\n\r\n",
    "endless_body": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 99999999999\r\n\r\n",
    "bad_chunk": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "version": b"GET /health HTTP/9.9\r\nHost: [::1]\r\n\r\n",
    "long_line": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: [::1]\r\n\r\n",
    "huge_headers": b"GET /health HTTP/1.1\r\nHost: [::1]\r\n" + b"X: y\r\n" * 200_000 + b"\r\n",
    "one_huge_header": b"GET /health HTTP/1.1\r\nHost: [::1]\r\nX: " + b"y" * 3_000_000 + b"\r\n\r\n",
}
