"""What is not there is waited for, by name and cause, and whatever `run` waits for, it ends within ten seconds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from embedded import ports
from embedded.kafka import EmbeddedKafka
from tests.servers.double import Double
from tests.servers.patience import until
from tests.worker.harness import Service, exactly_once

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.only_double("servers that are away on demand"),
]
SCYLLA, KAFKA = "scylla.cluster.ip.addresses", "bootstrap.servers"
# Containers are killed ten seconds after SIGTERM; the rest is for a busy machine.
END_SECONDS = 12.0


@pytest.fixture
def mute() -> Iterator[str]:
    """A server that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    return f"127.0.0.1:{ports.free_port()}"


def ended_in_time(connector: Service) -> None:
    [run] = connector.runs
    assert connector.stop(run, END_SECONDS) == 0


def test_whatever_is_away_at_the_start_is_named_and_the_wait_ends_in_time(
    tmp_path: Path,
    scylla: Double,
    kafka: EmbeddedKafka,
    make_table: Callable[..., str],
    unique: Callable[[str], str],
    mute: str,
    closed: str,
) -> None:
    table = make_table(tablets=True)
    avro = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    registry = "value.converter.schema.registry.url"
    cases: list[tuple[dict[str, str], dict[str, str], tuple[str, ...]]] = [
        ({SCYLLA: "no-such-host.invalid:9042"}, {}, ("no-such-host.invalid:9042", "the name does not resolve")),
        ({SCYLLA: closed}, {}, (closed, "refused")),
        ({SCYLLA: mute}, {}, ()),
        ({}, {KAFKA: "no-such-host.invalid:9092"}, ("Kafka at no-such-host.invalid:9092", "the name does not resolve")),
        ({}, {KAFKA: closed}, (f"Kafka at {closed}", "connection refused")),
        ({}, {KAFKA: mute}, ()),
        ({}, {**avro, registry: "http://no-such-host.invalid:8081"}, ("no-such-host.invalid",)),
        ({}, {**avro, registry: f"http://{mute}"}, ()),
    ]
    made = []
    try:
        for connector, worker, words in cases:
            each = Service(tmp_path, scylla, kafka.bootstrap_servers, unique("w"), [table], connector, worker)
            each.start("--http-port", "0")
            made.append((each, words))
        for each, words in made:
            until(lambda: "metrics, health, status and Kafka Connect's REST API on" in each.log, 120, "its start")  # noqa: B023
            if words:
                until(lambda: all(word in _waiting(each) for word in words), 90, lambda: f"{words} in {_waiting(each)}")  # noqa: B023
            ended_in_time(each)
    finally:
        for each, _ in made:
            each.close()


def _waiting(connector: Service) -> str:
    code, body = connector.get("/health")
    return (json.loads(body)["waiting_for"] or "") if code == 503 else ""


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)


def test_it_ends_in_time_while_slots_are_restored_and_beside_a_silent_source(
    own_kafka: EmbeddedKafka, service: Callable[..., Service], scylla: Double, make_table: Callable[..., str]
) -> None:
    away = {KAFKA: own_kafka.bootstrap_servers}
    connector = service([make_table(tablets=True)], connector={"tasks.max": "1"}, worker=away)
    connector.start("--http-port", "0")
    until(lambda: "REST API on" in connector.log, 120, "its port")
    # Between having its slots and having restored them, as near as a test can tell.
    until(lambda: "restored" in _waiting(connector) or "claimed slots" in connector.log, 120, "slots")
    own_kafka.pause()
    try:
        ended_in_time(connector)
    finally:
        own_kafka.resume()

    (connector.folder / f"{connector.name}.log").write_text("")
    connector.start("--http-port", "0")
    until(lambda: "claimed slots" in connector.log, 120, "its slots")
    scylla.admin.add_fault("silence")
    try:
        until(lambda: "ScyllaDB does not answer" in _waiting(connector), 60, "word of the silence")
        ended_in_time(connector)
    finally:
        scylla.admin.clear_faults()


def test_it_ends_in_time_beside_a_frozen_broker_and_with_frozen_workers(
    own_kafka: EmbeddedKafka,
    service: Callable[..., Service],
    session: Session,
    make_table: Callable[..., str],
) -> None:
    table = make_table(tablets=True)
    connector = service([table], connector={"tasks.max": "1"}, worker={KAFKA: own_kafka.bootstrap_servers})
    connector.kafka = own_kafka.bootstrap_servers
    run = connector.start("--http-port", "0")
    session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (1, 0, 'v')")
    assert exactly_once(connector, session, table) == 1
    with stopped(*connector.workers(run)):
        until(lambda: "has not reported" in _waiting(connector), 60, "word of the worker")
        ended_in_time(connector)

    (connector.folder / f"{connector.name}.log").write_text("")
    connector.start("--http-port", "0")
    session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (2, 0, 'v')")
    assert exactly_once(connector, session, table) == 2
    lag = "scylla_cdc_lag_seconds{"
    # The first record may be there before the worker has said anything.
    until(lambda: lag in connector.get("/metrics")[1], what="the first report")
    own_kafka.pause()
    try:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (3, 0, 'v')")
        address = own_kafka.bootstrap_servers
        until(lambda: address in _waiting(connector), 60, lambda: f"{address} in {_waiting(connector)}")
        assert lag in connector.get("/metrics")[1], "no figure vanishes"
        ended_in_time(connector)
    finally:
        # For a while after its thaw it would answer nobody who begins with it.
        own_kafka.kill()
