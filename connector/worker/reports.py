"""What `status` knows: every worker's last words from the status topic, and the committed positions.

In: a configuration. Out: one document; it needs no worker to answer, so it works when the connector is down.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from connector.config import Configuration
from connector.delivery.clients import READ_COMMITTED, KafkaClients
from connector.delivery.topic_reader import read_topic
from connector.delivery.topics import topic_partitions
from connector.errors import CdcError, RetriableDeliveryError
from connector.worker.positions import Positions
from connector.worker.settings import kafka_clients

# A worker publishes every few seconds: one that has not for this long is not running any more, whatever it last said.
STALE_MS = 15_000


def status_report(configuration: Configuration) -> dict[str, Any]:
    """State of the connector, its tables and its workers; `warnings` names what somebody should look at."""
    clients = kafka_clients(configuration)
    now = int(time.time() * 1000)
    workers = list(_workers(clients, configuration, now))
    present = [worker for worker in workers if not worker["stale"]]
    tables = {str(table): _table(str(table), present) for table in configuration.connector.reading.tables}
    committed: dict[str, int] = {}
    try:
        for stored in Positions(configuration).stored():
            name = str(stored.table)
            committed[name] = min(committed.get(name, stored.read_to), stored.read_to)
    except RetriableDeliveryError:
        raise
    except CdcError:
        pass  # never ran: there is no offsets topic yet
    for name, table in tables.items():
        table["committed_ms"] = committed.get(name)
        if table["lag_ms"] is None and name in committed:
            table["lag_ms"] = max(0, now - committed[name])
    return {
        "connector": configuration.connector.name,
        "state": _state(present, tables.values()),
        "tables": tables,
        "workers": workers,
        "warnings": _warnings(configuration, present),
    }


def _workers(clients: KafkaClients, configuration: Configuration, now: int) -> Iterable[dict[str, Any]]:
    for status in _last_words(clients, configuration):
        age = now - status["time_ms"]
        yield {**status, "age_ms": age, "stale": age > STALE_MS}


def _table(name: str, workers: list[dict[str, Any]]) -> dict[str, Any]:
    """What all workers together say of a table."""
    parts = [
        worker["tables"][name]
        for worker in workers
        if name in worker["tables"] and (worker["slots"] or worker["tables"][name]["state"] == "FAILED")
    ]
    positions = [part["position_ms"] for part in parts if part.get("position_ms") is not None]
    lags = [part["lag_ms"] for part in parts if part.get("lag_ms") is not None]
    states = {part["state"] for part in parts}
    skipped: dict[str, int] = {}
    for part in parts:
        for kind, count in part.get("skipped", {}).items():
            skipped[kind] = skipped.get(kind, 0) + count
    return {
        "state": next((state for state in ("FAILED", "WAITING", "RUNNING") if state in states), "STOPPED"),
        "position_ms": min(positions, default=None),
        "lag_ms": max(lags, default=None),
        "records": sum(part.get("records", 0) for part in parts),
        "dead_letters": sum(part.get("dead_letters", 0) for part in parts),
        "skipped": skipped,
        "failed_groups": sum(part.get("failed_groups", 0) for part in parts),
        "held": [held for part in parts for held in part.get("held", [])],
        "error": next((part["error"] for part in parts if part.get("error")), None),
    }


def _state(workers: list[dict[str, Any]], tables: Iterable[dict[str, Any]]) -> str:
    if not workers:
        return "STOPPED"
    states = {worker["state"] for worker in workers} | {table["state"] for table in tables}
    return next((state for state in ("FAILED", "WAITING", "RUNNING") if state in states), "STOPPED")


def _warnings(configuration: Configuration, workers: list[dict[str, Any]]) -> list[str]:
    if not workers:
        return []
    warnings = []
    fingerprints = {worker["fingerprint"] for worker in workers}
    if len(fingerprints) > 1:
        warnings.append(f"workers run with {len(fingerprints)} different configurations")
    if configuration.fingerprint() not in fingerprints:
        warnings.append("no worker runs with the configuration of these files")
    slot_count = max(worker["slot_count"] for worker in workers)
    owned = {slot for worker in workers for slot in worker["slots"]}
    nobody = sorted(set(range(slot_count)) - owned)
    if nobody:
        warnings.append(f"slots {', '.join(map(str, nobody))} are owned by nobody")
    for worker in workers:
        missing = {str(table) for table in configuration.connector.reading.tables} - set(worker["tables_configured"])
        if missing and worker["slots"]:
            warnings.append(
                f"worker {worker['worker']} does not know {', '.join(sorted(missing))}: nobody reads them in its slots"
            )
    return warnings


def _last_words(clients: KafkaClients, configuration: Configuration) -> list[dict[str, Any]]:
    topic = configuration.worker.status.name
    partitions = topic_partitions(clients.admin()).get(topic)
    if not partitions:
        return []
    found: dict[str, dict[str, Any]] = {}
    for record in read_topic(clients, topic, partitions, configuration.group, READ_COMMITTED):
        _take(configuration.connector.name, record.key, record.value, found)
    return [found[name] for name in sorted(found)]


def _take(connector: str, key: bytes | None, value: bytes | None, found: dict[str, dict[str, Any]]) -> None:
    try:
        name, who = json.loads(key or b"[0,0]")
        status = json.loads(value) if value is not None else None
    except ValueError:
        return
    if name != connector or not isinstance(who, dict) or "worker" not in who:
        return
    if status is None:
        found.pop(who["worker"], None)
    else:
        found[who["worker"]] = status
