"""`scylla-cdc run` as its users meet it: start, stop, wrong configurations, servers that are away, positions."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from tests.servers.patience import seldom, until
from tests.worker.harness import Service, dead_letters, exactly_once, found

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., Service]
Unique = Callable[[str], str]
MakeTable = Callable[..., str]


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number % 10}, {number}, 'v{number}')")


def lags(connector: Service) -> str:
    lines = connector.get("/metrics")[1].splitlines()
    return "\n".join(line for line in lines if line.startswith("scylla_cdc_lag_seconds{"))


def latencies(connector: Service) -> float:
    page = connector.get("/metrics")[1].splitlines()
    counts = [line for line in page if line.startswith("scylla_cdc_delivery_latency_seconds_count{")]
    return sum(float(line.split()[-1]) for line in counts)


def done(connector: Service, *command: str) -> str:
    """What a command says, once it works."""
    result = connector.command(*command)
    return result.stdout if result.returncode == 0 else ""


def running(connector: Service) -> dict[str, Any] | None:
    """The report of a connector all of whose slots are claimed."""
    return in_state(connector, "RUNNING")


def said_running(connector: Service) -> dict[str, Any] | None:
    """The same by the command, which is a process each time: not before both workers have said something."""
    if len((running(connector) or {"workers": ()})["workers"]) < 2:
        return None
    report: dict[str, Any] = json.loads(connector.command("status", "--json").stdout)
    return report if report["state"] == "RUNNING" and len(report["workers"]) == 2 else None


def in_state(connector: Service, state: str) -> dict[str, Any] | None:
    report = connector.report()
    return report if report["state"] == state else None


def said(connector: Service, path: str) -> dict[str, Any]:
    return dict(json.loads(connector.get(path)[1]))


def states(connector: Service) -> list[str]:
    """Of the connector and its tasks, as Kafka Connect's API has them."""
    status = said(connector, f"/connectors/{connector.name}/status")
    return [each["state"] for each in (status["connector"], *status["tasks"])]


def failed_tasks(connector: Service) -> list[dict[str, Any]]:
    tasks = said(connector, f"/connectors/{connector.name}/status")["tasks"]
    return [task for task in tasks if task["state"] == "FAILED"]


def test_changes_arrive_once_and_a_stop_is_orderly(service: Make, session: Session, make_table: MakeTable) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    insert(session, table, range(50))
    run = connector.start("--http-port", "0")
    assert exactly_once(connector, session, table) == 50
    until(lambda: connector.get("/health")[0] == 200, 90, "good health")
    until(lambda: f'table="{table}"' in lags(connector), 90, "a lag in the metrics")
    assert "scylla_cdc_transactions_total" in connector.get("/metrics")[1]

    report = until(lambda: said_running(connector), 90, "a status of both workers", step=seldom)
    assert {worker["pid"] for worker in report["workers"]} == set(connector.workers(run))
    assert {worker["scylla_version"] for worker in report["workers"]} != {None}
    assert {worker["kafka_version"] for worker in report["workers"]} == {"4.0 or newer"}
    until(lambda: latencies(connector) == 50, 90, "a latency of each change")
    until(lambda: [connector.get(path)[0] for path in ("/live", "/ready")] == [200, 200], 90, "both probes")
    tasks = [f"/connectors/{connector.name}/tasks/{number}/status" for number in (0, 1)]
    until(lambda: {said(connector, task)["state"] for task in tasks} == {"RUNNING"}, 90, "both tasks")
    topics = {connector.name: {"topics": [connector.topic(table)]}}
    until(lambda: said(connector, f"/connectors/{connector.name}/topics") == topics, 90, "the topic")
    until(lambda: len(json.loads(connector.get("/")[1])["kafka_cluster_id"] or "") > 10, 90, "which Kafka it is")
    offsets = until(lambda: said(connector, f"/connectors/{connector.name}/offsets").get("offsets"), 90, "positions")
    assert {each["partition"]["table_name"] for each in offsets} == {table.partition(".")[2]}
    assert {each["offset"]["read_to"] > 0 for each in offsets if "slot" in each["partition"]} == {True}
    assert f" INFO [{connector.name}/1] connector." in connector.log
    refused = connector.command("offsets", "reset", "--to", "now")
    assert refused.returncode == 1
    assert "is running" in refused.stderr

    path = f"/connectors/{connector.name}"
    assert connector.post(f"{path}/pause", "PUT") == 202
    until(lambda: states(connector) == ["PAUSED"] * 3, 90, "a pause")
    report = until(lambda: in_state(connector, "STOPPED"), what="the end of the workers' reports", step=seldom)
    assert report["tables"][table]["committed_ms"]
    until(lambda: [connector.get(each)[0] for each in ("/health", "/ready")] == [503, 200], 90, "ready, not healthy")
    assert "keeps what is not delivered for" in connector.get("/health")[1]
    connector.stopped(run)
    insert(session, table, range(50, 80))
    run = connector.start("--http-port", "0")
    until(lambda: connector.log.count("REST API on") == 2, 90, "its port")
    until(lambda: states(connector) == ["PAUSED"] * 3, 90, "a start that remembers")
    assert connector.workers(run) == []
    assert connector.post(f"{path}/resume", "PUT") == 202
    assert exactly_once(connector, session, table) == 80


