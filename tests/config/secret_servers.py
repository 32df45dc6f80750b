"""Small doubles of HashiCorp Vault and AWS Secrets Manager: their HTTP interfaces, as far as a reader of secrets sees.

In: what each has. Out: an address; what was asked, with headers and bodies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.servers.small_http import http_server


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


#: A text is what stands in front of it, and not the server's own.
Answer = tuple[int, dict[str, Any] | str]


class Vault:
    """``secrets`` by their whole path below `/v1`, or the status that is answered instead. Logins give the token
    `t0ken-of-login`."""

    def __init__(self, secrets: dict[str, Any], tokens: tuple[str, ...] = ("t0ken-of-login",)) -> None:
        self.secrets, self.tokens = secrets, tokens
        self.logins: dict[str, dict[str, Any]] = {}
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.removeprefix("/v1/")
        if path.startswith("auth/"):
            if self.logins.get(path) != asked.body:
                return 400, {"errors": ["invalid role or secret ID"]}
            return 200, {"auth": {"client_token": "t0ken-of-login"}}
        if asked.headers.get("X-Vault-Token") not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        if path not in self.secrets:
            return 404, {"errors": []}
        found = self.secrets[path]
        if isinstance(found, int):
            return found, {"errors": []}
        return 200, found if isinstance(found, str) else {"data": found}


class SecretsManager:
    """``secrets`` by their names."""

    def __init__(self, secrets: dict[str, dict[str, Any]]) -> None:
        self.secrets = secrets
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Answer:
        assert asked.headers["X-Amz-Target"] == "secretsmanager.GetSecretValue"
        found = self.secrets.get(asked.body["SecretId"])
        if found is None:
            return 400, {"__type": "ResourceNotFoundException", "Message": "can't find the specified secret."}
        return 200, {"Name": asked.body["SecretId"], **found}


@contextmanager
def served(double: Vault | SecretsManager) -> Iterator[str]:
    with _serving(double.answer, double.asked) as address:
        yield address


@contextmanager
def _serving(answer: Callable[[Asked], Answer], asked: list[Asked]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(Asked(self.command, self.path, dict(self.headers), json.loads(content or b"{}")))
            status, body = answer(asked[-1])
            raw = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = respond

        def log_message(self, *_: Any) -> None:
            pass

    with http_server(Handler) as address:
        yield address
