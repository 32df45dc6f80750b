"""Nothing stops its neighbours: what ails one table is named, others are delivered, and it is over by itself.

A data topic that does not exist while topics may not be created. Topics that refuse are in
`tests/simulation/test_simulation_refusals.py`, several connectors of one `run` in `test_worker_tenants.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cassandra.cluster import Session
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from embedded.kafka import EmbeddedKafka
from tests.servers.patience import until
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., Service]


def tables_of(connector: Service) -> dict[str, Any]:
    status = json.loads(connector.get("/status")[1])
    [worker] = status["workers"]
    return dict(worker["tables"])


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
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=60)

    create(connector.topic(other))
    assert "the topic does not exist" in connector.command("validate").stderr
    run = connector.start("--http-port", "0")
    for each in (table, other):
        session.execute(f"INSERT INTO {each} (pk, ck, v) VALUES (1, 0, 'v')")
    assert exactly_once(connector, session, other) == 1
    until(lambda: told(connector, table)[0] == "WAITING", 90, lambda: f"a wait: {told(connector, table)}")
    assert "topic.creation.enable is false" in told(connector, table)[1]
    create(connector.topic(table))
    assert exactly_once(connector, session, table) == 1
    assert connector.stop(run) == 0
