"""A run without files: connectors come, change and go through Kafka Connect's API, and the next process knows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cassandra.cluster import Session
from confluent_kafka.admin import AdminClient

from tests.servers.patience import seldom, until
from tests.worker.harness import Service, exactly_once, found

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number % 10}, {number}, 'v{number}')")


def listed(connector: Service) -> Any:
    return json.loads(connector.get("/connectors")[1])


def tables(connector: Service) -> dict[str, Any]:
    (worker,) = json.loads(connector.get("/status")[1])["workers"]
    return dict(worker["tables"])


def test_connectors_come_change_and_go(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str]
) -> None:
    table, other = make_table(tablets=True), make_table(tablets=True)
    connector = service([table], connector={"tasks.max": "1"})
    path, definition = f"/connectors/{connector.name}", json.loads(connector.config_file.read_text())
    for each in (table, other):
        insert(session, each, range(20))
    run = connector.start("--http-port", "0", files=False)
    assert listed(connector) == []
    until(lambda: connector.get("/ready")[0] == 200, 90, "what was asked before to be known")
    assert connector.post("/connectors", body=definition) == 201
    assert listed(connector) == [connector.name]
    assert exactly_once(connector, session, table) == 20

    alone = definition["config"]
    both = {**alone, "scylla.table.names": f"{table},{other}"}
    readers = connector.workers(run)
    assert connector.post(f"{path}/config", "PUT", both) == 200
    assert exactly_once(connector, session, other) == 20

    assert connector.post(f"{path}/config", "PUT", alone) == 200
    until(lambda: list(tables(connector)) == [table], 90, "the end of a table's reading")
    for each in (table, other):
        insert(session, each, range(20, 25))
    assert exactly_once(connector, session, table) == 25
    assert sum(found(connector, other).values()) == 20, "it is not read any more"
    assert connector.post(f"{path}/config", "PUT", both) == 200
    assert exactly_once(connector, session, other) == 25
    assert connector.workers(run) == readers, "by the process that reads the other table all the time"
    connector.config_file.write_text(json.dumps({**definition, "config": both}))
    until(lambda: connector.report()["warnings"] == [], 90, "a worker that runs with what is configured")
    connector.stopped(run)

    insert(session, table, range(25, 30))
    run = connector.start("--http-port", "0", files=False)
    until(lambda: connector.log.count("REST API on") == 2, 90, "its port")
    until(lambda: listed(connector) == [connector.name], 90, "a start that remembers")
    assert exactly_once(connector, session, table) == 30
    assert connector.post(f"{path}/stop", "PUT") == 204
    # A worker that ended in a hurry is a member of its group until its session is over.
    until(lambda: connector.ask(f"{path}/offsets", "DELETE") == 200, 90, "positions that are no more", step=seldom)
    assert json.loads(connector.get(f"{path}/offsets")[1]) == {"offsets": []}
    # Somebody deletes the topic as well: there is still a way to say where to begin.
    admin, topic = AdminClient({"bootstrap.servers": connector.kafka}), f"{connector.name}-offsets"
    admin.delete_topics([topic])[topic].result(60)
    begin = [
        {
            "partition": dict(zip(("keyspace_name", "table_name"), table.split("."), strict=True)),
            "offset": {"read_to": 1_760_000_000_000},
        }
    ]
    # Not everybody may know at once that it is gone.
    wanted = {"offsets": begin}
    until(lambda: connector.ask(f"{path}/offsets", "PATCH", wanted) == 200, 90, "positions anew", step=seldom)
    moved = json.loads(connector.get(f"{path}/offsets")[1])["offsets"]
    assert len(moved) == 6 and {each["offset"]["read_to"] for each in moved} == {1_760_000_000_000}
    assert connector.post(path, "DELETE") == 204
    assert listed(connector) == []
    until(lambda: not connector.workers(run), 90, "the end of its workers")
    assert run.poll() is None
