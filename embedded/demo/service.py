"""The connector of the demo: its files, as a user would write them, and its process, as a user would start it.

In: a folder and the servers' addresses. Out: a running `scylla-cdc run` whose status can be asked, whose workers can be
killed, and which never outlives the demo.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from connector.errors import EmbeddedError
from embedded.demo.schema import TABLES
from embedded.process import TiedProcess

PREFIX: Final = "demo"
DEAD_LETTERS: Final = f"{PREFIX}.dead-letters"
# Longer than a busy machine may take from reading its clock to having written.
CONFIDENCE_MS: Final = 5000
WORKERS: Final = 2
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_STOP_SECONDS: Final = 20.0


# For the user, afterwards: the landed tables need no server.
_SHOW: Final = """import json
import pathlib

from spark_jobs.session import open_session

session = open_session(json.loads(pathlib.Path(__file__).with_name("landing.json").read_text()))
session.table("shop.orders").show(truncate=False)
"""


def write_files(folder: Path, scylla: str, kafka: str) -> None:
    """connector.json, worker.json and landing.json, and a script that shows a landed table."""
    (folder / "show.py").write_text(_SHOW)
    names = [table.name for table in TABLES]
    connector = {
        "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
        "tasks.max": str(WORKERS),
        "scylla.cluster.ip.addresses": scylla,
        "scylla.table.names": ",".join(names),
        "topic.prefix": PREFIX,
        "scylla.confidence.window.size": str(CONFIDENCE_MS),
        "scylla.query.time.window.size": "2000",
        "cdc.include.collections": "delta",
        "cdc.range.deletes": "topic",
        "cdc.include.metadata": "true",
        "errors.tolerance": "all",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
    }
    worker = {
        "bootstrap.servers": kafka,
        "group.id": "demo",
        "offset.storage.topic": "demo-offsets",
        "offset.storage.partitions": "6",
        "status.storage.topic": "demo-status",
        "key.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
        "session.timeout.ms": "3000",
    }
    landing = {
        "name": "demo-landing",
        "bootstrap.servers": kafka,
        "scylla.cluster.ip.addresses": scylla,
        "scylla.confidence.window.size": CONFIDENCE_MS,
        "topic.prefix": PREFIX,
        "tables": names,
        "value.converter": _JSON,
        "value.converter.schemas.enable": False,
        "warehouse": str(folder / "warehouse"),
        "state.buckets": 1,
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # A job of half a minute is over before the compiler's second stage pays off.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:-UsePerfData -XX:TieredStopAtLevel=1",
    }
    documents = {"connector": {"name": "demo", "config": connector}, "worker": worker, "landing": landing}
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")


class Service:
    """`scylla-cdc run` on the demo's files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "logs" / "run.log"
        self._process: TiedProcess | None = None
        self._port: int | None = None

    def start(self) -> None:
        files = [str(self._folder / "connector.json"), "--worker", str(self._folder / "worker.json")]
        self._process = TiedProcess([sys.executable, "-m", "connector", "run", *files, "--http-port", "0"], self._log)

    def status(self) -> dict[str, Any]:
        """What `/status` says; empty while it does not answer yet."""
        if self._process is None:
            return {}
        if (ended := self._process.poll()) is not None:
            raise EmbeddedError(f"scylla-cdc run ended (status {ended}):\n{self._tail()}")
        if self._port is None:
            found = re.search(r"on http://[^:]+:(\d+)", self._text())
            if found is None:
                return {}
            self._port = int(found[1])
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/status", timeout=5) as answer:
                status: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return {}
        return status

    def kill_worker(self) -> int:
        """SIGKILL for the worker that was started last; gives its process id."""
        pid = int(re.findall(r"worker \d+ started, pid (\d+)", self._text())[-1])
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self, patience: float = _STOP_SECONDS) -> int | None:
        """In order, and after some patience by force. Its exit status."""
        process = self._process
        if process is None:
            return None
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                process.signal(signal.SIGTERM)
            if process.wait(patience) is not None:
                break
        else:
            with contextlib.suppress(ProcessLookupError):
                process.signal(signal.SIGKILL)
        status = process.wait(5)
        process.release()
        self._process = None
        return status

    def _text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.is_file() else ""

    def _tail(self) -> str:
        return "\n".join(f"  {line}" for line in self._text().splitlines()[-12:])


def is_up(status: dict[str, Any]) -> bool:
    """All workers run, and every slot is owned by one of them."""
    workers = status.get("workers", [])
    slots = sum(len(worker["slots"]) for worker in workers)
    return len(workers) == WORKERS and status["state"] == "RUNNING" and slots == workers[0]["slot_count"]


def has_passed(status: dict[str, Any], ms: int) -> bool:
    """Everything up to that time has been read by everybody.

    A table without a position counts when nothing of it waits: it has fewer streams than there are slots. Just after a
    rebalance it has none either, because its slots are claimed and the claim is not committed yet.
    """
    return is_up(status) and all(
        table.get("held_count") == 0 and (table["position_ms"] is None or table["position_ms"] > ms)
        for worker in status["workers"]
        for table in worker["tables"].values()
    )


def wall_ms() -> int:
    return time.time_ns() // 1_000_000
