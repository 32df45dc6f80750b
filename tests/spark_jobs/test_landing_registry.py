"""Landing asks a Schema Registry for a writer's schema: no answer of it holds a job, and none leads elsewhere."""

from __future__ import annotations

import base64
import json
import threading

import pytest

from connector.errors import LandingError
from connector.registry import client as client_module
from spark_jobs.decode.avro_records import Registry
from tests.registry.registry_server import Registry as RegistryServer
from tests.registry.registry_server import served

INT = '"int"'


def registry_server() -> RegistryServer:
    server = RegistryServer()
    server.schemas.append(INT)
    return server


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_an_answer_that_trickles_does_not_hold_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket's timeout begins anew with every byte."""
    monkeypatch.setattr(client_module, "TIMEOUT_SECONDS", 0.3)
    server = registry_server()
    server.trickles = threading.Event()
    with served(server) as url:
        with pytest.raises(LandingError, match=r"schema 1: .*(timed out|did not come to an end in time)"):
            Registry([url], {}).schema(1)
        server.trickles.set()


def test_a_redirect_is_told_and_not_followed() -> None:
    """With the login, which is nobody else's."""
    server, elsewhere = registry_server(), registry_server()
    with served(elsewhere) as other, served(server) as url:
        server.location, server.answers = f"{other}/schemas/ids/1?token=s3cr3t", [(302, b"")]
        with pytest.raises(LandingError, match=r"sends us on to http://.*schema\.registry\.url") as caught:
            Registry([url], {"schema.registry.basic.auth.user.info": "me:s3cr3t"}).schema(1)
    assert not elsewhere.requests and "s3cr3t" not in str(caught.value)


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_MOST_BYTES", 2**20)
    server = registry_server()
    server.answers = [(200, {"schema": json.dumps({"type": "int", "doc": "x" * 2**20})})] * 2
    with served(server) as url, pytest.raises(LandingError, match="more than 1 MiB"):
        Registry([url], {}).schema(1)


@pytest.mark.parametrize("text", ["[" * 100_000, "int", '{"type": "record", "fields": [{"name": "a"}]}'])
def test_a_schema_that_is_none_is_named(text: str) -> None:
    server = registry_server()
    server.answers = [(200, {"schema": text})]
    with served(server) as url, pytest.raises(LandingError, match=f"{url}: schema 1 cannot be read"):
        Registry([url], {}).schema(1)


def test_what_one_of_them_refuses_another_may_know() -> None:
    bad, good = registry_server(), registry_server()
    bad.refused["ids"] = (401, {"error_code": 401, "message": "who?"})
    with served(bad) as first, served(good) as second:
        assert Registry([first, second], {}).schema(1) == INT


def test_a_schema_that_no_registry_has_is_none() -> None:
    server = registry_server()
    server.answers = [(404, {"error_code": 40403, "message": "Schema not found"})]
    with served(server) as url:
        assert Registry([url], {}).schema(9) is None


MISSING = (404, {"error_code": 40403, "message": "Schema not found"})


def test_a_schema_that_a_registry_has_later_is_asked_for_again() -> None:
    """One that lags behind is told of a schema after the records that name it: all of them became dead letters."""
    server = registry_server()
    server.answers = [MISSING, MISSING]
    with served(server) as url:
        registry = Registry([url], {})
        assert registry.schema(1) is None
        with pytest.raises(LandingError, match=f"no Schema Registry has schema 1 yet .*{url}"):
            registry.schemas([1])
        assert registry.schemas([1]) == {1: INT} == registry.schemas([1])
    assert len(server.requests) == 3, "what is known is not asked for again"


def test_what_one_of_them_does_not_have_another_may() -> None:
    behind, ahead = registry_server(), registry_server()
    behind.answers = [MISSING] * 3
    with served(behind) as first, served(ahead) as second:
        assert Registry([first, second], {}).schema(1) == INT
        with pytest.raises(LandingError, match="no Schema Registry answers for schema 1"):
            Registry([first, "http://127.0.0.1:9"], {}).schema(1)
        assert Registry([first], {}).schema(1) is None


def test_a_schema_that_nobody_has_is_waited_for_and_holds_others_up_no_longer_than_that() -> None:
    server = registry_server()
    server.answers = [MISSING] * 9
    with served(server) as url:
        registry = Registry([url], {})
        for _ in range(3):
            with pytest.raises(LandingError, match="has schema 8, 9 yet"):
                registry.schemas([9, 8])
        registry.patience_s = 0
        assert registry.schemas([9]) == {9: None}
        with pytest.raises(LandingError, match="has schema 7 yet"):
            registry.schemas([9, 7])


def test_the_proxy_of_the_environment_is_asked_with_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = registry_server()
    with served(proxy) as url:
        monkeypatch.setenv("http_proxy", url.removesuffix("/api").replace("//", "//me:s%2Fcret@"))
        assert Registry(["http://registry.invalid:8081/api"], {}).schema(1) == INT
    assert proxy.requests[0][1] == "http://registry.invalid:8081/api/schemas/ids/1"
    login = base64.b64encode(b"me:s/cret").decode()
    assert proxy.header["Proxy-Authorization"] == f"Basic {login}" and "Authorization" not in proxy.header
    with served(registry_server()) as url:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert Registry([url], {}).schema(1) == INT
    monkeypatch.setenv("http_proxy", "http://proxy:s3cr3t")
    with pytest.raises(LandingError, match="http_proxy is no address") as caught:
        Registry(["http://registry.invalid:8081"], {})
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("code", [40401, 40402, 40403, 40406])
def test_registries_say_with_a_number_of_their_own_that_they_have_no_such_schema(code: int) -> None:
    server = registry_server()
    server.answers = [(404, {"error_code": code, "message": "Artifact not found"})]
    with served(server) as url:
        assert Registry([url], {}).schema(9) is None


NOBODY = {
    "a page": b"<html><h1>404 Not Found</h1></html>",
    "nothing": b"",
    "a registry of which the path is another": {"error_code": 404, "message": "HTTP 404 Not Found"},
    "Apicurio beside its ccompat": {"error_code": 404, "message": "No artifact with ID 'x'", "name": "NotFound"},
    "other JSON": [40403],
    "another number": {"error_code": "40403", "message": "x"},
}


@pytest.mark.parametrize("said", NOBODY.values(), ids=NOBODY)
def test_a_404_of_something_else_makes_no_record_bad(said: object) -> None:
    """It was taken for a registry that has no such schema: good records became dead letters."""
    server = registry_server()
    server.answers = [(404, said)]
    with served(server) as url:
        login = url.replace("//", "//me:s3cr3t@")
        with pytest.raises(LandingError, match=r"no Schema Registry answers there.*schema\.registry\.url") as caught:
            Registry([login], {}).schema(1)
    assert f"Schema Registry {url}: schema 1" in str(caught.value) and "s3cr3t" not in str(caught.value)
