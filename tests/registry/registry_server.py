"""A small Schema Registry that speaks the HTTP interface: subjects, ids, and what it was asked.

It also gives out tokens at ``/api/token``, and answers what a proxy is asked, where the whole address is the path. What
was written with its schemas is read by fastavro, which knows nothing of the product.
"""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import fastavro

from tests.servers.small_http import http_server


class Registry:
    """Subjects, ids, and the requests it was asked; ``answers`` are given instead, first come."""

    def __init__(self) -> None:
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.answers: list[tuple[int, Any]] = []
        self.close_next = False
        #: What the last request had in its header.
        self.header: dict[str, str] = {}
        #: Forms that asked for tokens, and what they get, the last one again and again.
        self.forms: list[dict[str, list[str]]] = []
        self.tokens: list[Any] = []
        #: Instead of an answer, for paths that contain the text; an event: none at all, once it has come.
        self.refused: dict[str, tuple[int, Any]] = {}
        #: An answer that comes byte by byte, until the event.
        self.trickles: threading.Event | None = None
        #: Where answers say that we should ask instead.
        self.location: str | None = None
        self._parsed: dict[int, Any] = {}

    def read(self, data: bytes) -> Any:
        """A key or a value of a record."""
        number = int.from_bytes(data[1:5], "big")
        if number not in self._parsed:
            self._parsed[number] = fastavro.parse_schema(json.loads(self.schemas[number - 1]))
        return fastavro.schemaless_reader(io.BytesIO(data[5:]), self._parsed[number], None)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = [unquote(part) for part in urlsplit(path).path.removeprefix("/api").strip("/").split("/")]
        if parts == ["subjects"]:
            return 200, list(self.subjects)
        if parts[:2] == ["schemas", "ids"]:
            return 200, {"schema": self.schemas[int(parts[2]) - 1]}
        versions = self.subjects.get(parts[1], [])
        if method == "GET":
            if not versions:
                return 404, {"error_code": 40401, "message": f"Subject '{parts[1]}' not found."}
            return 200, {"id": versions[-1], "schema": self.schemas[versions[-1] - 1]}
        schema = body["schema"]
        known = self.schemas.index(schema) + 1 if schema in self.schemas else None
        if len(parts) == 2:
            if known not in versions:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            return 200, {"id": known, "subject": parts[1], "version": 1, "schema": schema}
        if known is None:
            self.schemas.append(schema)
            known = len(self.schemas)
        if known not in versions:
            self.subjects.setdefault(parts[1], []).append(known)
        return 200, {"id": known}


def avro_converters(address: str) -> dict[str, str]:
    """Of a worker whose records have their schemas in the registry there."""
    options = {"converter": "io.confluent.connect.avro.AvroConverter", "converter.schema.registry.url": address}
    return {f"{part}.{name}": value for part in ("key", "value") for name, value in options.items()}


@contextmanager
def served(registry: Registry) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            content = self.rfile.read(length)
            is_form = self.headers.get("Content-Type") == "application/x-www-form-urlencoded"
            body = json.loads(content) if length and not is_form else None
            registry.header = dict(self.headers)
            registry.requests.append((self.command, self.path, self.headers.get("Authorization")))
            if registry.close_next:
                registry.close_next = False
                self.close_connection = True
                return
            if registry.trickles is not None:
                self._trickle(registry.trickles)
                return
            refused = next((said for text, said in registry.refused.items() if text in unquote(self.path)), None)
            if refused is not None:
                status, answer = refused
            elif is_form:
                registry.forms.append(parse_qs(content.decode()))
                status, answer = 200, registry.tokens[0]
                del registry.tokens[: len(registry.tokens) > 1]
            elif registry.answers:
                status, answer = registry.answers.pop(0)
            else:
                status, answer = registry.answer(self.command, self.path, body)
            if isinstance(answer, threading.Event):
                answer.wait()
                self.close_connection = True
                return
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            if registry.location is not None:
                self.send_header("Location", registry.location)
            self.end_headers()
            self.wfile.write(content)

        def _trickle(self, enough: threading.Event) -> None:
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Length", str(2**20))
            self.end_headers()
            with contextlib.suppress(OSError):
                while not enough.wait(0.02):
                    self.wfile.write(b" ")

        do_GET = do_POST = respond

        def log_message(self, *_: Any) -> None:
            pass

    with http_server(Handler) as address:
        yield f"{address}/api"
