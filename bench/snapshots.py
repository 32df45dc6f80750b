"""Snapshots of the whole service: what a row costs beside a change, what is held in memory, what changes wait for it.

Processor time is the worker process's own. Changes are those of the same table's log, by the same run, before its rows:
a group that is far behind reads its changes first.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench._service import Service, cpu_of, peak_memory, service, wait
from connector.worker.status_document import ServiceStatus, SnapshotStatus
from embedded.kafka import EmbeddedKafka
from embedded.scylla.process import EmbeddedScylla

ROWS = int(os.environ.get("BENCH_ROWS", "150000"))
TABLE = "bench.t"
COLUMNS = "id bigint PRIMARY KEY, a int, name text, amount double, at timestamp, flag boolean, note text, n bigint"
LONG_WINDOW_MS = 30_000
WRITE_SECONDS, LOOK_SECONDS, QUIET_SECONDS = 0.02, 0.25, 12.0
# Further behind than this, changes come first, and rows wait.
CAUGHT_UP_MS = 10_000
INITIAL = {"snapshot.mode": "initial", "scylla.snapshot.max.queries.per.second": "1000"}


def main() -> dict[str, str]:
    with EmbeddedKafka() as kafka, EmbeddedScylla(ring_delay=0) as scylla:
        scylla.admin.cql(
            "CREATE KEYSPACE bench WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} "
            "AND tablets = {'enabled': true}"
        )
        scylla.admin.cql(f"CREATE TABLE {TABLE} ({COLUMNS}) WITH cdc = {{'enabled': true}}")
        scylla.preload(TABLE, ROWS, partitions=ROWS, base=True)
        figures: dict[str, str] = {}
        for native in ("on", "off"):
            with service(kafka, scylla, f"bench-rows-{native}", TABLE, connector=INITIAL, native=native) as running:
                changes, rows = _changes(running), _rows(running)
            figures[f"records per CPU-second, changes {'native' if native == 'on' else 'plain'} and rows"] = (
                f"{changes:,.0f}; {rows:,.0f}"
            )
        for mode in ("no_data", "initial"):
            options = {**INITIAL, "snapshot.mode": mode}
            with service(
                kafka, scylla, f"bench-{mode}", TABLE, confidence_ms=LONG_WINDOW_MS, connector=options
            ) as running:
                _changes(running)
                if mode == "initial":
                    wait(running, _over, 1200)
                (pid,) = running.workers()
                figures[f"peak memory of the worker, MB, window of 30 s, {mode}"] = f"{peak_memory(pid):.0f}"
        with service(kafka, scylla, "bench-lag", TABLE) as running, _writes(scylla):
            _changes(running)
            figures["greatest lag without a snapshot, ms"] = f"{_greatest_lag(running, QUIET_SECONDS):,.0f}"
        with service(kafka, scylla, "bench-lag-beside", TABLE, connector=INITIAL) as running, _writes(scylla):
            _changes(running)
            figures["greatest lag beside a snapshot, ms"] = f"{_greatest_lag(running, None):,.0f}"
        return figures


def _records(status: ServiceStatus) -> int:
    return sum(worker.tables[TABLE].records for worker in status.workers if TABLE in worker.tables)


def _snapshot(status: ServiceStatus) -> SnapshotStatus | None:
    shown = (worker.tables[TABLE].snapshot for worker in status.workers if TABLE in worker.tables)
    return next((each for each in shown if each is not None), None)


def _over(status: ServiceStatus) -> bool:
    shot = _snapshot(status)
    return shot is not None and shot.ended


def _changes(running: Service) -> float:
    """All that the log has, per CPU-second from the claim of the slots on."""
    before = _records(wait(running, lambda status: any(worker.slots for worker in status.workers), 300))
    (pid,) = running.workers()
    cpu = cpu_of(pid)
    done = _records(wait(running, lambda status: _records(status) >= ROWS, 900))
    return (done - before) / max(cpu_of(pid) - cpu, 0.01)


def _rows(running: Service) -> float:
    """Behind the changes: all rows, per CPU-second from here to the end, the wait for their window included."""
    (pid,) = running.workers()
    cpu, shot = cpu_of(pid), _snapshot(running.status())
    before = 0 if shot is None else shot.rows
    after = _snapshot(wait(running, _over, 900))
    assert after is not None
    return (after.rows - before) / max(cpu_of(pid) - cpu, 0.01)


@contextmanager
def _writes(scylla: EmbeddedScylla) -> Iterator[None]:
    """Somebody writes a little, all the time."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(WRITE_SECONDS):
            number += 1
            scylla.admin.cql(f"INSERT INTO {TABLE} (id, a) VALUES ({-number}, {number})")

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _greatest_lag(running: Service, seconds: float | None) -> float:
    """For so long; None: until the snapshot is over. Counted from when the changes from before are committed."""
    began: float | None = None
    greatest = 0
    while True:
        status = running.status()
        lags = [
            table.lag_ms for worker in status.workers for table in worker.tables.values() if table.lag_ms is not None
        ]
        if began is None and lags and max(lags) < CAUGHT_UP_MS:
            began = time.monotonic()
        if began is not None:
            greatest = max([greatest, *lags])
            if _over(status) if seconds is None else time.monotonic() - began > seconds:
                return greatest
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
