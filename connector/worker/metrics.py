"""Metrics in Prometheus' text format, made from the workers' status reports on each request.

In: the supervisor's status. Out: the page for `/metrics`. The names are documented in ``docs/operations.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from connector.secrets import scrub
from connector.worker.state import State
from connector.worker.status_document import (
    ConnectorStatus,
    HistogramStatus,
    RunningWorker,
    ServiceStatus,
    SnapshotStatus,
    TableStatus,
    WorkerStatus,
)

PREFIX = "scylla_cdc_"

LATE_OUTCOMES = ("delivered", "dead_letter", "lost")

# name, help, the figure; counters of one worker restart with it, as Prometheus expects.
Figure = tuple[str, str, Callable[[TableStatus], int]]
TABLE_COUNTERS: tuple[Figure, ...] = (
    ("records", "Records delivered, those of aborted transactions included.", lambda table: table.records),
    ("dead_letters", "Batches that became dead letters.", lambda table: table.dead_letters),
)
TABLE_GAUGES: tuple[Figure, ...] = (
    ("failed_groups", "Groups of streams that have failed and are not read.", lambda table: table.failed_groups),
    ("waiting_groups", "Groups and slots that wait for something.", lambda table: table.waiting_count),
    ("expired", "Streams and slots of which changes may have expired unread.", lambda table: table.expired),
)
SNAPSHOT_COUNTERS: tuple[tuple[str, str, Callable[[SnapshotStatus], int]], ...] = (
    ("rows", "Rows of snapshots delivered, those of aborted transactions included.", lambda shot: shot.rows),
    ("rereads", "Partitions read again, as they had changed.", lambda shot: shot.rereads),
)
WORKER_COUNTERS: tuple[tuple[str, str, Callable[[WorkerStatus], int]], ...] = (
    ("rows", "Log rows read.", lambda worker: worker.reading.rows),
    ("queries", "Queries sent to ScyllaDB.", lambda worker: worker.reading.queries),
    ("read_errors", "Reads that failed and were tried again.", lambda worker: worker.reading.retries),
    ("transactions", "Transactions committed.", lambda worker: worker.delivery.commits),
    ("aborted_transactions", "Transactions aborted.", lambda worker: worker.delivery.aborts),
    ("rebalances", "Changes of the slots that the worker owns.", lambda worker: worker.delivery.rebalances),
)


class StatusCollector(Collector):
    """Turns a status into metrics at each scrape."""

    def __init__(self, status: Callable[[], ServiceStatus]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        # Several connectors are scraped into one database, and may share one process: their figures must not meet.
        connectors = {str(worker.index): worker.connector for worker in status.workers}
        for family in self._families(status):
            family.samples = [
                sample._replace(
                    labels={
                        "connector": scrub(connectors.get(sample.labels.get("worker", ""), status.connector)),
                        **sample.labels,
                    }
                )
                for sample in family.samples
            ]
            yield family

    def _families(self, status: ServiceStatus) -> Iterator[Metric]:
        build = (status.version, ".".join(map(str, sys.version_info[:3])))
        text = "The version that runs; always 1."
        yield _gauge("build_info", text, [(build, 1)], ["version", "python_version"])
        servers = [((str(w.index), w.scylla_version or "", w.kafka_version or ""), 1) for w in status.workers]
        text = "The servers that the worker found at its start, as far as they say; always 1."
        yield _gauge("servers_info", text, servers, ["worker", "scylla_version", "kafka_version"])
        text = "When this process was started."
        yield _gauge("start_time_seconds", text, [((), status.started_ms / 1000)])
        connectors = status.connectors or {
            status.connector: ConnectorStatus(
                state=status.state, workers_running=status.workers_running, restarts=status.restarts
            )
        }
        own = ["connector"]
        running = [((name,), each.workers_running) for name, each in connectors.items()]
        yield _gauge("workers", "Worker processes running.", running, own)
        # With one connector its state is that of the process, which knows more than the workers say.
        states = {name: each.state if len(connectors) > 1 else status.state for name, each in connectors.items()}
        well = [((name,), state is State.RUNNING) for name, state in states.items()]
        yield _gauge("running", "1 while all of the connector is RUNNING, as /health says; else 0.", well, own)
        ends = [((name,), each.restarts) for name, each in connectors.items()]
        yield _counter("worker_restarts", "Worker processes that ended.", ends, own)
        refused = [((name,), each.login_refused is not None) for name, each in connectors.items()]
        yield _gauge("login_refused", "1 while a server refuses what workers log in with; else 0.", refused, own)
        renewed = [((name,), each.logins_renewed) for name, each in connectors.items()]
        text = "Workers that were started anew, as their login was refused and another one was there."
        yield _counter("logins_renewed", text, renewed, own)
        workers = status.workers
        held = {name for name, each in connectors.items() if each.target != "RUNNING"}
        label = ["worker"]
        for name, text, figure in WORKER_COUNTERS:
            yield _counter(name, text, [((str(w.index),), figure(w)) for w in workers], label)
        # What has ended owns none, whatever it said last: others have its slots by now, or nobody has.
        owned = [((str(w.index),), 0 if w.starting else len(w.slots)) for w in workers]
        yield _gauge("slots", "Slots that the worker owns.", owned, label)
        text = "Slots that the connector has, whoever owns them."
        # Of one that was asked to stand still nobody is to own any.
        had = [((str(w.index),), 0 if w.starting and w.connector in held else w.slot_count) for w in workers]
        yield _gauge("connector_slots", text, had, label)
        skew = [((str(w.index),), w.clock_skew_ms / 1000) for w in workers]
        yield _gauge("clock_skew_seconds", "Servers' time minus this machine's.", skew, label)
        labels = ["worker", "task"]
        failing = [
            ((str(worker.index), kind), seconds)
            for worker in workers
            for kind, seconds in worker.background_seconds.items()
        ]
        text = "For how long work beside the reading has been failing; 0 while it works."
        yield _gauge("background_failing_seconds", text, failing, labels)
        rest = held | {name for name, each in connectors.items() if each.given_up is not None}
        # Where none is started nobody is to say anything.
        silent = [0.0 if w.starting and w.connector in rest else w.last_report_age_seconds for w in workers]
        ages = [((str(w.index),), age) for w, age in zip(workers, silent, strict=True)]
        yield _gauge("report_age_seconds", "Time since the worker last said how it is.", ages, label)
        sizes = [((str(w.index),), w.delivery.transaction_records) for w in workers]
        yield _histogram("transaction_records", "Records of committed transactions with data.", sizes, label)
        yield from _tables(workers)


def _tables(workers: Sequence[RunningWorker]) -> Iterator[Metric]:
    labels = ["worker", "table"]
    rows = [
        ((str(worker.index), name), table)
        for worker in workers
        for name, table in worker.tables.items()
        if table.has_figures
    ]
    lags = [(key, table.lag_ms / 1000) for key, table in rows if table.lag_ms is not None]
    yield _gauge("lag_seconds", "How far the table's slowest stream is behind the servers' time.", lags, labels)
    ttls = [(key, table.log_ttl_seconds) for key, table in rows if table.log_ttl_seconds is not None]
    yield _gauge("log_ttl_seconds", "For how long the table's log keeps changes, read or not.", ttls, labels)
    for name, text, figure in TABLE_COUNTERS:
        yield _counter(name, text, [(key, figure(table)) for key, table in rows], labels)
    for name, text, figure in TABLE_GAUGES:
        yield _gauge(name, text, [(key, figure(table)) for key, table in rows], labels)
    # All outcomes from the beginning: the first late change would otherwise be a new series, and no increase.
    late = [
        ((*key, what), table.late_changes.get(what, 0))
        for key, table in rows
        for what in sorted({*LATE_OUTCOMES, *table.late_changes})
    ]
    yield _counter("late_changes", "Batches that came into streams after their end.", late, [*labels, "outcome"])
    latencies = [(key, table.latency_seconds) for key, table in rows]
    text = "From the write time in the log to the commit of its record; a batch of the log counts once."
    yield _histogram("delivery_latency_seconds", text, latencies, labels)
    shots = [(key, table.snapshot) for key, table in rows if table.snapshot is not None]
    done = [(key, shot.done) for key, shot in shots]
    yield _gauge("snapshot_done", "The part of the table whose rows a snapshot has committed, 0 to 1.", done, labels)
    for name, text, of_snapshot in SNAPSHOT_COUNTERS:
        yield _counter(f"snapshot_{name}", text, [(key, of_snapshot(shot)) for key, shot in shots], labels)
    held = [(key, shot.held_bytes) for key, shot in shots]
    yield _gauge("snapshot_held_bytes", "Rows of a snapshot that were read and wait for their place.", held, labels)
    doubts = [(key, shot.undecided) for key, shot in shots]
    yield _gauge("snapshot_undecided", "Partitions that no read has told enough of yet.", doubts, labels)
    refused = [(key, shot.refused) for key, shot in shots]
    yield _gauge("snapshot_refused", "Groups of streams of which rows of a snapshot are refused.", refused, labels)
    left = [(key, shot.seconds_left) for key, shot in shots if shot.seconds_left is not None]
    yield _gauge("snapshot_left_seconds", "How long a snapshot takes yet, if it goes on as it does.", left, labels)
    sizes = [(key, table.batch_rows) for key, table in rows]
    yield _histogram("batch_rows", "Log rows of delivered batches: the rows of one write.", sizes, labels)
    skipped = [((*key, kind), count) for key, table in rows for kind, count in sorted(table.skipped.items())]
    yield _counter("skipped", "Changes without a record, by configuration.", skipped, [*labels, "kind"])


def metrics_page(status: Callable[[], ServiceStatus]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StatusCollector(status))
    return generate_latest(registry)


Samples = Sequence[tuple[tuple[str, ...], float]]


def _histogram(
    name: str, text: str, samples: Sequence[tuple[tuple[str, ...], HistogramStatus | None]], labels: list[str]
) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text, labels=labels)
    for key, found in samples:
        if found is not None:
            bounds = [*(repr(float(bound)) for bound in found.bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(found.counts), strict=False))
            family.add_metric([scrub(label) for label in key], buckets, found.sum)
    return family


def _gauge(name: str, text: str, samples: Samples, labels: list[str] | None = None) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels or [])
    for key, value in samples:
        family.add_metric([scrub(label) for label in key], value)
    return family


def _counter(name: str, text: str, samples: Samples, labels: list[str] | None = None) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels or [])
    for key, value in samples:
        family.add_metric([scrub(label) for label in key], value)
    return family
