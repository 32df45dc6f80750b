"""Frames that are no frames, bodies that are no bodies: they cost an error or their own connection, nothing else."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.compression import COMPRESSORS, DECOMPRESSORS, BadCompression
from embedded.scylla.protocol.primitives import Malformed
from embedded.scylla.protocol.requests import Execute, Query, parse_request
from embedded.scylla.results import UNSET
from tests.embedded.scylla.raw_client import RawClient, long_string, parameters, text, value_bytes

Connect = Callable[..., RawClient]
QUERY = long_string("SELECT key FROM system.local") + parameters()


@given(st.sampled_from(sorted(frame.OPCODE_NAMES)), st.binary(max_size=60), st.sampled_from([3, 4]))
def test_any_body_is_a_request_or_malformed(opcode: int, body: bytes, version: int) -> None:
    try:
        parse_request(opcode, version, body)
    except Malformed:
        pass


@given(st.binary(max_size=2000), st.sampled_from(["lz4", "snappy"]))
def test_compression_returns_what_it_took(body: bytes, algorithm: str) -> None:
    assert DECOMPRESSORS[algorithm](COMPRESSORS[algorithm](body)) == body


@given(st.binary(max_size=100), st.sampled_from(["lz4", "snappy"]))
def test_bytes_that_are_not_compressed_are_refused_quietly(body: bytes, algorithm: str) -> None:
    try:
        DECOMPRESSORS[algorithm](body)
    except BadCompression:
        pass


def test_a_small_body_cannot_claim_a_large_size() -> None:
    with pytest.raises(BadCompression):
        DECOMPRESSORS["lz4"](struct.pack(">I", 200_000_000) + b"\x10a")


def test_every_kind_of_value_is_parsed() -> None:
    body = long_string("q") + parameters([text("x"), None, "UNSET"], page_size=10, paging_state=b"p", timestamp=5)
    request = parse_request(frame.QUERY, 4, body)
    assert isinstance(request, Query)
    assert request.parameters.values == [b"x", None, UNSET]
    assert (request.parameters.page_size, request.parameters.paging_state) == (10, b"p")
    assert request.parameters.default_timestamp == 5
    named = parse_request(frame.EXECUTE, 4, struct.pack(">H", 2) + b"id" + parameters({"a": text("x"), "b": None}))
    assert isinstance(named, Execute)
    assert named.parameters.values == {"a": b"x", "b": None}


def test_unset_does_not_exist_before_version_four() -> None:
    with pytest.raises(Malformed):
        parse_request(frame.QUERY, 3, long_string("q") + parameters(["UNSET"]))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        struct.pack(">i", -1),
        struct.pack(">i", 1000) + b"short",
        long_string("SELECT") + struct.pack(">HB", 99, 0),
        long_string("SELECT") + struct.pack(">HB", 1, 1) + struct.pack(">H", 3) + value_bytes(b"x"),
        long_string("SELECT") + struct.pack(">HBH", 1, 1, 1) + struct.pack(">i", -3),
        struct.pack(">i", 2) + b"\xff\xfe" + parameters(),
        long_string("SELECT") + struct.pack(">HBH", 1, 0x10, 1),
        long_string("SELECT") + struct.pack(">HBq", 1, 0x20, -(2**63)),
    ],
)
def test_a_malformed_body_costs_an_error(scylla: EmbeddedScylla, connect: Connect, body: bytes) -> None:
    client = connect(scylla)
    assert client.ask(frame.QUERY, body).error[0] == 0x0A
    assert client.ask(frame.QUERY, QUERY).opcode == frame.RESULT


def test_an_unknown_opcode_costs_an_error(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla)
    for opcode in (frame.RESULT, frame.EVENT, 0x55):
        assert client.ask(opcode, b"abc").error[0] == 0x0A
    assert client.ask(frame.QUERY, QUERY).opcode == frame.RESULT


@pytest.mark.parametrize("length", [-1, 256 * 1024 * 1024 + 1, 2**31 - 1])
def test_an_impossible_length_costs_the_connection(scylla: EmbeddedScylla, connect: Connect, length: int) -> None:
    client, other = connect(scylla), connect(scylla)
    client.send_bytes(struct.pack(">BBhBi", 4, 0, 9, frame.QUERY, length))
    response = client.receive()
    assert response.stream == 9
    assert response.error[0] == 0x0A
    with pytest.raises(ConnectionError):
        client.receive()
    assert other.ask(frame.QUERY, QUERY).opcode == frame.RESULT


def test_a_compressed_frame_without_agreement_costs_the_connection(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla)
    assert client.ask(frame.QUERY, QUERY, flags=frame.FLAG_COMPRESSED).error[0] == 0x0A
    with pytest.raises(ConnectionError):
        client.receive()


def test_frames_may_come_in_any_pieces(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla)
    raw = b"".join(frame.HEADER.pack(4, 0, stream, frame.QUERY, len(QUERY)) + QUERY for stream in range(1, 6))
    for at in range(len(raw)):
        client.send_bytes(raw[at : at + 1])
    for stream in range(1, 6):
        assert client.answer(stream).opcode == frame.RESULT
    client.send_bytes(raw)
    for stream in range(1, 6):
        assert client.answer(stream).opcode == frame.RESULT


def test_a_custom_payload_is_skipped(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla)
    payload = struct.pack(">HH", 1, 1) + b"k" + value_bytes(b"v")
    assert client.ask(frame.QUERY, payload + QUERY, flags=frame.FLAG_CUSTOM_PAYLOAD).opcode == frame.RESULT


def test_a_client_that_does_not_read_is_not_served_without_end(
    scylla: EmbeddedScylla, keyspace: str, connect: Connect
) -> None:
    """Answers pile up to a bound; then the server takes no more requests until some were read."""
    client = connect(scylla)
    client.done(f"CREATE TABLE {keyspace}.wide (k int PRIMARY KEY, b blob)")
    client.done(f"INSERT INTO {keyspace}.wide (k, b) VALUES (1, ?)", [bytes(400_000)])
    body = long_string(f"SELECT b FROM {keyspace}.wide") + parameters()
    before = scylla.admin.counters()["requests"]["QUERY"]
    asked = 100
    for stream in range(asked):
        client.send_bytes(frame.HEADER.pack(4, 0, stream, frame.QUERY, len(body)) + body)
    assert connect(scylla).ask(frame.QUERY, QUERY).opcode == frame.RESULT
    assert scylla.admin.counters()["requests"]["QUERY"] - before < asked
    for stream in range(asked):
        assert client.answer(stream).opcode == frame.RESULT


def test_noise_does_not_stop_the_server(scylla: EmbeddedScylla, connect: Connect) -> None:
    """Mutated and truncated frames, and plain noise, from many connections; an honest one is served all along."""
    chance = random.Random(7)
    honest = connect(scylla)
    bodies = [
        (frame.STARTUP, struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0"),
        (frame.OPTIONS, b""),
        (frame.QUERY, QUERY),
        (frame.PREPARE, long_string("SELECT key FROM system.local WHERE key = ?")),
        (frame.EXECUTE, struct.pack(">H", 4) + b"nope" + parameters([b"x"])),
        (frame.BATCH, struct.pack(">BH", 0, 1) + b"\0" + long_string("DELETE") + struct.pack(">HHB", 0, 1, 0)),
        (frame.REGISTER, struct.pack(">HH", 1, 13) + b"SCHEMA_CHANGE"),
        (frame.AUTH_RESPONSE, value_bytes(b"\0a\0b")),
    ]
    for _ in range(150):
        client = connect(scylla, start=chance.random() < 0.7)
        raw = bytearray()
        for _ in range(chance.randrange(1, 6)):
            opcode, body = chance.choice(bodies)
            raw += frame.HEADER.pack(4, chance.choice([0, 0, 0, 1, 4, 8]), 1, opcode, len(body)) + body
        for _ in range(chance.randrange(4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        if chance.random() < 0.2:
            raw = bytearray(chance.randbytes(chance.randrange(1, 200)))
        client.send_bytes(bytes(raw[: chance.randrange(1, len(raw) + 1)]))
        client.close()
    assert honest.ask(frame.QUERY, QUERY).opcode == frame.RESULT
    assert scylla.log == ""


@pytest.mark.parametrize("opening", ["(", "[", "frozen<list<", "f("])
def test_statements_may_not_be_nested_without_end(scylla: EmbeddedScylla, connect: Connect, opening: str) -> None:
    statement = "SELECT " if opening == "f(" else "INSERT INTO system.local (key) VALUES ("
    if opening.startswith("frozen"):
        statement = "CREATE TABLE system.t (k "
    assert connect(scylla).query(statement + opening * 20_000).error[0] == 0x2000
    assert scylla.log == ""


def test_hundreds_of_connections(scylla: EmbeddedScylla, connect: Connect) -> None:
    clients = [connect(scylla) for _ in range(300)]
    streams = [client.send(frame.QUERY, QUERY) for client in clients]
    for client, stream in zip(clients, streams):
        assert client.answer(stream).opcode == frame.RESULT
