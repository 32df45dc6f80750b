"""What is asked and what is answered: requests, answers, routes, and errors in the words of Kafka Connect.

Everything that goes out passes the filter of secrets here: values before they become JSON, texts as they are.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from connector.secrets import scrub, scrubbed

JSON = "application/json"
# There is no such path, or not in this way.
_UNTYPED = (404, 405, 406, 415)


@dataclass(frozen=True, slots=True)
class Request:
    """``path`` has named parts in ``parts``; ``authorized`` is False only on routes that are open to everybody.

    ``may_write``: who asks has shown who it is, or is on this machine.
    """

    method: str
    path: str
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    authorized: bool = True
    may_write: bool = True
    scheme: str = "http"

    def address(self, path: str) -> str:
        """Of another path of ours, by the name under which we were asked; escaped as little as a path may be."""
        host = next((value for name, value in self.headers.items() if name.lower() == "host"), "")
        escaped = quote(path, safe="/!$&'()*+,;=:@")
        return f"{self.scheme}://{host}{escaped}" if host else escaped


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """A handler of requests. It runs in the server's one thread: what waits for something is a coroutine.

    ``path`` may have named parts: ``/connectors/{connector}``; a slash at its end does not count. ``open`` ones are
    answered without a token; those that write, of those who may. GET answers HEAD as well.
    """

    method: str
    path: str
    handler: Handler
    open: bool = False
    writes: bool = False

    def match(self, path: str) -> dict[str, str] | None:
        """The named parts of a path that this route is for."""
        mine, theirs = self.path.split("/"), (path[:-1] if path.endswith("/") and path != "/" else path).split("/")
        if len(mine) != len(theirs):
            return None
        parts = {}
        for name, text in zip(mine, theirs, strict=True):
            if name.startswith("{"):
                parts[name[1:-1]] = text
            elif name != text:
                return None
        return parts


class Refused(Exception):
    """Raised by handlers: the request is answered with this status and message. Never leaves the room."""

    def __init__(self, status: int, message: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.phrase = _phrase(status)
        self._unseen = message is None and status in _UNTYPED
        self.message = message if message is not None else f"HTTP {status} {self.phrase}"
        self.headers = headers or {}
        super().__init__(self.message)

    def answer(self) -> Answer:
        """To the letter as Kafka Connect writes it: what no handler has seen goes out without a type."""
        value = {"error_code": self.status, "message": self.message}
        text = json.dumps(scrubbed(value), separators=(",", ":"), ensure_ascii=False)
        return Answer(self.status, "" if self._unseen else JSON, text.encode(errors="replace"), self.headers)


def answer_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, JSON, json.dumps(scrubbed(value)).encode(), headers or {})


def answer_text(text: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(200, "text/plain; charset=utf-8", scrub(text).encode(errors="replace"), headers or {})


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
