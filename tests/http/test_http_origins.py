"""Pages of other sites, which a browser runs, get no answers: neither under their own name nor under one for us."""

from __future__ import annotations

import http.client
import json
import socket

import pytest

from connector.config import Secret
from connector.http import Access, HttpServer, Request, Route, answer_text
from connector.http.origins import foreign

BROWSER = {"User-Agent": "Mozilla/5.0"}


@pytest.mark.parametrize(
    ("own", "headers"),
    [
        ("127.0.0.1", {"Host": "127.0.0.1:8083"}),
        ("127.0.0.1", {"Host": "localhost:8083"}),
        ("127.0.0.1", {"Host": "LOCALHOST."}),
        ("127.0.0.1", {"Host": "cdc.localhost", "Origin": "http://cdc.localhost:3000"}),
        ("::1", {"Host": "[::1]:8083"}),
        ("127.0.0.1", {}),
        ("0.0.0.0", {"Host": "10.1.2.3:8083", **BROWSER}),
        ("0.0.0.0", {"Host": socket.gethostname(), **BROWSER}),
        ("cdc.internal", {"Host": "cdc.internal:8083", "Origin": "http://cdc.internal:8083"}),
        # Prometheus and probes, by the name of a service.
        ("0.0.0.0", {"Host": "scylla-cdc.shop.svc:8083", "User-Agent": "Prometheus/3.0"}),
        ("127.0.0.1", {"Host": "localhost", "Origin": "http://localhost:3000"}),
    ],
)
def test_those_who_are_meant_are_answered(own: str, headers: dict[str, str]) -> None:
    assert foreign(headers, own, with_token=False) is None


@pytest.mark.parametrize(
    ("own", "headers", "said"),
    [
        # A name that resolves to our address.
        ("127.0.0.1", {"Host": "evil.example:8083"}, "host evil.example "),
        ("::1", {"Host": "evil.example"}, "host evil.example "),
        ("127.0.0.1", {"Host": "localhost.evil.example"}, "host localhost.evil.example "),
        ("127.0.0.1", {"Host": "127.0.0.1.evil.example"}, "host 127.0.0.1.evil.example "),
        ("0.0.0.0", {"Host": "evil.example", **BROWSER}, "host evil.example "),
        ("0.0.0.0", {"Host": "evil.example", "Origin": "http://evil.example"}, "host evil.example "),
        ("127.0.0.1", {"Host": "x" * 5_000}, "…"),
        # A page that asks another site.
        ("127.0.0.1", {"Host": "127.0.0.1", "Origin": "https://evil.example"}, "origin https://evil.example "),
        ("127.0.0.1", {"Host": "127.0.0.1", "Origin": "null"}, "origin null "),
        ("127.0.0.1", {"Host": "127.0.0.1", "Origin": ""}, "origin  "),
        ("127.0.0.1", {"Host": "127.0.0.1", "Origin": "http://[::1"}, "origin http://[::1 "),
        ("0.0.0.0", {"Host": "10.1.2.3", "Origin": "http://10.1.2.4"}, "origin http://10.1.2.4 "),
    ],
)
def test_others_are_refused(own: str, headers: dict[str, str], said: str) -> None:
    refused = foreign(headers, own, with_token=False)
    assert refused is not None and said in refused and len(refused) < 300


def test_whoever_shows_a_token_may_use_any_name_but_not_from_another_page() -> None:
    assert foreign({"Host": "cdc.example", **BROWSER}, "127.0.0.1", with_token=True) is None
    assert foreign({"Host": "cdc.example", "Origin": "http://evil.example"}, "127.0.0.1", with_token=True) is not None


def test_the_refusal_is_json() -> None:
    routes = [Route("GET", "/", lambda request: answer_text("well"))]

    def asked(server: HttpServer, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            connection.request("GET", "/", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    with HttpServer("127.0.0.1", 0, routes) as server:
        assert asked(server) == (200, b"well")
        status, body = asked(server, Host="evil.example")
        assert (status, json.loads(body)["error_code"]) == (403, 403) and b"--http-host" in body
        assert asked(server, Origin="https://evil.example")[0] == 403
    with HttpServer("127.0.0.1", 0, routes, Access(Secret("t"))) as server:
        assert asked(server, Host="cdc.example")[0] == 401


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)]
)
def test_a_page_of_another_port_changes_nothing(site: str, status: int) -> None:
    routes = [
        Route("POST", "/restart", lambda request: answer_text("done"), writes=True),
        Route("POST", "/look", lambda request: answer_text("seen")),
    ]
    with HttpServer("127.0.0.1", 0, routes) as server:
        for path, expected in (("/restart", status), ("/look", 200)):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            try:
                # So does a form of a page of some other server of this machine.
                origin = f"http://localhost:{server.port + 1}"
                connection.request("POST", path, headers={"Origin": origin, "Sec-Fetch-Site": site})
                assert connection.getresponse().status == expected
            finally:
                connection.close()


__all__ = ["Request"]
