"""A small HTTP/1.1 server for the admin interface: JSON in, JSON out, one request per connection.

In: a handler that gets method, path, query and body. Out: responses; a handler's `ApiError` carries its status.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

_MAX_HEAD: Final = 64 * 1024
_MAX_BODY: Final = 64 * 1024 * 1024
_PATIENCE_SECONDS: Final = 60.0


class ApiError(Exception):
    """A request that cannot be served, with its HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """`path` is split and unquoted; `body` is the JSON object sent, or an empty one."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    body: Mapping[str, Any]


Handler = Callable[[ApiRequest], Awaitable[Any]]


async def _read_request(reader: asyncio.StreamReader) -> ApiRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise ApiError(HTTPStatus.BAD_REQUEST, "the request ended inside its head") from None
    except asyncio.LimitOverrunError:
        raise ApiError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request's head is too long") from None
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ApiError(HTTPStatus.BAD_REQUEST, "not an HTTP/1 request")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or len(length) > 18 or "transfer-encoding" in headers:
        raise ApiError(HTTPStatus.LENGTH_REQUIRED, "a body needs a Content-Length")
    if int(length) > _MAX_BODY:
        raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {_MAX_BODY} bytes")
    try:
        raw = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        raise ApiError(HTTPStatus.BAD_REQUEST, "the request ended inside its body") from None
    url = urlsplit(words[1])
    path = tuple(unquote(part) for part in url.path.split("/") if part)
    return ApiRequest(words[0].upper(), path, dict(parse_qsl(url.query, keep_blank_values=True)), _json_object(raw))


def _json_object(raw: bytes) -> Mapping[str, Any]:
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw)
    except (RecursionError, ValueError) as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiError(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    return body


def _response(status: HTTPStatus, body: Any) -> bytes:
    content = b"" if body is None else json.dumps(body, default=str).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content


async def _answer(handler: Handler, reader: asyncio.StreamReader) -> bytes | None:
    try:
        request = await asyncio.wait_for(_read_request(reader), _PATIENCE_SECONDS)
        return None if request is None else _response(HTTPStatus.OK, await handler(request))
    except ApiError as error:
        return _response(error.status, {"message": str(error), "code": error.status.value})
    except TimeoutError:
        return _response(HTTPStatus.REQUEST_TIMEOUT, {"message": "the request did not arrive in time", "code": 408})
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        text = f"{type(error).__name__}: {error}"
        return _response(HTTPStatus.INTERNAL_SERVER_ERROR, {"message": text, "code": 500})


async def start_http(handler: Handler, host: str, port: int) -> asyncio.Server:
    """Serve on this address; port 0 takes a free one."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            response = await _answer(handler, reader)
            if response is not None:
                writer.write(response)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            # The client has gone, or the server ends in the middle of a long request.
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connected, host, port, limit=_MAX_HEAD)
