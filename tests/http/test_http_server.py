"""The HTTP server: whatever clients do, others are answered, and nothing is kept for long."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from email.message import Message
from pathlib import Path

import pytest

from connector import secrets
from connector.config import Secret
from connector.errors import CdcError
from connector.http import Access, Answer, HttpServer, Refused, Request, Route, answer_json, is_loopback
from connector.http.server import MOST_CONNECTIONS
from connector.http.sockets import Acceptor
from tests.http.certificates import Authority
from tests.servers.patience import patience, until

CLIENT_SECONDS = 20
LARGE = b"x" * 30_000_000


def _broken(request: Request) -> Answer:
    raise RuntimeError("cannot log in with hunter22secret")


def _unwell(request: Request) -> Answer:
    raise Refused(400, "no")


async def _later(request: Request) -> Answer:
    await asyncio.to_thread(lambda: None)
    return answer_json({"body": request.body.decode(), "query": dict(request.query), "parts": dict(request.parts)})


def _refused(request: Request) -> Answer:
    raise Refused(409, "it is running")


ROUTES = (
    Route("GET", "/health", lambda request: answer_json({"state": "RUNNING"}), open=True),
    Route("GET", "/status", lambda request: answer_json({"authorized": request.authorized})),
    Route("GET", "/broken", _broken),
    Route("GET", "/unwell", _unwell),
    Route("GET", "/page", lambda request: Answer(200, "text/plain", LARGE[:1_000_000])),
    Route("GET", "/large", lambda request: Answer(200, "text/plain", LARGE)),
    Route("PUT", "/things/{thing}/config", _later),
    Route("DELETE", "/things/{thing}", _refused),
)


@contextmanager
def served(host: str = "127.0.0.1", access: Access | None = None, **limits: float) -> Iterator[HttpServer]:
    with HttpServer(host, 0, ROUTES, access, **limits) as server:
        yield server


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with served() as server:
        yield server


def ask(
    server: HttpServer,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> tuple[int, Message, bytes]:
    host = "127.0.0.1" if server.host in ("0.0.0.0", "::") else server.host
    connection = (
        http.client.HTTPConnection(host, server.port, timeout=CLIENT_SECONDS * patience())
        if tls is None
        else http.client.HTTPSConnection(host, server.port, timeout=CLIENT_SECONDS * patience(), context=tls)
    )
    try:
        connection.request(method, path, body, {"Host": "localhost", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def raw(server: HttpServer, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=CLIENT_SECONDS * patience())
    if sent:
        made.sendall(sent)
    return made


def everything(connection: socket.socket) -> bytes:
    """What comes until the server closes; nothing if it does so rudely."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def ipv6() -> bool:
    """Whether this machine has it."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def healthy(server: HttpServer, tls: ssl.SSLContext | None = None) -> bool:
    return ask(server, "/health", tls=tls)[0] == 200


def healthy_if_quick(server: HttpServer, tls: ssl.SSLContext | None = None) -> bool:
    """False also where the server did not wait for the request, or for the handshake."""
    try:
        return healthy(server, tls)
    except (ConnectionError, http.client.HTTPException, ssl.SSLError):
        return False


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

ODD = {
    "noise": b"\x00\xff\xfe garbage\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "nul": b"GET /hea\x00lth HTTP/1.1\r\nHost: [::1]\r\n\r\n",
    "no_host": b"GET /health HTTP/1.1\r\n\r\n",
    "bad_header": b"GET /health HTTP/1.1\r\nHost: [::1]\r\nNo colon here\r\n\r\n",
    "bad_encoding": b"GET /health HTTP/1.1\r\nHost: [::1]\r\nX: \xff\xfe\x80\r\n: empty\r\n\r\n",
    "two_lengths": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length_and_chunks": b"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
    "negative_length": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nContent-Length: -1\r\n\r\n",
    "endless_body": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 99999999999\r\n\r\n",
    "bad_chunk": b"POST /health HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "version": b"GET /health HTTP/9.9\r\nHost: [::1]\r\n\r\n",
    "long_line": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: [::1]\r\n\r\n",
    "huge_headers": b"GET /health HTTP/1.1\r\nHost: [::1]\r\n" + b"X: y\r\n" * 200_000 + b"\r\n",
    "one_huge_header": b"GET /health HTTP/1.1\r\nHost: [::1]\r\nX: " + b"y" * 3_000_000 + b"\r\n\r\n",
}


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


# -- crowds, slow ones, silent ones --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "answers"),
    [
        ("Content-Length: 2\r\n", b"hi", [b"HTTP/1.1 100 Continue", b"HTTP/1.1 200 OK"]),
        ("Transfer-Encoding: chunked\r\n", b"2\r\nhi\r\n0\r\n\r\n", [b"HTTP/1.1 100 Continue", b"HTTP/1.1 200 OK"]),
        ("Content-Length: 0\r\n", b"", [b"HTTP/1.1 200 OK"]),
        ("", b"", [b"HTTP/1.1 200 OK"]),
    ],
)
def test_who_waits_for_leave_to_send_a_body_gets_it(
    server: HttpServer, headers: str, body: bytes, answers: list[bytes]
) -> None:
    """And who has none to send gets the answer itself, as a client that knows of no such leave could misread it."""
    with raw(server) as connection:
        connection.sendall(
            f"PUT /things/a/config HTTP/1.1\r\nHost: localhost\r\n{headers}Expect: 100-continue\r\n\r\n".encode()
        )
        lines = connection.makefile("rb")
        begun = [lines.readline().strip()]
        if len(answers) == 2:
            assert lines.readline() == b"\r\n"
            connection.sendall(body)
            begun.append(lines.readline().strip())
        lines.close()
    assert begun == answers


def test_many_bad_clients_at_once_do_not_keep_health_from_answering(server: HttpServer) -> None:
    """Silent ones, slow ones, ones that read nothing, ones that talk nonsense: many more than may be connected."""
    unread = b"GET /page HTTP/1.1\r\nHost: [::1]\r\n\r\n" * 3
    openings = (b"", b"GET /hea", unread, ODD["noise"], ODD["huge_headers"][:20_000])
    crowd: list[socket.socket] = []
    stop = threading.Event()

    def trickle() -> None:
        while not stop.wait(0.02):
            for each in list(crowd):
                try:
                    each.send(b"X", socket.MSG_DONTWAIT)
                except OSError:
                    pass  # closed, or full

    with ExitStack() as stack:
        slow = threading.Thread(target=trickle)
        stack.callback(slow.join)
        stack.callback(stop.set)
        slow.start()
        for _ in range(3):
            for opening in (*openings * 5, *[unread] * MOST_CONNECTIONS):
                connection = stack.enter_context(raw(server))
                try:
                    connection.sendall(opening)
                except ConnectionError:
                    continue
                crowd.append(connection)
            assert healthy(server)
            assert server.connections <= MOST_CONNECTIONS


def test_the_one_that_waits_longest_makes_room_for_the_next() -> None:
    with served(request_seconds=600) as server, ExitStack() as stack:
        silent = [stack.enter_context(raw(server)) for _ in range(MOST_CONNECTIONS + 10)]
        assert healthy(server)
        until(lambda: server.connections in (MOST_CONNECTIONS - 1, MOST_CONNECTIONS), what="the bound")
        assert everything(silent[0]) == everything(silent[9]) == b""
        silent[-1].sendall(b"GET /health HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")
        assert everything(silent[-1]).startswith(b"HTTP/1.1 200")


QUESTION = b"GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextmanager
def all_being_answered(room_seconds: float) -> Iterator[tuple[HttpServer, Future[None]]]:
    """A server that has as many requests as it may have at once, and when it may answer them."""
    gate: Future[None] = Future()
    asked = threading.Semaphore(0)

    async def gated(request: Request) -> Answer:
        asked.release()
        await asyncio.shield(asyncio.wrap_future(gate))
        return answer_json({})

    routes = (*ROUTES, Route("GET", "/gated", gated))
    with HttpServer("127.0.0.1", 0, routes, room_seconds=room_seconds) as server, ExitStack() as stack:
        stack.callback(lambda: gate.done() or gate.set_result(None))
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(raw(server, QUESTION % b"gated"))
        for _ in range(MOST_CONNECTIONS):
            assert asked.acquire(timeout=CLIENT_SECONDS * patience())
        yield server, gate


@pytest.mark.parametrize("soon", [True, False])
def test_who_comes_while_all_are_being_answered_waits_a_moment_for_room(soon: bool) -> None:
    """As requests that all arrived in one moment are answered in the next; without end, he would better be told."""
    with (
        all_being_answered(room_seconds=600 if soon else 0.1) as (server, gate),
        raw(server, QUESTION % b"health") as late,
    ):
        if soon:
            late.settimeout(0.2)
            with pytest.raises(TimeoutError):
                late.recv(1)
            late.settimeout(CLIENT_SECONDS * patience())
            gate.set_result(None)
        said = everything(late)
    assert said.startswith(b"HTTP/1.1 200" if soon else b"HTTP/1.1 503"), said


def test_that_moment_is_the_servers_own() -> None:
    """What passed while it had no turn, as on a machine that is busy with something else, does not count."""
    room_seconds = 0.1
    stands, goes_on = threading.Event(), threading.Event()

    def stand_still() -> None:
        stands.set()
        goes_on.wait()

    with all_being_answered(room_seconds) as (server, gate), ExitStack() as stack:
        stack.callback(goes_on.set)
        assert server._loop is not None
        server._loop.call_soon_threadsafe(stand_still)
        assert stands.wait(CLIENT_SECONDS * patience())
        late, began = stack.enter_context(raw(server, QUESTION % b"health")), time.monotonic()
        gate.set_result(None)
        until(lambda: time.monotonic() - began > 2 * room_seconds, what="more than a moment")
        goes_on.set()
        assert everything(late).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET /health HTT", b"PUT /things/a/config HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 9\r\n\r\nab"],
)
def test_a_request_that_does_not_arrive_is_waited_for_so_long_and_no_longer(begun: bytes) -> None:
    with served(request_seconds=0.3) as server, raw(server, begun) as connection:
        assert everything(connection) == b""
        until(lambda: healthy_if_quick(server), what="an answer to who is quick enough")


def test_trickling_does_not_buy_time() -> None:
    with served(request_seconds=0.5) as server, raw(server, b"GET /health HTTP/1.1\r\n") as connection:
        connection.settimeout(0.05)
        ended = False

        def trickle() -> bool:
            nonlocal ended
            try:
                connection.sendall(b"X")
                ended = connection.recv(100) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                ended = True
            return ended

        until(trickle, what="the server to close", step=lambda: None)


def test_an_answer_that_nobody_takes_is_dropped() -> None:
    with (
        served(answer_seconds=0.5) as server,
        raw(server, b"GET /large HTTP/1.1\r\nHost: [::1]\r\n\r\n") as connection,
    ):
        until(lambda: healthy_if_quick(server), what="an answer to who is quick enough")
        until(lambda: server.connections == 0, what="the connection to be closed")
        assert len(everything(connection)) < len(LARGE)


def test_without_file_descriptors_accepting_pauses_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    class Full(socket.socket):
        times = 0

        def accept(self) -> tuple[socket.socket, object]:
            self.times += 1
            if self.times == 1:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    async def accepted() -> int:
        with Full() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            listening.setblocking(False)
            taken: asyncio.Queue[socket.socket] = asyncio.Queue()
            acceptor = Acceptor([listening], taken.put_nowait, pause_seconds=0.1)
            with socket.create_connection(listening.getsockname()):
                (await asyncio.wait_for(taken.get(), 90 * patience())).close()
            acceptor.stop()
            return listening.times

    assert asyncio.run(accepted()) <= 4
    assert "Too many open files" in caplog.text


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


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("Bearer wrong", 401),
        ("Bearer correct-horse-battery", 401),
        ("Basic correct-horse", 401),
        ("Bearer \xe9\xff", 401),
        ("Bearer correct-horse", 200),
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


def test_tls_with_a_crowd_of_half_done_handshakes(authority: Authority) -> None:
    with served(access=Access(tls=authority.server_context()), request_seconds=1.0) as server:
        assert server.url.startswith("https://")
        with ExitStack() as stack:
            for said in (b"", b"GET / HTTP/1.1\r\n\r\n", ODD["tls"][:50], ODD["noise"]) * 30:
                stack.enter_context(raw(server, said))
            until(lambda: healthy_if_quick(server, authority.client_context()), what="an answer to who is quick enough")
            with raw(server, b"GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n") as plain:
                assert b"200" not in everything(plain)


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
