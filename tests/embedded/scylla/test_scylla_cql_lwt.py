"""Conditional statements: when they apply, and the rows they answer with, which are ScyllaDB's, not Cassandra's."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.scylla.errors import InvalidRequest, Unauthorized
from embedded.scylla.results import Rows
from tests.embedded.scylla.cql_session import CqlSession, decoded


@pytest.fixture
def cql() -> CqlSession:
    session = CqlSession()
    session.execute("CREATE TABLE t (p int, c int, s int static, v int, l list<int>, PRIMARY KEY (p, c))")
    return session


def names(cql: CqlSession, statement: str) -> list[str]:
    answer = cql.execute(statement)
    assert isinstance(answer, Rows)
    return [column.name for column in answer.columns]


def test_the_old_row_is_answered_whether_applied_or_not(cql: CqlSession) -> None:
    insert = "INSERT INTO t (p, c, v) VALUES (1, 1, 5) IF NOT EXISTS"
    assert cql.rows(insert) == [(True, None, None, None, None, None)]
    assert cql.rows(insert) == [(False, 1, 1, None, None, 5)]
    assert names(cql, insert) == ["[applied]", "p", "c", "s", "l", "v"]
    assert cql.rows("UPDATE t SET v = 6 WHERE p = 1 AND c = 1 IF v = 5") == [(True, 5)]
    assert cql.rows("DELETE FROM t WHERE p = 1 AND c = 1 IF EXISTS") == [(True, 1, 1, None, None, 6)]
    assert cql.rows("DELETE FROM t WHERE p = 1 AND c = 1 IF EXISTS") == [(False, None, None, None, None, None)]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("v = null", True),
        ("v != 5", True),
        ("v < 5", False),
        ("v >= 5", False),
        ("v IN (null, 3)", True),
        ("v IN (3)", False),
        ("l = []", True),
        ("l = null", True),
        ("l[0] = null", True),
        ("l[0] = 1", False),
        ("v = 5", False),
        ("v = null AND s = 1", False),
    ],
)
def test_conditions_on_a_row_that_does_not_exist(cql: CqlSession, condition: str, holds: bool) -> None:
    assert cql.rows(f"UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF {condition}")[0][0] is holds
    assert cql.rows("SELECT v FROM t") == ([(1,)] if holds else [])


def test_a_static_condition_applies_to_a_row_that_does_not_exist(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (p, s) VALUES (1, 1)")
    assert cql.rows("UPDATE t SET v = 2 WHERE p = 1 AND c = 7 IF s = 1") == [(True, 1)]
    assert cql.rows("DELETE v FROM t WHERE p = 1 AND c = 8 IF s = 2 AND v = 1") == [(False, 1, None)]
    assert cql.rows("SELECT c, s, v FROM t") == [(7, 1, 2)]


def test_existence_is_tested_on_what_the_statement_addresses(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (p, c, v) VALUES (1, 1, 1)")
    assert cql.rows("UPDATE t SET s = 2 WHERE p = 1 IF EXISTS") == [(False, 1, None, None, None, None)]
    assert cql.rows("INSERT INTO t (p, s) VALUES (1, 3) IF NOT EXISTS") == [(True, 1, None, None, None, None)]
    assert cql.rows("INSERT INTO t (p, s) VALUES (1, 4) IF NOT EXISTS") == [(False, 1, None, 3, None, None)]
    assert cql.rows("INSERT INTO t (p, c, s) VALUES (1, 2, 4) IF NOT EXISTS")[0][0] is True
    assert cql.rows("SELECT c, s FROM t") == [(1, 4), (2, 4)]


def batch(cql: CqlSession, *statements: str) -> list[tuple[Any, ...]]:
    return decoded(cql.batch(*statements))


def test_a_conditional_batch_answers_a_row_per_statement_with_keys(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (p, c, v) VALUES (1, 1, 5)")
    applied = batch(
        cql,
        "UPDATE t SET v = 6 WHERE p = 1 AND c = 1 IF v = 5",
        "INSERT INTO t (p, c, v) VALUES (1, 2, 7)",
    )
    assert applied == [(True, 1, 1, 5), (True, 1, None, None)]
    refused = batch(
        cql,
        "UPDATE t SET v = 9 WHERE p = 1 AND c = 1 IF v = 5",
        "UPDATE t SET v = 9 WHERE p = 1 AND c = 2 IF v = 7",
    )
    assert refused == [(False, 1, 1, 6), (False, 1, 2, 7)]
    assert cql.rows("SELECT c, v FROM t") == [(1, 6), (2, 7)]


def test_one_time_for_all_of_a_conditional_batch_lets_the_delete_win(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (p, c, v) VALUES (1, 1, 5)")
    batch(cql, "DELETE FROM t WHERE p = 1 AND c = 1 IF EXISTS", "INSERT INTO t (p, c, v) VALUES (1, 1, 6)")
    assert cql.rows("SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "INSERT INTO t (p, c) VALUES (1, 1) IF NOT EXISTS USING TIMESTAMP 1",
            "Cannot provide custom timestamp for conditional updates",
        ),
        ("UPDATE t SET v = 1 WHERE p IN (1, 2) AND c = 1 IF v = 1", "IN on the partition key is not supported"),
        ("UPDATE t SET v = 1 WHERE p = 1 AND c IN (1, 2) IF v = 1", "IN on the clustering key columns is not"),
        ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF c = 1", "PRIMARY KEY column 'c' cannot have IF conditions"),
        ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF v > null", "Invalid comparison with null"),
        ("DELETE FROM t WHERE p = 1 AND c > 1 IF EXISTS", "DELETE statements must restrict all PRIMARY KEY columns"),
        (
            "BEGIN BATCH USING TIMESTAMP 1 INSERT INTO t (p, c) VALUES (1, 1) IF NOT EXISTS APPLY BATCH",
            "Cannot provide custom timestamp for conditional BATCH",
        ),
        (
            "BEGIN BATCH INSERT INTO t (p, c) VALUES (1, 1) IF NOT EXISTS; DELETE FROM t WHERE p = 2 APPLY BATCH",
            "BATCH with conditions cannot span multiple partitions",
        ),
    ],
)
def test_refused(cql: CqlSession, statement: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        cql.execute(statement)
    assert cql.rows("SELECT * FROM t") == []


@pytest.mark.parametrize(("kind", "value"), [("duration", "1h"), ("list<duration>", "[1h]")])
def test_durations_are_equal_or_not_but_never_less(kind: str, value: str) -> None:
    cql = CqlSession()
    cql.execute(f"CREATE TABLE k (p int PRIMARY KEY, v {kind})")
    cql.execute(f"INSERT INTO k (p, v) VALUES (1, {value})")
    assert cql.rows(f"UPDATE k SET v = null WHERE p = 1 IF v != {value}")[0][0] is False
    with pytest.raises(InvalidRequest, match="Slice conditions are not supported"):
        cql.execute(f"UPDATE k SET v = null WHERE p = 1 IF v <= {value}")


@pytest.mark.parametrize(
    ("statement", "consistency"),
    [
        ("INSERT INTO k.t (p) VALUES (1) IF NOT EXISTS", 1),
        ("UPDATE k.t SET v = 1 WHERE p = 9 IF v = 5", 1),
        ("SELECT * FROM k.t WHERE p = 1", 8),
    ],
)
@pytest.mark.parametrize("tablets", [False, True])
def test_with_tablets_a_transaction_leaves_a_table(statement: str, consistency: int, tablets: bool) -> None:
    session = CqlSession()
    replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    enabled = str(tablets).lower()
    session.execute(f"CREATE KEYSPACE k WITH replication = {replication} AND tablets = {{'enabled': {enabled}}}")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v int)")
    schema = session.engine.schema
    session.execute("INSERT INTO k.t (p, v) VALUES (1, 1)")
    session.execute("SELECT * FROM k.t")
    assert [table.name for table in schema.tables("k")] == ["t"]

    for _ in range(2):
        session.execute(statement, consistency=consistency)
    assert [table.name for table in schema.tables("k")] == (["t", "t$paxos"] if tablets else ["t"])
    if tablets:
        assert session.rows('SELECT * FROM k."t$paxos"') == []
        for change in ('DROP TABLE k."t$paxos"', 'ALTER TABLE k."t$paxos" ADD x int'):
            with pytest.raises(Unauthorized):
                session.execute(change)
    session.execute("DROP TABLE k.t")
    assert schema.tables("k") == []
