"""Connectors between the embedded servers, each a `scylla-cdc run` of its own.

In: files, or both servers and the names of tables. Out: running connectors whose status can be asked and whose workers
can be killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from connector.errors import EmbeddedError
from connector.own_python import module_command
from embedded.kafka import EmbeddedKafka
from embedded.process import TiedProcess
from embedded.scylla.process import EmbeddedScylla

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
#: Keys and values as bare JSON.
JSON_CONVERTERS: Final[Mapping[str, str]] = {
    "key.converter": _JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": _JSON,
    "value.converter.schemas.enable": "false",
}
_STOP_SECONDS: Final = 20.0
_UP_SECONDS: Final = 240.0
_LOOK_SECONDS: Final = 0.1
# What is on this machine is not asked for through the proxy that the environment names for others.
DIRECTLY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class RunningConnector:
    """`scylla-cdc run` on two files, its log in a third; never outlives the program that started it."""

    def __init__(self, connector: Path, worker: Path, log: Path) -> None:
        self._files = (connector, worker)
        self._log = log
        self._process: TiedProcess | None = None
        self._port: int | None = None

    def start(self) -> None:
        connector, worker = map(str, self._files)
        run = module_command("connector", "run", connector, "--worker", worker)
        # Who has seen its page finds it again at the same address.
        self._process = TiedProcess([*run, "--http-port", str(self._port or 0)], self._log)

    @property
    def url(self) -> str | None:
        """Of its HTTP port, once a status was asked for and told."""
        return None if self._port is None else f"http://127.0.0.1:{self._port}"

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
            with DIRECTLY.open(f"http://127.0.0.1:{self._port}/status", timeout=5) as answer:
                status: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return {}
        return status

    def wait_until_running(self, seconds: float = _UP_SECONDS) -> None:
        """Until its slots are claimed and it reads; `EmbeddedError` with the end of its log otherwise."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        while self.status().get("state") != "RUNNING":
            if time.monotonic() > deadline:
                raise EmbeddedError(f"scylla-cdc run is not up after {seconds:g} s:\n{self._tail()}")
            pause.wait(_LOOK_SECONDS)

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


class EmbeddedCdc:
    """A context manager that starts connectors and ends them.

    ``scylla`` and ``kafka`` are the servers. Topics are called ``<prefix>.<keyspace>.<table>``.
    """

    def __init__(self, scylla: EmbeddedScylla, kafka: EmbeddedKafka, folder: Path) -> None:
        self.scylla = scylla
        self.kafka = kafka
        self._folder = folder
        self._running: list[RunningConnector] = []

    def start(
        self,
        tables: str,
        *,
        prefix: str = "cdc",
        connector: Mapping[str, str] | None = None,
        worker: Mapping[str, str] | None = None,
    ) -> RunningConnector:
        """A connector for ``tables`` (``ks.t``, several with commas), running. More properties win over these."""
        name = f"{prefix}-{len(self._running)}"
        files = {
            "connector": {
                "name": name,
                "tasks.max": "1",
                "scylla.cluster.ip.addresses": self.scylla.address,
                "scylla.table.names": tables,
                "topic.prefix": prefix,
                "scylla.confidence.window.size": "500",
                "scylla.query.time.window.size": "1000",
                "topic.creation.default.partitions": "1",
                "topic.creation.default.replication.factor": "1",
                **(connector or {}),
            },
            "worker": {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": name,
                "offset.storage.topic": f"{name}-offsets",
                "offset.storage.partitions": "1",
                "status.storage.topic": f"{name}-status",
                "session.timeout.ms": "3000",
                **JSON_CONVERTERS,
                **(worker or {}),
            },
        }
        paths = {kind: self._folder / f"{name}-{kind}.json" for kind in files}
        for kind, properties in files.items():
            paths[kind].write_text(json.dumps(properties, indent=2))
        running = RunningConnector(paths["connector"], paths["worker"], self._folder / f"{name}.log")
        self._running.append(running)
        running.start()
        running.wait_until_running()
        return running

    def __enter__(self) -> EmbeddedCdc:
        return self

    def __exit__(self, *why: object) -> None:
        for running in self._running:
            running.stop()
