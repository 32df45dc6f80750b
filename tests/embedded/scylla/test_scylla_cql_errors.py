"""What is refused, with which error class and words; and that a refused statement has changed nothing."""

from __future__ import annotations

import pytest

from embedded.scylla.errors import (
    AlreadyExists,
    ConfigurationException,
    CqlError,
    FunctionFailure,
    InvalidRequest,
    ProtocolError,
    ServerError,
    SyntaxException,
    Unauthorized,
    Unprepared,
)
from embedded.scylla.results import Rows
from tests.embedded.scylla.cql_session import START_US, CqlSession, decoded

TABLE = (
    "CREATE TABLE t (p int, c int, d int, s int static, v int, m map<text, int>, l list<int>, st set<int>,"
    " f frozen<list<int>>, e duration, PRIMARY KEY (p, c, d))"
)


@pytest.fixture
def cql() -> CqlSession:
    session = CqlSession()
    session.execute(TABLE)
    session.execute("CREATE TABLE doubles (p int PRIMARY KEY, d double)")
    session.execute("CREATE TYPE inner_type (a int)")
    session.execute("CREATE TYPE outer_type (a frozen<inner_type>)")
    session.execute("CREATE TYPE alone (a int)")
    session.execute("CREATE TYPE holder (a frozen<set<alone>>)")
    session.execute("CREATE TABLE typed (p frozen<list<outer_type>> PRIMARY KEY)")
    session.execute("CREATE TABLE texts (p int, c text, d text, a date, PRIMARY KEY (p, c, d))")
    session.execute("CREATE TABLE numbers (p int PRIMARY KEY, d double, f float)")
    return session


