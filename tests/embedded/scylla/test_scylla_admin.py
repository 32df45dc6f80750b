"""The admin interface: clock, streams, stale nodes, counters, and what it says to those who ask wrongly."""

from __future__ import annotations

import http.client
import json
import socket
import struct
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from connector.errors import EmbeddedError
from embedded.scylla.clock import Clock
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from tests.embedded.scylla.raw_client import RawClient

pytestmark = pytest.mark.only_double("the admin interface")

Connect = Callable[..., RawClient]
TIMES = "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'"
TABLETS = (
    "CREATE KEYSPACE {} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}}"
    " AND tablets = {{'enabled': true}}"
)


def test_a_clock_moves_freezes_and_returns() -> None:
    clock = Clock()
    start = clock.now_us()
    clock.move(5_000_000)
    assert 5_000_000 <= clock.now_us() - start < 6_000_000
    clock.freeze(1_000)
    assert (clock.now_us(), clock.now_us(), clock.frozen) == (1_000, 1_000, True)
    clock.move(500)
    assert clock.now_us() == 1_500
    clock.resume()
    assert 1_500 <= clock.now_us() < 2_000_000
    clock.set(start)
    assert start <= clock.now_us() < start + 1_000_000
    clock.reset()
    assert abs(clock.offset_us) < 1_000


