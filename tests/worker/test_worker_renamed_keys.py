"""A key column that is renamed while changes wait: they fail or become dead letters, and none gets a wrong key."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cassandra.cluster import Session

from tests.servers.patience import seldom, until
from tests.worker.harness import Service, dead_letters

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.any_scylla]
Make = Callable[..., Service]
MakeTable = Callable[..., str]
Unique = Callable[[str], str]
RENAMED = {"pk": "RENAME pk TO p", "ck": "RENAME ck TO c"}


def written(session: Session, table: str, column: str) -> tuple[str, str]:
    """Changes of all kinds of one partition, a RENAME behind them, and later ones; the names of the key's columns."""
    for statement in (
        f"INSERT INTO {table} (pk, ck, v) VALUES (1, 1, 'a')",
        f"UPDATE {table} SET v = 'b' WHERE pk = 1 AND ck = 2",
        f"DELETE FROM {table} WHERE pk = 1 AND ck = 3",
        f"DELETE v FROM {table} WHERE pk = 1 AND ck = 4",
        f"UPDATE {table} SET s = 'c' WHERE pk = 1",
        f"DELETE FROM {table} WHERE pk = 1 AND ck >= 5 AND ck <= 6",
        f"DELETE FROM {table} WHERE pk = 1",
        f"ALTER TABLE {table} {RENAMED[column]}",
    ):
        session.execute(statement)
    pk, ck = ("p", "ck") if column == "pk" else ("pk", "c")
    session.execute(f"INSERT INTO {table} ({pk}, {ck}, v) VALUES (1, 7, 'd')")
    session.execute(f"DELETE FROM {table} WHERE {pk} = 1 AND {ck} = 8")
    return pk, ck


def keys(connector: Service, topic: str) -> list[tuple[dict[str, Any], bool]]:
    """Of all records, and whether each has a value."""
    return [(json.loads(each["key"]), each["value"] is not None) for each in connector.delivered(topic)]


@pytest.mark.parametrize("column", RENAMED)
def test_tolerated_they_are_dead_letters_and_nothing_has_a_wrong_key(
    service: Make, session: Session, make_table: MakeTable, unique: Unique, column: str
) -> None:
    table, dead = make_table(tablets=True, columns="v text, s text static"), unique("dead")
    connector = service(
        [table],
        connector={
            **dead_letters(dead),
            "cdc.range.deletes": "topic",
        },
    )
    pk, ck = written(session, table, column)
    # Of a static row and of a whole partition nothing is missing where the clustering key was renamed.
    whole = [({pk: 1, ck: None}, True)] if column == "ck" else []
    expected = [*whole, ({pk: 1, ck: 7}, True), ({pk: 1, ck: 8}, True), ({pk: 1, ck: 8}, False)]
    connector.start()
    until(lambda: len(keys(connector, connector.topic(table))) >= len(expected), 90, "later changes", step=seldom)
    letters = 5 if column == "ck" else 7
    until(lambda: len(connector.delivered(dead)) >= letters, 90, "dead letters", step=seldom)
    # Records of one key are in order.
    assert sorted(keys(connector, connector.topic(table)), key=str) == sorted(expected, key=str)
    several = keys(connector, f"{connector.topic(table)}.range-deletes")
    assert several == ([({pk: 1}, True)] if column == "ck" else []), "what a range was is not known any more"
    said = [
        dict(letter["headers"])["__connect.errors.exception.message"].decode() for letter in connector.delivered(dead)
    ]
    assert len(said) == letters
    for message in said:
        assert table in message and f"column {RENAMED[column].split()[-1]} of the key without a value" in message


@pytest.mark.parametrize(("column", "is_running"), [("ck", True), ("pk", False)], ids=["in the window", "unread"])
def test_their_group_fails_and_says_what_happened_and_what_to_do(
    service: Make, session: Session, make_table: MakeTable, column: str, is_running: bool
) -> None:
    table = make_table(tablets=True, columns="v text, s text static")
    # Long enough for a few statements on a busy machine.
    connector = service([table], connector={"scylla.confidence.window.size": "10000"} if is_running else {})
    if is_running:
        connector.start()
        until(lambda: in_state(connector, "RUNNING"), 90, "claims of all slots", step=seldom)
        written(session, table, column)
    else:
        written(session, table, column)
        connector.start()
    report = until(lambda: in_state(connector, "FAILED"), 90, "a status that says so", step=seldom)
    error = report["tables"][table]["error"]
    for words in ("of the key without a value", "RENAME", "errors.tolerance=all", "snapshot", "stop writers"):
        assert words in error
    assert connector.delivered(connector.topic(table)) == [], "nothing behind them either"


def in_state(connector: Service, state: str) -> dict[str, Any] | None:
    report = connector.report()
    return report if report["state"] == state else None
