"""The server as a process: ready line, ends, options, nodes on addresses of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.errors import EmbeddedError
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.script import statements
from tests.embedded.scylla.raw_client import RawClient
from tests.servers.patience import patience, until

Connect = Callable[..., RawClient]
ROOT = Path(__file__).resolve().parents[3]
DEADLINE_SECONDS = 90.0


def foreground(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "embedded.scylla", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_ready_line_and_sigterm() -> None:
    with foreground() as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert set(ready) == {"scylla", "api"}
        host, _, port = ready["scylla"].rpartition(":")
        assert host == "127.0.0.1"
        assert is_listening(int(port))
        assert ready["api"].startswith("http://127.0.0.1:")
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0
        assert process.communicate() == ("", "")


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for option in ("--port", "--api-port"):
            with foreground(option, str(port)) as process:
                out, err = process.communicate(timeout=DEADLINE_SECONDS * patience())
                assert (out, process.returncode) == ("", 1)
                assert str(port) in err
                assert "Traceback" not in err


@pytest.mark.parametrize(
    "options",
    [
        ["--nodes", "0"],
        ["--port", "70000"],
        ["--host", "10.0.0.1"],
        ["--ring-delay", "-1"],
        ["--like", "1.0"],
        ["--without", "SCYLLA_SHARD"],
        ["--user", "ann"],
        ["--tls-key", "k.pem"],
    ],
)
def test_wrong_options_are_refused(options: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SCYLLA_PASSWORD"}
    command = [sys.executable, "-m", "embedded.scylla", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=180 * patience())
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert ended.stderr


def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "init.cql"
    broken.write_text(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\nNONSENSE;"
    )
    with pytest.raises(EmbeddedError, match=r"statement 2 \(NONSENSE\)"):
        EmbeddedScylla(init=broken).start()
    with pytest.raises(EmbeddedError, match="certificate"):
        EmbeddedScylla(tls_cert=tmp_path / "none.pem").start()


def test_init_script_runs_before_the_server_is_ready(tmp_path: Path, connect: Connect) -> None:
    script = tmp_path / "init.cql"
    script.write_text(
        """
        -- a comment; with a semicolon
        CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
        USE ks;
        CREATE TABLE t (k text PRIMARY KEY, v text); /* another; one */
        BEGIN BATCH
          INSERT INTO t (k, v) VALUES ('a', 'semi;colon');
          INSERT INTO t (k, v) VALUES ('b', 'it''s');
        APPLY BATCH;
        """
    )
    with EmbeddedScylla(init=script) as server:
        rows = connect(server).rows("SELECT k, v FROM ks.t").rows
        assert sorted(rows) == [[b"a", b"semi;colon"], [b"b", b"it's"]]


def test_statements_of_a_script() -> None:
    script = "a 'x;y' ; -- c;\n b \"q;\" // d;\n; BEGIN UNLOGGED BATCH x; y; APPLY BATCH; $$f;g$$;; last"
    assert list(statements(script)) == [
        "a 'x;y'",
        'b "q;"',
        "BEGIN UNLOGGED BATCH x; y; APPLY BATCH",
        "$$f;g$$",
        "last",
    ]


def test_ends_with_the_process_that_started_it() -> None:
    code = (
        "import os, sys; from embedded.scylla.process import EmbeddedScylla;"
        "s = EmbeddedScylla().start(); print(s.pid, s.port, flush=True); sys.stdin.read(1); os._exit(1)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        _, port = map(int, parent.stdout.readline().split())
        assert is_listening(port)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    until(lambda: not is_listening(port))


def test_a_paused_server_goes_on_where_it_stood(own_scylla: EmbeddedScylla, connect: Connect) -> None:
    client = connect(own_scylla)
    own_scylla.pause()
    stream = client.send(frame.OPTIONS)
    client._socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.receive()
    own_scylla.resume()
    client._socket.settimeout(DEADLINE_SECONDS)
    assert client.answer(stream).opcode == frame.SUPPORTED


def test_killed_and_stopped_servers_are_gone(connect: Connect) -> None:
    server = EmbeddedScylla().start()
    port = server.port
    client = connect(server)
    server.kill()
    with pytest.raises(OSError):
        client.ask(frame.OPTIONS)
    assert not is_listening(port)
    with pytest.raises(EmbeddedError):
        server.pause()
    with server:
        assert connect(server).ask(frame.OPTIONS).opcode == frame.SUPPORTED
        server.pause()
    server.stop()


def test_each_node_has_an_address_and_all_share_one_state(connect: Connect) -> None:
    with EmbeddedScylla(nodes=3, vnodes=4, ring_delay=0) as server:
        clients = [connect(server, host=f"127.0.0.{number}") for number in (1, 2, 3)]
        for number, client in enumerate(clients, 1):
            (local,) = client.rows("SELECT * FROM system.local").dicts()
            peers = client.rows("SELECT * FROM system.peers").dicts()
            addresses = [bytes([127, 0, 0, other]) for other in (1, 2, 3)]
            assert local["rpc_address"] == addresses[number - 1]
            assert sorted(str(peer["peer"]) for peer in peers) == sorted(
                str(address) for address in addresses if address != local["rpc_address"]
            )
            assert len({local["host_id"], *(peer["host_id"] for peer in peers)}) == 3
            assert {local["schema_version"]} == {peer["schema_version"] for peer in peers}
        clients[0].done(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"
            " AND tablets = {'enabled': false}"
        )
        clients[1].done("CREATE TABLE ks.t (k text PRIMARY KEY)")
        clients[2].done("INSERT INTO ks.t (k) VALUES ('x')")
        assert clients[0].rows("SELECT k FROM ks.t").rows == [[b"x"]]


def test_nodes_stop_start_join_and_leave(connect: Connect) -> None:
    with EmbeddedScylla(nodes=2, vnodes=4, ring_delay=0) as server:
        watcher, victim = connect(server), connect(server, host="127.0.0.2")
        watcher.register("TOPOLOGY_CHANGE", "STATUS_CHANGE")
        server.admin.stop_node(1)
        with pytest.raises(OSError):
            victim.receive()
        with pytest.raises(OSError):
            connect(server, host="127.0.0.2")
        assert b"\x04DOWN" in watcher.event().body
        server.admin.start_node(1)
        assert b"\x02UP" in watcher.event().body
        assert connect(server, host="127.0.0.2").rows("SELECT key FROM system.local").rows == [[b"local"]]
        timestamps = "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'"
        assert len(watcher.rows(timestamps).rows) == 1
        assert server.admin.add_node()["address"] == "127.0.0.3"
        assert b"NEW_NODE" in watcher.event().body
        assert b"\x02UP" in watcher.event().body
        assert len(watcher.rows(timestamps).rows) == 2
        assert len(watcher.rows("SELECT peer FROM system.peers").rows) == 2
        server.admin.remove_node(1)
        assert b"DOWN" in watcher.event().body
        assert b"REMOVED_NODE" in watcher.event().body
        assert watcher.rows("SELECT peer FROM system.peers").rows == [[bytes([127, 0, 0, 3])]]
