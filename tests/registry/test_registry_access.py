"""How a Schema Registry is reached: tokens of OAuth from a small server, proxies, and what each request carries."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from connector.config import OauthLogin, RegistryConfig, Secret
from connector.errors import FatalDeliveryError, LoginRefused, RetriableDeliveryError
from connector.registry.client import SchemaRegistry
from connector.secrets import scrub
from tests.config.files import loaded, problems
from tests.registry.registry_server import Registry, served

AVRO = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://127.0.0.1:8081"}
BEARER = "value.converter.bearer.auth."
LOGIN = (
    'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="s3crEt";'
)


def token(text: str, lives: Any = 3600) -> dict[str, Any]:
    return {"access_token": text, "token_type": "Bearer", "expires_in": lives}


def login(url: str, **more: Any) -> OauthLogin:
    return OauthLogin(f"{url}/token?tenant=a", "me", Secret("s3c:rEt"), **more)


def authorizations(registry: Registry) -> list[str | None]:
    return [given for _, path, given in registry.requests if "token" not in path]


def test_a_token_is_asked_for_with_the_clients_credentials_and_used_until_its_end() -> None:
    registry = Registry()
    registry.tokens = [token("first-token")]
    with served(registry) as url:
        config = RegistryConfig((url,), oauth=login(url, scope="read write"), headers={"target-sr-cluster": "lsrc-1"})
        with SchemaRegistry(config) as schemas:
            schemas.subjects()
            assert schemas.id_for("s", '"int"') == 1
    assert registry.forms == [{"grant_type": ["client_credentials"], "scope": ["read write"]}]
    method, path, given = registry.requests[0]
    assert (method, path) == ("POST", "/api/token?tenant=a")
    assert given == "Basic " + base64.b64encode(b"me:s3c%3ArEt").decode()
    assert authorizations(registry) == ["Bearer first-token"] * 2
    assert registry.header["target-sr-cluster"] == "lsrc-1"
    assert "first-token" not in scrub("a log says first-token")


def test_a_token_that_the_registry_refuses_is_replaced_once() -> None:
    registry = Registry()
    registry.tokens = [token("old-token"), token("new-token")]
    registry.answers = [(401, {"error_code": 401, "message": "expired"})]
    with served(registry) as url, SchemaRegistry(RegistryConfig((url,), oauth=login(url))) as schemas:
        schemas.subjects()
        assert authorizations(registry) == ["Bearer old-token", "Bearer new-token"]
        registry.answers = [(401, {"error_code": 401, "message": "no"})] * 2
        with pytest.raises(LoginRefused, match=r"the login was refused.*bearer\.auth"):
            schemas.subjects()


def test_a_redirect_of_tokens_tells_where_to() -> None:
    registry = Registry()
    registry.location, registry.refused = "https://login.example/token", {"token": (302, b"")}
    with (
        served(registry) as url,
        SchemaRegistry(RegistryConfig((url,), oauth=login(url))) as schemas,
        pytest.raises(FatalDeliveryError, match=r"sends us on to https://login\.example/token: .*endpoint\.url"),
    ):
        schemas.subjects()


def test_a_token_is_replaced_before_its_end() -> None:
    registry = Registry()
    registry.tokens = [token("short-one", 1e-9), token("second-one", "3600")]
    with served(registry) as url, SchemaRegistry(RegistryConfig((url,), oauth=login(url))) as schemas:
        schemas.subjects()
        schemas.subjects()
        schemas.subjects()
    assert authorizations(registry) == ["Bearer short-one", "Bearer second-one", "Bearer second-one"]


@pytest.mark.parametrize(
    ("status", "answer", "kind", "text"),
    [
        (401, {"error": "invalid_client", "error_description": "who?"}, FatalDeliveryError, "invalid_client: who"),
        (503, {}, RetriableDeliveryError, "HTTP 503"),
        (200, {"token": 1}, FatalDeliveryError, "no access_token"),
        (200, b"<html>", FatalDeliveryError, "no access_token"),
        (200, {"access_token": "a\nb"}, FatalDeliveryError, "no access_token"),
    ],
)
def test_servers_of_tokens_that_give_none(status: int, answer: Any, kind: type[Exception], text: str) -> None:
    registry = Registry()
    registry.refused["/token"] = status, answer
    with served(registry) as url, SchemaRegistry(RegistryConfig((url,), oauth=login(url))) as schemas:
        with pytest.raises(kind, match=text) as caught:
            schemas.subjects()
        assert "tokens of" in str(caught.value)


def test_no_server_of_tokens_is_worth_another_try() -> None:
    schemas = SchemaRegistry(RegistryConfig(("http://127.0.0.1:1",), oauth=login("http://127.0.0.1:1")))
    with pytest.raises(RetriableDeliveryError, match=r"tokens of http://127\.0\.0\.1:1/token.*cannot be reached"):
        schemas.subjects()


def test_a_proxy_is_told_the_whole_address() -> None:
    proxy = Registry()
    with served(proxy) as url:
        port = int(url.split(":")[2].split("/")[0])
        config = RegistryConfig(("http://registry.invalid:8081/api",), Secret("u:p"), proxy=("127.0.0.1", port))
        with SchemaRegistry(config) as schemas:
            assert schemas.id_for("s", '"int"') == 1
    assert proxy.requests[0][1] == "http://registry.invalid:8081/api/subjects/s/versions"
    assert proxy.header["Host"] == "registry.invalid:8081"


@contextmanager
def refusing_proxy(asked: list[str]) -> Iterator[int]:
    """Answers each CONNECT with 403."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(4096).decode())
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_registry_with_tls_is_reached_through_the_proxys_tunnel() -> None:
    asked: list[str] = []
    with refusing_proxy(asked) as port:
        config = RegistryConfig(("https://registry.invalid",), proxy=("127.0.0.1", port), proxy_user=Secret("u:p"))
        refused = pytest.raises(RetriableDeliveryError, match=f"through the proxy 127.0.0.1:{port} .*403 Forbidden")
        with SchemaRegistry(config) as schemas, refused:
            schemas.subjects()
    assert asked[0].startswith("CONNECT registry.invalid:443 HTTP/1.")
    assert f"\r\nProxy-Authorization: Basic {base64.b64encode(b'u:p').decode()}\r\n" in asked[0]


