"""Connecting as existing configurations say: TLS with stores and names, client certificates, the server's clock."""

from __future__ import annotations

import logging
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import ConsistencyLevel, OperationTimedOut, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown, ProtocolError

from connector.config import load
from connector.errors import RetriableSourceError, TableMissing
from connector.source import connection as connection_module
from connector.source import contact_points
from connector.source.connection import Connection
from connector.source.contact_points import unresolved, useless_points
from connector.source.descriptions import cdc_options
from connector.source.failures import NotReached, translated
from connector.source.from_config import connection_settings, reading_settings
from connector.source.persistent_cluster import BYTES_AT_ONCE
from connector.source.read_changes import ChangeReader
from connector.source.server_clock import ServerClock
from connector.source.settings import ConnectionSettings
from connector.source.standstill import STILL_SECONDS, TICK_SECONDS, Standstill
from embedded.scylla.process import EmbeddedScylla
from tests.config.files import CONNECTOR, WORKER
from tests.embedded.scylla.certificates import certificate
from tests.servers.double import Double
from tests.servers.scylla import Login


def settings(address: str, **options: str) -> ChangeReader:
    config = {
        "scylla.cluster.ip.addresses": address,
        "scylla.table.names": "ks.t",
        "topic.prefix": "p",
        "scylla.ssl.enabled": "true",
        **options,
    }
    loaded = load({"name": "c", "config": config}, {"bootstrap.servers": "unused:1"}, {}).connector
    return ChangeReader(connection_settings(loaded.connection), ["ks.t"], reading=reading_settings(loaded.reading))


@pytest.mark.scylla
@pytest.mark.only_double("its nodes have one port")
def test_nodes_that_do_not_answer_where_they_say_are_named_with_the_cause() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{nobody.getsockname()[1]}"
        with EmbeddedScylla() as scylla:
            # Of nodes that are only discovered the port is taken for the first contact point's.
            points = f"{closed},{scylla.address}"
            with pytest.raises(RetriableSourceError) as caught:
                settings(points, **{"scylla.ssl.enabled": "false"}).open()
    assert "a node answers, and none does at the address that it tells" in str(caught.value)
    assert str(caught.value).endswith(f": {closed}: connection refused")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            OSError(111, "Tried connecting to [('127.0.0.1', 9043)]. Last error: Connection refused"),
            "connecting to h: connection refused",
        ),
        (
            OSError(1, "Tried connecting to [('h', 1)]. Last error: [SSL: WRONG_VERSION_NUMBER] wrong version (_ssl)"),
            "connecting to h: what listens there speaks no TLS, and scylla.ssl.enabled is true",
        ),
        (
            OSError(
                "Tried connecting to [('h', 1)]. Last error: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify "
                "failed: self-signed certificate (_ssl.c:1006)"
            ),
            "connecting to h: certificate verify failed: self-signed certificate (scylla.ssl.truststore.path",
        ),
        (
            OperationTimedOut("Timed out creating connection (10.0 seconds)", timeout=10.0),
            "connecting to h: connected, but no answer in 10.0 s: the server hangs, or this is not its port for CQL",
        ),
        (
            ConnectionShutdown("Connection to h:9042 was closed by server"),
            "connecting to h: the connection was closed before anything was answered: TLS or a certificate",
        ),
        (
            ProtocolError("This version of the driver does not support protocol version 72"),
            "connecting to h: what answers there does not speak CQL",
        ),
    ],
)
def test_what_a_wrong_port_or_tls_does_is_told_in_plain_words(error: Exception, shown: str) -> None:
    told = translated(error, "connecting to h")
    assert str(told).startswith(shown)
    assert isinstance(told, NotReached)