LONG = "'" + 40_000 * "a" + "'"
CASES: list[tuple[str, type[CqlError], str]] = [
    ("INSERT INTO t (p, c, d, v) VALUES (1, 1, 1, toUnixTimestamp(null))", InvalidRequest, "cannot assign result"),
    ("UPDATE texts SET a = toDate(?) WHERE p = 1 AND c = '' AND d = ''", InvalidRequest, "Ambiguous call to function"),
    ("SELECT * FROM t WHERE token(p) != 1", InvalidRequest, 'Unsupported "!=" relation: token(p) != 1'),
    ("SELECT * FROM t WHERE p = :x AND s = :x AND e = :x ALLOW FILTERING", InvalidRequest, "variable :x has type int"),
    ("SELECT * FROM t WHERE p IN 3", SyntaxException, "no viable alternative at input '3'"),
    ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 AND d = 1 IF l[0] IN null", SyntaxException, "at input 'null'"),
    ("INSERT INTO numbers (p, d) VALUES (1, -1e400)", InvalidRequest, "Invalid number format '-1e400'"),
    ("INSERT INTO numbers (p, f) VALUES (1, 1e39)", InvalidRequest, "marshaling error: Invalid number format '1e39'"),
    ("SELECT * FROM t USING TIMEOUT 3mo", InvalidRequest, "Timeout values cannot be expressed in days/months"),
    ("SELECT * FROM t USING TIMEOUT 60s5ns", InvalidRequest, "granularity finer than milliseconds"),
    ("SELECT * FROM t USING TIMEOUT -10ms", InvalidRequest, "Timeout values must be non-negative"),
    ("DELETE FROM t USING TIMEOUT null WHERE p = 1", InvalidRequest, "Timeout value cannot be null"),
    ("INSERT INTO t (p, c, d, e) VALUES (1, 1, 1, 1h2h)", InvalidRequest, "hours are specified multiple times"),
    ("INSERT INTO t (p, c, d, e) VALUES (1, 1, 1, 1m2h)", InvalidRequest, "The minutes should be after hours"),
    ("SELECT DISTINCT p FROM t GROUP BY p, c", InvalidRequest, "Grouping on clustering columns is not allowed"),
    ("SELECT * FROM t WHERE v CONTAINS 1", InvalidRequest, 'Cannot use CONTAINS on non-collection column "v"'),
    ("SELECT * FROM t WHERE st CONTAINS KEY 1", InvalidRequest, "Cannot use CONTAINS KEY on non-map column st"),
    ("SELECT DISTINCT s FROM t", InvalidRequest, "must request all the partition key columns (missing p)"),
    ("SELECT p, count(*) FROM t PER PARTITION LIMIT 1", InvalidRequest, "PER PARTITION LIMIT is not allowed with agg"),
    (
        "SELECT * FROM t WHERE e > 1s ALLOW FILTERING",
        InvalidRequest,
        "Slice restrictions are not supported on durations",
    ),
    (
        f"UPDATE t USING TIMESTAMP {-(1 << 63)} SET s = 1 WHERE p = 1",
        InvalidRequest,
        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]",
    ),
    ("ALTER TYPE alone ADD b frozen<holder>", InvalidRequest, "as this would create a circular reference"),
    ("ALTER TYPE inner_type RENAME a TO b", InvalidRequest, "used in the partition key column p of table ks.typed"),
    ("CREATE TABLE k (a int PRIMARY KEY) WITH COMPACT STORAGE", InvalidRequest, "'CREATE TABLE WITH COMPACT STORAGE'"),
    ("INSERT INTO t (p, c, d, v) VALUES (1, 1, 1, fromJson('x'))", FunctionFailure, "Failed parsing fromJson"),
    ("INSERT INTO t (p, c, d, v) VALUES (1, 1, 1, fromJson('\"x\"'))", FunctionFailure, "execution of fromjson failed"),
    (f"INSERT INTO texts (p, c, d) VALUES (1, {LONG}, {LONG})", InvalidRequest, "Key length of 80004 is longer than"),
    (f"DELETE FROM texts WHERE p = 1 AND c = {LONG} AND d = {LONG}", InvalidRequest, "Key length of 80004"),
    ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 AND d = 1 IF l[0] CONTAINS 1", SyntaxException, "input 'CONTAINS'"),
    ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 AND d = 1 IF v IS NOT null", SyntaxException, "input 'IS'"),
    (
        "CREATE TABLE k (a int PRIMARY KEY, b list<set<int>>)",
        InvalidRequest,
        "not allowed inside collections: list<set",
    ),
    ("SELEC * FROM t", SyntaxException, "line 1:0 no viable alternative at input 'SELEC'"),
    ("SELECT * FROM", SyntaxException, "no viable alternative at input '<EOF>'"),
    ("SELECT * FROM t WHERE p = 'unended", SyntaxException, "line 1:26"),
    ("SELECT * FROM t; SELECT * FROM t", SyntaxException, "line 1:17"),
    ("SELECT * FROM nothing", InvalidRequest, "unconfigured table nothing"),
    ("SELECT * FROM other.t", InvalidRequest, "Keyspace other does not exist"),
    ("SELECT x FROM t", InvalidRequest, "Unrecognized name x"),
    ("SELECT nofunction(v) FROM t", InvalidRequest, "Unknown function nofunction called"),
    ("SELECT writetime(p) FROM t", InvalidRequest, "WRITETIME is not legal on partition key component p"),
    ("SELECT * FROM t WHERE d = 1", InvalidRequest, 'PRIMARY KEY column "d" cannot be restricted as preceding'),
    ("SELECT * FROM t WHERE c = 1 AND v = 1", InvalidRequest, "use ALLOW FILTERING"),
    ("SELECT 1 FROM t", SyntaxException, "line 1:7 no viable alternative at input '1'"),
    ("SELECT blobAsText(0x61) FROM t", SyntaxException, "line 1:18 no viable alternative at input '0x61'"),
    ("SELECT true FROM t", SyntaxException, "line 1:7 no viable alternative at input 'true'"),
    (
        "SELECT writetime(m) FROM t",
        InvalidRequest,
        "WRITETIME expects an atomic column, but m is a non-frozen collection",
    ),
    ("SELECT ttl(st) FROM t", InvalidRequest, "TTL expects an atomic column, but st is a non-frozen collection"),
    ("SELECT TTL(c) FROM t", InvalidRequest, "TTL is not legal on partition key component c"),
    ("SELECT a$b FROM t", SyntaxException, "line 1:9 : Syntax error"),
    ("SELECT * FROM t WHERE v = 1", InvalidRequest, "use ALLOW FILTERING"),
    ("SELECT * FROM t WHERE p > 1", InvalidRequest, "Only EQ and IN relation are supported on the partition key"),
    ("SELECT * FROM t WHERE p = 1 AND d = 1", InvalidRequest, 'as preceding column "c" is not restricted'),
    ("SELECT * FROM t WHERE p = 1 AND c > 1 AND d = 1", InvalidRequest, "is restricted by a non-EQ relation"),
    ("DELETE FROM t WHERE p = 1 AND p = 2", InvalidRequest, "cannot be restricted by more than one relation"),
    ("SELECT * FROM t WHERE p = 1 AND c != 2 ALLOW FILTERING", InvalidRequest, 'Unsupported "!=" relation: c != 2'),
    ("SELECT * FROM t WHERE c LIKE 1 ALLOW FILTERING", InvalidRequest, "LIKE is allowed only on string types, which c"),
    ("SELECT * FROM t WHERE (c, d) NOT IN ((1, 2)) ALLOW FILTERING", InvalidRequest, "NOT IN cannot be used"),
    ("SELECT * FROM t WHERE p = null", InvalidRequest, "Invalid null value in condition for column p"),
    ("SELECT * FROM t WHERE p = 'x'", InvalidRequest, 'Invalid STRING constant (x) for "p" of type int'),
    ("SELECT * FROM t WHERE p = 1 AND (d, c) > (1, 1)", InvalidRequest, "may not be skipped in multi-column relations"),
    (
        "DELETE FROM t WHERE p = 1 AND c = 1 AND (d) > (1)",
        InvalidRequest,
        "may not be skipped in multi-column relations",
    ),
    ("DELETE FROM t WHERE p = 1 AND c = 1 AND (c, d) > (1, 1)", InvalidRequest, "Mixing single column relations and"),
    ("DELETE FROM t WHERE p = 1 AND (c) = (1) AND d > 1", InvalidRequest, "Mixing single column relations and multi"),
    ("SELECT * FROM t WHERE token(c) > 1", InvalidRequest, "must be in the partition key order"),
    ("SELECT * FROM t WHERE p = 1 ORDER BY d", InvalidRequest, "column c doesn't have an ordering or EQ relation"),
    ("SELECT * FROM t WHERE p = 1 AND c IN (1, 2) ORDER BY d", InvalidRequest, "column c doesn't have an ordering"),
    ("SELECT * FROM t WHERE p = 1 AND (c, d) > (1, 1) ORDER BY d", InvalidRequest, "column c doesn't have an ordering"),
    ("SELECT * FROM t WHERE p = 1 ORDER BY c, d, c", InvalidRequest, "declared order in the PRIMARY KEY"),
    ("ALTER TABLE t ADD x int PRIMARY KEY", SyntaxException, "PRIMARY"),
    ("CREATE TYPE nothing ()", SyntaxException, "no viable alternative"),
    ("SELECT * FROM t WHERE p = 1 ORDER BY v", InvalidRequest, "clustered columns of the PRIMARY KEY"),
    ("SELECT * FROM t ORDER BY c", InvalidRequest, "restricted by an EQ or an IN"),
    ("SELECT * FROM t LIMIT 0", InvalidRequest, "LIMIT must be strictly positive"),
    ("SELECT DISTINCT v FROM t", InvalidRequest, "must only request partition key columns and/or static columns"),
    ("SELECT v, count(*) FROM t GROUP BY v", InvalidRequest, "Group by non-primary-key column v"),
    ("SELECT p, count(*) FROM t GROUP BY c", InvalidRequest, "out of order"),
    ("INSERT INTO t (p, c) VALUES (1, 1)", InvalidRequest, "Missing mandatory PRIMARY KEY part d"),
    ("INSERT INTO t (c, d) VALUES (1, 1)", InvalidRequest, "Missing mandatory PRIMARY KEY part p"),
    ("INSERT INTO t (p, c, d) VALUES (1, 1)", InvalidRequest, "Unmatched column names/values"),
    ("INSERT INTO t (p, c, d, x) VALUES (1, 1, 1, 1)", InvalidRequest, "Unknown identifier x"),
    ("INSERT INTO t (p, p, c, d) VALUES (1, 1, 1, 1)", InvalidRequest, "Multiple definitions found for column p"),
    ("INSERT INTO t (p, c, d) VALUES (1, 1, 99999999999)", InvalidRequest, "99999999999"),
    ("INSERT INTO t (p, c, d, f) VALUES (1, 1, 1, [null])", InvalidRequest, "Cannot store NULL in list or set"),
    ("INSERT INTO t (p, c, d) VALUES (1, 1, 1) USING TTL -1", InvalidRequest, "TTL must be greater or equal to 0"),
    ("INSERT INTO t (p, c, d) VALUES (1, 1, 1) USING TTL 630720001", InvalidRequest, "ttl is too large"),
    ("INSERT INTO t JSON '{\"p\": 1}'", InvalidRequest, "Missing mandatory PRIMARY KEY part c"),
    ("INSERT INTO t JSON '{\"x\": 1}'", InvalidRequest, "unrecognized column: x"),
    ("INSERT INTO t JSON 'no json'", InvalidRequest, "Could not decode JSON string"),
    ("UPDATE t SET v = fromJson('no') WHERE p = 1 AND c = 1 AND d = 1", FunctionFailure, "Failed parsing fromJson"),
    ("UPDATE t SET v = 1 WHERE p = 1", InvalidRequest, "Missing mandatory PRIMARY KEY part c"),
    ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 AND d > 1", InvalidRequest, "Invalid operator in where clause"),
    ("UPDATE t SET v = 1 WHERE c = 1 AND d = 1", InvalidRequest, "Missing mandatory PRIMARY KEY part p"),
    ("UPDATE t SET p = 1 WHERE p = 1 AND c = 1 AND d = 1", InvalidRequest, "PRIMARY KEY part p found in SET part"),
    ("UPDATE t SET v = 1 WHERE p = 1 AND c = 1 AND d = 1 AND v = 1", InvalidRequest, "non PRIMARY KEY columns: v"),
    ("UPDATE t SET v = 1, v = 2 WHERE p = 1 AND c = 1 AND d = 1", SyntaxException, "Multiple incompatible setting"),
    ("UPDATE t SET s = 1 WHERE p = 1 AND c = 1 AND d = 1", InvalidRequest, "modifies only static columns"),
    ("UPDATE t SET v = v + 1 WHERE p = 1 AND c = 1 AND d = 1", InvalidRequest, "non counter column v"),
    ("UPDATE t SET f = f + [1] WHERE p = 1 AND c = 1 AND d = 1", InvalidRequest, "frozen collection column f"),
    ("UPDATE t SET st[1] = 1 WHERE p = 1 AND c = 1 AND d = 1", InvalidRequest, "for set column st"),
    ("UPDATE t SET m[null] = 1 WHERE p = 1 AND c = 1 AND d = 1", InvalidRequest, "null map key"),
    ("DELETE v FROM t WHERE p = 1 AND c > 1", InvalidRequest, "not supported for specific columns"),
    ("DELETE p FROM t WHERE p = 1", InvalidRequest, "should not be a PRIMARY KEY part"),
    ("BEGIN BATCH USING TTL 1 DELETE FROM t WHERE p = 1 APPLY BATCH", InvalidRequest, "Global TTL on the BATCH"),
    (
        "BEGIN BATCH USING TIMESTAMP 1 DELETE FROM t USING TIMESTAMP 2 WHERE p = 1 APPLY BATCH",
        InvalidRequest,
        "Timestamp must be set either on BATCH or individual statements",
    ),
    ("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy'}", AlreadyExists, "existing keyspace"),
    ("CREATE KEYSPACE k WITH replication = {'class': 'Nowhere'}", ConfigurationException, "replication strategy class"),
    ("CREATE KEYSPACE k WITH nonsense = 1", SyntaxException, "Unknown property 'nonsense'"),
    ("CREATE TABLE t (p int PRIMARY KEY)", AlreadyExists, "already existing table"),
    ("CREATE TABLE x (p int)", InvalidRequest, "No PRIMARY KEY specified"),
    ("CREATE TABLE x (p list<int> PRIMARY KEY)", InvalidRequest, "non-frozen collection type for PRIMARY KEY"),
    ("CREATE TABLE x (p duration PRIMARY KEY)", InvalidRequest, "duration type is not supported"),
    ("CREATE TABLE x (p int PRIMARY KEY, s int static)", InvalidRequest, "Static columns are only useful"),
    ("CREATE TABLE x (p int PRIMARY KEY, v nothing)", InvalidRequest, "Unknown type ks.nothing"),
    ("CREATE TABLE x (p int PRIMARY KEY, v counter)", InvalidRequest, "The embedded server has no counters"),
    ("CREATE TABLE x (p int PRIMARY KEY, v list<set<int>>)", InvalidRequest, "not allowed inside collections"),
    ("CREATE TABLE x (p int PRIMARY KEY) WITH nonsense = 1", SyntaxException, "Unknown property 'nonsense'"),
    ("ALTER TABLE t ADD v int", InvalidRequest, "conflicts with an existing column"),
    ("ALTER TABLE t DROP p", InvalidRequest, "Cannot drop PRIMARY KEY part p"),
    ("ALTER TABLE t DROP x", InvalidRequest, "Column x was not found"),
    ("ALTER TABLE t RENAME v TO w", InvalidRequest, "Cannot rename non PRIMARY KEY part v"),
    ("ALTER TABLE nothing ADD v int", InvalidRequest, "unconfigured table nothing"),
    ("DROP TABLE nothing", InvalidRequest, "Cannot drop non existing table 'nothing'"),
    ("DROP KEYSPACE nothing", ConfigurationException, "non existing keyspace"),
    ("USE nothing", InvalidRequest, "Keyspace 'nothing' does not exist"),
    ("CREATE INDEX ON t (v)", InvalidRequest, "The embedded server has no secondary indexes"),
    ("CREATE CUSTOM INDEX i ON t (v) USING 'x'", InvalidRequest, "The embedded server has no secondary indexes"),
    ("CREATE INDEX IF NOT EXISTS i ON nothing (v)", InvalidRequest, "unconfigured table nothing"),
    ("CREATE MATERIALIZED VIEW x AS SELECT * FROM t", InvalidRequest, "Unable to include static column 's' which"),
    ("CREATE MATERIALIZED VIEW x AS SELECT p FROM t", InvalidRequest, "The embedded server has no materialized views"),
    ("CREATE MATERIALIZED VIEW x AS SELECT p FROM no.t", InvalidRequest, "Keyspace no does not exist"),
    ("PRUNE MATERIALIZED VIEW t", InvalidRequest, "Ghost rows can only be deleted from materialized views"),
    ("PRUNE MATERIALIZED VIEW nothing", InvalidRequest, "unconfigured table nothing"),
    (
        "CREATE FUNCTION f(a int) RETURNS NULL ON NULL INPUT",
        InvalidRequest,
        "embedded server has no user-defined functi",
    ),
    ("LIST ROLES", InvalidRequest, "The embedded server has no roles and permissions"),
    ("CREATE TABLE no.t (p int PRIMARY KEY)", InvalidRequest, "Can't find a keyspace no"),
    ("DROP TABLE no.t", InvalidRequest, "Cannot drop non existing table 't' in keyspace 'no'."),
    ("ALTER TABLE no.t ADD v int", InvalidRequest, "Keyspace no does not exist"),
    ("TRUNCATE no.t", InvalidRequest, "Keyspace no does not exist"),
    ("CREATE TYPE no.t (a int)", ServerError, "Can't find a keyspace no"),
    ("ALTER TYPE no.t ADD a int", InvalidRequest, "Cannot alter type in unknown keyspace no"),
    ("DROP TYPE no.t", InvalidRequest, "Cannot drop type in unknown keyspace no"),
    ("ALTER TABLE t ADD n counter", ConfigurationException, "Cannot add a counter column (n) in a non counter"),
    ("ALTER TABLE t RENAME v TO c", InvalidRequest, "another column of that name already exist"),
    ("ALTER TABLE t ADD p int", InvalidRequest, "Invalid column name p because it conflicts with a PRIMARY KEY part"),
    ('CREATE TABLE "a b" (p int PRIMARY KEY)', InvalidRequest, '"a b" is not a valid table name (must be alphanumeric'),
    (f"CREATE TABLE {193 * 'x'} (p int PRIMARY KEY)", InvalidRequest, "Table names shouldn't be more than 192 char"),
    ("CREATE TABLE x (p int PRIMARY KEY) WITH tombstone_gc = 'x'", ServerError, "tombstone_gc_extension info from str"),
    ("CREATE TABLE x (p int PRIMARY KEY) WITH cdc = true", ServerError, "Cannot create cdc info from string"),
    (
        "CREATE TABLE x (p int PRIMARY KEY) WITH per_partition_rate_limit = 1",
        ServerError,
        "per partition rate limit info",
    ),
    ("CREATE TABLE x (p int PRIMARY KEY) WITH caching = 'x'", SyntaxException, "It should be a map"),
    (
        "CREATE TABLE x (p int PRIMARY KEY) WITH tablets = {'min_tablet_count': 1}",
        ConfigurationException,
        "tablet options cannot be used when tablets are disabled for the keyspace",
    ),
    (
        "ALTER TABLE t WITH tablets = {'min_tablet_count': 1}",
        ConfigurationException,
        "tablet options cannot be used when tablets are disabled for the keyspace",
    ),
    (
        "UPDATE t USING TIMESTAMP 9999999999999999 SET s = 1 WHERE p = 1",
        InvalidRequest,
        "more than 3 days into the fut",
    ),
    (
        "BEGIN BATCH USING TIMESTAMP 9999999999999999 DELETE FROM t WHERE p = 1 APPLY BATCH",
        InvalidRequest,
        "Cannot provide a timestamp more than 3 days into the future.",
    ),
    ("INSERT INTO doubles (p, d) VALUES (1, 1e400)", InvalidRequest, "marshaling error: Invalid number format '1e400'"),
    ("DROP KEYSPACE system", Unauthorized, "Cannot DROP"),
]


