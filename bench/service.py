"""The whole service on the embedded servers: what a record costs, how fast it starts, takes over and idles.

Figures come from `scylla-cdc run` as a user starts it. Processor time is the worker process's own, all its threads; the
servers share the machine, so the rates per second of wall time say little and those per CPU-second much.
"""

from __future__ import annotations

import os
import signal
import time

from bench._service import Service, cpu_of, peak_memory, queries_of, service, wait
from connector.worker.status_document import ServiceStatus
from embedded.kafka import EmbeddedKafka
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
            with service(kafka, scylla, f"bench-{compression}", TABLE, compression=compression) as running:
                figures |= {f"{what}, {name}": value for what, value in flood(running).items()}
        with service(kafka, scylla, "bench-idle", TABLE, tasks=2) as running:
            wait(running, lambda status: _records(status) >= ROWS, 600)
            figures |= _idle(running)
            figures |= _take_over(running, scylla)
    return figures


def _records(status: ServiceStatus, table: str = TABLE) -> int:
    return sum(worker.tables[table].records for worker in status.workers if table in worker.tables)


def flood(running: Service, table: str = TABLE, rows: int = ROWS) -> dict[str, str]:
    """From the first records to the last: what came before is start-up."""
    wait(running, lambda status: _records(status, table) > 0, 180)
    first = time.monotonic() - running.started
    status = wait(running, lambda status: _all_deliver(status, table) or _records(status, table) >= rows, 180)
    pids = running.workers()
    before, cpu, at = _records(status, table), sum(map(cpu_of, pids)), time.monotonic()
    status = wait(running, lambda status: _records(status, table) >= rows, 600)
    done, spent, took = _records(status, table) - before, sum(map(cpu_of, pids)) - cpu, time.monotonic() - at
    # All may be delivered before the last worker is at it: more rows tell more.
    return {
        "records per CPU-second of the worker": f"{done / spent:,.0f}" if done else "-",
        "records per second": f"{done / took:,.0f}" if done else "-",
        "start to first records, seconds": f"{first:.1f}",
        "peak memory of the worker, MB": f"{max(map(peak_memory, pids)):.0f}",
    }


def _all_deliver(status: ServiceStatus, table: str) -> bool:
    return all(table in worker.tables and worker.tables[table].records > 0 for worker in status.workers)


def _idle(running: Service) -> dict[str, str]:
    pids = running.workers()
    cpu, queries = sum(map(cpu_of, pids)), queries_of(running)
    time.sleep(IDLE_SECONDS)
    spent, asked = sum(map(cpu_of, pids)) - cpu, queries_of(running) - queries
    return {
        "idle, two workers: share of one core": f"{spent / IDLE_SECONDS:.1%}",
        "idle, two workers: queries per second": f"{asked / IDLE_SECONDS:.1f}",
    }


def _take_over(running: Service, scylla: EmbeddedScylla) -> dict[str, str]:
    """A worker is killed; a row of each key is written; how long until all of them are counted?"""
    victim = running.workers()[0]
    os.kill(victim, signal.SIGKILL)
    killed = time.monotonic()
    for number in range(200):
        scylla.admin.cql(f"INSERT INTO {TABLE} (id, a) VALUES ({-number - 1}, 1)")
    wait(running, lambda status: _lag(status) < 2_000 and len(status.workers) == 2, 120)
    return {"killed worker to everything read again, seconds": f"{time.monotonic() - killed:.1f}"}


def _lag(status: ServiceStatus) -> float:
    tables = [worker.tables[TABLE] for worker in status.workers if worker.slots and TABLE in worker.tables]
    known = [table.lag_ms for table in tables if table.lag_ms is not None]
    owned = sum(len(worker.slots) for worker in status.workers)
    complete = status.workers and owned == status.workers[0].slot_count
    return max(known) if known and complete else float("inf")


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
