"""The connector of the demo: its files, as a user would write them, and when it is done.

In: a folder and the servers' addresses. Out: a connector to start, and what its status means.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

from connector.worker.state import State
from connector.worker.status_document import ServiceStatus
from embedded.connectors import JSON_CONVERTERS, RunningConnector
from embedded.demo.schema import TABLES

PREFIX: Final = "demo"
DEAD_LETTERS: Final = f"{PREFIX}.dead-letters"
# Longer than a busy machine may take from reading its clock to having written.
CONFIDENCE_MS: Final = 5000
WORKERS: Final = 2


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
        "snapshot.mode": "initial",
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
        **JSON_CONVERTERS,
        "session.timeout.ms": "3000",
    }
    landing = {
        "name": "demo-landing",
        "bootstrap.servers": kafka,
        "scylla.cluster.ip.addresses": scylla,
        "scylla.confidence.window.size": CONFIDENCE_MS,
        "topic.prefix": PREFIX,
        "tables": names,
        "value.converter": JSON_CONVERTERS["value.converter"],
        "value.converter.schemas.enable": False,
        "warehouse": str(folder / "warehouse"),
        "state.buckets": 1,
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        # A job of half a minute is over before the compiler's second stage pays off; without it Java keeps too little
        # room for what the first one makes.
        "spark.driver.extraJavaOptions": (
            "-XX:+UseSerialGC -XX:-UsePerfData -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
        ),
    }
    documents = {"connector": {"name": "demo", "config": connector}, "worker": worker, "landing": landing}
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")


def service_of(folder: Path) -> RunningConnector:
    """The connector of these files."""
    return RunningConnector(folder / "connector.json", folder / "worker.json", folder / "logs" / "run.log")


def status_of(service: RunningConnector) -> ServiceStatus:
    """What it says of itself; without workers while it does not."""
    return ServiceStatus.model_validate(service.status())


def is_up(status: ServiceStatus) -> bool:
    """All workers run, and every slot is owned by one of them that knows where it stands.

    A worker that restores slots is not said to wait before it has done so for seconds, and knows of nothing in them.
    """
    workers = status.workers
    slots = sum(len(worker.slots) - len(worker.slots_pending) for worker in workers)
    return len(workers) == WORKERS and status.state is State.RUNNING and slots == workers[0].slot_count


def has_passed(status: ServiceStatus, ms: int) -> bool:
    """Everything up to that time has been read by everybody.

    A table without a position counts when nothing of it waits: it has fewer streams than there are slots. Just after a
    rebalance it has none either, because its slots are claimed and the claim is not committed yet.
    """
    tables = [table for worker in status.workers for table in worker.tables.values()]
    return is_up(status) and all(
        table.state is not State.FAILED
        and table.waiting_count == 0
        and (table.position_ms is None or table.position_ms > ms)
        for table in tables
    )


def snapshots_over(status: ServiceStatus) -> bool:
    """The rows from before the logs are committed."""
    return any(worker.snapshots_over for worker in status.workers)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000