@pytest.mark.parametrize(("statement", "error", "message"), CASES, ids=[case[0][:60] for case in CASES])
def test_refused(cql: CqlSession, statement: str, error: type[CqlError], message: str) -> None:
    before = cql.engine.schema.version
    with pytest.raises(CqlError) as raised:
        cql.execute(statement)
    assert type(raised.value) is error
    assert message in str(raised.value)
    assert cql.rows("SELECT * FROM t") == []
    assert cql.engine.schema.version == before


def test_more_values_in_an_in_than_scylladb_takes_by_default(cql: CqlSession) -> None:
    select = cql.engine.prepare("SELECT * FROM t WHERE p IN ?", "ks")
    assert cql.rows(select, list(range(100))) == []
    with pytest.raises(ServerError, match=r"size of partition-key IN list .* 101 is greater than maximum 100"):
        cql.execute(select, list(range(101)))
    with pytest.raises(ServerError, match=r"size of clustering-key IN list .* 121 is greater"):
        cql.execute("SELECT * FROM t WHERE p = 1 AND c IN ? AND d IN ?", list(range(11)), list(range(11)))


def test_slices_of_all_partitions_are_served_with_a_warning(cql: CqlSession) -> None:
    cql.execute("INSERT INTO t (p, c, d, v) VALUES (1, 2, 3, 4)")
    cql.execute("INSERT INTO t (p, c, d, v) VALUES (2, 1, 3, 4)")
    for select, keys in (("c = 1", [(2,)]), ("c > 1 AND c < 3", [(1,)]), ("token(p) > 0 AND c >= 1", [])):
        answer = cql.execute(f"SELECT p FROM t WHERE {select}")
        assert isinstance(answer, Rows)
        assert answer.warnings == ("This query should use ALLOW FILTERING and will be rejected in future versions.",)
        assert decoded(answer) == keys
    for quiet in ("p = 1 AND c = 2", "c = 1 ALLOW FILTERING"):
        answer = cql.execute(f"SELECT p FROM t WHERE {quiet}")
        assert isinstance(answer, Rows) and not answer.warnings


