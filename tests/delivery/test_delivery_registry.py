"""The Schema Registry client against a small registry that speaks the same HTTP interface."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from connector.config import RegistryConfig, Secret
from connector.delivery.registry import SchemaRegistry
from connector.errors import FatalDeliveryError, RetriableDeliveryError

INT, LONG = '"int"', '"long"'


class Registry:
    """Subjects, ids, and the requests it was asked; ``answers`` are given instead, first come."""

    def __init__(self) -> None:
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.answers: list[tuple[int, Any]] = []
        self.close_next = False

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


@contextmanager
def served(registry: Registry) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            registry.requests.append((self.command, self.path, self.headers.get("Authorization")))
            if registry.close_next:
                registry.close_next = False
                self.close_connection = True
                return
            if registry.answers:
                status, answer = registry.answers.pop(0)
            else:
                status, answer = registry.answer(self.command, self.path, body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = respond

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/api"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(*urls: str, **more: Any) -> SchemaRegistry:
    return SchemaRegistry(RegistryConfig(urls=urls), **more)


def test_ids_are_asked_for_once() -> None:
    registry = Registry()
    with served(registry) as url, client(url) as schemas:
        assert schemas.id_for("a/b-value", INT) == 1
        assert schemas.id_for("a/b-value", INT) == 1
        assert schemas.id_for("other", INT) == 1
        assert schemas.id_for("other", LONG) == 2
        assert schemas.schema_of(2) == LONG
        assert schemas.subjects() == ["a/b-value", "other"]
    assert [path for _, path, _ in registry.requests] == [
        "/api/subjects/a%2Fb-value/versions",
        "/api/subjects/other/versions",
        "/api/subjects/other/versions",
        "/api/subjects",
    ]
    with served(registry) as url, client(url) as schemas:
        assert schemas.schema_of(2) == LONG


def test_without_registering() -> None:
    registry = Registry()
    with served(registry) as url:
        refused = pytest.raises(FatalDeliveryError, match=r"auto\.register\.schemas=false")
        with client(url, auto_register=False) as schemas, refused:
            schemas.id_for("s", INT)
        with client(url) as schemas:
            schemas.id_for("s", INT)
        with client(url, auto_register=False) as schemas:
            assert schemas.id_for("s", INT) == 1
        with client(url, auto_register=False, use_latest_version=True) as schemas:
            assert schemas.id_for("s", LONG) == 1


def test_normalising_is_asked_for() -> None:
    registry = Registry()
    with served(registry) as url, client(url, normalize=True) as schemas:
        schemas.id_for("s", INT)
    assert registry.requests[0][1].endswith("/versions?normalize=true")


def test_logins() -> None:
    registry = Registry()
    with served(registry) as url:
        for config in (RegistryConfig((url,), user_info=Secret("u:p")), RegistryConfig((url,), token=Secret("tok"))):
            with SchemaRegistry(config) as schemas:
                schemas.subjects()
    basic = base64.b64encode(b"u:p").decode()
    assert [given for _, _, given in registry.requests] == [f"Basic {basic}", "Bearer tok"]


@pytest.mark.parametrize(
    ("status", "text"),
    [(401, "basic.auth.user.info"), (403, "grant"), (409, "incompatible"), (422, "invalid"), (400, "refused")],
)
def test_refusals_say_what_to_do(status: int, text: str) -> None:
    registry = Registry()
    registry.answers = [(status, {"error_code": status, "message": "its own words"})]
    with served(registry) as url, client(url) as schemas:
        with pytest.raises(FatalDeliveryError) as caught:
            schemas.id_for("shop-value", INT)
        assert text in str(caught.value) and "its own words" in str(caught.value)
        assert "shop-value" in str(caught.value) and url in str(caught.value)
        # What was refused is asked again, not remembered.
        assert schemas.id_for("shop-value", INT) == 1


def test_a_registry_that_is_starting_is_tried_again_later() -> None:
    registry = Registry()
    registry.answers = [(503, b"starting")] * 2
    with served(registry) as url, client(url) as schemas:
        with pytest.raises(RetriableDeliveryError, match="503"):
            schemas.id_for("s", INT)
        assert schemas.id_for("s", INT) == 1


def test_every_address_gets_its_turn() -> None:
    registry = Registry()
    with served(registry) as url, client("http://127.0.0.1:1", url) as schemas:
        assert schemas.id_for("s", INT) == 1


def test_nobody_there() -> None:
    with client("http://127.0.0.1:1") as schemas, pytest.raises(RetriableDeliveryError, match="cannot be reached"):
        schemas.subjects()


def test_a_kept_connection_that_was_closed_costs_nothing() -> None:
    registry = Registry()
    with served(registry) as url, client(url) as schemas:
        schemas.subjects()
        registry.close_next = True
        assert schemas.id_for("s", INT) == 1


def test_a_closed_connection_is_no_reason_to_ask_somebody_else() -> None:
    first, second = Registry(), Registry()
    with served(first) as one, served(second) as two, client(one, two) as schemas:
        schemas.subjects()
        first.close_next = True
        schemas.subjects()
    assert len(first.requests) == 3 and not second.requests


@pytest.mark.parametrize("answer", [b"<html>", {"schema": 1}, []])
def test_something_that_is_no_registry(answer: Any) -> None:
    registry = Registry()
    registry.answers = [(200, answer)]
    with served(registry) as url, client(url) as schemas, pytest.raises(FatalDeliveryError, match="no Schema Registry"):
        schemas.id_for("s", INT)