def test_positions_can_be_shown_and_moved_while_it_is_stopped(
    service: Make, session: Session, make_table: MakeTable
) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    insert(session, table, range(10))
    # As where somebody has deleted the topic of its positions.
    tried = connector.command("offsets", "reset", "--to", "now", "--dry-run")
    assert tried.returncode == 0 and "now at no stored position" in tried.stdout, tried.stderr
    begun = connector.command("offsets", "reset", "--to", "oldest")
    assert begun.returncode == 0 and "the oldest change in the log" in begun.stdout, begun.stderr
    run = connector.start()
    exactly_once(connector, session, table)
    until(lambda: running(connector), 90, "claims of all slots", step=seldom)
    assert connector.stop(run) == 0
    connector.settled()
    shown = json.loads(connector.command("offsets", "show", "--json").stdout)
    assert {row["slot"] for row in shown if row["stream"] == "mark"} == set(range(6))
    assert {row["time"] for row in shown} and all(set(row) >= {"owner", "after"} for row in shown)
    [heading, line] = connector.command("offsets", "show").stdout.splitlines()
    assert heading.split() == ["table", "slots", "slowest", "fastest", "streams", "owners"]
    assert line.split()[:2] == [table, "6"]
    seconds = connector.command("offsets", "reset", "--to", str(int(time.time())))
    assert seconds.returncode == 2 and "as seconds it would be" in seconds.stderr
    tried = connector.command("offsets", "reset", "--to", "-1h", "--dry-run")
    assert tried.returncode == 0 and "nothing was changed" in tried.stdout, tried.stderr
    assert json.loads(connector.command("offsets", "show", "--json").stdout) == shown
    # A member that ended in a hurry is one of the group until its session is over.
    moved = until(
        lambda: done(connector, "offsets", "reset", "--to", "oldest"), what="positions that moved", step=seldom
    )
    assert "the oldest change in the log" in moved
    connector.start()
    until(lambda: set(found(connector, table).values()) == {2}, 90, "everything a second time", step=seldom)


def test_everything_wrong_is_said_at_once_and_ends_with_2(
    service: Make, session: Session, make_table: MakeTable
) -> None:
    off = make_table(tablets=True, cdc="{'enabled': false}")
    name = off.partition(".")[0]
    connector = service([f"{name}.missing", off, "nowhere.t"], connector={"tasks.max": "1"})
    run = connector.start()
    assert connector.ended(run) == 2
    for words in (f"table {name}.missing does not exist", "has no change log", "there is no keyspace nowhere"):
        assert words in connector.log
    assert "Traceback" not in connector.log
    checked = connector.command("validate", "--json")
    assert checked.returncode == 2
    assert len(json.loads(checked.stdout)["problems"]) == 3


def test_a_server_that_is_away_is_waited_for(
    service: Make, make_table: MakeTable, session: Session, tmp_path: Path
) -> None:
    table = make_table(tablets=True)
    connector = service([table], worker={"bootstrap.servers": "127.0.0.1:1"})
    run = connector.start("--http-port", "0")
    until(lambda: "waiting for servers" in connector.log, 90, "a word about waiting")
    until(lambda: "Kafka" in (said(connector, "/health")["waiting_for"] or ""), 90, "its name")
    assert connector.get("/health")[0] == 503
    assert connector.stop(run) == 0


def test_a_killed_worker_is_replaced_and_loses_nothing(service: Make, session: Session, make_table: MakeTable) -> None:
    table = make_table(tablets=False)
    connector = service([table])
    run = connector.start()
    insert(session, table, range(40))
    exactly_once(connector, session, table)
    for pid in connector.workers():
        os.kill(pid, signal.SIGKILL)
    insert(session, table, range(40, 80))
    assert exactly_once(connector, session, table) == 80
    assert connector.stop(run) == 0