def test_timestamps_days_ahead_pass_where_scylladb_does_not_look(cql: CqlSession) -> None:
    ahead = START_US + 4 * 86_400 * 1_000_000
    cql.execute("INSERT INTO t (p, c, d, v) VALUES (1, 1, 1, 1)", default_timestamp=ahead)
    cql.execute(f"BEGIN BATCH INSERT INTO t (p, c, d, v) VALUES (2, 1, 1, 1) USING TIMESTAMP {ahead} APPLY BATCH")
    cql.execute(f"UPDATE t USING TIMESTAMP {ahead - 2 * 86_400 * 1_000_000} SET s = 1 WHERE p = 3")
    assert sorted(cql.rows("SELECT p, writetime(v) FROM t WHERE p IN (1, 2)")) == [(1, ahead), (2, ahead)]


def test_names_of_bind_markers_in_lists(cql: CqlSession) -> None:
    def names(where: str) -> list[str]:
        prepared = cql.engine.prepare(f"SELECT * FROM t WHERE {where}", "ks")
        return [column.name for column in prepared.variables]

    assert names("p IN (?, ?)") == ["value(in(p))", "value(in(p))"]
    assert names("p IN ? AND c = ?") == ["in(p)", "c"]
    assert names("p = 1 AND v IN (?) ALLOW FILTERING") == ["value(in(v))"]
    assert names("p = 1 AND (c, d) = ?") == ["(c,d)"]
    assert names("p = 1 AND (c, d) > (?, ?)") == ["(c,d)[0]", "(c,d)[1]"]
    assert names("p = 1 AND (c, d) IN ?") == ["in((c,d))"]
    assert names("p = 1 AND (c, d) IN (?, (?, 1))") == ["value(in((c,d)))", "value(in((c,d)))[0]"]


