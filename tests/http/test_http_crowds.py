"""Many clients at once, slow ones and silent ones: others are answered, and none of them is waited for for ever."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

import pytest

from connector.http import Access, Answer, HttpServer, Request, Route, answer_json
from connector.http.server import MOST_CONNECTIONS
from connector.http.sockets import Acceptor
from tests.http.certificates import Authority
from tests.http.serving import (
    CLIENT_SECONDS,
    LARGE,
    ODD,
    ROUTES,
    everything,
    healthy,
    healthy_if_quick,
    raw,
    served,
)
from tests.servers.patience import patience, until


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


def test_tls_with_a_crowd_of_half_done_handshakes() -> None:
    authority = Authority()
    with served(access=Access(tls=authority.server_context()), request_seconds=1.0) as server:
        assert server.url.startswith("https://")
        with ExitStack() as stack:
            for said in (b"", b"GET / HTTP/1.1\r\n\r\n", ODD["tls"][:50], ODD["noise"]) * 30:
                stack.enter_context(raw(server, said))
            until(lambda: healthy_if_quick(server, authority.client_context()), what="an answer to who is quick enough")
            with raw(server, b"GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n") as plain:
                assert b"200" not in everything(plain)