def test_workers_without_their_supervisor_end_by_themselves(
    service: Make, session: Session, make_table: MakeTable
) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    run = connector.start()
    insert(session, table, range(5))
    exactly_once(connector, session, table)
    pids = connector.workers()
    run.kill()
    run.wait()
    until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), 90, "the end of the workers")


def test_static_members_keep_their_names(service: Make, session: Session, make_table: MakeTable) -> None:
    """With `group.instance.id` a worker is the same at every start: what its killed predecessor left open it ends."""
    table = make_table(tablets=True)
    connector = service([table], worker={"group.instance.id": "one"}, connector={"tasks.max": "1"})
    run = connector.start()
    insert(session, table, range(20))
    exactly_once(connector, session, table)
    owners = {row["owner"] for row in json.loads(connector.command("offsets", "show", "--json").stdout)}
    assert f"{connector.name}-one-0" in owners
    for pid in [*connector.workers(), run.pid]:
        os.kill(pid, signal.SIGKILL)
    run.wait()
    connector.runs.remove(run)
    insert(session, table, range(20, 40))
    again = connector.start()
    assert exactly_once(connector, session, table) == 40
    assert connector.stop(again) == 0


def test_it_stops_in_time_although_the_broker_is_gone(
    service: Make, session: Session, make_table: MakeTable, own_kafka: EmbeddedKafka
) -> None:
    """With a transaction open: no client may be waited for."""
    table = make_table(tablets=True)
    connector = service([table], worker={"bootstrap.servers": own_kafka.bootstrap_servers})
    connector.kafka = own_kafka.bootstrap_servers
    run = connector.start()
    insert(session, table, range(20))
    exactly_once(connector, session, table)
    pids = connector.workers()
    own_kafka.kill()
    insert(session, table, range(20, 40))
    until(lambda: "FAIL" in connector.log, 90, "a word about the broker")
    assert connector.stop(run) == 0
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)


def test_a_row_that_cannot_be_read_fails_its_group_only(service: Make, session: Session, make_table: MakeTable) -> None:
    table = make_table(tablets=False)
    connector = service([table])
    insert(session, table, range(30))
    _malform(session, table)
    connector.start("--http-port", "0")
    until(lambda: len(found(connector, table)) >= 20, 90, "the other groups", step=seldom)
    until(lambda: connector.get("/health")[0] == 503, 90, "a health that says so")
    report = until(lambda: in_state(connector, "FAILED"), 90, "a status that says so", step=seldom)
    assert report["tables"][table]["state"] == "FAILED"
    assert "77" in report["tables"][table]["error"]
    failed = until(lambda: failed_tasks(connector), 90, "a task that is FAILED")
    assert len(failed) == 1 and states(connector)[0] == "RUNNING"
    assert f"{table} is FAILED: " in failed[0]["trace"] and "streams 0x" in failed[0]["trace"]
    assert connector.post(f"/connectors/{connector.name}/restart?includeTasks=true&onlyFailed=true") == 202
    until(lambda: "asked to try again what is FAILED" in connector.log, 90, "the task to be told")
    insert(session, table, range(30, 60))
    until(lambda: len(found(connector, table)) >= 45, 90, "the other groups, later", step=seldom)


def test_a_tolerated_row_becomes_a_dead_letter(
    service: Make, session: Session, unique: Unique, make_table: MakeTable
) -> None:
    table = make_table(tablets=True)
    dead = unique("dead")
    connector = service(
        [table],
        connector={
            **dead_letters(dead),
        },
    )
    insert(session, table, range(10))
    stream, time = _malform(session, table)
    insert(session, table, range(10, 20))
    connector.start("--http-port", "0")
    until(lambda: len(found(connector, table)) == 20, 90, "delivery", step=seldom)
    until(lambda: connector.delivered(dead), what="the dead letter", step=seldom)
    (letter,) = connector.delivered(dead)
    headers = {name: value.decode() for name, value in letter["headers"]}
    assert headers["scylla.cdc.stream_id"] == stream
    assert headers["scylla.cdc.time"] == time
    assert "77" in headers["__connect.errors.exception.message"]
    assert letter["value"][0]["cdc$operation"] == "0x4d"
    [shown] = until(lambda: _detail(connector, "dead-letters").get("letters"), 90, "it to be shown")
    assert (shown["table"], shown["stream_id"], shown["time"]) == (table, stream, time)
    assert shown["rows"] == letter["value"] and "77" in shown["message"]
    until(lambda: _all_owned(connector, table), 90, "all slots to have an owner, and streams with places")


