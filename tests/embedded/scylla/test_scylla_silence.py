"""Clients that open a connection or begin a frame and then say no more are cut off; idle ones are kept.

Those that go before their answers come are no reason for a word.
"""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest

from embedded.scylla.cluster import Cluster, Settings
from embedded.scylla.connection import Connection
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import encode_string
from embedded.scylla.server import Server

DEADLINE_SECONDS = 60
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def request(opcode: int, body: bytes = b"") -> bytes:
    return frame.HEADER.pack(4, 0, 1, opcode, len(body)) + body


async def answer(streams: Streams, sent: bytes) -> int:
    """The opcode of the answer."""
    streams[1].write(sent)
    header = frame.read_header(await asyncio.wait_for(streams[0].readexactly(9), DEADLINE_SECONDS), 0)
    await streams[0].readexactly(header.length)
    return header.opcode


async def cut(streams: Streams) -> bool:
    try:
        return await asyncio.wait_for(streams[0].read(), DEADLINE_SECONDS) == b""
    except ConnectionError:
        return True


async def scene() -> None:
    server = Server(Cluster(Settings(ring_delay=0)))
    await server.start()
    try:
        silent, hesitant, dripping, idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(4)]
        startup = request(frame.STARTUP, b"\0\x01" + encode_string("CQL_VERSION") + encode_string("3.0.0"))
        assert await answer(hesitant, request(frame.OPTIONS)) == frame.SUPPORTED
        for streams in (dripping, idle):
            assert await answer(streams, startup) == frame.READY
        dripping[1].write(request(frame.OPTIONS)[:5])
        server.patience = 0.3
        assert all(await asyncio.gather(cut(silent), cut(hesitant), cut(dripping)))
        assert await answer(idle, request(frame.OPTIONS)) == frame.SUPPORTED
        for _, writer in (silent, hesitant, dripping, idle):
            writer.close()
    finally:
        await server.stop()


def test_who_owes_something_for_too_long_is_cut_off() -> None:
    asyncio.run(scene())


async def gone_amid_its_requests() -> None:
    """The client closes between the arrival of its requests and their answers: in one turn of the loop here."""
    server = Server(Cluster(Settings(ring_delay=0)))
    await server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, request(frame.OPTIONS))
            await asyncio.wait_for(loop.sock_recv(client, 1), DEADLINE_SECONDS)
            (connection,) = server.cluster.nodes[0].links
        assert isinstance(connection, Connection)
        connection.data_received(request(frame.OPTIONS) * 50)
    finally:
        await server.stop()


def test_nothing_is_said_of_clients_that_went_before_their_answers_came(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        asyncio.run(gone_amid_its_requests())
    assert caplog.messages == []
