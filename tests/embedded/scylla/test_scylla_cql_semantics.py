"""What plain CQL does where it could also do something else: ties, TTL, null and UNSET, statics, orders."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pytest

from embedded.scylla.errors import InvalidRequest
from embedded.scylla.results import UNSET
from tests.embedded.scylla.cql_session import START_US, CqlSession

TABLE = (
    "CREATE TABLE t (pk int, ck int, s int static, v int, w int, m map<text, int>, l list<int>, st set<int>,"
    " PRIMARY KEY (pk, ck))"
)


@pytest.fixture
def cql() -> CqlSession:
    session = CqlSession()
    session.execute(TABLE)
    return session


def test_of_two_writes_at_one_time_the_greater_bytes_win_cell_by_cell(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, ck, v, w) VALUES (0, 0, -1, 1) USING TIMESTAMP 5")
    cql.execute("INSERT INTO t (pk, ck, v, w) VALUES (0, 0, 1, 2) USING TIMESTAMP 5")
    assert cql.rows("SELECT v, w FROM t") == [(-1, 2)]


@pytest.mark.parametrize(
    "deletion",
    [
        "DELETE v FROM t USING TIMESTAMP 5 WHERE pk = 0 AND ck = 0",
        "DELETE FROM t USING TIMESTAMP 5 WHERE pk = 0 AND ck = 0",
        "DELETE FROM t USING TIMESTAMP 5 WHERE pk = 0 AND ck >= 0",
        "DELETE FROM t USING TIMESTAMP 5 WHERE pk = 0",
    ],
)
@pytest.mark.parametrize("deletion_first", [True, False])
def test_a_delete_wins_over_a_write_of_the_same_time(cql: CqlSession, deletion: str, deletion_first: bool) -> None:
    write = "UPDATE t USING TIMESTAMP 5 SET v = 1 WHERE pk = 0 AND ck = 0"
    for statement in (deletion, write) if deletion_first else (write, deletion):
        cql.execute(statement)
    assert cql.rows("SELECT v FROM t") == []


@pytest.mark.parametrize("deletion_first", [True, False])
def test_a_delete_wins_inside_a_batch(cql: CqlSession, deletion_first: bool) -> None:
    statements = [
        "INSERT INTO t (pk, ck, v) VALUES (0, 0, 1)",
        "DELETE FROM t WHERE pk = 0 AND ck = 0",
    ]
    cql.batch(*(reversed(statements) if deletion_first else statements))
    assert cql.rows("SELECT v FROM t") == []


def test_a_cell_with_ttl_wins_a_tie_and_does_not_give_the_place_back(cql: CqlSession) -> None:
    cql.execute("UPDATE t USING TIMESTAMP 5 AND TTL 10 SET v = 1, w = 0 WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t USING TIMESTAMP 5 SET v = 2 WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t USING TIMESTAMP 5 AND TTL 20 SET w = 3 WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT v, ttl(v), w, ttl(w) FROM t") == [(1, 10, 3, 20)]
    cql.clock.move(10_000_000)
    assert cql.rows("SELECT v, w FROM t") == [(None, 3)]
    cql.clock.move(10_000_000)
    assert cql.rows("SELECT v, w FROM t") == []


def test_an_expired_insert_hides_the_row_it_replaced(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, ck, v) VALUES (0, 0, 1) USING TIMESTAMP 5")
    cql.execute("INSERT INTO t (pk, ck, v) VALUES (0, 0, 2) USING TIMESTAMP 6 AND TTL 1")
    cql.clock.move(999_999)
    assert cql.rows("SELECT v FROM t") == [(2,)]
    cql.clock.move(1)
    assert cql.rows("SELECT v FROM t") == []


def test_replacing_a_collection_twice_at_one_time_merges_both(cql: CqlSession) -> None:
    cql.execute("UPDATE t USING TIMESTAMP 5 SET m = {'a': 1} WHERE pk = 0 AND ck = 0")
    cql.execute("UPDATE t USING TIMESTAMP 5 SET m = {'b': 1} WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT m FROM t") == [([("a", 1), ("b", 1)],)]
    cql.execute("UPDATE t USING TIMESTAMP 6 SET m = {'c': 1} WHERE pk = 0 AND ck = 0")
    assert cql.rows("SELECT m FROM t") == [([("c", 1)],)]


def test_only_insert_makes_a_row_that_outlives_its_values(cql: CqlSession) -> None:
    cql.execute("UPDATE t SET v = 1 WHERE pk = 0 AND ck = 0")
    cql.execute("INSERT INTO t (pk, ck, v) VALUES (0, 1, 1)")
    cql.execute("UPDATE t SET v = null WHERE pk = 0 AND ck IN (0, 1)")
    cql.execute("INSERT INTO t (pk, ck, v) VALUES (?, ?, ?)", 0, 2, UNSET)
    assert cql.rows("SELECT ck, v FROM t") == [(1, None), (2, None)]


def test_unset_writes_nothing_and_null_a_tombstone(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, ck, v, w) VALUES (0, 0, 1, 1)")
    cql.execute("INSERT INTO t (pk, ck, v, w) VALUES (?, ?, ?, ?)", 0, 0, UNSET, None)
    assert cql.rows("SELECT v, w FROM t") == [(1, None)]
    cql.execute("UPDATE t SET v = ? WHERE pk = ? AND ck = ?", UNSET, 9, 9)
    assert cql.rows("SELECT v FROM t WHERE pk = 9") == []


@pytest.mark.parametrize("values", [(UNSET, 0), (0, UNSET), (None, 0), (0, None)])
def test_a_key_is_neither_null_nor_unset(cql: CqlSession, values: tuple[object, ...]) -> None:
    with pytest.raises(InvalidRequest):
        cql.execute("INSERT INTO t (pk, ck) VALUES (?, ?)", *values)
    with pytest.raises(InvalidRequest):
        cql.execute("SELECT * FROM t WHERE pk = ? AND ck > ?", *values)


def test_unset_ttl_timestamp_and_limit_count_as_not_given(cql: CqlSession) -> None:
    cql.execute("ALTER TABLE t WITH default_time_to_live = 50")
    cql.execute("INSERT INTO t (pk, ck, v) VALUES (0, 0, 1) USING TTL ? AND TIMESTAMP ?", UNSET, UNSET)
    assert cql.rows("SELECT ttl(v), writetime(v) FROM t LIMIT ?", UNSET) == [(50, START_US)]


@pytest.mark.parametrize("ttl", [None, 0])
def test_null_and_zero_ttl_last_for_ever(cql: CqlSession, ttl: int | None) -> None:
    cql.execute("ALTER TABLE t WITH default_time_to_live = 50")
    cql.execute("INSERT INTO t (pk, ck, v) VALUES (0, 0, 1) USING TTL ?", ttl)
    assert cql.rows("SELECT ttl(v) FROM t") == [(None,)]


def test_a_null_timestamp_is_refused(cql: CqlSession) -> None:
    with pytest.raises(InvalidRequest, match="Invalid null value of timestamp"):
        cql.execute("INSERT INTO t (pk, ck) VALUES (0, 0) USING TIMESTAMP ?", None)


def test_the_timestamp_in_the_text_beats_the_one_in_the_frame(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, ck, v, w) VALUES (0, 0, 1, 1)", default_timestamp=7)
    cql.execute("UPDATE t USING TIMESTAMP 9 SET v = 2 WHERE pk = 0 AND ck = 0", default_timestamp=8)
    assert cql.rows("SELECT writetime(v), writetime(w) FROM t") == [(9, 7)]


def test_a_partition_of_statics_is_one_row_without_clustering_key(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (pk, s) VALUES (0, 5)")
    assert cql.rows("SELECT pk, ck, s, v FROM t") == [(0, None, 5, None)]
    assert cql.rows("SELECT count(*), count(ck) FROM t") == [(1, 0)]
    assert cql.rows("SELECT * FROM t WHERE pk = 0 AND ck > -5") == []
    cql.execute("INSERT INTO t (pk, ck) VALUES (0, 0)")
    cql.execute("DELETE FROM t WHERE pk = 0 AND ck >= 0")
    assert cql.rows("SELECT s FROM t WHERE pk = 0") == [(5,)]
    cql.execute("DELETE FROM t WHERE pk = 0")
    assert cql.rows("SELECT s FROM t WHERE pk = 0") == []


def test_statics_alone_repeat_per_row_and_take_no_clustering_restriction(cql: CqlSession) -> None:
    cql.batch(*(f"INSERT INTO t (pk, ck, s) VALUES (0, {ck}, 5)" for ck in range(3)))
    assert cql.rows("SELECT s FROM t WHERE pk = 0") == [(5,)] * 3
    assert cql.rows("SELECT DISTINCT pk, s FROM t") == [(0, 5)]
    with pytest.raises(InvalidRequest, match="Cannot restrict clustering columns when selecting only static"):
        cql.execute("SELECT s FROM t WHERE pk = 0 AND ck = 1")


def _clustered(kind: str, values: list[object]) -> list[object]:
    session = CqlSession()
    session.execute(f"CREATE TABLE k (pk int, ck {kind}, PRIMARY KEY (pk, ck))")
    for value in values:
        session.execute("INSERT INTO k (pk, ck) VALUES (?, ?)", 0, value)
    return [row[0] for row in session.rows("SELECT ck FROM k")]


def test_timeuuids_order_by_time_then_signed_bytes() -> None:
    lows = ["8080", "80ff", "8000", "bf7f", "ffff", "0000", "7f7f"]
    made = [uuid.UUID(f"00000000-0000-1000-{low}-{'0' * 12}") for low in lows]
    later = uuid.UUID("00000001-0000-1000-8080-000000000000")
    assert _clustered("timeuuid", [later, *reversed(made)]) == [*made, later]


def test_decimals_that_are_equal_are_one_clustering_key_and_two_partitions() -> None:
    assert _clustered("decimal", [Decimal("1.0"), Decimal("1.00")]) == [Decimal("1.0")]
    session = CqlSession()
    session.execute("CREATE TABLE k (pk decimal PRIMARY KEY)")
    session.execute("INSERT INTO k (pk) VALUES (1.0)")
    session.execute("INSERT INTO k (pk) VALUES (1.00)")
    assert session.rows("SELECT count(*) FROM k") == [(2,)]


def test_doubles_order_with_signed_zeros_and_nan_last() -> None:
    infinity = float("inf")
    found = _clustered("double", [float("nan"), infinity, 1.0, 0.0, -0.0, -infinity])
    assert [str(value) for value in found] == ["-inf", "-0.0", "0.0", "1.0", "inf", "nan"]


def test_frozen_sets_are_kept_sorted_and_once() -> None:
    session = CqlSession()
    session.execute("CREATE TABLE k (pk int PRIMARY KEY, f frozen<set<int>>, e frozen<list<int>>, l list<int>)")
    session.execute("INSERT INTO k (pk, f, e, l) VALUES (?, ?, ?, ?)", 0, [3, 1, 3, -1], [], [])
    assert session.rows("SELECT f, e, l FROM k") == [([-1, 1, 3], [], None)]


@pytest.mark.parametrize("kind", ["int", "bigint", "double", "boolean", "uuid", "timestamp", "inet", "varint"])
def test_zero_bytes_are_a_value_for_these_types(kind: str) -> None:
    session = CqlSession()
    session.execute(f"CREATE TABLE k (pk int PRIMARY KEY, v {kind})")
    insert = session.engine.prepare("INSERT INTO k (pk, v) VALUES (?, ?)", "ks")
    session.engine.execute(insert, (b"\0\0\0\0", b""), session.context())
    answer = session.engine.execute("SELECT v FROM k", (), session.context())
    assert [list(row) for row in answer.rows] == [[b""]]  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["smallint", "tinyint", "date", "time", "duration"])
def test_zero_bytes_are_refused_for_these_types(kind: str) -> None:
    session = CqlSession()
    session.execute(f"CREATE TABLE k (pk int PRIMARY KEY, v {kind})")
    insert = session.engine.prepare("INSERT INTO k (pk, v) VALUES (?, ?)", "ks")
    with pytest.raises(InvalidRequest, match="Exception while binding column v"):
        session.engine.execute(insert, (b"\0\0\0\0", b""), session.context())


def test_in_answers_each_value_once_in_order_and_none_for_an_empty_list(cql: CqlSession) -> None:
    for pk in range(4):
        cql.execute("INSERT INTO t (pk, ck) VALUES (?, ?)", pk, pk)
    assert cql.rows("SELECT pk FROM t WHERE pk IN (3, 1, 3, 0)") == [(0,), (1,), (3,)]
    assert cql.rows("SELECT pk FROM t WHERE pk IN ?", [2, 1, 2]) == [(1,), (2,)]
    assert cql.rows("SELECT pk FROM t WHERE pk IN ()") == []
    with pytest.raises(InvalidRequest, match="Invalid null value"):
        cql.execute("SELECT pk FROM t WHERE pk IN (1, null)")


def test_list_operations(cql: CqlSession) -> None:
    where = "WHERE pk = 0 AND ck = 0"
    cql.execute(f"UPDATE t SET l = [1, 2, 1] {where}")
    cql.execute(f"UPDATE t SET l = [8, 9] + l {where}")
    cql.execute(f"UPDATE t SET l = l + [7] {where}")
    assert cql.rows("SELECT l FROM t") == [([8, 9, 1, 2, 1, 7],)]
    cql.execute(f"UPDATE t SET l[0] = null, l[1] = 5 {where}")
    cql.execute(f"UPDATE t SET l = l - [1] {where}")
    cql.execute(f"DELETE l[1] FROM t {where}")
    assert cql.rows("SELECT l FROM t") == [([5, 7],)]
    with pytest.raises(InvalidRequest, match="List index 2 out of bound, list has size 2"):
        cql.execute(f"UPDATE t SET l[2] = 1 {where}")
    with pytest.raises(InvalidRequest, match="Attempted to set an element on a list which is null"):
        cql.execute("UPDATE t SET l[0] = 1 WHERE pk = 5 AND ck = 0")
    with pytest.raises(InvalidRequest, match="list has size 2"):
        cql.batch(f"UPDATE t SET l = l + [1] {where}", f"UPDATE t SET l[2] = 1 {where}")


def test_map_and_set_operations(cql: CqlSession) -> None:
    where = "WHERE pk = 0 AND ck = 0"
    cql.execute(f"UPDATE t SET m = {{'a': 1, 'b': 2}}, st = {{3, 1}} {where}")
    cql.execute(f"UPDATE t SET m['c'] = 3, st = st + {{2}} {where}")
    cql.execute(f"UPDATE t SET m = m - {{'a'}}, m['b'] = null, st = st - {{3}} {where}")
    assert cql.rows("SELECT m, st, m['c'], st[2], st[9] FROM t") == [([("c", 3)], [1, 2], 3, 2, None)]
    cql.execute(f"DELETE m['c'], st[1] FROM t {where}")
    cql.execute(f"UPDATE t SET m = m + {{}} {where}")
    assert cql.rows("SELECT m, st FROM t") == [(None, [2])]


def test_range_deletes_take_every_kind_of_bound(cql: CqlSession) -> None:
    cql.execute(
        "CREATE TABLE r (pk int, a int, b int, PRIMARY KEY (pk, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)"
    )
    everything = [(a, b) for a in range(3) for b in range(3)]
    cases = {
        "a = 1": lambda a, b: a == 1,
        "a > 1": lambda a, b: a > 1,
        "a >= 1 AND a < 2": lambda a, b: 1 <= a < 2,
        "a = 1 AND b > 0": lambda a, b: a == 1 and b > 0,
        "a IN (0, 2) AND b <= 1": lambda a, b: a in (0, 2) and b <= 1,
        "(a, b) > (1, 1)": lambda a, b: (a, b) > (1, 1),
        "(a, b) >= (0, 2) AND (a, b) < (2, 1)": lambda a, b: (0, 2) <= (a, b) < (2, 1),
        "(a) > (0) AND (a, b) <= (1, 1)": lambda a, b: a > 0 and (a, b) <= (1, 1),
    }
    for where, deleted in cases.items():
        for a, b in everything:
            cql.execute(f"INSERT INTO r (pk, a, b) VALUES (0, {a}, {b})")
        assert sorted(cql.rows(f"SELECT a, b FROM r WHERE pk = 0 AND {where}")) == [
            key for key in everything if deleted(*key)
        ], where
        cql.clock.move(1)
        cql.execute(f"DELETE FROM r WHERE pk = 0 AND {where}")
        left = sorted(cql.rows("SELECT a, b FROM r WHERE pk = 0"))
        assert left == [key for key in everything if not deleted(*key)], where
        cql.clock.move(1)


def test_definitions_may_be_written_loosely() -> None:
    cql = CqlSession()
    cql.execute("CREATE KEYSPACE plain")
    assert dict(cql.engine.schema.keyspaces["plain"].replication)["class"].endswith("NetworkTopologyStrategy")
    cql.execute("CREATE TYPE u (a int, b frozen<list<int>>,)")
    cql.execute("CREATE TABLE k (a frozen<map<set<int>, list<u>>>, , b tuple<list<set<int>>, u>, PRIMARY KEY (a),)")
    types = {column.name: column.type.cql() for column in cql.engine.schema.tables("ks")[0].columns}
    assert types == {
        "a": "frozen<map<frozen<set<int>>, frozen<list<frozen<u>>>>>",
        "b": "frozen<tuple<frozen<list<frozen<set<int>>>>, frozen<u>>>",
    }
    cql.execute("INSERT INTO k (a) VALUES ({{2, 1}: [{a: 3}]})")
    assert len(cql.rows("SELECT * FROM k WHERE a = {{1, 2, 1}: [{a: 3, b: null}]}")) == 1
