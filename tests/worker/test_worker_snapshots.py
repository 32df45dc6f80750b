"""Snapshots: rows from before the log in the topic, among the changes, once each, whatever is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from functools import partial

import pytest
from cassandra.cluster import Session

from tests.servers.scylla import Scylla
from tests.worker.harness import Service, seldom, until
from tests.worker.snapshot_oracle import breaches, held, selected
from tests.worker.snapshot_source import ALL_DELETES, SNAPSHOT, Changes, all_delivered, old_table, snapshot_ended

pytestmark = [pytest.mark.kafka, pytest.mark.scylla]
Make = Callable[..., Service]
Unique = Callable[[str], str]


SEEDS = [int(seed) for seed in os.environ.get("SNAPSHOT_SEEDS", "1,2").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_from_before_the_log_stand_among_the_changes(
    service: Make, scylla: Scylla, session: Session, unique: Unique, seed: int
) -> None:
    """Workers are killed, and tablets split, while the snapshot is under way."""
    tablets = seed % 2 == 1
    table = old_table(scylla, session, unique("ks").replace("-", "_"), tablets, partitions=40, lists=True)
    old = held(session, table)
    connector = service([table], connector=ALL_DELETES)
    changes = Changes(session, table, 40, seed, lists=True)
    changes.start()
    run = connector.start()
    for count in (1, 30):
        until(partial(snapshot_has, connector, table, count), 90, "rows of the snapshot", step=seldom)
        with contextlib.suppress(ProcessLookupError):
            os.kill(until(lambda: connector.workers(run), 60, "a worker")[0], signal.SIGKILL)
        if tablets:
            session.execute(f"ALTER TABLE {table} WITH tablets = {{'min_tablet_count': {8 if count == 1 else 16}}}")
    until(lambda: snapshot_ended(connector), 180, "the end of the snapshot", step=seldom)
    changes.finish()
    until(lambda: all_delivered(connector, session, table), 90, "all changes", step=seldom)
    connector.settled()
    topic = connector.topic(table)
    deletes = connector.delivered(f"{topic}.range-deletes")
    assert breaches(old, connector.delivered(topic), selected(session, table), deletes) == []


def snapshot_has(connector: Service, table: str, count: int) -> bool:
    values = (record["value"] for record in connector.delivered(connector.topic(table)))
    return sum(value is not None and value["op"] == "r" for value in values) >= count


def test_run_ends_when_nothing_but_the_rows_was_wanted(
    service: Make, scylla: Scylla, session: Session, unique: Unique
) -> None:
    table = old_table(scylla, session, unique("ks").replace("-", "_"), True, partitions=9)
    old, now = held(session, table), selected(session, table)
    connector = service([table], connector={**SNAPSHOT, "snapshot.mode": "initial_only"})
    for _ in range(2):
        assert connector.ended(connector.start()) == 0
        connector.settled()
        assert breaches(old, connector.delivered(connector.topic(table)), now) == []


def test_rows_that_are_not_written_are_not_said_to_be(
    service: Make, scylla: Scylla, session: Session, unique: Unique
) -> None:
    """A connector that ran without snapshots before, the Java one perhaps, has positions of its tables."""
    table = old_table(scylla, session, unique("ks").replace("-", "_"), True, partitions=9)
    connector = service([table])
    run = connector.start()
    until(lambda: connector.report()["state"] == "RUNNING", 120, "a connector that runs", step=seldom)
    assert connector.stop(run) == 0
    definition = json.loads(connector.config_file.read_text())
    for mode, said in (
        ("initial_only", "none of its rows is delivered"),
        ("initial", "its positions are of a start without a snapshot, so that snapshot.mode=initial writes"),
    ):
        definition["config"]["snapshot.mode"] = mode
        connector.config_file.write_text(json.dumps(definition))
        run = connector.start()
        until(lambda said=said: f"{table}: {said}" in connector.log, 120, said)  # type: ignore[misc]
        assert (connector.ended(run) if mode == "initial_only" else connector.stop(run)) == (mode == "initial_only")
    assert connector.delivered(connector.topic(table)) == []
