"""`scylla-cdc run` as a user starts it, on servers that are there, for benchmarks of the whole service.

In: servers, tables, properties. Out: `Service`: its status, its worker processes, what they have cost.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench._processor import cpu_seconds
from connector.worker.status_document import ServiceStatus
from embedded.connectors import DIRECTLY
from embedded.kafka import EmbeddedKafka
from embedded.ports import free_port
from embedded.scylla.process import EmbeddedScylla


class Service:
    """One `scylla-cdc run`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, started: float) -> None:
        self.process = process
        self.port = port
        self.started = started

    def status(self) -> ServiceStatus:
        try:
            with DIRECTLY.open(f"http://127.0.0.1:{self.port}/status", timeout=10) as answer:
                return ServiceStatus.model_validate_json(answer.read())
        except OSError:
            return ServiceStatus()

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]


@contextlib.contextmanager
def service(
    kafka: EmbeddedKafka,
    scylla: EmbeddedScylla,
    name: str,
    tables: str,
    *,
    compression: str = "none",
    tasks: int = 1,
    confidence_ms: int = 500,
    connector: Mapping[str, str] = {},
    native: str = "on",
) -> Iterator[Service]:
    converters = {
        f"{side}.converter{option}": value
        for side in ("key", "value")
        for option, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "false"))
    }
    config = {
        "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
        "tasks.max": str(tasks),
        "scylla.cluster.ip.addresses": scylla.address,
        "scylla.table.names": tables,
        "topic.prefix": name,
        "scylla.confidence.window.size": str(confidence_ms),
        "scylla.query.time.window.size": "1000",
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
        **connector,
    }
    worker = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "bench",
        "offset.storage.topic": f"{name}-offsets",
        "session.timeout.ms": "3000",
        "native": native,
        "producer.compression.type": compression,
        **converters,
    }
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "connector.json"), Path(folder, "worker.json")
        files[0].write_text(json.dumps({"name": name, "config": config}))
        files[1].write_text(json.dumps(worker))
        port, started = free_port(), time.monotonic()
        with open(Path(folder, "log"), "wb") as log:
            command = [sys.executable, "-m", "connector", "run", str(files[0]), "--worker", str(files[1])]
            process = subprocess.Popen([*command, "--http-port", str(port)], stderr=log, stdout=log)
        try:
            yield Service(process, port, started)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def wait(service: Service, condition: Callable[[ServiceStatus], bool], seconds: float) -> ServiceStatus:
    deadline = time.monotonic() + seconds
    while True:
        status = service.status()
        if status.workers and condition(status):
            return status
        if time.monotonic() > deadline:
            sys.exit("the service did not get there in time")
        time.sleep(0.1)


def queries_of(service: Service) -> int:
    return sum(worker.reading.queries for worker in service.status().workers)


def cpu_of(pid: int) -> float:
    spent = cpu_seconds(pid)
    if spent is None:
        sys.exit("processor time is read from /proc, which this system does not have")
    return spent


def peak_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
