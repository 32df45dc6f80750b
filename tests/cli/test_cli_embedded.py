"""`scylla-cdc embedded`, as processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from connector.errors import EmbeddedError
from embedded import ports
from embedded.scylla.process import EmbeddedScylla
from tests.embedded.processes import is_gone
from tests.house import ROOT
from tests.servers.patience import patience, until

SCYLLA_CDC = [sys.executable, "-m", "connector"]

pytestmark = pytest.mark.kafka


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [descendant for child in map(int, listed) for descendant in (child, *children(child))]


def test_kafka_says_when_it_is_ready_and_ends_with_sigterm(tmp_path: Path) -> None:
    port = ports.free_port()
    command = [*SCYLLA_CDC, "embedded", "kafka", "--port", str(port), "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"kafka": f"127.0.0.1:{port}"}
        socket.create_connection(("127.0.0.1", port), 60).close()

        second = subprocess.run(
            [*SCYLLA_CDC, "embedded", "kafka", "--port", str(port)], cwd=ROOT, capture_output=True, text=True
        )
        assert (second.returncode, second.stdout) == (1, "")
        assert str(port) in second.stderr and "taken" in second.stderr

        below = children(process.pid)
        assert below
        process.send_signal(signal.SIGTERM)
        assert process.wait(120 * patience()) == 0
        assert process.stdout.read() == ""
    until(lambda: all(is_gone(pid) for pid in below), what="the end of all")
    assert (tmp_path / "data").is_dir()


def test_up_starts_both_and_ends_them() -> None:
    command = [*SCYLLA_CDC, "embedded", "up", "--ring-delay", "0", "--nodes", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready.keys() == {"kafka", "scylla", "api"}
        for name in ("kafka", "scylla"):
            host, port = ready[name].split(":")
            socket.create_connection((host, int(port)), 60).close()
        below = children(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120 * patience()) == 0
        assert process.stdout.read() == ""
    until(lambda: all(is_gone(pid) for pid in below), what="the end of all")


def test_scylla_names_a_taken_port() -> None:
    port = ports.free_port()
    with socket.create_server(("127.0.0.1", port)):
        done = subprocess.run(
            [*SCYLLA_CDC, "embedded", "scylla", "--port", str(port)], cwd=ROOT, capture_output=True, text=True
        )
        with pytest.raises(EmbeddedError, match=rf"ScyllaDB could not start: 127\.0\.0\.1:{port} is taken$"):
            EmbeddedScylla(port=port).__enter__()
    assert (done.returncode, done.stdout) == (1, "")
    assert str(port) in done.stderr and "Traceback" not in done.stderr


def test_kill_9_of_the_command_leaves_no_broker() -> None:
    command = [*SCYLLA_CDC, "embedded", "kafka"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "kafka" in json.loads(process.stdout.readline())
        below = children(process.pid)
        assert len(below) == 2
        process.kill()
    until(lambda: all(is_gone(pid) for pid in below))
