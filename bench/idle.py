"""What it costs to watch tables in which nothing happens, and how late the first change after the silence is.

`--tables` tables with `--groups` stream groups each, on the embedded servers; nothing is written for `--seconds`, then
one row to one table after the other. Latency is from the write to the commit, and never below the confidence window.
"""

from __future__ import annotations

import argparse
import time

from bench._processor import cpu_seconds
from bench._service import Service, cpu_of, peak_memory, queries_of, service, wait
from connector.worker.status_document import ServiceStatus
from embedded.kafka import EmbeddedKafka
from embedded.scylla.process import EmbeddedScylla

KEYSPACE = "idle"


def main() -> dict[str, str]:
    args = _arguments()
    # One more, to which something is written now and then: it shows when all have been claimed.
    tables = [f"{KEYSPACE}.t{number}" for number in range(args.tables)]
    # A table on tablets has as many streams as tablets, and each of them is a group.
    tablets = f"true, 'initial': {args.groups}" if args.tablets else "false"
    with EmbeddedKafka() as kafka, EmbeddedScylla(ring_delay=0, vnodes=args.groups, shards=args.shards) as scylla:
        scylla.admin.cql(
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'NetworkTopologyStrategy', "
            f"'replication_factor': 1}} AND tablets = {{'enabled': {tablets}}}"
        )
        for table in tables:
            scylla.admin.cql(f"CREATE TABLE {table} (id bigint PRIMARY KEY, a int) WITH cdc = {{'enabled': true}}")
        with service(
            kafka, scylla, "idle", ",".join(tables), tasks=args.workers, confidence_ms=args.confidence
        ) as running:
            wait(running, lambda status: _watched(status, args.groups) == len(tables), 300)
            figures = {"start, CPU-seconds of all workers": f"{sum(map(cpu_of, running.workers())):.1f}"}
            figures |= _silence(running, scylla, args.warm, args.seconds)
            figures |= _first_rows(running, scylla, tables[:: max(1, len(tables) // args.rows)][: args.rows])
            figures["peak memory of a worker, MB"] = f"{max(map(peak_memory, running.workers())):.0f}"
    return figures


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench idle", description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--groups", type=int, default=1024)
    parser.add_argument("--tablets", action="store_true", help="tables on tablets, --groups of them each")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--confidence", type=int, default=5_000, help="milliseconds")
    parser.add_argument("--warm", type=float, default=75.0, help="seconds in front of those that count")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rows", type=int, default=10)
    return parser.parse_args()


def _watched(status: ServiceStatus, groups: int) -> int:
    """How many tables are read in all of their groups."""
    names = {name for worker in status.workers for name in worker.tables}
    found = ([worker.tables[name] for worker in status.workers if name in worker.tables] for name in names)
    return sum(
        sum(each.groups for each in tables) == groups and all(each.lag_ms is not None for each in tables if each.groups)
        for tables in found
    )


def _silence(running: Service, scylla: EmbeddedScylla, warm: float, seconds: float) -> dict[str, str]:
    # Marks and commits after the start, first sweeps, imports, tables that are described until nothing of them changes.
    time.sleep(warm)
    pids = running.workers()
    at, spent, asked, served, requests = (
        time.monotonic(),
        sum(map(cpu_of, pids)),
        queries_of(running),
        cpu_seconds(scylla.pid) or 0.0,
        _requests(scylla),
    )
    time.sleep(seconds)
    took = time.monotonic() - at
    spent, asked, served, requests = (
        sum(map(cpu_of, pids)) - spent,
        queries_of(running) - asked,
        (cpu_seconds(scylla.pid) or 0.0) - served,
        _requests(scylla) - requests,
    )
    return {
        "silent: share of one core per worker": f"{spent / took / len(pids):.1%}",
        "silent: queries per second": f"{asked / took:.1f}",
        "silent: all requests per second, as the server counts them": f"{requests / took:.1f}",
        "silent: share of one core in the embedded ScyllaDB": f"{served / took:.1%}",
    }


def _requests(scylla: EmbeddedScylla) -> int:
    """With what else is asked than for rows: stream sets, clocks, schemas."""
    return sum(int(number) for number in scylla.admin.counters()["requests"].values())


def _first_rows(running: Service, scylla: EmbeddedScylla, tables: list[str]) -> dict[str, str]:
    for number, table in enumerate(tables):
        scylla.admin.cql(f"INSERT INTO {table} (id, a) VALUES ({number}, 1)")
        time.sleep(0.37)
    status = wait(running, lambda status: sum(count for count, _ in _latencies(status)) >= len(tables), 120)
    late = sorted(each for count, total in _latencies(status) for each in [total / count] * count)
    return {"first row after silence, seconds (least, most)": f"{late[0]:.2f}, {late[-1]:.2f}"}


def _latencies(status: ServiceStatus) -> list[tuple[int, float]]:
    found = [table.latency_seconds for worker in status.workers for table in worker.tables.values()]
    return [(sum(each.counts), each.sum) for each in found if each is not None and sum(each.counts)]


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
