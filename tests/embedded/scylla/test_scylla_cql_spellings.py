"""Values that are equal although their bytes differ: as elements, as map keys, in clustering keys and in the log."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from embedded.scylla.process import EmbeddedScylla
from tests.embedded.scylla.cql_session import CqlSession

LONG_ONE = "0x0001"  # 1 as a varint with a byte too many


@pytest.fixture
def cql() -> CqlSession:
    session = CqlSession()
    session.execute("CREATE TYPE pair (a decimal, b int)")
    session.execute(
        "CREATE TABLE t (pk decimal, ck decimal, e set<decimal>, m map<decimal, int>, n map<varint, int>,"
        " f set<frozen<tuple<decimal, int>>>, z frozen<set<decimal>>, y frozen<map<decimal, text>>,"
        " PRIMARY KEY (pk, ck))"
    )
    return session


def spelled(rows: list[tuple[Any, ...]]) -> list[str]:
    return [str(row) for row in rows]


def test_removing_an_element_takes_any_spelling(cql: CqlSession) -> None:
    cql.execute("UPDATE t SET e = {1.0, 2.5}, m = {1.0: 1, 2.5: 2} WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t SET e = e - {2.50}, m = m - {1.00} WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT e, m FROM t") == [([Decimal("1.0")], [(Decimal("2.5"), 2)])]
    cql.execute("DELETE e[1.00], m[2.500] FROM t WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT e, m FROM t") == []


def test_an_element_written_again_keeps_its_first_spelling(cql: CqlSession) -> None:
    cql.execute("UPDATE t SET e = e + {1.0}, m = m + {1.0: 1} WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t SET e = e + {1.00}, m[1.00] = 2 WHERE pk = 0 AND ck = 0")
    assert spelled(cql.rows("SELECT e, m FROM t")) == ["([Decimal('1.0')], [(Decimal('1.0'), 2)])"]
    assert cql.rows("SELECT m[1.000] FROM t") == [(2,)]
    # Replacing the whole forgets the old elements with their spellings.
    cql.execute("UPDATE t SET e = {1.00} WHERE pk = 0 AND ck = 0")
    assert spelled(cql.rows("SELECT e FROM t")) == ["([Decimal('1.00')],)"]


def test_an_older_spelling_loses_its_value_only(cql: CqlSession) -> None:
    cql.execute("UPDATE t USING TIMESTAMP 10 SET m[1.0] = 1 WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t USING TIMESTAMP 9 SET m[1.00] = 2 WHERE pk = 0 AND ck = 0")
    assert spelled(cql.rows("SELECT m FROM t")) == ["([(Decimal('1.0'), 1)],)"]


def test_varints_with_needless_bytes(cql: CqlSession) -> None:
    cql.execute("UPDATE t SET n[1] = 1 WHERE pk = 0 AND ck = 0")
    cql.execute(f"UPDATE t SET n[blobAsVarint({LONG_ONE})] = 2 WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT n FROM t") == [([(1, 2)],)]
    cql.execute(f"DELETE n[blobAsVarint({LONG_ONE})] FROM t WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT n FROM t") == []


def test_spellings_inside_frozen_elements(cql: CqlSession) -> None:
    cql.execute("UPDATE t SET f = f + {(1.0, 1), (2.0, 1)} WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t SET f = f - {(1.00, 1), (2.0, 2)} WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT f FROM t") == [([(Decimal("2.0"), 1)],)]


def test_frozen_literals_hold_equal_values_once(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, ck, z, y) VALUES (0, 0, {1.0, 2, 1.00}, {1.0: 'a', 1.00: 'b'})")
    assert spelled(cql.rows("SELECT z, y FROM t")) == ["([Decimal('1.0'), Decimal('2')], [(Decimal('1.0'), 'a')])"]
    assert cql.rows("SELECT ck FROM t WHERE z = {1.000, 2.0} ALLOW FILTERING") == [(0,)]


def test_clustering_keys_are_one_row_and_partition_keys_are_two(cql: CqlSession) -> None:
    for key in ("1.0", "1.00"):
        cql.execute(f"INSERT INTO t (pk, ck, m) VALUES (0, {key}, {{{key}: 1}})")
        cql.execute(f"INSERT INTO t (pk, ck) VALUES ({key}, 7)")
    assert spelled(cql.rows("SELECT ck FROM t WHERE pk = 0")) == ["(Decimal('1.0'),)"]
    assert len(cql.rows("SELECT pk FROM t WHERE ck = 7 ALLOW FILTERING")) == 2
    assert len(cql.rows("SELECT pk FROM t WHERE pk IN (1.0, 1.00, 1.0)")) == 2


def test_one_batch_writes_one_row(cql: CqlSession) -> None:
    cql.batch(
        "INSERT INTO t (pk, ck, e) VALUES (0, 1.0, {1.0})", "UPDATE t SET e = e - {1.00} WHERE pk = 0 AND ck = 1.00"
    )
    assert spelled(cql.rows("SELECT ck, e FROM t")) == ["(Decimal('1.0'), None)"]


def test_rows_and_elements_are_found_again_when_their_type_has_grown(cql: CqlSession) -> None:
    cql.execute("CREATE TABLE u (pk int, ck frozen<pair>, e set<frozen<pair>>, PRIMARY KEY (pk, ck))")
    cql.execute("INSERT INTO u (pk, ck, e) VALUES (0, {a: 1.0, b: 2}, {{a: 3.0, b: 4}})")
    cql.execute("ALTER TYPE pair ADD c text")
    cql.execute("UPDATE u SET e = e - {{a: 3.00, b: 4}} WHERE pk = 0 AND ck = {a: 1.00, b: 2}")
    assert cql.rows("SELECT e FROM u WHERE pk = 0 AND ck = {a: 1, b: 2}") == [(None,)]
    assert len(cql.rows("SELECT * FROM u")) == 1


def test_the_log_shows_what_was_written(scylla: EmbeddedScylla, keyspace: str) -> None:
    table = f"{keyspace}.t"
    scylla.admin.cql(
        f"CREATE TABLE {table} (pk int PRIMARY KEY, e set<decimal>) WITH cdc = {{'enabled': true, 'preimage': true,"
        " 'postimage': true}"
    )
    for timestamp, operation in enumerate(("e + {1.0, 2}", "e + {1.00}", "e - {2.0}"), start=1):
        now_us = scylla.admin.now_ms() * 1000 + timestamp
        scylla.admin.cql(f"UPDATE {table} SET e = {operation} WHERE pk = 0", timestamp=now_us)
    log = scylla.admin.cql(
        f'SELECT "cdc$operation" AS op, e, "cdc$deleted_elements_e" AS gone FROM {table}_scylla_cdc_log'
    )
    shown = [(row[0], *("/".join(map(str, each)) if each else None for each in row[1:])) for row in log["rows"]]
    assert shown == [
        (1, "1.0/2", None),
        (9, "1.0/2", None),
        (0, "1.0/2", None),
        (1, "1.00", None),
        (9, "1.00/2", None),
        (0, "1.0/2", None),
        (1, None, "2.0"),
        (9, "1.0", None),
    ]
