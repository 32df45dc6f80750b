"""Nothing stops its neighbours: what ails one table is named, others are delivered, and it is over by itself.

A data topic that does not exist while topics may not be created; what a Schema Registry answers. Topics that refuse
are in `tests/simulation/test_simulation_refusals.py`, several connectors of one `run` in `test_worker_tenants.py`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from cassandra.cluster import Session
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from embedded.kafka import EmbeddedKafka
from tests.registry.registry_server import Registry, served
from tests.servers.patience import patience, seldom, until
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., Service]


def tables_of(connector: Service) -> dict[str, Any]:
    status = json.loads(connector.get("/status")[1])
    return {name: table for worker in status["workers"] for name, table in worker["tables"].items()}


def told(connector: Service, table: str) -> tuple[str, str]:
    status = tables_of(connector).get(table, {})
    return str(status.get("state")), "; ".join([str(status.get("error")), *status.get("failing", [])])


def test_a_topic_that_nobody_may_create_is_waited_for(
    service: Make, session: Session, make_table: Callable[..., str], kafka: EmbeddedKafka
) -> None:
    table, other = make_table(tablets=True), make_table(tablets=True)
    connector = service([table, other], connector={"tasks.max": "1"}, worker={"topic.creation.enable": "false"})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})

    def create(topic: str) -> None:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=60 * patience())

    create(connector.topic(other))
    assert "the topic does not exist" in connector.command("validate").stderr
    run = connector.start("--http-port", "0")
    for each in (table, other):
        session.execute(f"INSERT INTO {each} (pk, ck, v) VALUES (1, 0, 'v')")
    assert exactly_once(connector, session, other) == 1

    def waits() -> bool:
        state, why = told(connector, table)
        return state == "WAITING" and "topic.creation.enable is false" in why

    until(waits, 90, lambda: f"a wait: {told(connector, table)}")
    create(connector.topic(table))
    assert exactly_once(connector, session, table) == 1
    assert connector.stop(run) == 0


#: What a registry may say to a schema, and what is then said of its table.
ANSWERS: list[tuple[int, Any, str]] = [
    (401, {"error_code": 40101, "message": "who are you"}, "the login was refused"),
    (403, {"error_code": 40301, "message": "not yours"}, "grant read and write on the subject"),
    (404, {"error_code": 40401, "message": "no such subject"}, "not found"),
    (405, b"no", "refused (HTTP 405)"),
    (409, {"error_code": 409, "message": "not backward"}, "incompatible with the one registered before"),
    (422, {"error_code": 42201, "message": "no schema"}, "takes the schema for invalid"),
    (307, b"", "refused (HTTP 307)"),
    (200, b"<html>log in first</html>", "its answer is not JSON"),
    (200, {"version": 1}, "its answer has no id"),
    (200, {"id": 2**40}, "is not a Schema Registry: the id of"),
    (429, b"", "HTTP 429"),
    (503, b"starting", "HTTP 503"),
    (200, threading.Event(), "has not answered for subject"),
]


@pytest.mark.only_double("a registry that this machine serves to fourteen tables")
def test_thirteen_answers_of_a_schema_registry_hold_up_their_own_table_only(
    service: Make, session: Session, make_table: Callable[..., str]
) -> None:
    """And are over once the registry answers as it should: each row once."""
    registry = Registry()
    tables = [make_table(tablets=True) for _ in range(len(ANSWERS) + 1)]
    healthy, refused = tables[0], dict(zip(tables[1:], ANSWERS, strict=True))
    with served(registry) as address:
        avro = {
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": address,
        }
        connector = service(tables, connector={"tasks.max": "1"}, worker=avro)
        for table, (status, answer, _) in refused.items():
            registry.refused[f"/{connector.topic(table)}-value"] = (status, answer)
        run = connector.start("--http-port", "0")
        for table in tables:
            session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (1, 0, 'v')")
        workers = until(lambda: connector.workers(run), 60, "a worker")
        until(lambda: _counted(connector, healthy) == 1, 120, "the record of the table that nothing ails", step=seldom)
        for table, (_, _, words) in refused.items():
            until(
                lambda: told(connector, table)[0] == "WAITING" and words in told(connector, table)[1],  # noqa: B023
                90,
                lambda: f"{words}: {told(connector, table)}",  # noqa: B023
            )
            assert _counted(connector, table) == 0
        session.execute(f"INSERT INTO {healthy} (pk, ck, v) VALUES (2, 0, 'v')")
        until(lambda: _counted(connector, healthy) == 2, 60, "the next record of that table", step=seldom)
        assert connector.workers(run) == workers, "the same process as at the start"
        registry.refused.clear()
        for _, answer, _ in ANSWERS:
            if isinstance(answer, threading.Event):
                answer.set()
        for table in refused:
            until(lambda: _counted(connector, table) == 1, 120, lambda: f"{told(connector, table)}", step=seldom)  # noqa: B023
        until(lambda: connector.get("/health")[0] == 200, 60, "health")
        assert connector.stop(run) == 0


def _counted(connector: Service, table: str) -> int:
    """Records of a table, whatever is in them."""
    return len(connector.delivered(connector.topic(table), read=bytes))
