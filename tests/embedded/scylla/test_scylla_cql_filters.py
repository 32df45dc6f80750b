"""What ALLOW FILTERING and IF leave over: LIKE, NOT IN, null, and several relations on one column."""

from __future__ import annotations

import pytest

from tests.embedded.scylla.cql_session import CqlSession

TEXTS = ["", "a", "ab", "a%", "A", "ba", "a\nb", "äb", "a.b"]


@pytest.fixture(scope="module")
def cql() -> CqlSession:
    session = CqlSession()
    session.execute("CREATE TABLE t (p int, c int, v int, x text, m map<int, int>, l list<int>, PRIMARY KEY (p, c))")
    for at, text in enumerate(TEXTS):
        session.execute("INSERT INTO t (p, c, v, x, m, l) VALUES (0, ?, ?, ?, ?, ?)", at, at, text, [(1, at)], [at])
    session.execute("INSERT INTO t (p, c) VALUES (0, 100)")
    return session


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("", [""]),
        ("%", TEXTS),
        ("a%", ["a", "ab", "a%", "a\nb", "a.b"]),
        ("_b", ["ab", "äb"]),
        ("a\\%", ["a%"]),
        ("a.b", ["a.b"]),
        ("%a", ["a", "ba"]),
        ("a_b", ["a\nb", "a.b"]),
        ("a\\", []),
    ],
)
def test_like(cql: CqlSession, pattern: str, matched: list[str]) -> None:
    literal = pattern.replace("'", "''")
    wanted = [(text,) for text in matched]
    assert cql.rows(f"SELECT x FROM t WHERE x LIKE '{literal}' ALLOW FILTERING") == wanted
    assert cql.rows("SELECT x FROM t WHERE x LIKE ? ALLOW FILTERING", pattern) == wanted


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("v NOT IN (0, 1, 2, 3, 4, 5, 6)", [7, 8]),
        ("c NOT IN (0, 1, 2, 3, 4, 5, 6)", [7, 8, 100]),
        ("p NOT IN (1)", [*range(9), 100]),
        ("v NOT IN (1, null)", []),
        ("v IN (1, null)", [1]),
        ("v = null", []),
        ("v > null", []),
        ("x LIKE null", []),
        ("m CONTAINS null", []),
        ("m CONTAINS KEY null", []),
        ("m[null] = 1", []),
        ("m[1] = 3", [3]),
        ("l[0] = 3", [3]),
        ("l[5] = 3", []),
        ("l[null] = 3", []),
        ("l[0] > 6", [7, 8]),
    ],
)
def test_filters(cql: CqlSession, where: str, found: list[int]) -> None:
    assert [c for (c,) in cql.rows(f"SELECT c FROM t WHERE {where} ALLOW FILTERING")] == found


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("c = 3 AND c > 3", []),
        ("c > 2 AND c = 3", [3]),
        ("c = 3 AND c = 3", [3]),
        ("c = 3 AND c = 4", []),
        ("c > 3 AND c > 6", [7, 8, 100]),
        ("c > 6 AND c > 3 AND c <= 8 AND c < 8", [7]),
        ("c > 3 AND c IN (3, 4, 5)", [4, 5]),
        ("c = 4 AND c IN (3, 5)", []),
        ("p = 1", []),
        ("c NOT IN (0, 1, 2, 3, 4, 5)", [6, 7, 8, 100]),
    ],
)
def test_relations_on_one_column_all_hold(cql: CqlSession, where: str, found: list[int]) -> None:
    assert [c for (c,) in cql.rows(f"SELECT c FROM t WHERE p = 0 AND {where}")] == found


def test_conditions_know_them_too() -> None:
    cql = CqlSession()
    cql.execute("CREATE TABLE t (p int PRIMARY KEY, v int, x text)")
    cql.execute("INSERT INTO t (p, v, x) VALUES (0, 1, 'abc')")

    def holds(condition: str, *values: object) -> bool:
        return bool(cql.rows(f"UPDATE t SET v = 1 WHERE p = 0 IF {condition}", *values)[0][0])

    assert holds("x LIKE 'a%'") and not holds("x LIKE 'b%'") and not holds("x LIKE null")
    assert holds("v NOT IN (2, null)") and not holds("v NOT IN (1, 2)")
    cql.execute("DELETE v FROM t WHERE p = 0")
    assert holds("v IN (null, 2)")
    cql.execute("DELETE v FROM t WHERE p = 0")
    assert not holds("v NOT IN (null, 2)") and holds("v NOT IN (2)")
    assert holds("v NOT IN ?", None) and not holds("v IN ?", None)


@pytest.mark.parametrize("kind", ["tuple<int, text>", "frozen<pair>"])
def test_a_tuple_without_bytes_is_one_of_nulls(kind: str) -> None:
    session = CqlSession()
    session.execute("CREATE TYPE pair (a int, b text)")
    session.execute(f"CREATE TABLE k (p int, c int, tp {kind}, PRIMARY KEY (p, c))")
    insert = session.engine.prepare("INSERT INTO k (p, c, tp) VALUES (0, ?, ?)", "ks")
    for at, raw in enumerate([b"", b"\xff" * 4, b"\xff" * 8, b"\0\0\0\x04\0\0\0\x01"]):
        session.engine.execute(insert, [at.to_bytes(4, "big"), raw], session.context())
    nulls = "(null, null)" if kind.startswith("tuple") else "{a: null}"
    one = "(1, null)" if kind.startswith("tuple") else "{a: 1}"
    assert session.rows(f"SELECT c FROM k WHERE tp = {nulls} ALLOW FILTERING") == [(0,), (1,), (2,)]
    assert session.rows(f"SELECT c FROM k WHERE tp IN ({nulls}) ALLOW FILTERING") == [(0,), (1,), (2,)]
    assert session.rows(f"SELECT c FROM k WHERE tp > {nulls} ALLOW FILTERING") == [(3,)]
    assert session.rows(f"SELECT c FROM k WHERE tp = {one} ALLOW FILTERING") == [(3,)]
