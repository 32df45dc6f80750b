"""Snapshots: rows from before the log in the topic, among the changes, once each, whatever is killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from collections.abc import Callable
from functools import partial

import pytest
from cassandra.cluster import Session

from tests.servers.scylla import Scylla
from tests.worker.harness import Service, found, logged, seldom, until
from tests.worker.snapshot_oracle import breaches, selected

pytestmark = [pytest.mark.kafka, pytest.mark.scylla]
Make = Callable[..., Service]
Unique = Callable[[str], str]

SNAPSHOT = {"snapshot.mode": "initial", "cdc.include.collections": "delta"}


def old_table(scylla: Scylla, session: Session, keyspace: str, tablets: bool, partitions: int) -> str:
    """A table with rows from before its log: with values, with keys alone, with static values alone."""
    table = f"{keyspace}.t"
    session.execute(scylla.keyspace_ddl(keyspace, tablets=tablets))
    session.execute(
        f"CREATE TABLE {table} (pk int, ck int, s text static, v text, n int, m map<text, int>, PRIMARY KEY (pk, ck))"
    )
    for pk in range(partitions):
        if pk % 3 == 0:
            session.execute(f"INSERT INTO {table} (pk, s) VALUES ({pk}, 's{pk}')")
        if pk % 7 == 0:
            continue
        for ck in range(3):
            session.execute(f"INSERT INTO {table} (pk, ck, v, m) VALUES ({pk}, {ck}, 'v{pk}', {{'a': {pk}, 'b': 1}})")
        session.execute(f"INSERT INTO {table} (pk, ck) VALUES ({pk}, 3)")
    session.execute(f"ALTER TABLE {table} WITH cdc = {{'enabled': true}}")
    return table


class Changes(threading.Thread):
    """Changes everything about a few partitions, a few of them all the time."""

    def __init__(self, session: Session, table: str, partitions: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._session, self._table, self._partitions = session, table, partitions
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ended.wait(0.003):
                self._session.execute(self._statement())
        except Exception as error:
            self.error = error

    def finish(self) -> None:
        self._ended.set()
        self.join(60)
        assert self.error is None

    def _statement(self) -> str:
        draw, table, number = self._random, self._table, self._random.randrange(1000)
        hot = draw.random() < 0.5
        where = f"pk = {draw.randrange(4) if hot else draw.randrange(self._partitions)}"
        row = f"{where} AND ck = {draw.randrange(4)}"
        return draw.choice([
            f"UPDATE {table} SET v = 'w{number}' WHERE {row}",
            f"UPDATE {table} SET n = {number} WHERE {row}",
            f"UPDATE {table} SET v = null WHERE {row}",
            f"UPDATE {table} SET m['c'] = {number} WHERE {row}",
            f"UPDATE {table} SET m = m - {{'a'}} WHERE {row}",
            f"UPDATE {table} SET m = {{'d': {number}}} WHERE {row}",
            f"UPDATE {table} SET s = 't{number}' WHERE {where}",
            f"DELETE FROM {table} WHERE {row}",
            f"INSERT INTO {table} (pk, ck, v, n) VALUES ({row[5:].replace(' AND ck = ', ', ')}, 'x', {number})",
        ])  # fmt: skip


def snapshot_ended(connector: Service) -> bool:
    report = json.loads(connector.command("status", "--json").stdout)
    return all((table["snapshot"] or {"ended": False})["ended"] for table in report["tables"].values())


def all_delivered(connector: Service, session: Session, table: str) -> bool:
    return not logged(session, table) - found(connector, table)


@pytest.mark.parametrize("tablets", [True, False])
def test_rows_from_before_the_log_stand_among_the_changes(
    service: Make, scylla: Scylla, session: Session, unique: Unique, tablets: bool
) -> None:
    """Workers are killed, and tablets split, while the snapshot is under way."""
    table = old_table(scylla, session, unique("ks").replace("-", "_"), tablets, partitions=40)
    old = selected(session, table)
    connector = service([table], connector=SNAPSHOT)
    changes = Changes(session, table, 40, seed=1)
    changes.start()
    run = connector.start()
    for count in (1, 30):
        until(partial(snapshot_has, connector, table, count), 90, "rows of the snapshot", step=seldom)
        with contextlib.suppress(ProcessLookupError):
            os.kill(until(lambda: connector.workers(run), 60, "a worker")[0], signal.SIGKILL)
        if tablets:
            session.execute(f"ALTER TABLE {table} WITH tablets = {{'min_tablet_count': {8 if count == 1 else 16}}}")
    until(lambda: snapshot_ended(connector), 120, "the end of the snapshot", step=seldom)
    changes.finish()
    until(lambda: all_delivered(connector, session, table), 90, "all changes", step=seldom)
    records = connector.delivered(connector.topic(table))
    assert breaches(old, records, selected(session, table)) == []


def snapshot_has(connector: Service, table: str, count: int) -> bool:
    values = (record["value"] for record in connector.delivered(connector.topic(table)))
    return sum(value is not None and value["op"] == "r" for value in values) >= count
