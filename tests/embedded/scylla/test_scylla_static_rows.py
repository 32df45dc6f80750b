"""Partitions that have statics only, in selections with and without functions.

ScyllaDB keeps the clustering key of the row before where a selection computes anything (scylladb/scylladb#21267).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.embedded.scylla.cql_session import CqlSession

# In the order of tokens; 9 has a static value only, the others the rows (p, 1) and (p, 2).
_PARTITIONS = (1, 0, 2, 4, 9, 3)


@pytest.fixture
def cql() -> CqlSession:
    session = CqlSession()
    session.execute("CREATE TABLE t (p int, c int, d int, s int static, v int, PRIMARY KEY (p, c, d))")
    for p in _PARTITIONS:
        if p == 9:
            session.execute("INSERT INTO t (p, s) VALUES (9, 7)")
        else:
            for c in (1, 2):
                session.execute("INSERT INTO t (p, c, d, v) VALUES (?, ?, ?, ?)", p, c, c * 10 + p, c)
    return session


def _of_nine(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in rows if row[0] == 9]


@pytest.mark.parametrize(
    "computed", ["writetime(v)", "ttl(v)", "token(p)", "CAST(v AS text)", "blobasint(intasblob(v))", "v, v"]
)
def test_the_clustering_key_of_the_row_before_is_shown(cql: CqlSession, computed: str) -> None:
    assert [row[:4] for row in _of_nine(cql.rows(f"SELECT p, c, d, s, {computed} FROM t"))] == [(9, 2, 24, 7)]


def test_columns_alone_show_none(cql: CqlSession) -> None:
    assert _of_nine(cql.rows("SELECT p, c, d, s, v FROM t")) == [(9, None, None, 7, None)]
    assert _of_nine(cql.rows("SELECT p, c AS k FROM t")) == [(9, None)]


def test_the_partition_alone_shows_none(cql: CqlSession) -> None:
    assert cql.rows("SELECT p, c, writetime(v) FROM t WHERE p = 9") == [(9, None, None)]
    assert cql.rows("SELECT p, c, token(p) FROM t WHERE p IN (9)")[0][:2] == (9, None)


def test_the_first_row_of_a_page_shows_none(cql: CqlSession) -> None:
    pages = cql.pages("SELECT p, c, writetime(v) FROM t", 8)
    assert pages[1][0] == (9, None, None)
    pages = cql.pages("SELECT p, c, writetime(v) FROM t", 7)
    assert pages[1][1] == (9, 2, None)


def test_a_row_that_was_filtered_out_shows_too(cql: CqlSession) -> None:
    assert cql.rows("SELECT p, c, ttl(s) FROM t WHERE s = 7 ALLOW FILTERING") == [(9, 2, None)]


def test_groups_show_it_and_are_not_joined_by_it(cql: CqlSession) -> None:
    assert _of_nine(cql.rows("SELECT p, c, s FROM t GROUP BY p")) == [(9, 2, 7)]
    assert _of_nine(cql.rows("SELECT p, c, count(*) FROM t GROUP BY p, c")) == [(9, 2, 1)]
    assert cql.rows("SELECT count(c) FROM t") == [(11,)]


def test_json_is_a_function(cql: CqlSession) -> None:
    shown = [json.loads(text) for (text,) in cql.rows("SELECT JSON p, c FROM t")]
    assert [row for row in shown if row["p"] == 9] == [{"p": 9, "c": 2}]


def test_rows_after_it_are_as_they_are(cql: CqlSession) -> None:
    rows = cql.rows("SELECT p, c, d, writetime(s) FROM t")
    assert [row[:3] for row in rows[-2:]] == [(3, 1, 13), (3, 2, 23)]
    assert len(rows) == 11


def test_orders_follow_what_is_shown(cql: CqlSession) -> None:
    rows = cql.rows("SELECT p, c, token(p) FROM t WHERE p IN (4, 9) ORDER BY c DESC")
    assert [row[:2] for row in rows] == [(4, 2), (4, 1), (9, 1)]
    rows = cql.rows("SELECT p, c, token(p) FROM t WHERE p IN (4, 9) ORDER BY c ASC")
    assert [row[:2] for row in rows] == [(4, 1), (4, 2), (9, 2)]
