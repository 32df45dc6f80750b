"""A run of what was deployed for Kafka Connect: a script that registers the connector, a compose file of the worker."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from cassandra.cluster import Session

from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]


def variable(name: str) -> str:
    return "CONNECT_" + name.upper().replace("_", "__").replace("-", "___").replace(".", "_")


def test_a_script_and_a_compose_file_are_run_as_they_are(
    service: Callable[..., Service], session: Session, make_table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    config = json.loads(connector.config_file.read_text())["config"]
    worker = json.loads(connector.worker_file.read_text())
    folder = connector.config_file.parent / f"{connector.name}-deployed"
    folder.mkdir()

    script, compose = folder / "create.sh", folder / "compose.yaml"
    config["connector.class"] = "com.scylladb.cdc.debezium.connector.ScyllaConnector"
    config["scylla.table.names"] = "\0"
    body = json.dumps(config, indent=2).replace('"\\u0000"', '"\'"$TABLE"\'"')
    url = "http://localhost:8083/connectors/$NAME/config"
    script.write_text(f"#!/bin/sh\nNAME={connector.name}\ncurl -X PUT {url} -d '{body}'\n")
    group = worker.pop("group.id")
    brokers = worker.pop("bootstrap.servers")
    (folder / "connect.env").write_text("".join(f"{variable(name)}='{text}'\n" for name, text in worker.items()))
    (folder / ".env").write_text(f"GROUP={group} # of all workers\n")
    environment = {"CONNECT_BOOTSTRAP_SERVERS": "${BROKERS:?where}", "CONNECT_GROUP_ID": "$GROUP"}
    services = {"connect": {"env_file": "connect.env", "environment": environment}, "ui": {"image": "ui"}}
    compose.write_text(json.dumps({"services": services}))
    monkeypatch.setenv("TABLE", table)
    monkeypatch.setenv("BROKERS", brokers)
    assert not {name for name in os.environ if name.startswith("CONNECT_")}

    run = connector.start(str(script), "--worker", str(compose), files=False)
    for number in range(10):
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number}, 0, 'v')")
    assert exactly_once(connector, session, table) == 10
    connector.stopped(run)
