"""Topics and records for tests that land from a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


def create_topics(servers: str, names: Iterable[str], partitions: int = 2) -> None:
    wanted = [NewTopic(name, 1 if name.endswith(".schemas") else partitions, 1) for name in names]
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics(wanted).values():
        future.result(90)


def produce(
    servers: str,
    records: Iterable[tuple[str, bytes | None]],
    transaction: str = "",
    commit: bool = True,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Writes values to topics; in one transaction if it is named, which may end aborted."""
    settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0}
    if transaction:
        settings["transactional.id"] = transaction
    producer = Producer(settings)
    if transaction:
        producer.init_transactions(90)
        producer.begin_transaction()
    for topic, value in records:
        producer.produce(topic, value=value, key=b"key", headers=dict(headers or {}))
        producer.poll(0)
    assert producer.flush(90) == 0
    if transaction and commit:
        producer.commit_transaction(90)
    elif transaction:
        producer.abort_transaction(90)
    if transaction:
        # Answered when the markers stand in every partition: before, landing would find a part of it.
        Producer(settings).init_transactions(90)


def schema_record(keyspace: str, table: str, columns: str, **more: Any) -> bytes:
    """A schemas record; `columns` is `name type kind, …` with key columns in order."""
    described = []
    places: dict[str, int] = {}
    for text in columns.split(";"):
        name, kind, spelled = text.split(None, 2)
        position = -1
        if kind in ("partition_key", "clustering"):
            position = places[kind] = places.get(kind, -1) + 1
        described.append({"name": name, "type": spelled.strip(), "kind": kind, "position": position, "order": "none"})
    output = {"format": "legacy", "collections": "delta", "range_deletes": "topic", "skipped_operations": []}
    record = {
        "keyspace_name": keyspace,
        "table_name": table,
        "table_id": None,
        "version": "1",
        "columns": described,
        "types": {},
        "dropped": [],
        "cdc": {},
        "output": output,
        **more,
    }
    return json.dumps(record).encode()


def change(op: str, time: int, row: dict[str, Any], with_schema: bool = False) -> bytes:
    """A legacy change record; cells of `row` are given as records have them."""
    value = {
        "source": {"version": "2.0.3", "connector": "scylla", "ts_us": time, "ts_ms": time // 1000},
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "op": op,
        "ts_ms": time // 1000,
    }
    return json.dumps({"schema": {"type": "struct"}, "payload": value} if with_schema else value).encode()


def cell(value: Any) -> dict[str, Any]:
    return {"value": value}
