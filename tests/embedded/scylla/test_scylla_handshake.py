"""Opening a connection: OPTIONS, STARTUP, versions, login, compression, TLS, shards."""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.protocol.primitives import Reader, encode_string
from tests.embedded.scylla.certificates import certificate
from tests.embedded.scylla.raw_client import RawClient, Response, long_string, parameters

Connect = Callable[..., RawClient]


def multimap(response: Response) -> dict[str, list[str]]:
    assert response.opcode == frame.SUPPORTED
    reader = Reader(response.body)
    return {reader.string(): reader.string_list() for _ in range(reader.short())}


def test_supported_has_all_that_makes_drivers_see_scylla(scylla: EmbeddedScylla, connect: Connect) -> None:
    supported = multimap(connect(scylla, start=False).ask(frame.OPTIONS))
    assert supported["CQL_VERSION"] == ["3.3.1"]
    assert supported["COMPRESSION"] == ["lz4", "snappy"]
    for name in ("SHARD", "NR_SHARDS", "SHARDING_ALGORITHM", "SHARDING_IGNORE_MSB", "PARTITIONER"):
        assert f"SCYLLA_{name}" in supported
    assert "TABLETS_ROUTING_V1" in supported
    assert "SCYLLA_HOST_ID" not in supported
    assert supported["CLIENT_OPTIONS"] == [""]
    assert supported["SCYLLA_USE_METADATA_ID"] == [""]
    assert supported["SCYLLA_LWT_ADD_METADATA_MARK"] == ["LWT_OPTIMIZATION_META_BIT_MASK=2147483648"]
    assert supported["SCYLLA_RATE_LIMIT_ERROR"] == ["ERROR_CODE=61440"]
    # As ScyllaDB, whatever the number of shards.
    assert int(supported["SCYLLA_SHARD_AWARE_PORT"][0]) != scylla.port


@pytest.mark.parametrize("version", [1, 2, 5, 6, 0x41, 0x7F])
def test_other_versions_get_the_error_that_makes_drivers_fall_back(
    scylla: EmbeddedScylla, connect: Connect, version: int
) -> None:
    client = connect(scylla, start=False, version=version)
    client.send(frame.OPTIONS, stream=7)
    response = client.receive()
    assert (response.version, response.stream) == (0x84, 7)
    assert response.error == (0x0A, f"Invalid or unsupported protocol version: {version}")
    with pytest.raises(ConnectionError):
        client.receive()


def test_version_three_works(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla, version=3)
    response = client.query("SELECT key FROM system.local")
    assert (response.version, response.opcode) == (0x83, frame.RESULT)
    prepared = client.prepare("SELECT cluster_name FROM system.local WHERE key = ?")
    assert (prepared.binds, prepared.columns) == (["key"], ["cluster_name"])


def test_nothing_works_before_startup(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla, start=False)
    code, text = client.query("SELECT key FROM system.local").error
    assert (code, text) == (0x0A, "Unexpected message QUERY, expecting STARTUP or OPTIONS")
    assert client.startup().opcode == frame.READY
    assert client.query("SELECT key FROM system.local").opcode == frame.RESULT
    assert client.startup().error[0] == 0x0A


def test_startup_needs_a_cql_version_and_a_known_compression(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla, start=False)
    assert client.ask(frame.STARTUP, struct.pack(">H", 0)).error[0] == 0x0A
    body = struct.pack(">H", 2)
    for name, value in (("CQL_VERSION", "3.0.0"), ("COMPRESSION", "zip")):
        body += encode_string(name) + encode_string(value)
    assert client.ask(frame.STARTUP, body).error == (0x0A, "Unknown compression algorithm: zip")
    assert client.startup().opcode == frame.READY


@pytest.mark.parametrize("algorithm", ["lz4", "snappy"])
def test_compression_goes_both_ways(scylla: EmbeddedScylla, connect: Connect, algorithm: str) -> None:
    client = connect(scylla, start=False)
    assert client.startup(COMPRESSION=algorithm).flags == 0
    response = client.query("SELECT * FROM system_schema.columns")
    assert response.flags & frame.FLAG_COMPRESSED
    plain = connect(scylla).query("SELECT * FROM system_schema.columns")
    assert response.body == plain.body
    # A client may send single frames as they are.
    body = long_string("SELECT key FROM system.local") + parameters()
    client.send_bytes(frame.HEADER.pack(4, 0, 77, frame.QUERY, len(body)) + body)
    assert client.answer(77).opcode == frame.RESULT


def test_login(connect: Connect) -> None:
    with EmbeddedScylla(user="ann", password="secret") as server:
        client = connect(server, start=False)
        assert client.startup().opcode == frame.AUTHENTICATE
        assert client.query("SELECT key FROM system.local").error[0] == 0x0A
        assert client.login("ann", "wrong").error == (0x0100, "Username and/or password are incorrect")
        assert client.login("bob", "secret").error[0] == 0x0100
        assert client.query("SELECT key FROM system.local").error[0] == 0x0A
        assert client.ask(frame.AUTH_RESPONSE, struct.pack(">i", -1)).error[0] == 0x0A
        assert client.login("ann", "secret").opcode == frame.AUTH_SUCCESS
        assert client.rows("SELECT username FROM system.clients").rows == [[b"ann"]]
        assert "secret" not in Path(f"/proc/{server.pid}/cmdline").read_text()


def test_connections_spread_over_shards(connect: Connect) -> None:
    with EmbeddedScylla(shards=4) as server:
        clients = [connect(server, start=False) for _ in range(8)]
        shards = [int(multimap(client.ask(frame.OPTIONS))["SCYLLA_SHARD"][0]) for client in clients]
        assert sorted(shards) == [0, 0, 1, 1, 2, 2, 3, 3]
        aware = int(multimap(clients[0].ask(frame.OPTIONS))["SCYLLA_SHARD_AWARE_PORT"][0])
        with RawClient(server.host, aware) as client:
            local_port = client._socket.getsockname()[1]
            assert multimap(client.ask(frame.OPTIONS))["SCYLLA_SHARD"] == [str(local_port % 4)]


def test_tls_with_client_certificates(connect: Connect, tmp_path: Path) -> None:
    server_files = certificate(tmp_path, "server")
    client_files = certificate(tmp_path, "client")
    stranger_files = certificate(tmp_path, "stranger")
    with EmbeddedScylla(tls_cert=server_files[0], tls_key=server_files[1], tls_client_ca=client_files[0]) as server:

        def context(files: tuple[Path, Path] | None) -> ssl.SSLContext:
            made = ssl.create_default_context(cafile=str(server_files[0]))
            if files is not None:
                made.load_cert_chain(*files)
            return made

        client = connect(server, tls=context(client_files))
        assert client.rows("SELECT ssl_enabled FROM system.clients").rows == [[b"\x01"]]
        for files in (stranger_files, None):
            with pytest.raises(OSError):
                connect(server, tls=context(files), start=False).ask(frame.OPTIONS)
        plain = connect(server, start=False)
        with pytest.raises(OSError):
            plain.ask(frame.OPTIONS)
        assert client.query("SELECT key FROM system.local").opcode == frame.RESULT
