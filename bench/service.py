"""The whole service on the embedded servers: what a record costs, how fast it starts, takes over and idles.

Figures come from `scylla-cdc run` as a user starts it. Processor time is the worker process's own, all its threads; the
servers share the machine, so the rates per second of wall time say little and those per CPU-second much.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from bench._processor import cpu_seconds
from connector.worker.status_document import ServiceStatus
from embedded.kafka import EmbeddedKafka
from embedded.ports import free_port
from embedded.scylla.process import EmbeddedScylla

ROWS = int(os.environ.get("BENCH_ROWS", "300000"))
IDLE_SECONDS = 10.0
TABLE = "bench.t"
COLUMNS = "id bigint PRIMARY KEY, a int, name text, amount double, at timestamp, flag boolean, note text, n bigint"


def main() -> dict[str, str]:
    figures: dict[str, str] = {}
    with EmbeddedKafka() as kafka, EmbeddedScylla(ring_delay=0) as scylla:
        scylla.admin.cql(
            "CREATE KEYSPACE bench WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} "
            "AND tablets = {'enabled': true}"
        )
        scylla.admin.cql(f"CREATE TABLE {TABLE} ({COLUMNS}) WITH cdc = {{'enabled': true}}")
        scylla.preload(TABLE, ROWS)
        for name, compression in (("no compression", "none"), ("lz4", "lz4")):
            with _service(kafka, scylla, f"bench-{compression}", compression) as service:
                figures |= {f"{what}, {name}": value for what, value in _flood(service).items()}
        with _service(kafka, scylla, "bench-idle", "none", tasks=2) as service:
            _wait(service, lambda status: _records(status) >= ROWS, 600)
            figures |= _idle(service)
            figures |= _take_over(service, scylla)
    return figures


class _Service:
    """One `scylla-cdc run`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, started: float) -> None:
        self.process = process
        self.port = port
        self.started = started

    def status(self) -> ServiceStatus:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=10) as answer:
                return ServiceStatus.model_validate_json(answer.read())
        except OSError:
            return ServiceStatus()

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]


@contextlib.contextmanager
def _service(
    kafka: EmbeddedKafka, scylla: EmbeddedScylla, name: str, compression: str, tasks: int = 1
) -> Iterator[_Service]:
    converters = {
        f"{side}.converter{option}": value
        for side in ("key", "value")
        for option, value in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "false"))
    }
    config = {
        "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector",
        "tasks.max": str(tasks),
        "scylla.cluster.ip.addresses": scylla.address,
        "scylla.table.names": TABLE,
        "topic.prefix": name,
        "scylla.confidence.window.size": "500",
        "scylla.query.time.window.size": "1000",
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
    }
    worker = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "bench",
        "offset.storage.topic": f"{name}-offsets",
        "session.timeout.ms": "3000",
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
            yield _Service(process, port, started)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _records(status: ServiceStatus) -> int:
    return sum(worker.tables[TABLE].records for worker in status.workers if TABLE in worker.tables)


def _wait(service: _Service, condition: Callable[[ServiceStatus], bool], seconds: float) -> ServiceStatus:
    deadline = time.monotonic() + seconds
    while True:
        status = service.status()
        if status.workers and condition(status):
            return status
        if time.monotonic() > deadline:
            sys.exit("the service did not get there in time")
        time.sleep(0.1)


def _flood(service: _Service) -> dict[str, str]:
    """From the first records to the last: what came before is start-up."""
    status = _wait(service, lambda status: _records(status) > 0, 60)
    first = time.monotonic() - service.started
    (pid,) = service.workers()
    before, cpu, at = _records(status), _cpu(pid), time.monotonic()
    status = _wait(service, lambda status: _records(status) >= ROWS, 600)
    done, spent, took = _records(status) - before, _cpu(pid) - cpu, time.monotonic() - at
    return {
        "records per CPU-second of the worker": f"{done / spent:,.0f}",
        "records per second": f"{done / took:,.0f}",
        "start to first records, seconds": f"{first:.1f}",
        "peak memory of the worker, MB": f"{_peak_memory(pid):.0f}",
    }


def _idle(service: _Service) -> dict[str, str]:
    pids = service.workers()
    cpu, queries = sum(map(_cpu, pids)), _queries(service)
    time.sleep(IDLE_SECONDS)
    spent, asked = sum(map(_cpu, pids)) - cpu, _queries(service) - queries
    return {
        "idle, two workers: share of one core": f"{spent / IDLE_SECONDS:.1%}",
        "idle, two workers: queries per second": f"{asked / IDLE_SECONDS:.1f}",
    }


def _take_over(service: _Service, scylla: EmbeddedScylla) -> dict[str, str]:
    """A worker is killed; a row of each key is written; how long until all of them are counted?"""
    victim = service.workers()[0]
    os.kill(victim, signal.SIGKILL)
    killed = time.monotonic()
    for number in range(200):
        scylla.admin.cql(f"INSERT INTO {TABLE} (id, a) VALUES ({-number - 1}, 1)")
    _wait(service, lambda status: _lag(status) < 2_000 and len(status.workers) == 2, 120)
    return {"killed worker to everything read again, seconds": f"{time.monotonic() - killed:.1f}"}


def _lag(status: ServiceStatus) -> float:
    tables = [worker.tables[TABLE] for worker in status.workers if worker.slots and TABLE in worker.tables]
    known = [table.lag_ms for table in tables if table.lag_ms is not None]
    owned = sum(len(worker.slots) for worker in status.workers)
    complete = status.workers and owned == status.workers[0].slot_count
    return max(known) if known and complete else float("inf")


def _queries(service: _Service) -> int:
    return sum(worker.reading.queries for worker in service.status().workers)


def _cpu(pid: int) -> float:
    spent = cpu_seconds(pid)
    if spent is None:
        sys.exit("processor time is read from /proc, which this system does not have")
    return spent


def _peak_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