def _detail(connector: Service, path: str) -> dict[str, Any]:
    """What is said in time: a busy broker may need longer than an answer may take."""
    with suppress(OSError):
        status, text = connector.get(f"/status/{connector.name}/{path}")
        if status == 200:
            return dict(json.loads(text))
    return {}


def _all_owned(connector: Service, table: str) -> bool:
    """By the last words in Kafka; streams are asked of those who are here."""
    groups = _detail(connector, f"streams?table={table}").get("groups", [])
    tokens = {group["range_end"] for group in groups}
    # What the newest set says of a range is where another one ends.
    if not tokens or any(group["range_start"] not in tokens for group in groups if group["state"] != "ended"):
        return False
    slots = _detail(connector, "slots")
    here = all(worker["here"] for worker in slots.get("workers", []) if not worker["stale"])
    return bool(slots) and here and len(slots["owners"]) == slots["slot_count"]


def test_a_record_that_the_topic_does_not_take_is_a_dead_letter(
    service: Make, session: Session, unique: Unique, make_table: MakeTable
) -> None:
    table = make_table(tablets=True)
    dead = unique("dead")
    connector = service(
        [table],
        connector={
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "topic.creation.default.max.message.bytes": "20000",
        },
    )
    insert(session, table, range(5))
    session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES (1, 1000, '{'x' * 30_000}')")
    insert(session, table, range(5, 10))
    connector.start()
    until(lambda: len(found(connector, table)) == 10, 90, "delivery of the others", step=seldom)
    until(lambda: len(connector.delivered(dead)) == 1, what="the dead letter", step=seldom)


def test_at_least_once_on_request(service: Make, session: Session, make_table: MakeTable) -> None:
    table = make_table(tablets=True)
    connector = service([table], connector={"exactly.once.support": "disabled", "producer.override.acks": "1"})
    run = connector.start()
    insert(session, table, range(40))
    until(lambda: len(found(connector, table)) == 40, 90, "delivery", step=seldom)
    until(lambda: running(connector), 90, "claims of all slots", step=seldom)
    assert connector.stop(run) == 0
    assert {row["slot"] for row in json.loads(connector.command("offsets", "show", "--json").stdout)} == set(range(6))


def test_columns_that_come_and_go_while_it_runs(service: Make, session: Session, make_table: MakeTable) -> None:
    table = make_table(tablets=True)
    connector = service([table])
    connector.start()
    insert(session, table, range(10))
    exactly_once(connector, session, table)
    session.execute(f"ALTER TABLE {table} ADD extra int")
    session.execute(f"INSERT INTO {table} (pk, ck, v, extra) VALUES (1, 500, 'x', 7)")
    until(lambda: len(found(connector, table)) == 11, 90, "delivery after the change", step=seldom)
    values = [record["value"]["after"] for record in connector.delivered(connector.topic(table))]
    assert [value["extra"] for value in values if value["ck"] == 500] == [{"value": 7}]
    # By version, as the topic is compacted: workers that start together may each publish the first one.
    schemas = [record["value"] for record in connector.delivered(f"{connector.name}.schemas")]
    versions = {each["version"]: "extra" in [column["name"] for column in each["columns"]] for each in schemas}
    assert list(versions.values()) == [False, True]
    assert schemas[-1]["version"] == list(versions)[-1]


def test_an_offsets_topic_that_is_not_compacted_is_refused(
    service: Make, session: Session, unique: Unique, make_table: MakeTable, kafka: EmbeddedKafka
) -> None:
    from connector.delivery.clients import KafkaClients
    from connector.delivery.topic_facts import TopicSpec
    from connector.delivery.topics import ensure_topics

    table = make_table(tablets=True)
    plain = unique("plain")
    ensure_topics(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}).admin(), [TopicSpec(plain, 6, 1)])
    connector = service([table], worker={"offset.storage.topic": plain})
    assert connector.ended(connector.start()) == 2
    assert "not compacted" in connector.log


def _malform(session: Session, table: str) -> tuple[str, str]:
    """Put a row with an operation that nobody knows into a stream that is in use; its stream and time."""
    log = f"{table}_scylla_cdc_log"
    row = session.execute(f'SELECT "cdc$stream_id" AS s FROM {log} LIMIT 1').one()
    session.execute(
        f'INSERT INTO {log} ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", '
        '"cdc$end_of_batch", pk, ck) '
        f"VALUES (0x{row.s.hex()}, now(), 0, 77, true, 1, 1)"
    )
    bad = [
        (each.s.hex(), str(each.t))
        for each in session.execute(f'SELECT "cdc$stream_id" AS s, "cdc$time" AS t, "cdc$operation" AS o FROM {log}')
        if each.o == 77
    ]
    return bad[0]
