"""A table that is gone when a connector starts, and names that are not ASCII: each on real servers, to the end."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from cassandra.cluster import Session

from tests.servers.patience import until
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., Service]
MakeTable = Callable[..., str]


def insert(session: Session, table: str, rows: range) -> None:
    for number in rows:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({number % 10}, {number}, 'v{number}')")


def test_a_table_that_was_dropped_while_nothing_ran_fails_alone(
    service: Make, session: Session, make_table: MakeTable
) -> None:
    table, dropped = make_table(tablets=True), make_table(tablets=True)
    connector = service([table, dropped], connector={"tasks.max": "1"})
    for each in (table, dropped):
        insert(session, each, range(5))
    run = connector.start()
    for each in (table, dropped):
        assert exactly_once(connector, session, each) == 5
    connector.stopped(run)

    session.execute(f"DROP TABLE {dropped}")
    insert(session, table, range(5, 10))
    run = connector.start()
    assert exactly_once(connector, session, table) == 10

    def states() -> dict[str, str]:
        return {name: told["state"] for name, told in connector.report()["tables"].items()}

    until(lambda: states() == {table: "RUNNING", dropped: "FAILED"}, what=lambda: f"one that fails: {states()}")
    assert "does not exist" in connector.report()["tables"][dropped]["error"] and run.poll() is None


@pytest.mark.parametrize("member", [{}, {"group.instance.id": "köln"}])
def test_names_that_are_not_ascii_are_as_good_as_others(
    member: dict[str, str], service: Make, session: Session, make_table: MakeTable
) -> None:
    table = make_table(tablets=True)
    connector = service([table], connector={"tasks.max": "1"}, worker={"group.id": "grün", **member})
    definition = json.loads(connector.config_file.read_text())
    definition["name"] = f"größe-{connector.name}"
    connector.config_file.write_text(json.dumps(definition))
    for rows in (range(5), range(5, 10)):
        insert(session, table, rows)
        run = connector.start()
        assert exactly_once(connector, session, table) == rows.stop
        connector.stopped(run)
