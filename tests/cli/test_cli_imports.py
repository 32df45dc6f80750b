"""What a process of ours does not load, for most have no use for it: it would cost each of them more than its work."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from connector.config import load
from connector.worker.order import WorkerOrder
from tests.config.files import CONNECTOR, WORKER
from tests.house import ROOT

AWAY = "127.0.0.1:1"
#: For key stores, for YAML, for a kind of rows that is not asked for, for who serves HTTP.
RARE = {"cryptography", "yaml", "numpy", "tornado", "prometheus_client"}
CLIENTS = {"cassandra", "confluent_kafka", "asyncio"}

PLUGIN = """
print("plugged in")
class Plugin:
    new_schema_validator = staticmethod(lambda *args, **more: (None, None, None))
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    connector, worker = tmp_path / "c.json", tmp_path / "w.json"
    connector.write_text(json.dumps({**CONNECTOR, "scylla.cluster.ip.addresses": AWAY}))
    worker.write_text(json.dumps({**WORKER, "bootstrap.servers": AWAY}))
    return [str(connector), "--worker", str(worker)]


def imported(command: Sequence[str], until: str, given: bytes = b"", **environ: str) -> set[str]:
    """The packages that a process has loaded when it says ``until``."""
    running = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", *command],
        cwd=ROOT,
        env={**os.environ, **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert running.stdin is not None and running.stdout is not None
    said = []
    with running.stdout, running.stdin:
        running.stdin.write(given)
        running.stdin.flush()
        for line in running.stdout:
            said.append(line.decode())
            if until in said[-1]:
                break
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert said and until in said[-1], "".join(said[-20:])
    # One that was only looked for is in the list as well, but none of its modules.
    found = {name for line in said for name in re.findall(r"^import time:[\d |]+\|\s+(\w+)\.\w", line)}
    assert "connector" in found and "pydantic" in found
    return found


def test_a_check_without_servers(files: list[str]) -> None:
    assert imported(["connector", "validate", "--offline", *files], "valid: ") & (RARE | CLIENTS) == set()


def test_a_check_of_servers(files: list[str]) -> None:
    found = imported(["connector", "validate", *files], AWAY)
    assert found >= CLIENTS and found & RARE == set()


def test_a_supervisor(files: list[str]) -> None:
    found = imported(["connector", "run", *files], AWAY)
    assert found >= CLIENTS and found & RARE == set()


def test_a_worker(files: list[str]) -> None:
    order = WorkerOrder(load(files[0], files[2]), 0)
    found = imported(["connector.cli.start_worker"], '"event":"waiting"', pickle.dumps(order))
    # Tenacity looks for Tornado.
    assert found >= CLIENTS and found & RARE == {"tornado"}


def test_plugins_of_others_for_pydantic_are_left_alone(files: list[str], tmp_path: Path) -> None:
    """By our commands; who uses our packages in a program of his own keeps his plugins."""
    (tmp_path / "plugged.py").write_text(PLUGIN)
    (tmp_path / "plugged-1.dist-info").mkdir()
    (tmp_path / "plugged-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (tmp_path / "plugged-1.dist-info" / "entry_points.txt").write_text("[pydantic]\nplugged = plugged:Plugin\n")
    environ = {name: value for name, value in os.environ.items() if name != "PYDANTIC_DISABLE_PLUGINS"}
    environ["PYTHONPATH"] = str(tmp_path)

    def said(*arguments: str) -> str:
        run = [sys.executable, *arguments]
        return subprocess.run(run, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout

    own = f"from connector.config import load; load({files[0]!r}, {files[2]!r})"
    assert "plugged in" not in said("-m", "connector", "validate", "--offline", *files)
    assert "plugged in" in said("-c", own)
