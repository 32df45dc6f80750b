"""Many tables in one landing job: what a start costs, what silence costs, and how late a row lands after it.

python -m bench landing_tables [--tables N] [--sink delta|iceberg] [--trigger MS] [--publish MS] [--idle S] [--json].
`scylla-cdc land` runs as a user starts it, beside a broker of this machine. Processor time is that of the job with
Spark in it. Needs a /proc.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench._processor import children, tree_cpu_seconds
from bench._service import peak_memory
from bench.landing import PREFIX, Figures, changes, definition, fill
from embedded.kafka import EmbeddedKafka

ROWS, WOKEN = 10, 10
TOPICS_AT_ONCE = 50
PATIENCE_S = 3_600


class Job:
    """One `scylla-cdc land`, and what it has told of its tables."""

    def __init__(self, config: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "connector", "land", str(config), "--json"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.tables: dict[str, dict[str, Any]] = {}
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith(b'{"progress"'):
                self.tables = json.loads(line)["progress"]["tables"]
            else:
                self.said = [*self.said[-20:], line.decode(errors="replace").rstrip()]

    @property
    def rows(self) -> int:
        return sum(table["rows"] for table in self.tables.values())

    @property
    def cpu(self) -> float:
        return tree_cpu_seconds(self.process.pid) or 0.0

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("\n".join(["landing ended:", *self.said]))
            time.sleep(0.05)

    def peak_memory(self) -> int:
        """Of the process and of Spark's, in MB."""
        found = 0.0
        waiting = [self.process.pid]
        while waiting:
            pid = waiting.pop()
            waiting += children(pid)
            with contextlib.suppress(OSError, StopIteration):  # it has just ended
                found += peak_memory(pid)
        return round(found)


def table_definition(name: str) -> bytes:
    return json.dumps({**json.loads(definition()), "table_name": name}).encode()


def write(servers: str, tables: list[str], first: int, rows: int) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for table in tables:
        for value in changes(first, rows, rows, insert=True):
            producer.produce(f"{PREFIX}.ks.{table}", value=value)
    if producer.flush(120):
        raise SystemExit("Kafka has not taken all rows")


def create_topics(servers: str, tables: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    names = [f"{PREFIX}.schemas", *(f"{PREFIX}.ks.{table}" for table in tables)]
    for at in range(0, len(names), TOPICS_AT_ONCE):
        wanted = [NewTopic(name, 1, 1) for name in names[at : at + TOPICS_AT_ONCE]]
        for future in admin.create_topics(wanted).values():
            future.result(120)


def measure(servers: str, folder: Path, args: argparse.Namespace) -> Figures:
    figures, tables = Figures(), [f"t{number:04}" for number in range(args.tables)]
    create_topics(servers, tables)
    fill(servers, f"{PREFIX}.schemas", map(table_definition, tables))
    write(servers, tables, 0, ROWS)
    config, warehouse = folder / "landing.json", folder / "warehouse"
    config.write_text(
        json.dumps(
            {
                "name": "bench",
                "bootstrap.servers": servers,
                "topic.prefix": PREFIX,
                "tables": [f"ks.{table}" for table in tables],
                "value.converter.schemas.enable": False,
                "publish.interval.ms": args.publish,
                "trigger.interval.ms": args.trigger,
                "sink": args.sink,
                "warehouse": str(warehouse),
                "spark.master": "local[2]",
                "spark.driver.memory": args.memory,
            }
        )
    )
    began, job = time.monotonic(), Job(config)
    try:
        job.until(lambda: job.rows >= args.tables * ROWS)
        figures["until the rows of all tables have landed, s"] = round(time.monotonic() - began, 1)
        figures["CPU-seconds, per table"] = f"{job.cpu:.1f}, {job.cpu / args.tables:.2f}"
        if args.publish:
            job.until(lambda: _published(warehouse) >= args.tables)
            figures["until all are published, s"] = round(time.monotonic() - began, 1)
            figures["CPU-seconds until then, per table"] = f"{job.cpu:.1f}, {job.cpu / args.tables:.2f}"
        time.sleep(args.idle / 4)
        before, since, commits = job.cpu, time.monotonic(), _commits(warehouse)
        time.sleep(args.idle)
        share = (job.cpu - before) / (time.monotonic() - since)
        figures["share of one core while nothing is written"] = f"{100 * share:.1f} %"
        figures["commits meanwhile"] = _commits(warehouse) - commits
        woken = tables[:: max(1, len(tables) // WOKEN)][:WOKEN]
        write(servers, woken, 1_000, 1)
        since = time.monotonic()
        job.until(lambda: job.rows >= args.tables * ROWS + len(woken))
        figures[f"a row to each of {len(woken)} tables, all landed after, s"] = round(time.monotonic() - since, 1)
        figures["peak memory, MB"] = job.peak_memory()
        figures["failures"] = sum(table["failures"] for table in job.tables.values())
        since = time.monotonic()
        job.process.send_signal(signal.SIGTERM)
        figures["exit status"] = job.process.wait(600)
        figures["until it has ended, s"] = round(time.monotonic() - since, 1)
    finally:
        job.process.kill()
        job.process.wait()
    return figures


def _published(warehouse: Path) -> int:
    """The tables that have a first version with rows."""
    written = [*warehouse.glob("ks/*/_delta_log/*0.json"), *warehouse.glob("ks/*/metadata/snap-*.avro")]
    return len({file.parent.parent for file in written if "__" not in file.parent.parent.name})


def _commits(warehouse: Path) -> int:
    return sum(1 for place in ("_delta_log/*.json", "metadata/*.metadata.json") for _ in warehouse.rglob(place))


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m bench landing_tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--sink", choices=("delta", "iceberg"), default="delta", help="the tables' format (delta)")
    parser.add_argument("--trigger", type=int, default=10_000, help="trigger.interval.ms")
    parser.add_argument("--publish", type=int, default=60_000, help="publish.interval.ms; 0 publishes nothing")
    parser.add_argument("--memory", default="4g", help="spark.driver.memory")
    parser.add_argument("--idle", type=float, default=60, help="seconds of silence that are measured")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    args = parser.parse_args()
    with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        figures = measure(kafka.bootstrap_servers, Path(folder), args)
    if args.json:
        print(json.dumps(figures))
        return {}
    return dict(figures)


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
