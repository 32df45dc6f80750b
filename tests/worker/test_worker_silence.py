"""What `run` shows of work beside the reading that fails: state, health, metrics, status, log; and that it recovers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from tests.delivery.registry_server import Registry, served
from tests.servers.double import Double
from tests.servers.patience import until
from tests.worker.harness import Service, exactly_once

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.only_double("servers that refuse on demand"),
]
Make = Callable[..., Service]
MakeTable = Callable[..., str]

WATCHED = "cdc_timestamps|cdc_generation_timestamps"


@pytest.fixture(autouse=True)
def _no_fault_is_left(scylla: Double) -> Iterator[None]:
    yield
    scylla.admin.clear_faults()


@pytest.fixture
def table(make_table: MakeTable) -> str:
    return make_table(tablets=True)


def insert(session: Session, table: str, pk: int) -> None:
    session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, 0, 'v')")


def health(connector: Service) -> tuple[int, dict[str, Any]]:
    code, body = connector.get("/health")
    return code, json.loads(body)


def healthy(connector: Service) -> bool:
    return health(connector)[0] == 200


def waits_for(connector: Service, words: str) -> bool:
    code, body = health(connector)
    return code == 503 and words in (body["waiting_for"] or "")


def failing_seconds(connector: Service, task: str) -> float:
    lines = connector.get("/metrics")[1].splitlines()
    marker = f'scylla_cdc_background_failing_seconds{{connector="{connector.name}",task="{task}"'
    return max(float(line.split()[-1]) for line in lines if line.startswith(marker))


def test_a_worker_that_cannot_see_new_stream_sets_is_not_running(
    service: Make, session: Session, scylla: Double, table: str
) -> None:
    connector = service([table])
    run = connector.start("--http-port", "0")
    until(lambda: healthy(connector), 90, "good health")
    assert failing_seconds(connector, "stream_sets") == 0
    fault = scylla.admin.add_fault("server_error", pattern=WATCHED)
    until(lambda: waits_for(connector, "new stream sets"), 90, "bad health")
    code, body = health(connector)
    assert (code, body["state"]) == (503, "WAITING")
    for text in (f"{table}: new stream sets are not seen since 20", scylla.address, "ServerError", "may be waiting"):
        assert text in body["waiting_for"]
    assert failing_seconds(connector, "stream_sets") > 2
    until(lambda: "new stream sets" in connector.command("status").stdout, 90, "the status topic")
    report = json.loads(connector.command("status", "--json").stdout)
    assert report["state"] == report["tables"][table]["state"] == "WAITING"
    assert "new stream sets" in report["tables"][table]["failing"][0]
    [failing] = report["workers"][0]["background"]
    assert failing["task"] == "stream_sets"
    assert failing["attempts"] > 1
    assert failing["since_ms"] < report["workers"][0]["time_ms"]

    scylla.admin.remove_fault(fault)
    insert(session, table, 1)
    assert exactly_once(connector, session, table) == 1
    until(lambda: healthy(connector), 90, "good health again")
    assert failing_seconds(connector, "stream_sets") == 0
    assert connector.stop(run) == 0
    told = [line for line in connector.log.splitlines() if "new stream sets are not seen" in line]
    assert 2 <= len(told) <= 6, "by each worker, in each interval: attempts are no reason to say it again"
    assert len([line for line in connector.log.splitlines() if "works again after" in line]) >= 2


def test_clocks_and_descriptions_that_fail_are_seen(
    service: Make, session: Session, scylla: Double, table: str
) -> None:
    connector = service([table], connector={"tasks.max": "1"})
    connector.start("--http-port", "0")
    until(lambda: healthy(connector), 90, "good health")
    scylla.admin.add_fault("server_error", pattern="toTimestamp")
    scylla.admin.add_fault("read_timeout", pattern="system_schema")
    until(lambda: failing_seconds(connector, "clock") and failing_seconds(connector, "description"), 120, "both")
    code, body = health(connector)
    assert (code, body["state"]) == (200, "RUNNING"), f"nothing waits for them: {body}"
    assert any("the servers' time" in text for text in body["failing"])
    assert any("columns are not seen" in text for text in body["failing"])
    insert(session, table, 1)
    assert exactly_once(connector, session, table) == 1
    scylla.admin.clear_faults()
    until(lambda: not health(connector)[1]["failing"], 90, "recovery")


def test_a_registry_that_is_away_or_refuses_stops_its_own_tables_only(
    service: Make, session: Session, make_table: MakeTable, table: str
) -> None:
    other = make_table(tablets=True)
    registry = Registry()
    with served(registry) as url:
        connector = service(
            [table, other],
            connector={"tasks.max": "1"},
            worker={
                "value.converter": "io.confluent.connect.avro.AvroConverter",
                "value.converter.schema.registry.url": url,
            },
        )
        connector.start("--http-port", "0")
        until(lambda: healthy(connector), 90, "good health")
        # What a proxy says of a registry that is away, then what a registry says of a schema that it does not take.
        registry.refused[table] = (503, {})
        insert(session, table, 1)
        until(lambda: waits_for(connector, f"{table}: changes do not become records since"), 90, "bad health")
        _, body = health(connector)
        assert body["state"] == "WAITING"
        assert url in body["waiting_for"]
        assert failing_seconds(connector, "records") > 2
        registry.refused[table] = (409, {"error_code": 409, "message": "incompatible"})
        until(lambda: waits_for(connector, "the schema is incompatible"), 90, "the newer cause")
        insert(session, other, 1)
        until(lambda: records(connector, other) == 1, 90, "the neighbour's record")
        aborted = f'scylla_cdc_aborted_transactions_total{{connector="{connector.name}",worker="0"}} 0.0'
        assert aborted in connector.get("/metrics")[1], "no reason to take back what others have done"
        registry.refused.clear()
        until(lambda: healthy(connector), 90, "good health again")
        assert records(connector, table) == 1
        said = [line for line in connector.log.splitlines() if "do not become records" in line]
        assert 1 <= len(said) <= 4


def records(connector: Service, table: str) -> int:
    status = json.loads(connector.get("/status")[1])
    return sum(int(worker["tables"][table]["records"]) for worker in status["workers"])


def lag(connector: Service) -> float:
    lines = connector.get("/metrics")[1].splitlines()
    return max(float(line.split()[-1]) for line in lines if line.startswith("scylla_cdc_lag_seconds{"))


def _delivered(connector: Service, table: str, count: int) -> bool:
    return records(connector, table) >= count


def test_a_worker_that_hangs_is_not_running(service: Make, table: str) -> None:
    connector = service([table], connector={"tasks.max": "1"})
    run = connector.start("--http-port", "0")
    until(lambda: healthy(connector), 90, "good health")
    until(lambda: "scylla_cdc_lag_seconds{" in connector.get("/metrics")[1], 90, "a lag")
    [worker] = connector.workers(run)
    os.kill(worker, signal.SIGSTOP)
    try:
        until(lambda: waits_for(connector, f"pid {worker}"), 90, "bad health")
        assert health(connector)[1]["state"] == "WAITING"
        until(lambda: lag(connector) > 10, 60, "a lag that grows, whether or not the worker says so")
    finally:
        os.kill(worker, signal.SIGCONT)
    until(lambda: healthy(connector), 90, "good health again")


def test_a_scylla_that_says_nothing_is_named_at_once(service: Make, scylla: Double, table: str) -> None:
    """Its connections stand, and its stream sets are looked for every ten seconds only."""
    connector = service([table], connector={"tasks.max": "1", "scylla.confidence.window.size": "30000"})
    connector.start("--http-port", "0")
    until(lambda: healthy(connector), 90, "good health")
    scylla.admin.add_fault("silence")
    until(lambda: waits_for(connector, "ScyllaDB does not answer"), 30, "bad health")
    assert scylla.address in health(connector)[1]["waiting_for"]
    scylla.admin.clear_faults()
    until(lambda: healthy(connector), 90, "good health again")


def test_kafka_that_is_away_is_a_state_with_a_reason(
    own_kafka: EmbeddedKafka, service: Make, session: Session, table: str
) -> None:
    connector = service(
        [table], connector={"tasks.max": "1"}, worker={"bootstrap.servers": own_kafka.bootstrap_servers}
    )
    connector.start("--http-port", "0")
    until(lambda: healthy(connector), 90, "good health")
    insert(session, table, 1)
    until(lambda: "scylla_cdc_lag_seconds{" in connector.get("/metrics")[1], 90, "a lag")
    own_kafka.pause()
    try:
        until(lambda: not healthy(connector), 120, "bad health")
        until(lambda: waits_for(connector, f"Kafka at {own_kafka.bootstrap_servers}"), 60, "where it should be")
        until(lambda: lag(connector) > 20, 60, "a lag that grows: an alert must be able to fire")
    finally:
        own_kafka.resume()
    until(lambda: healthy(connector), 120, "good health again")
