"""Snapshots that are asked for: by signals, by each start of the connector, by changes that expired unread."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from cassandra.cluster import Session

from connector.errors import RetriableDeliveryError
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, logged, seldom, until
from tests.worker.snapshot_oracle import by_key, held
from tests.worker.snapshot_source import old_table, snapshot_ended

pytestmark = [pytest.mark.kafka, pytest.mark.scylla]
Make = Callable[..., Service]
Unique = Callable[[str], str]


def shown(connector: Service, table: str) -> Counter[tuple[str, str]]:
    """How many rows of snapshots there are: as what, of which value."""
    values = (record["value"] for record in connector.delivered(connector.topic(table)))
    return Counter(
        (value["source"]["snapshot"], value["after"]["v"]["value"])
        for value in values
        if value is not None and value["op"] == "r" and value["after"].get("v")
    )


def is_running(connector: Service) -> bool:
    with suppress(RetriableDeliveryError):  # its topics may have no leader yet
        return bool(connector.report()["state"] == "RUNNING")
    return False


def snapshot_of(connector: Service, table: str) -> dict[str, object]:
    return dict(connector.report()["tables"][table]["snapshot"] or {})


def said_of_snapshots(connector: Service) -> dict[str, dict[str, object]]:
    """By the command, which is a process each time."""
    return dict(json.loads(connector.command("snapshot", "show", "--json").stdout)["snapshots"])


def told_of(connector: Service, news: str) -> list[str]:
    """The notifications, without those of progress."""
    types = [str(record["value"]["type"]) for record in connector.delivered(news)]
    return [each for each in types if each != "IN_PROGRESS"]


def test_signals_begin_pause_and_stop_snapshots_and_notifications_tell_of_them(
    service: Make, scylla: Scylla, session: Session, unique: Unique
) -> None:
    table = old_table(scylla, session, unique("ks").replace("-", "_"), True, partitions=12)
    news = unique("news")
    told = {
        "signal.enabled.channels": "kafka",
        "notification.enabled.channels": "sink,log",
        "notification.sink.topic.name": news,
        "cdc.include.collections": "delta",
    }
    connector = service([table], connector=told)
    run = connector.start()
    until(lambda: is_running(connector), 120, "a connector that runs", step=seldom)
    assert said_of_snapshots(connector) == {}
    asked = connector.command("snapshot", "start", "--table", table, "--where", "v = 'v5'")
    assert asked.returncode == 0 and "no worker of" not in asked.stdout, asked.stderr
    until(lambda: snapshot_of(connector, table).get("ended"), 120, "the end of the snapshot", step=seldom)
    connector.settled()
    assert shown(connector, table) == {("incremental", "v5"): 3}
    assert connector.command("snapshot", "pause").returncode == 0
    assert connector.stop(run) == 0
    assert said_of_snapshots(connector)[table]["ended"], "what is committed is known without workers"
    # Nothing of it happens twice, and what is said while nobody listens is heard later.
    unheard = connector.command("snapshot", "start")
    assert unheard.returncode == 0 and f"no worker of connector {connector.name} reports" in unheard.stdout
    assert connector.command("snapshot", "pause").returncode == 0
    connector.start()
    until(
        lambda: snapshot_of(connector, table).get("paused"),
        120,
        lambda: f"a paused snapshot, there is {snapshot_of(connector, table)}; {connector.log[-4000:]}",
        step=seldom,
    )
    assert said_of_snapshots(connector)[table]["paused"]
    assert shown(connector, table) == {("incremental", "v5"): 3}
    assert connector.command("snapshot", "resume").returncode == 0
    until(lambda: snapshot_of(connector, table).get("ended"), 120, "the end of the snapshot", step=seldom)
    connector.settled()
    every = shown(connector, table)
    assert every[("incremental", "v5")] == 6
    assert sum(count for (_, value), count in every.items() if value is not None) == 3 + 3 * 10
    ended = ["TABLE_SCAN_COMPLETED", "COMPLETED"]
    types = ["STARTED", *ended, "STARTED", "RESUMED", *ended]
    until(lambda: told_of(connector, news) == types, 90, lambda: f"not {told_of(connector, news)}", step=seldom)
    assert {each["value"]["aggregate_type"] for each in connector.delivered(news)} == {"Incremental Snapshot"}
    until(lambda: f"Incremental Snapshot of {table}: COMPLETED" in connector.log, 60, "word of it in the log")


def test_each_start_of_the_connector_begins_a_snapshot_if_that_is_wanted(
    service: Make, scylla: Scylla, session: Session, unique: Unique
) -> None:
    table = old_table(scylla, session, unique("ks").replace("-", "_"), True, partitions=6)
    connector = service([table], connector={"snapshot.mode": "always"})
    for count in (1, 2):
        run = connector.start()
        until(lambda count=count: shown(connector, table)[("true", "v5")] == 3 * count, 120, "rows", step=seldom)
        assert connector.stop(run) == 0


def test_rows_are_written_again_behind_an_absence_that_was_longer_than_the_logs_ttl(
    service: Make, scylla: Scylla, session: Session, unique: Unique
) -> None:
    table = old_table(scylla, session, unique("ks").replace("-", "_"), True, partitions=6)
    session.execute(f"ALTER TABLE {table} WITH cdc = {{'enabled': true, 'ttl': 15}}")
    connector = service([table], connector={"snapshot.mode": "when_needed", "tasks.max": "1"})
    run = connector.start()
    until(lambda: snapshot_ended(connector), 120, "the end of the first snapshot", step=seldom)
    assert connector.stop(run) == 0
    assert shown(connector, table)[("true", "v5")] == 3
    session.execute(f"UPDATE {table} SET v = 'unread' WHERE pk = 5 AND ck = 0")
    session.execute(f"DELETE FROM {table} WHERE pk = 4 AND ck = 0")
    until(lambda: not logged(session, table), 60, "the end of what the log had", step=seldom)
    connector.start()
    until(lambda: shown(connector, table)[("true", "unread")] >= 1, 120, "what was lost", step=seldom)
    until(lambda: snapshot_ended(connector), 120, "the end of the repair", step=seldom)
    told = {}
    for key, values in by_key(connector.delivered(connector.topic(table))).items():
        assert {value["op"] for value in values} == {"r"}
        told[key] = (values[-1]["after"].get("v") or {}).get("value")
    now = {key: state.get("v") for key, state in held(session, table).items()}
    # Nothing tells of what was deleted meanwhile.
    assert told == now | {(4, 0): "v4"}
    assert "may have expired unread" in connector.log


def test_who_hears_no_signals_says_so(service: Make, session: Session) -> None:
    connector = service(["ks.t"])
    refused = connector.command("snapshot", "start")
    assert refused.returncode == 2
    assert '"signal.enabled.channels": "kafka"' in refused.stderr