def test_what_a_file_says_of_tokens_and_proxies() -> None:
    given = {
        **AVRO,
        f"{BEARER}credentials.source": "OAUTHBEARER",
        f"{BEARER}issuer.endpoint.url": "https://idp.example.com/token",
        f"{BEARER}client.id": "me",
        f"{BEARER}client.secret": "s3crEt",
        f"{BEARER}scope": "all",
        f"{BEARER}logical.cluster": "lsrc-1",
        f"{BEARER}identity.pool.id": "pool-1",
        "value.converter.proxy.host": "proxy",
        "value.converter.proxy.port": "3128",
        "value.converter.latest.cache.size": "500",
        "value.converter.reference.subject.name.strategy": "DefaultReferenceSubjectNameStrategy",
        "value.converter.enhanced.avro.schema.support": "true",
    }
    registry = loaded(given).connector.output.value_converter.registry
    assert registry is not None
    assert registry.oauth == OauthLogin("https://idp.example.com/token", "me", Secret("s3crEt"), "all")
    assert registry.proxy == ("proxy", 3128)
    assert registry.headers == {"target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": "pool-1"}
    static = {**AVRO, f"{BEARER}credentials.source": "STATIC_TOKEN", f"{BEARER}token": "t0ken\n"}
    registry = loaded(static).connector.output.value_converter.registry
    assert registry is not None and registry.token == Secret("t0ken")


def test_the_login_of_the_worker_is_inherited() -> None:
    worker = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": LOGIN,
        "sasl.oauthbearer.token.endpoint.url": "https://idp.example.com/token",
    }
    given = {**AVRO, f"{BEARER}credentials.source": "SASL_OAUTHBEARER_INHERIT"}
    registry = loaded(given, worker).connector.output.value_converter.registry
    assert registry is not None
    assert registry.oauth == OauthLogin("https://idp.example.com/token", "me", Secret("s3crEt"))
    own = given | {"value.converter.sasl.jaas.config": LOGIN.replace("me", "you")}
    registry = loaded(own, worker).connector.output.value_converter.registry
    assert registry is not None and registry.oauth is not None and registry.oauth.client_id == "you"
    plain = 'PlainLoginModule required username="u" password="p4ss";'
    basic = {**AVRO, "value.converter.basic.auth.credentials.source": "SASL_INHERIT"}
    registry = loaded(basic | {"value.converter.sasl.jaas.config": plain}).connector.output.value_converter.registry
    assert registry is not None and registry.user_info == Secret("u:p4ss")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, {"bearer.auth.token"}),
        (
            {"bearer.auth.credentials.source": "OAUTHBEARER"},
            {"bearer.auth.issuer.endpoint.url", "bearer.auth.client.id", "bearer.auth.client.secret"},
        ),
        ({"bearer.auth.credentials.source": "SASL_OAUTHBEARER_INHERIT"}, {"sasl.jaas.config"}),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, {"sasl.jaas.config"}),
        (
            {"bearer.auth.credentials.source": "SASL_OAUTHBEARER_INHERIT", "sasl.jaas.config": "X required a=b;"},
            {"sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url"},
        ),
        ({"bearer.auth.credentials.source": "CUSTOM"}, {"bearer.auth.credentials.source"}),
        ({"bearer.auth.issuer.endpoint.url": "file:///token"}, {"bearer.auth.issuer.endpoint.url"}),
        ({"proxy.host": "p"}, {"proxy.port"}),
        ({"proxy.port": "3128"}, {"proxy.host"}),
        ({"bearer.auth.logical.cluster": "lsrc\n1"}, {"bearer.auth.logical.cluster"}),
    ],
)
def test_what_a_login_needs_is_said(given: dict[str, str], expected: set[str]) -> None:
    found = problems(AVRO | {f"value.converter.{name}": text for name, text in given.items()})
    assert {one.property for one in found} == {f"value.converter.{name}" for name in expected}