def test_of_contact_points_that_fail_each_in_its_way_each_is_told() -> None:
    refused = OSError(111, "Tried connecting to [('a', 1)]. Last error: Connection refused")
    closed = ConnectionShutdown("Connection to b:1 was closed by server")
    told = translated(NoHostAvailable("", {"a:1": refused, "b:1": closed}), "connecting to a:1, b:1")
    assert str(told).startswith("connecting to a:1, b:1: a:1: connection refused; b:1: the connection was closed")
    assert isinstance(told, NotReached)
    told = translated(NoHostAvailable("", {"b:1": closed, "a:1": refused}), "asking for clocks")
    assert str(told).startswith("asking for clocks: a:1: connection refused; b:1: ")
    told = translated(NoHostAvailable("", {"a:1": refused, "b:1": refused}), "connecting to a:1, b:1")
    assert str(told) == "connecting to a:1, b:1: connection refused"


def test_contact_points_that_are_of_no_use_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def resolved(host: Any, *rest: Any, **options: Any) -> Any:
        if host == "gone.test":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known("127.0.0.1" if host == "node.test" else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    words = "a contact point is of little use: "
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        listens, closed = server.getsockname()[1], nobody.getsockname()[1]
        node = SimpleNamespace(endpoint=SimpleNamespace(address="127.0.0.1", port=closed))
        points = (("node.test", closed), ("127.0.0.1", listens), ("gone.test", 9042))
        connection = SimpleNamespace(settings=ConnectionSettings(points), hosts=lambda: [node])
        assert useless_points(connection) == [f"{words}gone.test:9042: the name does not resolve"]
        connection.hosts = list
        assert useless_points(connection)[0] == f"{words}node.test:{closed}: connection refused"
        with pytest.raises(RetriableSourceError, match=r"refused; gone\.test:9042: the name does not resolve$"):
            Connection(ConnectionSettings(points[::2])).open()


def test_names_that_take_their_time_are_told_and_keep_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a name server that is away: half a minute for each."""
    over = threading.Event()

    def resolved(*_: Any, **__: Any) -> Any:
        assert over.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(contact_points, "PATIENCE_SECONDS", 0.1)
    slow = "the name is not resolved in 0.1 s, for which every start waits"
    points = (("a.test", 9042), ("b.test", 9042))
    connection = SimpleNamespace(settings=ConnectionSettings(points), hosts=list)
    try:
        told = [f"a contact point is of little use: {name}.test:9042: {slow}" for name in "ab"]
        assert useless_points(connection) == told
        assert unresolved(points) == [f"{name}.test:9042: {slow}" for name in "ab"]
        began = time.monotonic()
        assert len(unresolved(points * 20)) == 40 and time.monotonic() - began < 5, "together, not one by one"
    finally:
        over.set()


def test_where_replicas_are_away_the_nodes_that_are_are_named_beside_who_said_so() -> None:
    error = Unavailable("…", consistency=ConsistencyLevel.QUORUM, required_replicas=2, alive_replicas=1)
    hosts = [SimpleNamespace(endpoint=f"10.0.0.{number}:9042", is_up=number < 2 or None) for number in range(4)]
    told = "reading from 10.0.0.1:9042: too few replicas are up: QUORUM needs 2, 1 are"
    assert str(translated(error, "reading from 10.0.0.1:9042", hosts)) == told
    for host in hosts[1:]:
        host.is_up = False
    named = "10.0.0.1:9042, 10.0.0.2:9042, 10.0.0.3:9042"
    assert str(translated(error, "reading from 10.0.0.1:9042", hosts)) == f"{told}; no connection to {named}"
    hosts[0].is_up = False
    assert str(translated(error, "", hosts)).endswith("to 10.0.0.0:9042, 10.0.0.1:9042, 10.0.0.2:9042 and 1 more")


@pytest.mark.parametrize(("points", "shown"), [("[::1]:9042,db:9043", "[::1]:9042, db:9043"), ("::1", "[::1]:9042")])
def test_addresses_are_shown_as_they_are_written(points: str, shown: str) -> None:
    loaded = load({**CONNECTOR, "scylla.cluster.ip.addresses": points}, WORKER, {})
    assert Connection(connection_settings(loaded.connector.connection)).address == shown


@pytest.mark.scylla
@pytest.mark.only_double("servers of its own with certificates")
def test_tls_trusts_the_store_and_nobody_else(tmp_path: Path) -> None:
    server, key = certificate(tmp_path, "server")
    stranger, _ = certificate(tmp_path, "stranger")
    with EmbeddedScylla(tls_cert=server, tls_key=key) as scylla:
        # Connected, and then the table is looked for: TLS worked, host name included.
        trusted = {"scylla.ssl.truststore.path": str(server), "scylla.ssl.hostname.verification": "true"}
        with pytest.raises(TableMissing):
            settings(scylla.address, **trusted).open()
        with pytest.raises(RetriableSourceError, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
            settings(scylla.address, **{"scylla.ssl.truststore.path": str(stranger)}).open()
        with pytest.raises(RetriableSourceError):
            settings(scylla.address, **{"scylla.ssl.enabled": "false"}).open()


@pytest.mark.scylla
@pytest.mark.only_double("servers of its own with certificates")
def test_client_certificates(tmp_path: Path) -> None:
    server, server_key = certificate(tmp_path, "server")
    client, client_key = certificate(tmp_path, "client")
    with EmbeddedScylla(tls_cert=server, tls_key=server_key, tls_client_ca=client) as scylla:
        trust = {"scylla.ssl.truststore.path": str(server)}
        own = {"scylla.ssl.openssl.keyCertChain": str(client), "scylla.ssl.openssl.privateKey": str(client_key)}
        with pytest.raises(TableMissing):
            settings(scylla.address, **trust, **own).open()
        with pytest.raises(RetriableSourceError):
            settings(scylla.address, **trust).open()


@pytest.mark.scylla
@pytest.mark.only_double("servers of its own with certificates")
def test_every_node_can_be_asked_at_once(tmp_path: Path) -> None:
    """Also where it takes a while to reach the others."""
    server, key = certificate(tmp_path, "server")
    with Double(nodes=3, shards=2, ring_delay=0, tls_cert=server, tls_key=key) as scylla:
        reached = scylla.settings(tls=Login(tls=str(server)).context())
        for _ in range(5):
            connection = Connection(reached)
            connection.open()
            try:
                asked = [connection.query("SELECT host_id FROM system.local", host=host) for host in connection.hosts()]
                assert len({row["host_id"] for (row,) in asked}) == 3
            finally:
                connection.close()


@pytest.mark.scylla
@pytest.mark.only_double("servers of its own with certificates")
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
def test_answers_of_many_pieces_arrive_whole(tmp_path: Path, encrypted: bool) -> None:
    """More than is taken from a socket at once, and than a record of TLS holds."""
    server, key = certificate(tmp_path, "server")
    given: dict[str, Any] = {"tls_cert": server, "tls_key": key} if encrypted else {}
    with Double(ring_delay=0, **given) as scylla:
        connection = Connection(scylla.settings(tls=Login(tls=str(server)).context() if encrypted else None))
        connection.open()
        try:
            assert connection.session.cluster.connection_class.in_buffer_size == BYTES_AT_ONCE
            scylla.admin.cql(
                "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
            )
            scylla.admin.cql("CREATE TABLE ks.t (pk int PRIMARY KEY, v blob)")
            sizes = {1: 16, 2: 16 * BYTES_AT_ONCE, 3: 3 * BYTES_AT_ONCE + 1}
            for pk, size in sizes.items():
                scylla.admin.cql(f"INSERT INTO ks.t (pk, v) VALUES ({pk}, 0x{'ab' * size})")
            rows = connection.query("SELECT pk, v FROM ks.t")
            assert {row["pk"]: row["v"] == b"\xab" * sizes[row["pk"]] for row in rows} == dict.fromkeys(sizes, True)
        finally:
            connection.close()


def test_the_clock_of_the_server_that_is_most_behind_counts(caplog: pytest.LogCaptureFixture) -> None:
    monotonic, wall = [100.0], [1_000.0]
    clock = ServerClock(lambda: monotonic[0], lambda: wall[0])
    assert clock.now_ms() == 1_000_000, "without a sample, the local clock"
    with caplog.at_level(logging.WARNING):
        clock.sampled("a", 1_005_000)
        clock.sampled("b", 1_003_000)
        for _ in range(2):
            clock.keep({"a", "b"})
    assert clock.now_ms() == 1_003_000
    assert clock.latest_ms() == 1_005_001
    assert len([record for record in caplog.records if "clock" in record.message]) == 1, "said once"
    assert clock.apart() == {}
    monotonic[0] += 2.5
    wall[0] -= 500  # the local clock steps; the servers' does not
    assert clock.now_ms() == 1_005_500


def test_the_clock_that_is_wrong_is_the_one_that_is_said_to_be(caplog: pytest.LogCaptureFixture) -> None:
    clock = ServerClock(lambda: 100.0, lambda: 1_000.0)
    with caplog.at_level(logging.WARNING):
        for host, told in (("b", 400_000), ("a", 1_000_000), ("c", 1_000_100)):
            clock.sampled(host, told)
        clock.keep({"a", "b", "c"})
    assert {host: round(seconds) for host, seconds in clock.apart().items()} == {"b": -600}
    assert caplog.messages == [], "this machine's is as those of others"
    clock.sampled("b", 1_000_000)
    assert clock.apart() == {}
    alone = ServerClock(lambda: 100.0, lambda: 1_000.0)
    alone.sampled("a", 400_000)
    assert alone.apart() == {}, "nobody waits for another's time"


class Told(Connection):
    """Servers that tell a time, in ms, or fail."""

    def __init__(self, *told: int | Exception) -> None:
        super().__init__(ConnectionSettings(()))
        self.told = dict(enumerate(told))

    def hosts(self) -> list[Any]:
        return list(self.told)

    def sample_clock(self, host: Any) -> None:
        told = self.told[host]
        if isinstance(told, Exception):
            raise told
        self.clock.sampled(str(host), told)


def test_every_server_is_asked_for_its_time_before_anything_is_read() -> None:
    """Whoever is asked first may be ahead: what the others take until they are asked would be passed over."""
    connection = Told(1_060_000, NotReached("away"), 1_000_000)
    connection.sample_clocks()
    assert 1_000_000 <= connection.clock.now_ms() < 1_050_000
    with pytest.raises(NotReached, match="gone"):
        Told(NotReached("away"), NotReached("gone")).sample_clocks()


def test_cdc_options_of_the_schema_tables() -> None:
    def blob(**values: str) -> bytes:
        parts = [text.encode() for pair in values.items() for text in pair]
        packed = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
        return len(values).to_bytes(4, "little") + packed

    options = cdc_options(blob(enabled="true", preimage="full", postimage="true", delta="keys", ttl="60"))
    assert (options.enabled, options.preimage, options.postimage, options.delta, options.ttl) == (
        *(True, "full", True, "keys", 60),
    )
    assert not cdc_options(None).enabled
    assert cdc_options(blob(enabled="1")).preimage == "false"


class Page:
    def __init__(self, *rows: int) -> None:
        self._rows = rows

    def decoded(self) -> list[dict[str, Any]]:
        return [{"row": row} for row in self._rows]


class AnsweredTwice:
    """The driver's future of a question that was put to two nodes, whose answers come one right behind the other."""

    coordinator_host, attempted_hosts = "b", ["a", "b"]
    _spec_execution_plan = None

    def __init__(self, *answers: tuple[Page, bytes | None]) -> None:
        self._answers = answers
        self._final_result, self._paging_state = answers[0][0], answers[-1][1]

    def result(self) -> None:
        """Of the first."""

    def add_callbacks(self, arrived: Any, refused: Any) -> None:
        for page, after in self._answers:
            self._paging_state = after
            arrived(page)


def test_of_two_nodes_that_answer_the_page_and_what_follows_it_are_those_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where their pages end in different places, as they do by what shards have in memory, rows would be missing."""
    monkeypatch.setattr(connection_module, "RawPage", Page)
    asked: list[bytes | None] = []
    answers: dict[bytes | None, Any] = {
        None: AnsweredTwice((Page(1), b"2"), (Page(1, 2), b"3")),
        b"2": AnsweredTwice((Page(2), b"3")),
        b"3": AnsweredTwice((Page(3), None)),
    }

    def ask(statement: Any, paging_state: bytes | None, **how: Any) -> Any:
        asked.append(paging_state)
        return answers[paging_state]

    opened: Any = Connection(ConnectionSettings((("unused", 1),)))
    opened._session = SimpleNamespace(execute_async=ask)
    policy = SimpleNamespace(heard=lambda *told: None)
    opened._opened = SimpleNamespace(
        profile_manager=SimpleNamespace(default=SimpleNamespace(load_balancing_policy=policy))
    )
    assert opened.rows(SimpleNamespace()) == [{"row": 1}, {"row": 2}, {"row": 3}]
    assert asked == [None, b"2", b"3"]


@pytest.mark.parametrize(
    ("reads_stream", "asked", "answered", "seconds", "silent"),
    [
        (True, "ab", None, 10.0, "a"),  # b had 4 s
        (True, "ab", "b", 6.1, "a"),
        (True, "abc", "c", 12.1, "ab"),
        (True, "a", None, 2.0, ""),  # a timeout that is shorter than what a node may take
        (False, "ab", None, 10.0, ""),  # a sweep; nodes that are well give up after 10 s
        (False, "ab", "b", 7.0, ""),
        (False, "a", None, 30.0, "a"),
    ],
)
def test_silent_is_who_had_the_time_in_which_others_answer(
    reads_stream: bool, asked: str, answered: str | None, seconds: float, silent: str
) -> None:
    told: list[list[str]] = []
    opened: Any = Connection(ConnectionSettings((("unused", 1),)))
    policy = SimpleNamespace(heard=lambda who, those, took: told.append(those))
    opened._opened = SimpleNamespace(
        profile_manager=SimpleNamespace(default=SimpleNamespace(load_balancing_policy=policy))
    )
    future = SimpleNamespace(coordinator_host=answered, attempted_hosts=list(asked))
    opened._heard(future, seconds, SimpleNamespace(stream_token=1 if reads_stream else None))
    assert told == [list(silent)]


def test_what_was_asked_before_we_stood_still_says_nothing_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    now, due = 100.0, list[tuple[float, Any]]()
    standstill = Standstill(lambda seconds, tick: due.append((now + seconds, tick)), lambda: now)
    told: list[list[str]] = []
    opened: Any = Connection(ConnectionSettings((("unused", 1),)))
    opened._standstill = standstill
    policy = SimpleNamespace(heard=lambda who, those, took: told.append(those))
    opened._opened = SimpleNamespace(
        profile_manager=SimpleNamespace(default=SimpleNamespace(load_balancing_policy=policy))
    )
    monkeypatch.setattr(connection_module.time, "monotonic", lambda: now)

    def heard(asked: float) -> int:
        """How often somebody was told of it."""
        future = SimpleNamespace(coordinator_host="b", attempted_hosts=["a", "b"])
        opened._heard(future, now - asked, SimpleNamespace(stream_token=1))
        return len(told)

    for _ in range(20):
        now, tick = due.pop()
        tick()
    assert heard(now - 8) == 1 and told == [["a"]]
    before, now = now, now + TICK_SECONDS + STILL_SECONDS + 8
    assert heard(before) == 1, "before it ticks again"
    due.pop()[1]()
    now += 1
    assert heard(before) == 1
    assert heard(now - 0.5) == 2, "asked afterwards"
    standstill.end()
    due.pop()[1]()
    assert not due
