"""Metrics in Prometheus' text format, made from the workers' status reports when somebody asks.

In: the supervisor's status. Out: the page for `/metrics`. The names are documented in ``docs/operations.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX = "scylla_cdc_"

# name, help, where in a table's status; counters of one worker restart with it, as Prometheus expects.
TABLE_COUNTERS = (
    ("records", "Records delivered, those of aborted transactions included.", "records"),
    ("dead_letters", "Batches that became dead letters.", "dead_letters"),
)
TABLE_GAUGES = (
    ("failed_groups", "Groups of streams that have failed and are not read.", "failed_groups"),
    ("held_groups", "Groups and slots that wait for something.", "held_count"),
)
WORKER_COUNTERS = (
    ("rows", "Log rows read.", "reading", "rows"),
    ("queries", "Queries sent to ScyllaDB.", "reading", "queries"),
    ("read_errors", "Reads that failed and were tried again.", "reading", "retries"),
    ("transactions", "Transactions committed.", "delivery", "commits"),
    ("aborted_transactions", "Transactions aborted.", "delivery", "aborts"),
    ("rebalances", "Changes of the slots that the worker owns.", "delivery", "rebalances"),
)


class StatusCollector(Collector):
    """Turns a status into metrics at each scrape."""

    def __init__(self, status: Callable[[], dict[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        yield _gauge("workers", "Worker processes running.", [((), status["workers_running"])])
        yield _counter("worker_restarts", "Worker processes that ended.", [((), status["restarts"])])
        workers = status["workers"]
        label = ["worker"]
        for name, text, room, member in WORKER_COUNTERS:
            yield _counter(name, text, [((str(w["index"]),), w[room][member]) for w in workers], label)
        yield _gauge(
            "slots", "Slots that the worker owns.", [((str(w["index"]),), len(w["slots"])) for w in workers], label
        )
        skew = [((str(w["index"]),), w["clock_skew_ms"] / 1000) for w in workers]
        yield _gauge("clock_skew_seconds", "Servers' time minus this machine's.", skew, label)
        yield from _tables(workers)


def _tables(workers: list[dict[str, Any]]) -> Iterator[Metric]:
    labels = ["worker", "table"]
    rows = [
        ((str(worker["index"]), name), table)
        for worker in workers
        for name, table in worker["tables"].items()
        if "records" in table
    ]
    lags = [(key, table["lag_ms"] / 1000) for key, table in rows if table["lag_ms"] is not None]
    yield _gauge("lag_seconds", "How far the table's slowest stream is behind the servers' time.", lags, labels)
    for name, text, member in TABLE_COUNTERS:
        yield _counter(name, text, [(key, table[member]) for key, table in rows], labels)
    for name, text, member in TABLE_GAUGES:
        yield _gauge(name, text, [(key, table[member]) for key, table in rows], labels)
    skipped = [((*key, kind), count) for key, table in rows for kind, count in sorted(table["skipped"].items())]
    yield _counter("skipped", "Changes without a record, by configuration.", skipped, [*labels, "kind"])


def metrics_page(status: Callable[[], dict[str, Any]]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StatusCollector(status))
    return generate_latest(registry)


Samples = Sequence[tuple[tuple[str, ...], float]]


def _gauge(name: str, text: str, samples: Samples, labels: list[str] | None = None) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels or [])
    for key, value in samples:
        family.add_metric(list(key), value)
    return family


def _counter(name: str, text: str, samples: Samples, labels: list[str] | None = None) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels or [])
    for key, value in samples:
        family.add_metric(list(key), value)
    return family
