"""SELECT: pages, limits, orders, functions, aggregates, JSON, filtering, and what the definitions of tables change."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest

from connector.values.types import native, parse_type
from embedded.scylla.engine import VirtualTable
from embedded.scylla.errors import InvalidRequest, Unauthorized
from embedded.scylla.results import Rows, SchemaChange
from embedded.scylla.schema import Column, SchemaEvent, Table
from tests.embedded.scylla.cql_session import START_US, CqlSession


@pytest.fixture
def cql() -> CqlSession:
    """Six partitions of five rows, one of them with a static only."""
    session = CqlSession()
    session.execute("CREATE TABLE t (p int, c int, s int static, v int, PRIMARY KEY (p, c))")
    insert = session.engine.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, ?)", "ks")
    for p in range(5):
        for c in range(5):
            session.execute(insert, p, c, p * 10 + c)
    session.execute("INSERT INTO t (p, s) VALUES (9, 1)")
    return session


@pytest.mark.parametrize("size", [1, 2, 3, 7, 26, 100])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT p, c, s FROM t",
        "SELECT p, c FROM t LIMIT 7",
        "SELECT p, c FROM t PER PARTITION LIMIT 2",
        "SELECT p, c FROM t PER PARTITION LIMIT 2 LIMIT 5",
        "SELECT p, c FROM t WHERE p = 1 ORDER BY c DESC",
        "SELECT p, c FROM t WHERE p IN (4, 0, 2) AND c > 0 AND c <= 3",
        "SELECT p, c FROM t WHERE p = 1 AND c IN (4, 0, 2)",
        "SELECT DISTINCT p, s FROM t",
        "SELECT p, c FROM t WHERE v > 12 ALLOW FILTERING",
        "SELECT p, c FROM t WHERE token(p) > 0",
    ],
)
def test_pages_put_together_are_the_whole_answer(cql: CqlSession, select: str, size: int) -> None:
    whole = cql.rows(select)
    pages = cql.pages(select, size)
    assert [row for page in pages for row in page] == whole
    assert all(len(page) == size for page in pages[:-1])
    assert len(whole) > 2


def test_a_page_goes_on_where_rows_were_deleted_and_added(cql: CqlSession) -> None:
    first = cql.execute("SELECT c FROM t WHERE p = 1", page_size=2)
    assert isinstance(first, Rows)
    cql.execute("DELETE FROM t WHERE p = 1 AND c >= 1 AND c <= 2")
    cql.execute("INSERT INTO t (p, c) VALUES (1, 7)")
    rest = cql.rows("SELECT c FROM t WHERE p = 1", paging_state=first.paging_state)
    assert rest == [(3,), (4,), (7,)]


def test_a_scan_goes_round_the_ring_by_token(cql: CqlSession) -> None:
    tokens = [row[0] for row in cql.rows("SELECT token(p) FROM t PER PARTITION LIMIT 1")]
    assert tokens == sorted(tokens)
    assert len(cql.rows("SELECT DISTINCT p FROM t WHERE token(p) > ? AND token(p) <= ?", tokens[0], tokens[3])) == 3
    assert cql.rows("SELECT token(p) FROM t WHERE p = 1 LIMIT 1") == [(-4069959284402364209,)]


def test_several_partitions_in_one_order_cannot_be_paged(cql: CqlSession) -> None:
    select = "SELECT p, c FROM t WHERE p IN (1, 2) ORDER BY c DESC LIMIT 3"
    assert cql.rows(select) == [(1, 4), (2, 4), (1, 3)]
    with pytest.raises(InvalidRequest, match="Cannot page queries with both ORDER BY and a IN"):
        cql.execute(select, page_size=10)


def test_aggregates(cql: CqlSession) -> None:
    assert cql.rows("SELECT count(*), count(v), min(v), max(v), sum(v), avg(v) FROM t WHERE p = 1") == [
        (5, 5, 10, 14, 60, 12)
    ]
    assert cql.rows("SELECT count(*), min(v), max(v) FROM t WHERE p = 77") == [(0, None, None)]
    assert cql.rows("SELECT p, count(*) FROM t WHERE p = 77 GROUP BY p") == []
    assert sorted(cql.rows("SELECT p, count(v), max(v) FROM t GROUP BY p")) == [
        *((p, 5, p * 10 + 4) for p in range(5)),
        (9, 0, None),
    ]


def test_filtering(cql: CqlSession) -> None:
    assert sorted(cql.rows("SELECT p, c FROM t WHERE c = 3 AND v >= 23 ALLOW FILTERING")) == [(2, 3), (3, 3), (4, 3)]
    assert cql.rows("SELECT p, c FROM t WHERE s = 1 ALLOW FILTERING") == [(9, None)]
    cql.execute("CREATE TABLE k (p int PRIMARY KEY, m map<text, int>, st set<int>, l frozen<list<int>>)")
    cql.execute("INSERT INTO k (p, m, st, l) VALUES (0, {'a': 1}, {7}, [5])")
    for where in ("m CONTAINS 1", "m CONTAINS KEY 'a'", "m['a'] = 1", "st CONTAINS 7", "l CONTAINS 5", "l = [5]"):
        assert cql.rows(f"SELECT p FROM k WHERE {where} ALLOW FILTERING") == [(0,)], where
    for where in ("m CONTAINS 2", "m CONTAINS KEY 'b'", "m['b'] = 1", "st CONTAINS 8", "l = []"):
        assert cql.rows(f"SELECT p FROM k WHERE {where} ALLOW FILTERING") == [], where


def test_functions_of_time() -> None:
    cql = CqlSession()
    cql.execute("CREATE TABLE k (p int PRIMARY KEY, u timeuuid, t timestamp)")
    cql.execute("INSERT INTO k (p, u, t) VALUES (0, now(), '2023-11-14 22:13:20+0000')")
    milliseconds = START_US // 1000
    day = milliseconds // 86_400_000
    assert cql.rows("SELECT toTimestamp(u), toUnixTimestamp(u), toDate(u), dateOf(u), unixTimestampOf(u) FROM k") == [
        (milliseconds, milliseconds, day, milliseconds, milliseconds)
    ]
    assert cql.rows("SELECT to_timestamp(to_date(u)), cast(u as date) FROM k") == [(day * 86_400_000, day)]
    low, high = cql.rows("SELECT minTimeuuid(t), maxTimeuuid(t) FROM k")[0]
    assert (low.bytes[8:], high.bytes[8:]) == (b"\x80" * 8, b"\x7f" * 8)
    assert high.time - low.time == 9999
    assert cql.rows("SELECT p FROM k WHERE u >= minTimeuuid(?) ALLOW FILTERING", milliseconds) == [(0,)]
    first, second = cql.rows("SELECT now(), now() FROM k")[0]
    assert first != second
    assert first.version == 1


def test_functions_of_values() -> None:
    cql = CqlSession()
    cql.execute("CREATE TABLE k (p int PRIMARY KEY, b blob, d double, t text)")
    cql.execute("INSERT INTO k (p, b, d, t) VALUES (258, textAsBlob('hi'), 1.5, 'x')")
    assert cql.rows("SELECT intAsBlob(p), blobAsText(b), cast(d as int), cast(p as text), cast(d as text) FROM k") == [
        (b"\0\0\x01\x02", "hi", 1, "258", "1.5")
    ]
    with pytest.raises(InvalidRequest, match="not a valid binary representation for type int"):
        cql.execute("SELECT blobAsInt(b) FROM k")
    made = cql.rows("SELECT uuid() FROM k")[0][0]
    assert made.version == 4


VALUES: list[tuple[str, str, str]] = [
    ("ascii", "'a\"b'", '"a\\"b"'),
    ("bigint", "-9223372036854775808", "-9223372036854775808"),
    ("blob", "0xCAFE", '"0xcafe"'),
    ("boolean", "true", "true"),
    ("date", "'2017-02-03'", '"2017-02-03"'),
    ("decimal", "-1.50", "-1.50"),
    ("double", "1e10", "1.0E10"),
    ("duration", "1y2mo3d4h5m", '"1y2mo3d4h5m"'),
    ("float", "0.1", "0.1"),
    ("inet", "'2001:db8::1'", '"2001:db8::1"'),
    ("int", "7", "7"),
    ("smallint", "-7", "-7"),
    ("text", "'naïve'", '"naïve"'),
    ("time", "'08:09:10.5'", '"08:09:10.500000000"'),
    ("timestamp", "'2017-02-03T04:05:06.789+0100'", '"2017-02-03 03:05:06.789Z"'),
    ("timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f", '"50554d6e-29bb-11e5-b345-feff819cdc9f"'),
    ("tinyint", "127", "127"),
    ("uuid", "6bddc89a-5644-11e4-97fc-56847afe9799", '"6bddc89a-5644-11e4-97fc-56847afe9799"'),
    ("varint", "123456789012345678901234567890", "123456789012345678901234567890"),
    ("list<int>", "[1, 2]", "[1, 2]"),
    ("set<text>", "{'b', 'a'}", '["a", "b"]'),
    ("map<int, boolean>", "{2: true, 1: false}", '{"1": false, "2": true}'),
    ("frozen<map<text, frozen<list<int>>>>", "{'k': [1]}", '{"k": [1]}'),
    ("tuple<int, text>", "(1, null)", "[1, null]"),
    ("vector<float, 2>", "[1.5, -2]", "[1.5, -2.0]"),
    ("u", "{a: 1, b: 'x'}", '{"a": 1, "b": "x"}'),
    ("frozen<u>", "{a: 1}", '{"a": 1, "b": null}'),
]


@pytest.mark.parametrize(("kind", "literal", "json"), VALUES, ids=[kind for kind, _, _ in VALUES])
def test_values_of_every_type_as_literal_and_as_json(kind: str, literal: str, json: str) -> None:
    cql = CqlSession()
    cql.execute("CREATE TYPE u (a int, b text)")
    cql.execute(f"CREATE TABLE k (p int PRIMARY KEY, v {kind})")
    cql.execute(f"INSERT INTO k (p, v) VALUES (0, {literal})")
    assert cql.rows("SELECT toJson(v) FROM k") == [(json,)]
    assert cql.rows("SELECT JSON p, v FROM k") == [(f'{{"p": 0, "v": {json}}}',)]
    quoted = json.replace("'", "''")
    cql.execute(f'INSERT INTO k JSON \'{{"p": 1, "v": {quoted}}}\'')
    cql.execute(f"UPDATE k SET v = fromJson('{quoted}') WHERE p = 2")
    values = dict(cql.rows("SELECT p, v FROM k"))
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize(
    ("kind", "json"),
    [("boolean", '"yes"'), ("boolean", "1"), ("date", "3"), ("time", "3"), ("inet", "1"), ("text", "1")],
)
def test_json_of_the_wrong_kind_is_refused(kind: str, json: str) -> None:
    cql = CqlSession()
    cql.execute(f"CREATE TABLE k (p int PRIMARY KEY, v {kind})")
    with pytest.raises(InvalidRequest, match="Error decoding JSON value"):
        cql.execute(f'INSERT INTO k JSON \'{{"p": 1, "v": {json}}}\'')


@pytest.mark.parametrize("kind", ["inet", "timestamp"])
def test_an_empty_text_is_a_value_without_bytes(kind: str) -> None:
    cql = CqlSession()
    cql.execute(f"CREATE TABLE k (p int PRIMARY KEY, v {kind})")
    cql.execute("INSERT INTO k (p, v) VALUES (1, '')")
    answer = cql.execute("SELECT v FROM k")
    assert isinstance(answer, Rows) and [tuple(row) for row in answer.rows] == [(b"",)]


def test_a_decimal_with_a_huge_exponent_costs_no_more_than_its_statement(cql: CqlSession) -> None:
    cql.execute("CREATE TABLE k (p int, d decimal, PRIMARY KEY (p, d))")
    cql.execute("INSERT INTO k (p, d) VALUES (1, 1e999999999)")
    cql.execute("INSERT INTO k (p, d) VALUES (1, 1e-999999999)")
    for kind in ("varint", "bigint"):
        with pytest.raises(InvalidRequest, match="cannot be cast"):
            cql.execute(f"SELECT cast(d AS {kind}) FROM k")
    assert len(cql.rows("SELECT d, toJson(d) FROM k WHERE p = 1 AND d > 0")) == 2
    assert len(cql.rows("SELECT min(d), max(d) FROM k")) == 1
    with pytest.raises(InvalidRequest, match="a sum of decimals may not have more than"):
        cql.execute("SELECT sum(d) FROM k")


def test_sums_of_decimals_are_exact(cql: CqlSession) -> None:
    cql.execute("CREATE TABLE k (p int, d decimal, PRIMARY KEY (p, d))")
    many = "9" * 40
    cql.execute(f"INSERT INTO k (p, d) VALUES (1, {many})")
    cql.execute("INSERT INTO k (p, d) VALUES (1, 0.25)")
    total = Decimal(f"{many}.25")
    assert cql.rows("SELECT sum(d) FROM k") == [(total,)]
    # Half to even, as many digits after the point as the sum has.
    assert cql.rows("SELECT avg(d) FROM k") == [(Decimal("4" + "9" * 39 + ".62"),)]


def test_json_insert_writes_null_unless_told_to_leave_columns_alone(cql: CqlSession) -> None:
    cql.execute('INSERT INTO t JSON \'{"p": 1, "c": 1, "s": 5}\' DEFAULT UNSET')
    assert cql.rows("SELECT v, s FROM t WHERE p = 1 AND c = 1") == [(11, None)]
    cql.execute('INSERT INTO t JSON \'{"p": 1, "c": 1}\'')
    assert cql.rows("SELECT v FROM t WHERE p = 1 AND c = 1") == [(None,)]


def test_altered_tables_forget_dropped_columns_and_keep_renamed_keys(cql: CqlSession) -> None:
    cql.execute("ALTER TABLE t ADD (x int, y text static)")
    cql.execute("UPDATE t SET x = 1 WHERE p = 0 AND c = 0")
    cql.execute("ALTER TABLE t DROP v")
    cql.execute("ALTER TABLE t ADD v text")
    cql.execute("ALTER TABLE t RENAME c TO cc")
    answer = cql.execute("SELECT * FROM t WHERE p = 0 AND cc = 0")
    assert isinstance(answer, Rows)
    assert [column.name for column in answer.columns] == ["p", "cc", "s", "y", "v", "x"]
    assert cql.rows("SELECT cc, v, x FROM t WHERE p = 0 LIMIT 2") == [(0, None, 1), (1, None, None)]
    table = cql.engine.schema.table("ks", "t")
    assert table is not None
    assert [(column.name, column.dropped_us) for column in table.dropped] == [("v", START_US)]


def test_a_grown_user_type_shows_null_in_old_values() -> None:
    cql = CqlSession()
    cql.execute("CREATE TYPE u (a int)")
    cql.execute("CREATE TABLE k (p int PRIMARY KEY, f frozen<u>, n u, l list<frozen<u>>)")
    cql.execute("INSERT INTO k (p, f, n, l) VALUES (0, {a: 1}, {a: 2}, [{a: 3}])")
    cql.execute("ALTER TYPE u ADD b text")
    cql.execute("UPDATE k SET n.b = 'x' WHERE p = 0")
    assert cql.rows("SELECT f, n, l, f.b, n.b FROM k") == [((1, None), (2, "x"), [(3, None)], None, "x")]
    with pytest.raises(InvalidRequest, match=r"still used by table ks\.k"):
        cql.execute("DROP TYPE u")


def test_definitions_are_told_once_and_in_order() -> None:
    cql = CqlSession()
    events: list[SchemaEvent] = []
    cql.engine.schema.listen(events.append)
    created = cql.execute("CREATE TABLE k (p int PRIMARY KEY)")
    assert created == SchemaChange(SchemaEvent("CREATED", "TABLE", "ks", "k"))
    cql.execute("CREATE TABLE IF NOT EXISTS k (p int PRIMARY KEY)")
    cql.execute("CREATE TYPE u (a int)")
    cql.execute("ALTER TABLE k WITH comment = 'x'")
    cql.execute("DROP KEYSPACE ks")
    assert [(event.change, event.target, event.name) for event in events] == [
        ("CREATED", "TABLE", "k"),
        ("CREATED", "TYPE", "u"),
        ("UPDATED", "TABLE", "k"),
        ("DROPPED", "TABLE", "k"),
        ("DROPPED", "TYPE", "u"),
        ("DROPPED", "KEYSPACE", ""),
    ]
    assert cql.engine.stores == {}


def test_truncate_forgets_values_and_tombstones(cql: CqlSession) -> None:
    cql.execute("DELETE FROM t WHERE p = 1")
    cql.execute("TRUNCATE t")
    assert cql.rows("SELECT * FROM t") == []
    cql.execute("INSERT INTO t (p, c) VALUES (1, 1) USING TIMESTAMP 1")
    assert cql.rows("SELECT p, c FROM t") == [(1, 1)]


@pytest.mark.parametrize(
    ("replication", "extra", "tablets"),
    [
        ("'class': 'SimpleStrategy', 'replication_factor': 1", "", False),
        ("'class': 'NetworkTopologyStrategy', 'replication_factor': 1", "", True),
        ("'class': 'NetworkTopologyStrategy', 'datacenter1': 1", " AND tablets = {'enabled': false}", False),
        ("'class': 'NetworkTopologyStrategy', 'replication_factor': 1", " AND tablets = {'initial': 8}", True),
    ],
)
def test_which_keyspaces_have_tablets(replication: str, extra: str, tablets: bool) -> None:
    cql = CqlSession()
    cql.execute(f"CREATE KEYSPACE k WITH replication = {{{replication}}}{extra}")
    keyspace = cql.engine.schema.keyspaces["k"]
    assert keyspace.uses_tablets is tablets
    assert "replication_factor" not in keyspace.replication or "Simple" in keyspace.replication["class"]


def test_computed_tables_are_read_like_others_and_not_written() -> None:
    cql = CqlSession()
    columns = (
        Column("k", native("text"), "partition_key", 0),
        Column("n", native("int"), "clustering", 0, "desc"),
        Column("tags", parse_type("set<text>")),
        Column("v", native("uuid")),
    )
    value = uuid.uuid4()
    rows: list[dict[str, Any]] = [{"k": "a", "n": n, "v": value, "tags": ["x", "y"] if n else None} for n in range(4)]
    table = Table(uuid.uuid4(), "ks", "computed", columns)
    cql.engine.add_virtual_table(VirtualTable(table, lambda: rows))
    assert cql.rows("SELECT * FROM computed WHERE k = 'a' AND n < 2") == [
        ("a", 1, ["x", "y"], value),
        ("a", 0, None, value),
    ]
    assert cql.rows("SELECT count(*) FROM computed") == [(4,)]
    assert [len(page) for page in cql.pages("SELECT n FROM computed", 3)] == [3, 1]
    rows.clear()
    assert cql.rows("SELECT * FROM computed WHERE k = 'a'") == []
    with pytest.raises(Unauthorized):
        cql.execute("INSERT INTO computed (k, n) VALUES ('a', 1)")


def test_group_by_with_a_limit_per_partition(cql: CqlSession) -> None:
    assert cql.rows("SELECT p, c FROM t WHERE p IN (0, 1) GROUP BY p, c PER PARTITION LIMIT 2") == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    assert cql.rows("SELECT p, count(*) FROM t WHERE p IN (0, 1) GROUP BY p PER PARTITION LIMIT 1 LIMIT 1") == [(0, 5)]


def test_an_in_of_one_value_may_be_skipped_in_order_by(cql: CqlSession) -> None:
    cql.execute("CREATE TABLE o (p int, c int, d int, PRIMARY KEY (p, c, d))")
    for d in range(3):
        cql.execute(f"INSERT INTO o (p, c, d) VALUES (0, 1, {d})")
    assert cql.rows("SELECT d FROM o WHERE p = 0 AND c IN (1) ORDER BY d DESC") == [(2,), (1,), (0,)]
    with pytest.raises(InvalidRequest, match="Unsupported order by relation"):
        cql.rows("SELECT d FROM o WHERE p = 0 AND c IN (1, 2) ORDER BY d DESC")


def test_distinct_may_filter_partition_keys(cql: CqlSession) -> None:
    assert sorted(cql.rows("SELECT DISTINCT p FROM t WHERE p > 2 ALLOW FILTERING")) == [(3,), (4,), (9,)]
    assert cql.rows("SELECT DISTINCT s FROM t WHERE p = 9") == [(1,)]


def test_whole_numbers_in_json_may_have_an_exponent() -> None:
    cql = CqlSession()
    cql.execute("CREATE TABLE j (p int PRIMARY KEY, b bigint, w varint)")
    cql.execute("""INSERT INTO j JSON '{"p": 1e1, "b": 1.23456789E+9, "w": 1e30}'""")
    assert cql.rows("SELECT p, b, w FROM j") == [(10, 1234567890, 10**30)]
    for wrong in ("1.5e0", "1e999999999", "1.0"):
        with pytest.raises(InvalidRequest, match="Error decoding JSON value for type varint"):
            cql.execute(f"""INSERT INTO j JSON '{{"p": 1, "w": {wrong}}}'""")


def test_a_row_of_statics_only_counts_as_the_least(cql: CqlSession) -> None:
    ascending = cql.rows("SELECT p, c FROM t WHERE p IN (0, 1, 9) ORDER BY c ASC")
    assert ascending[0] == (9, None) and [c for _, c in ascending[1:]] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert cql.rows("SELECT p, c FROM t WHERE p IN (0, 1, 9) ORDER BY c DESC")[-1] == (9, None)


def test_a_name_used_twice_is_one_variable(cql: CqlSession) -> None:
    prepared = cql.engine.prepare("SELECT p, c FROM t WHERE p = :x AND c = :x AND v >= :y ALLOW FILTERING", "ks")
    assert [column.name for column in prepared.variables] == ["x", "y"]
    assert prepared.pk_indexes == (0,)
    assert cql.rows(prepared, 3, 0) == [(3, 3)]
    batch = "BEGIN BATCH INSERT INTO t (p, c) VALUES (:x, 77); INSERT INTO t (p, c) VALUES (:x, 78); APPLY BATCH"
    cql.execute(batch, 50)
    assert cql.rows("SELECT c FROM t WHERE p = 50") == [(77,), (78,)]


def test_a_page_of_large_rows_is_short(cql: CqlSession) -> None:
    cql.execute("CREATE TABLE large (p int, c int, v blob, PRIMARY KEY (p, c))")
    for c in range(15):
        cql.execute("INSERT INTO large (p, c, v) VALUES (0, ?, ?)", c, bytes(100_000))
    assert [len(page) for page in cql.pages("SELECT * FROM large", 1000)] == [11, 4]
    assert len(cql.rows("SELECT * FROM large")) == 15


def test_the_last_columns_may_be_left_out_of_the_clustering_order() -> None:
    cql = CqlSession()
    cql.execute("CREATE TABLE o (p int, c int, d int, PRIMARY KEY (p, c, d)) WITH CLUSTERING ORDER BY (c DESC)")
    for row in ((1, 1), (1, 2), (2, 1)):
        cql.execute("INSERT INTO o (p, c, d) VALUES (0, ?, ?)", *row)
    assert cql.rows("SELECT c, d FROM o") == [(2, 1), (1, 1), (1, 2)]
