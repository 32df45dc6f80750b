"""One question over HTTP whose answer is there as a whole in time, or not at all.

In: a connection, a request. Out: an ``Answer``, or ``TimeoutError``. The timeout of a socket begins anew with each byte
that comes: whoever sends one now and then, as a proxy that waits for others does, would never be given up.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content: bytes
    #: Where it says that we should ask instead.
    elsewhere: str | None = None


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    body: str | None,
    headers: Mapping[str, str],
    most_bytes: int,
    seconds: float,
) -> Answer:
    """Opens the connection if need be. Of an answer that is longer than ``most_bytes``, one byte more is given."""
    ends = time.monotonic() + seconds
    if connection.sock is not None:
        # What was left of the time for the answer before.
        connection.sock.settimeout(seconds)
    connection.response_class = partial(_Response, ends)  # type: ignore[assignment]
    connection.request(method, target, body, headers)
    answer = connection.getresponse()
    return Answer(answer.status, answer.read(most_bytes + 1), _place(answer))


def _place(answer: http.client.HTTPResponse) -> str | None:
    """Without what may be a secret in it."""
    given = answer.getheader("Location") if 300 <= answer.status < 400 else None
    if given is None:
        return None
    try:
        parts = urlsplit(given)
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    except ValueError:
        return None
    shown = "".join(character if character.isprintable() else "?" for character in where + parts.path)
    return shown[:500] or None


class _Response(http.client.HTTPResponse):
    def __init__(self, ends: float, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Bounded(self.fp.detach(), sock, ends))


class _Bounded(io.RawIOBase):
    """Reads of a socket, each of which has what the others have left of the time."""

    def __init__(self, raw: Any, sock: socket.socket, ends: float) -> None:
        self._raw, self._sock, self._ends = raw, sock, ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("its answer did not come to an end in time")
        self._sock.settimeout(left)
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()
