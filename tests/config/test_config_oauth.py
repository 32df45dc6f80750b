"""OAuth logins as Java's clients have them: what librdkafka makes of them at a server that gives out tokens."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any
from urllib.parse import parse_qs

import pytest
from confluent_kafka import Consumer, Producer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.config.files import STORES, loaded, problems
from tests.servers.patience import until

OAUTH = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
QUIET = {"log_level": "0", "bootstrap.servers": "127.0.0.1:1"}


class TokenServer(ThreadingHTTPServer):
    """Gives a token to whoever asks, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: Queue[tuple[str, str, dict[str, list[str]]]] = Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/realms/cdc/token"

    def asked(self, kafka: Any) -> tuple[str, str, dict[str, list[str]]]:
        """What a client asks: path, user and password, fields of the form."""
        until(lambda: not self.requests.empty(), 60, "a request for a token", step=lambda: kafka.poll(0.05))
        return self.requests.get_nowait()


class _Handler(BaseHTTPRequestHandler):
    server: TokenServer

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        login = self.headers.get("Authorization", "").removeprefix("Basic ")
        self.server.requests.put((self.path, base64.b64decode(login).decode(), form))
        now = int(time.time())
        parts = ({"alg": "none"}, {"sub": "cdc", "iat": now, "exp": now + 600})
        token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        body = json.dumps({"access_token": f"{token}.x", "token_type": "Bearer", "expires_in": 600}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    server = TokenServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_older_worker_file(tokens: TokenServer) -> None:
    worker = OAUTH | {
        "sasl.jaas.config": f'{MODULE} clientId="the cdc" clientSecret="s/e:c" scope="kafka" extension_tenant="t";',
        "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.secured."
        "OAuthBearerLoginCallbackHandler",
        ENDPOINT: tokens.url,
        "sasl.login.retry.backoff.ms": "100",
    }
    configuration = loaded(worker={**worker, **{f"consumer.{name}": value for name, value in worker.items()}})
    assert configuration.kafka.producer["sasl.oauthbearer.extensions"] == "tenant=t"
    asked = ("/realms/cdc/token", "the cdc:s/e:c", {"grant_type": ["client_credentials"], "scope": ["kafka"]})
    assert tokens.asked(Producer({**configuration.kafka.producer, **QUIET})) == asked
    consumer = Consumer({**configuration.kafka.consumer, **QUIET, "group.id": "g"})
    assert tokens.asked(consumer) == asked
    consumer.close()


def test_a_worker_file_of_newer_clients(tokens: TokenServer) -> None:
    worker = OAUTH | {
        "sasl.jaas.config": f"{MODULE};",
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "sasl.oauthbearer.client.credentials.client.id": "the cdc",
        "sasl.oauthbearer.client.credentials.client.secret": "s/e:c",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.header.urlencode": "true",
        ENDPOINT: tokens.url,
    }
    producer = Producer({**loaded(worker=worker).kafka.producer, **QUIET})
    assert tokens.asked(producer)[1:] == (
        "the+cdc:s%2Fe%3Ac",
        {"grant_type": ["client_credentials"], "scope": ["kafka"]},
    )


def test_a_worker_file_with_strimzis_handler() -> None:
    options = (
        'oauth.client.id="cdc" oauth.client.secret="s" oauth.token.endpoint.uri="https://sso/token" oauth.scope="k"'
    )
    trust = f'oauth.ssl.truststore.location="{STORES}/trust.p12" oauth.ssl.truststore.password="trustpass"'
    worker = OAUTH | {
        "sasl.jaas.config": f"{MODULE} {options} {trust};",
        "sasl.login.callback.handler.class": "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
    }
    found = loaded(worker=worker).kafka.producer
    assert found[ENDPOINT] == "https://sso/token"
    assert (found["sasl.oauthbearer.client.id"], found["sasl.oauthbearer.client.secret"]) == ("cdc", "s")
    assert found["sasl.oauthbearer.scope"] == "k"
    assert found["https.ca.pem"].startswith("-----BEGIN CERTIFICATE-----")


def test_a_signed_assertion(tokens: TokenServer, tmp_path: Any) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    worker = OAUTH | {
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.private.key.file": str(tmp_path / "key.pem"),
        "sasl.oauthbearer.assertion.algorithm": "RS256",
        "sasl.oauthbearer.assertion.claim.sub": "cdc",
        ENDPOINT: tokens.url,
    }
    producer = Producer({**loaded(worker=worker).kafka.producer, **QUIET})
    form = tokens.asked(producer)[2]
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    claims = form["assertion"][0].split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"] == "cdc"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({ENDPOINT: "file:///run/token"}, ENDPOINT),
        ({ENDPOINT: "sso/token"}, ENDPOINT),
        ({"sasl.jaas.config": f"{MODULE} clientId=i;"}, "sasl.jaas.config"),
        ({"sasl.jaas.config": f"{MODULE} unsecuredLoginStringClaim_sub=i;"}, "sasl.jaas.config"),
        (
            {"sasl.jaas.config": f"{MODULE} clientId=i clientSecret=s ssl.truststore.location=/none/such;"},
            "sasl.jaas.config",
        ),
        ({"sasl.oauthbearer.jwt.retriever.class": "com.example.Mine"}, "sasl.oauthbearer.jwt.retriever.class"),
        ({"sasl.login.callback.handler.class": "com.azure.Handler"}, "sasl.login.callback.handler.class"),
    ],
)
def test_what_cannot_be_translated_is_one_error(given: dict[str, str], named: str) -> None:
    good = {"sasl.jaas.config": f"{MODULE} clientId=i clientSecret=s;", ENDPOINT: "https://sso/token"}
    assert problems(worker=OAUTH | good) == []
    (found,) = problems(worker=OAUTH | good | given)
    assert found.property == named
    assert found.suggestion or "truststore" in found.problem
