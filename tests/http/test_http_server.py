"""What the HTTP server answers, where it listens, and to whom; crowds are in `test_http_crowds.py`."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from connector import secrets
from connector.config import Secret
from connector.errors import CdcError
from connector.http import Access, HttpServer, is_loopback
from tests.http.certificates import Authority
from tests.http.serving import (
    ODD,
    ROUTES,
    ask,
    everything,
    healthy,
    ipv6,
    raw,
    served,
)
from tests.servers.patience import until

# -- answers -----------------------------------------------------------------------------------------------------


def test_head_is_get_without_a_body(server: HttpServer) -> None:
    status, headers, body = ask(server, "/health", "HEAD")
    assert (status, body) == (200, b"")
    assert headers["Content-Length"] == str(len(ask(server, "/health")[2]))


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/nothing", 404, None),
        ("HEAD", "/nothing", 404, None),
        ("BREW", "/nothing", 404, None),
        ("OPTIONS", "/nothing", 404, None),
        ("POST", "/health", 405, "HEAD,GET,OPTIONS"),
        ("BREW", "/health", 405, "HEAD,GET,OPTIONS"),
        ("get", "/health", 405, "HEAD,GET,OPTIONS"),
        ("GET", "/things/a/config", 405, "OPTIONS,PUT"),
        ("GET", "/health/../etc/passwd", 404, None),
        ("GET", "/%00/../etc/passwd", 400, None),
        ("GET", "/%zz", 400, None),
        ("GET", "http://[::1/health", 400, None),
        ("GET", "/health?" + "&".join(f"a{n}=1" for n in range(200)), 400, None),
    ],
)
def test_errors_are_json_as_kafka_connects(
    server: HttpServer, method: str, path: str, status: int, allowed: str | None
) -> None:
    got, headers, body = ask(server, path, method)
    # To the letter: what nobody has looked at is answered without a type.
    assert (got, headers.get("Allow")) == (status, allowed)
    assert headers.get("Content-Type") == (None if status in (404, 405) else "application/json")
    if method != "HEAD":
        error = json.loads(body)
        assert error["error_code"] == status and error["message"].startswith(f"HTTP {status} ")
    assert healthy(server)


def test_a_slash_at_the_end_does_not_count(server: HttpServer) -> None:
    assert ask(server, "/health/")[0] == 200


def test_options_says_what_a_path_takes(server: HttpServer) -> None:
    status, headers, body = ask(server, "/things/a/config", "OPTIONS")
    assert (status, headers["Allow"], body) == (200, "OPTIONS,PUT", b"OPTIONS, PUT")
    assert headers["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/health//", "Ambiguous URI empty segment"),
        ("//health", "Ambiguous URI empty segment"),
        ("/things/%2e%2E", "Ambiguous URI path segment"),
        ("/%ff%fe", "Bad UTF-8 encoding"),
        ("/things/a%0Ab/config", "Suspicious Path Character"),
        ("/things/a|b/config", "Illegal Path Character"),
        ("/things/..;a/config", "Ambiguous URI path parameter"),
        ("http://elsewhere/health", "Authority!=Host"),
        ("*", "Bad URI path"),
    ],
)
def test_a_path_that_could_be_taken_for_another_is_refused(server: HttpServer, path: str, said: str) -> None:
    status, _, body = ask(server, path)
    assert (status, json.loads(body)) == (400, {"error_code": 400, "message": said})


def test_a_connection_outlives_what_a_handler_refuses_and_ends_with_what_is_no_request(server: HttpServer) -> None:
    asked = b"GET /unwell HTTP/1.1\r\nHost: [::1]\r\n\r\n", b"GET /a|b HTTP/1.1\r\nHost: [::1]\r\n\r\n"
    with raw(server, asked[0] * 2 + asked[1] + asked[0]) as connection:
        found = everything(connection)
    assert re.findall(rb'"message":"([^"]*)"', found) == [b"no", b"no", b"Illegal Path Character"]


def test_a_fragment_is_the_clients_own(server: HttpServer) -> None:
    assert ask(server, "/health#part")[0] == 200


def test_parameters_of_a_path_do_not_count(server: HttpServer) -> None:
    assert ask(server, "/health;x=1")[0] == 200
    status, _, body = ask(server, "/things/a;b/config;c", "PUT")
    assert (status, json.loads(body)["parts"]) == (200, {"thing": "a"})


@pytest.mark.parametrize(
    ("token", "address", "allowed"),
    [
        (None, "127.0.0.1", True),
        (None, "::1", True),
        (None, "::ffff:127.0.0.1", True),
        (None, "10.1.2.3", False),
        (None, "::ffff:10.1.2.3", False),
        (Secret("an-operators-token"), "10.1.2.3", True),
    ],
)
def test_only_this_machine_writes_unless_a_token_says_who_asks(
    token: Secret | None, address: str, allowed: bool
) -> None:
    assert Access(token).may_write(address) is allowed


def test_bodies_queries_and_named_parts_reach_a_coroutine(server: HttpServer) -> None:
    status, _, body = ask(server, "/things/a%20b/config?expand=info&expand=status", "PUT", body=b'{"a": 1}')
    assert status == 200
    assert json.loads(body) == {"body": '{"a": 1}', "query": {"expand": ["info", "status"]}, "parts": {"thing": "a b"}}


def test_a_handler_refuses_with_its_own_words(server: HttpServer) -> None:
    status, _, body = ask(server, "/things/a", "DELETE")
    assert (status, json.loads(body)) == (409, {"error_code": 409, "message": "it is running"})


def test_a_handler_that_fails_is_a_500_without_secrets(server: HttpServer) -> None:
    secrets.register("hunter22secret")
    status, _, body = ask(server, "/broken")
    assert status == 500
    assert json.loads(body) == {"error_code": 500, "message": f"RuntimeError: cannot log in with {secrets.MASK}"}
    assert healthy(server)


def test_one_connection_asks_many_times_one_after_the_other_and_all_at_once(server: HttpServer) -> None:
    with raw(server, b"GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n" * 50) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")
        found = everything(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"200"] * 50 + [b"404"]


# -- odd requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_request_is_refused_and_forgotten(server: HttpServer, name: str) -> None:
    with raw(server) as connection:
        try:
            connection.sendall(ODD[name])
        except (ConnectionResetError, BrokenPipeError):
            pass  # closed before all of it was taken
        found = everything(connection)
    if found:
        head, _, body = found.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        assert status in (400, 413, 431), head
        assert json.loads(body)["error_code"] == status
    assert healthy(server)


def test_headers_that_are_too_large_are_told_so(server: HttpServer) -> None:
    with raw(server, ODD["long_line"]) as connection:
        assert everything(connection).startswith(b"HTTP/1.1 431 Request Header Fields Too Large")


@pytest.mark.parametrize("length", ["1048577", "52428800", "9" * 5000])
def test_a_body_that_is_too_large_is_told_so(server: HttpServer, length: str) -> None:
    head = f"PUT /things/a/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    with raw(server, head.encode()) as connection:
        found = everything(connection)
    assert found.startswith(b"HTTP/1.1 413 ")
    assert json.loads(found.partition(b"\r\n\r\n")[2]) == {"error_code": 413, "message": "a body may have 1024 KiB"}


# -- where it listens ----------------------------------------------------------------------------------------------


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            CdcError, match=rf"port {port} of 127\.0\.0\.1 cannot be listened on: Address already in use"
        ):
            HttpServer("127.0.0.1", port, ROUTES)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "256.1.1.1", "a" * 300, "192.0.2.7"])
def test_an_address_that_is_not_here_is_named(host: str) -> None:
    with pytest.raises(CdcError, match=re.escape(host)):
        HttpServer(host, 0, ROUTES)


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0", *(["::1", "::"] if ipv6() else [])])
def test_it_listens_on_every_kind_of_address(host: str) -> None:
    with served(host) as server:
        assert healthy(server)
        assert server.url == f"http://{f'[{host}]' if ':' in host else host}:{server.port}"


def test_loopback_is_known_by_its_addresses() -> None:
    assert [is_loopback(each) for each in ("127.0.0.1", "127.8.9.10", "::1", "localhost")] == [True] * 4
    assert [is_loopback(each) for each in ("0.0.0.0", "::", "10.0.0.1", "db.example.com", "")] == [False] * 5


# -- who may ask ---------------------------------------------------------------------------------------------------


def basic(login: str) -> str:
    return base64.b64encode(login.encode()).decode()


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("Bearer wrong", 401),
        ("Bearer correct-horse-battery", 401),
        ("Bearer \xe9\xff", 401),
        ("Bearer correct-horse", 200),
        (f"Basic {basic('connect:correct-horse')}", 200),
        (f"basic {basic(':correct-horse')}", 200),
        (f"Basic {basic('connect:correct-horse' + chr(10))}", 200),
        (f"Basic {basic('correct-horse:')}", 401),
        (f"Basic {basic('correct-horse')}", 401),
        (f"Basic {basic('connect:correct-horse:')}", 401),
        ("Basic correct-horse", 401),
        ("Basic \xe9\xff", 401),
        ("Basic", 401),
        ("bearer  correct-horse", 200),
    ],
)
def test_a_token_is_asked_for(shown: str | None, status: int) -> None:
    with served(access=Access(token=Secret("correct-horse\n"))) as server:
        headers = {} if shown is None else {"Authorization": shown}
        got, answered, body = ask(server, "/status", headers=headers)
        assert got == status
        assert answered.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)
        assert b"correct" not in body
        assert healthy(server), "an open route needs none"


def test_what_is_not_there_says_so_only_to_those_who_may_ask() -> None:
    with served(access=Access(token=Secret("correct-horse"))) as server:
        assert ask(server, "/nothing")[0] == ask(server, "/status", "POST")[0] == 401
        assert ask(server, "/nothing", headers={"Authorization": "Bearer correct-horse"})[0] == 404


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def test_clients_without_the_right_certificate_are_not_heard(authority: Authority) -> None:
    stranger = Authority()
    with served(access=Access(tls=authority.server_context(client_auth="required"))) as server:
        assert ask(server, "/health", tls=authority.client_context("operator"))[0] == 200
        wrong: Sequence[ssl.SSLContext] = (
            authority.client_context(),
            stranger.client_context("operator", trusting=authority),
        )
        for context in wrong:
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                ask(server, "/health", tls=context)


def test_it_ends_at_once_with_connections_open(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with served(request_seconds=600, answer_seconds=600) as server:
            for said in (b"", b"GET /", b"GET /large HTTP/1.1\r\nHost: [::1]\r\n\r\n"):
                stack.enter_context(raw(server, said))
            assert healthy(server)
        until(lambda: not server._thread.is_alive(), what="its end")
        with pytest.raises(ConnectionRefusedError):
            raw(server)