def test_what_a_tuple_leaves_out_is_null(cql: CqlSession) -> None:
    cql.execute("CREATE TABLE tuples (p int PRIMARY KEY, tp tuple<int, text>)")
    cql.execute("INSERT INTO tuples (p, tp) VALUES (1, ?)", b"")
    cql.execute("INSERT INTO tuples (p, tp) VALUES (2, (null, null))")
    cql.execute("INSERT INTO tuples (p, tp) VALUES (3, (1, null))")
    assert sorted(cql.rows("SELECT p FROM tuples WHERE tp = (null, null) ALLOW FILTERING")) == [(1,), (2,)]


def test_no_keyspace_at_all(cql: CqlSession) -> None:
    cql.keyspace = None  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="No keyspace has been specified"):
        cql.execute("SELECT * FROM t")


def test_the_number_of_bound_values_must_fit(cql: CqlSession) -> None:
    with pytest.raises(InvalidRequest, match="Invalid amount of bind variables: expected 1 received 0"):
        cql.execute("SELECT * FROM t WHERE p = ?")


def test_a_bound_value_of_the_wrong_size(cql: CqlSession) -> None:
    with pytest.raises(InvalidRequest, match="Exception while binding column p: marshaling error"):
        cql.engine.execute("SELECT * FROM t WHERE p = ?", (b"123",), cql.context())


def test_a_statement_prepared_for_an_older_table_must_be_prepared_again(cql: CqlSession) -> None:
    select = cql.engine.prepare("SELECT * FROM t WHERE p = ?", "ks")
    assert cql.rows(select, 1) == []
    cql.execute("ALTER TABLE t ADD fresh int")
    with pytest.raises(Unprepared) as raised:
        cql.execute(select, 1)
    assert raised.value.statement_id == select.id
    again = cql.engine.prepare("SELECT * FROM t WHERE p = ?", "ks")
    assert again.id == select.id
    assert "fresh" in [column.name for column in again.result_columns or ()]


@pytest.mark.parametrize(
    "state", [b"x", b"\x09" * 40, b"\x01" + b"\0" * 17 + b"\x7f\xff\xff\xff", b"\x01" + b"\0" * 17]
)
def test_a_paging_state_that_was_never_given(cql: CqlSession, state: bytes) -> None:
    with pytest.raises(ProtocolError, match="paging state"):
        cql.execute("SELECT * FROM t", page_size=2, paging_state=state)