def test_the_clock_decides_about_ttl_and_write_times(own_scylla: EmbeddedScylla, connect: Connect) -> None:
    client, admin = connect(own_scylla), own_scylla.admin
    admin.cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.done("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    now = admin.freeze_clock(4_000_000_000_000)
    client.done("INSERT INTO ks.t (k, v) VALUES (1, 1) USING TTL 100")
    client.done("INSERT INTO ks.t (k, v) VALUES (2, 2)")
    ((written, ttl),) = client.rows("SELECT writetime(v), ttl(v) FROM ks.t WHERE k = 1").rows
    assert int.from_bytes(written or b"") // 1000 == now
    assert ttl == struct.pack(">i", 100)
    admin.move_clock(60)
    assert client.rows("SELECT ttl(v) FROM ks.t WHERE k = 1").rows == [[struct.pack(">i", 40)]]
    admin.move_clock(60)
    assert client.rows("SELECT k FROM ks.t").rows == [[struct.pack(">i", 2)]]
    admin.reset_clock()
    assert admin.now_ms() < 4_000_000_000_000


def test_a_new_generation_by_scyllas_own_path(scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(scylla)
    before = client.rows(TIMES).rows
    made = scylla.admin.request("POST", "/storage_service/cdc_streams_check_and_repair")
    assert client.rows(TIMES).rows == [[struct.pack(">q", made["timestamp"])], *before]
    assert made["streams"] == 16


def test_the_ring_delay_puts_a_generation_into_the_future(own_scylla: EmbeddedScylla) -> None:
    admin = own_scylla.admin
    now = admin.freeze_clock()
    assert now <= admin.new_generation() <= now + 1
    admin.set_ring_delay(30)
    assert admin.new_generation() == now + 65_000
    with pytest.raises(EmbeddedError, match="negative"):
        admin.set_ring_delay(-1)


def test_stream_sets_of_a_tablets_table(scylla: EmbeddedScylla, connect: Connect) -> None:
    admin, client = scylla.admin, connect(scylla)
    admin.cql(TABLETS.format("sets"))
    admin.cql("CREATE TABLE sets.t (k int PRIMARY KEY) WITH cdc = {'enabled': true}")
    admin.change_streams("sets.t", tablets=2)
    split = admin.change_streams("sets.t", tablets=4)
    tokens = [stream["token"] for stream in split["streams"]]
    assert tokens == [-(2**62) - 1, -1, 2**62 - 1, 2**63 - 1]
    kept = [bytes.fromhex(stream["stream_id"]) for stream in split["streams"]]
    changed = admin.change_streams("sets.t", close=[kept[0]], open_tokens=[-(2**62) - 5])
    assert [stream["token"] for stream in changed["streams"]] == [-(2**62) - 5, *tokens[1:]]
    assert [bytes.fromhex(stream["stream_id"]) for stream in changed["streams"]][1:] == kept[1:]
    shown = client.rows(
        "SELECT stream_state, stream_id FROM system.cdc_streams WHERE keyspace_name = 'sets' AND table_name = 't'"
        f" AND timestamp = {changed['timestamp']}"
    ).rows
    assert [row for row in shown if row[0] == b"\x01"] == [[b"\x01", kept[0]]]
    assert len([row for row in shown if row[0] == b"\x00"]) == 4
    for wrong in ({"close": [b"\0" * 16]}, {}, {"tablets": 2, "random": 1}):
        with pytest.raises(EmbeddedError):
            admin.change_streams("sets.t", **wrong)
    with pytest.raises(EmbeddedError, match="no table with CDC"):
        admin.change_streams("sets.none", tablets=2)


def test_a_stale_node_shows_an_earlier_state(connect: Connect) -> None:
    with EmbeddedScylla(nodes=2, vnodes=2, ring_delay=0) as server:
        first, second = connect(server), connect(server, host="127.0.0.2")
        server.admin.make_stale(1)
        server.admin.move_clock(1)
        server.admin.new_generation()
        assert len(first.rows(TIMES).rows) == 2
        assert len(second.rows(TIMES).rows) == 1
        server.admin.make_fresh(1)
        assert first.rows(TIMES).rows == second.rows(TIMES).rows


def test_a_deaf_node_answers_by_the_schema_that_it_knows(connect: Connect) -> None:
    with EmbeddedScylla(nodes=2, vnodes=2, ring_delay=0) as server:
        replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
        server.admin.cql(f"CREATE KEYSPACE ks WITH replication = {replication} AND tablets = {{'enabled': false}}")
        server.admin.cql("CREATE TABLE ks.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': true}")
        server.admin.make_deaf(1)
        server.admin.cql("ALTER TABLE ks.t ADD w int")
        server.admin.cql("INSERT INTO ks.t (pk, v, w) VALUES (1, 2, 3)")
        first, second = connect(server), connect(server, host="127.0.0.2")
        version = "SELECT schema_version FROM system.local WHERE key = 'local'"
        columns = "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 't'"
        for table in ("ks.t", "ks.t_scylla_cdc_log"):
            everything, known = (client.rows(f"SELECT * FROM {table}") for client in (first, second))
            assert len(everything.rows) == len(known.rows) == 1
            assert len(everything.rows[0]) == len(known.rows[0]) + (1 if table == "ks.t" else 2)
        assert len(first.rows(columns).rows) == 3
        assert len(second.rows(columns).rows) == 2
        assert first.rows(version).rows != second.rows(version).rows
        peers = "SELECT schema_version FROM system.peers"
        assert first.rows(peers).rows == second.rows(version).rows
        assert second.rows(peers).rows == first.rows(version).rows
        server.admin.make_fresh(1)
        assert second.rows(columns).rows == first.rows(columns).rows
        assert first.rows(version).rows == second.rows(version).rows


def test_counters_count(own_scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(own_scylla)
    own_scylla.admin.reset_counters()
    client.rows("SELECT * FROM system_schema.tables")
    assert client.query("SELECT * FROM nowhere.t").opcode == frame.ERROR
    counters = own_scylla.admin.counters()
    assert counters["requests"] == {"QUERY": 2}
    assert counters["pages_by_table"] == {"system_schema.tables": 1}
    assert counters["rows_by_table"]["system_schema.tables"] > 20
    assert sum(counters["errors"].values()) == 1
    assert counters["bytes_out"] > 1000


def test_cut_connections(own_scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(own_scylla)
    assert [entry["address"] for entry in own_scylla.admin.request("GET", "/embedded/connections")] == ["127.0.0.1"]
    assert own_scylla.admin.drop_connections() == 1
    with pytest.raises(OSError):
        client.ask(frame.OPTIONS)


def test_cql_without_a_driver(scylla: EmbeddedScylla, keyspace: str) -> None:
    admin = scylla.admin
    changed = admin.cql("CREATE TABLE t (k int PRIMARY KEY, b blob, l list<text>)", keyspace=keyspace)
    assert changed["schema_change"]["name"] == "t"
    admin.cql("INSERT INTO t (k, b, l) VALUES (1, 0xCAFE, ['a', 'b'])", keyspace=keyspace, timestamp=5)
    shown = admin.cql("SELECT k, b, l, writetime(b) AS w FROM t", keyspace=keyspace)
    assert (shown["columns"], shown["rows"]) == (["k", "b", "l", "w"], [[1, "0xcafe", ["a", "b"], 5]])
    with pytest.raises(EmbeddedError, match="0x2200"):
        admin.cql("SELECT * FROM t WHERE x = 1", keyspace=keyspace)


def answer(server: EmbeddedScylla, method: str, path: str, body: bytes = b"") -> tuple[int, object]:
    connection = http.client.HTTPConnection(urlsplit(server.api).netloc, timeout=90)
    connection.request(method, path, body)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", b"", 404),
        ("GET", "/embedded/nodes/7/stop", b"", 405),
        ("POST", "/embedded/nodes/7/stop", b"", 404),
        ("DELETE", "/embedded/faults/99", b"", 404),
        ("POST", "/embedded/clock", b"{", 400),
        ("POST", "/embedded/clock", b"[]", 400),
        ("POST", "/embedded/clock", b'{"move_ms": "1"}', 400),
        ("POST", "/embedded/clock", b'{"mvoe_ms": 1}', 400),
        ("POST", "/embedded/cql", b"{}", 400),
    ],
)
def test_wrong_requests_are_answered(scylla: EmbeddedScylla, method: str, path: str, body: bytes, status: int) -> None:
    got, content = answer(scylla, method, path, body)
    assert got == status
    assert isinstance(content, dict)
    assert content["message"]


def test_the_index_lists_what_the_page_describes(scylla: EmbeddedScylla) -> None:
    listed = scylla.admin.request("GET", "/embedded")
    assert "POST /storage_service/cdc_streams_check_and_repair" in listed
    assert len(listed) == len(set(listed))


def test_noise_on_the_admin_port(scylla: EmbeddedScylla) -> None:
    host, _, port = urlsplit(scylla.api).netloc.partition(":")
    for noise in (b"\0\1\2", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"A" * 200_000):
        with socket.create_connection((host, int(port)), 20) as connection:
            try:
                connection.sendall(noise)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1000)
            except OSError:  # closed on us already, in one of several ways
                pass
    assert answer(scylla, "GET", "/embedded/clock")[0] == 200
    assert scylla.log == ""
