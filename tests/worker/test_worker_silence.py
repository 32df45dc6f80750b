"""What `run` shows of work beside the reading that fails: state, health, metrics, status, log; and that it recovers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cassandra.cluster import Session

from connector.source.background import TELL_SECONDS
from embedded.kafka import EmbeddedKafka
from tests.registry.registry_server import Registry, served
from tests.servers.double import Double
from tests.servers.patience import seldom, until
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


@pytest.fixture
def service(service: Make) -> Make:
    """One whose workers stay in their group on a machine that is busy with something else."""

    def make(tables: list[str], worker: dict[str, str] | None = None, **settings: dict[str, str]) -> Service:
        return service(tables, worker={"session.timeout.ms": "45000", **(worker or {})}, **settings)

    return make


def insert(session: Session, table: str, pk: int) -> None:
    session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, 0, 'v')")


def health(connector: Service) -> tuple[int, dict[str, Any]]:
    code, body = connector.get("/health")
    return code, json.loads(body)


def until_healthy(connector: Service) -> None:
    until(lambda: health(connector)[0] == 200, 120, lambda: f"good health: {health(connector)}")


def until_waiting(connector: Service, *words: str) -> None:
    """For a reason with all of these: each report is a new one, and an overdue answer may be the cause for a moment."""

    def waits() -> bool:
        code, body = health(connector)
        told = body["waiting_for"] or ""
        return (code, body["state"]) == (503, "WAITING") and told != "" and all(word in told for word in words)

    until(waits, 120, lambda: f"a wait for {words}: {health(connector)}")


def failing_seconds(connector: Service, task: str) -> float:
    lines = connector.get("/metrics")[1].splitlines()
    marker = f'scylla_cdc_background_failing_seconds{{connector="{connector.name}",task="{task}"'
    return max(float(line.split()[-1]) for line in lines if line.startswith(marker))


class Told:
    """How often a failure may be told: by each worker at once, and in each interval after that."""

    def __init__(self, connector: Service, workers: int) -> None:
        self._connector, self._workers = connector, workers
        self._began = time.monotonic()

    def check(self, words: str) -> None:
        seconds = time.monotonic() - self._began
        times = len([line for line in self._connector.log.splitlines() if words in line])
        assert self._workers <= times <= self._workers * (1 + seconds / TELL_SECONDS), "attempts are no reason"


def test_a_worker_that_cannot_see_new_stream_sets_is_not_running(
    service: Make, session: Session, scylla: Double, table: str
) -> None:
    connector = service([table])
    run = connector.start("--http-port", "0")
    until_healthy(connector)
    until(lambda: failing_seconds(connector, "stream_sets") == 0, what="polls that succeed")
    told = Told(connector, workers=2)
    fault = scylla.admin.add_fault("server_error", pattern=WATCHED)
    until_waiting(
        connector,
        f"{table}: new stream sets are not seen since 20",
        scylla.address,
        "ServerError",
        "wait, in all streams",
    )
    assert failing_seconds(connector, "stream_sets") > 2

    def reported() -> bool:
        report = connector.report()
        failing = [each for worker in report["workers"] for each in worker["background"]]
        return (
            (report["state"] == report["tables"][table]["state"] == "WAITING")
            and "new stream sets" in "".join(report["tables"][table]["failing"])
            and [each["task"] for each in failing] == ["stream_sets"] * 2
            and all(each["attempts"] > 1 for each in failing)
            and all(
                each["since_ms"] < worker["time_ms"] for worker in report["workers"] for each in worker["background"]
            )
        )

    until(reported, 120, lambda: str(connector.report()), step=seldom)
    until(lambda: "new stream sets" in connector.command("status").stdout, 120, "the same by the command", step=seldom)

    scylla.admin.remove_fault(fault)
    insert(session, table, 1)
    assert exactly_once(connector, session, table) == 1
    until_healthy(connector)
    until(lambda: failing_seconds(connector, "stream_sets") == 0, what="polls that succeed again")
    assert connector.stop(run) == 0
    told.check("new stream sets are not seen")
    assert len([line for line in connector.log.splitlines() if "works again after" in line]) >= 2


def test_clocks_and_descriptions_that_fail_are_seen(
    service: Make, session: Session, scylla: Double, table: str
) -> None:
    connector = service([table], connector={"tasks.max": "1"})
    connector.start("--http-port", "0")
    until_healthy(connector)
    # A slot that is still being restored needs these answers, and waits for them.
    insert(session, table, 0)
    assert exactly_once(connector, session, table) == 1
    scylla.admin.add_fault("server_error", pattern="toTimestamp")
    scylla.admin.add_fault("read_timeout", pattern="system_schema.columns")

    def both() -> bool:
        code, body = health(connector)
        told = "; ".join(body["failing"])
        # Nothing waits for them.
        return (code, body["state"]) == (200, "RUNNING") and all(
            words in told for words in ("the servers' time is not updated", "columns are not seen")
        )

    until(both, 120, lambda: f"both, and good health: {health(connector)}")
    assert failing_seconds(connector, "clock") and failing_seconds(connector, "description")
    insert(session, table, 1)
    assert exactly_once(connector, session, table) == 2
    scylla.admin.clear_faults()
    until(lambda: not health(connector)[1]["failing"], 120, lambda: f"recovery: {health(connector)}")


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
        until_healthy(connector)
        # What a proxy says of a registry that is away, then what a registry says of a schema that it does not take.
        registry.refused[table] = (503, {})
        told = Told(connector, workers=1)
        insert(session, table, 1)
        until_waiting(connector, f"{table}: changes do not become records since", url)
        assert failing_seconds(connector, "records") > 2
        registry.refused[table] = (409, {"error_code": 409, "message": "incompatible"})
        until_waiting(connector, "the schema is incompatible")
        insert(session, other, 1)
        until(lambda: records(connector, other) == 1, 90, "the neighbour's record")
        aborted = f'scylla_cdc_aborted_transactions_total{{connector="{connector.name}",worker="0"}} 0.0'
        assert aborted in connector.get("/metrics")[1], "no reason to take back what others have done"
        registry.refused.clear()
        until_healthy(connector)
        until(lambda: records(connector, table) == 1, what="the record that waited")
        told.check("do not become records")


def records(connector: Service, table: str) -> int:
    status = json.loads(connector.get("/status")[1])
    return sum(int(worker["tables"][table]["records"]) for worker in status["workers"])


@contextlib.contextmanager
def its_worker_hanging(connector: Service) -> Iterator[int]:
    """Started, well, with a lag that is known; then its only worker stands still."""
    run = connector.start("--http-port", "0")
    until_healthy(connector)
    until(lambda: lag(connector) is not None, what="a lag")
    [worker] = connector.workers(run)
    os.kill(worker, signal.SIGSTOP)
    try:
        yield worker
    finally:
        os.kill(worker, signal.SIGCONT)


def test_a_worker_that_hangs_is_not_running(service: Make, table: str) -> None:
    connector = service([table], connector={"tasks.max": "1"})
    with its_worker_hanging(connector) as worker:
        until_waiting(connector, f"pid {worker}")
        until(lambda: (lag(connector) or 0) > 10, what="a lag that grows, whether or not the worker says so")
    until_healthy(connector)


def test_a_worker_that_hangs_is_not_late_with_what_another_process_reads(service: Make, table: str) -> None:
    connector = service([table], worker={"session.timeout.ms": "6000"}, connector={"tasks.max": "1"})
    with its_worker_hanging(connector):
        until(lambda: (lag(connector) or 0) > 20, what="a lag that grows while nobody else is there")
        connector.start()
        until(lambda: (lag(connector) or 99) < 20, what="the lag of whoever reads the table now")
        assert health(connector)[0] == 503, "it hangs all the same"
    until_healthy(connector)


def test_a_scylla_that_says_nothing_is_named_at_once(service: Make, scylla: Double, table: str) -> None:
    """Its connections stand, and its stream sets are looked for every ten seconds only."""
    connector = service([table], connector={"tasks.max": "1", "scylla.confidence.window.size": "30000"})
    connector.start("--http-port", "0")
    until_healthy(connector)
    scylla.admin.add_fault("silence")
    until_waiting(connector, "ScyllaDB does not answer", scylla.address)
    scylla.admin.clear_faults()
    until_healthy(connector)


def test_kafka_that_is_away_is_a_state_with_a_reason(
    own_kafka: EmbeddedKafka, service: Make, session: Session, table: str
) -> None:
    connector = service(
        [table],
        connector={"tasks.max": "1"},
        worker={
            "bootstrap.servers": own_kafka.bootstrap_servers,
            "session.timeout.ms": "6000",
            "transaction.timeout.ms": "5000",
        },
    )
    connector.start("--http-port", "0")
    until_healthy(connector)
    insert(session, table, 1)
    until(lambda: lag(connector) is not None, what="a lag")
    own_kafka.pause()
    try:
        until_waiting(connector, f"Kafka at {own_kafka.bootstrap_servers}")
        until(lambda: (lag(connector) or 0) > 20, what="a lag that grows: an alert must be able to fire")
    finally:
        own_kafka.resume()
    until_healthy(connector)
    until(lambda: (lag(connector) or 99) < 10, what="a lag that has been made up for")


def lag(connector: Service) -> float | None:
    lines = connector.get("/metrics")[1].splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith("scylla_cdc_lag_seconds{")), None)
