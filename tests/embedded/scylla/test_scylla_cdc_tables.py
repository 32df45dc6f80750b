"""The life of log tables: made, mirrored, detached, attached again, dropped; and what is refused with which words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest
from cassandra import DriverException
from cassandra.cluster import Session
from cassandra.protocol import ErrorMessage
from cassandra.query import tuple_factory

from tests.servers.double import Double
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
_names = itertools.count(1)
ON = "cdc = {'enabled': 'true'}"
OFF = "cdc = {'enabled': 'false'}"


def plain(value: Any) -> Any:
    """A driver's value as lists, texts and numbers."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return [[plain(key), plain(each)] for key, each in value.items()]
    # The driver's own mappings and sets are none of Python's.
    if hasattr(value, "items"):
        return [[plain(key), plain(each)] for key, each in value.items()]
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return [plain(each) for each in value]
    return value


class Home:
    """A keyspace, with the few questions that these tests ask."""

    def __init__(self, scylla: Scylla, session: Session, name: str) -> None:
        self.scylla, self.session, self.name = scylla, session, name

    def run(self, statement: str) -> list[list[Any]]:
        return [plain(row) for row in self.session.execute(statement)]

    def columns(self, table: str) -> dict[str, str]:
        """Name → type, from the schema tables."""
        rows = self.run(
            "SELECT column_name, type FROM system_schema.columns "
            f"WHERE keyspace_name = '{self.name}' AND table_name = '{table}'"
        )
        return dict(rows)

    def table(self, table: str, *columns: str) -> list[Any] | None:
        rows = self.run(
            f"SELECT {', '.join(columns)} FROM system_schema.tables "
            f"WHERE keyspace_name = '{self.name}' AND table_name = '{table}'"
        )
        return rows[0] if rows else None

    def log(self, table: str = "t") -> list[list[Any]]:
        return self.run(f'SELECT "cdc$operation", pk FROM {table}_scylla_cdc_log')

    def refuses(self, statement: str, kind: str, words: str) -> None:
        with pytest.raises((DriverException, ErrorMessage)) as error:
            self.run(statement)
        assert type(error.value).__name__ == kind
        assert words.replace("KS", self.name) in str(error.value)


@pytest.fixture(scope="module")
def session(scylla: Scylla) -> Iterator[Session]:
    cluster = scylla.cluster(row_factory=tuple_factory, schema_metadata_enabled=False)
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


@pytest.fixture(params=["vnodes", "tablets"])
def home(request: pytest.FixtureRequest, scylla: Scylla, session: Session) -> Iterator[Home]:
    name = scylla.named(f"logs_{request.param}_{next(_names)}")
    session.execute(scylla.keyspace_ddl(name, tablets=request.param == "tablets"))
    session.set_keyspace(name)
    yield Home(scylla, session, name)
    if not isinstance(scylla, Double):
        session.execute(f"DROP KEYSPACE {name}")


def test_the_columns_of_a_log(home: Home) -> None:
    home.run("CREATE TYPE u (a int, b text)")
    home.run(
        "CREATE TABLE t (pk int, ck text, s int static, v int, m map<text, frozen<list<int>>>, st set<uuid>, "
        "l list<text>, "
        f"u u, fu frozen<u>, fl frozen<list<int>>, tu tuple<int, text>, PRIMARY KEY (pk, ck)) WITH {ON}"
    )

    assert home.columns("t_scylla_cdc_log") == {
        "cdc$stream_id": "blob",
        "cdc$time": "timeuuid",
        "cdc$batch_seq_no": "int",
        "cdc$operation": "tinyint",
        "cdc$ttl": "bigint",
        "cdc$end_of_batch": "boolean",
        "pk": "int",
        "ck": "text",
        "s": "int",
        "v": "int",
        "m": "frozen<map<text, frozen<list<int>>>>",
        "st": "frozen<set<uuid>>",
        "l": "frozen<map<timeuuid, text>>",
        "u": "frozen<u>",
        "fu": "frozen<u>",
        "fl": "frozen<list<int>>",
        "tu": "frozen<tuple<int, text>>",
        **{f"cdc$deleted_{name}": "boolean" for name in ("s", "v", "m", "st", "l", "u", "fu", "fl", "tu")},
        "cdc$deleted_elements_m": "frozen<set<text>>",
        "cdc$deleted_elements_st": "frozen<set<uuid>>",
        "cdc$deleted_elements_l": "frozen<set<timeuuid>>",
        "cdc$deleted_elements_u": "frozen<set<smallint>>",
    }


def test_the_properties_of_a_log(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    row = home.table("t_scylla_cdc_log", "comment", "gc_grace_seconds", "default_time_to_live", "compaction")

    assert row is not None
    assert row[:3] == [f"CDC log for {home.name}.t", 0, 0]
    assert dict(row[3]) | {"class": ""} == {
        "class": "",
        "compaction_window_unit": "MINUTES",
        "compaction_window_size": "60",
        "expired_sstable_check_frequency_seconds": "1800",
    }
    partitioner = home.run(
        "SELECT partitioner FROM system_schema.scylla_tables "
        f"WHERE keyspace_name = '{home.name}' AND table_name = 't_scylla_cdc_log'"
    )
    assert partitioner == [["com.scylladb.dht.CDCPartitioner"]]


def test_a_table_is_not_logged_unless_enabled(home: Home) -> None:
    home.run("CREATE TABLE t (pk int PRIMARY KEY) WITH cdc = {'preimage': 'true'}")

    assert home.table("t_scylla_cdc_log", "id") is None


def test_altering_the_base_alters_the_log(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int, ck int, v int, m map<int, int>, PRIMARY KEY (pk, ck)) WITH {ON}")
    home.run("INSERT INTO t (pk, ck, v) VALUES (1, 2, 3)")
    home.run("ALTER TABLE t ADD w set<int>")
    home.run("ALTER TABLE t DROP v")
    home.run("INSERT INTO t (pk, ck, w) VALUES (1, 2, {4})")
    columns = home.columns("t_scylla_cdc_log")

    assert columns["w"] == columns["cdc$deleted_elements_w"] == "frozen<set<int>>"
    assert "v" not in columns and "cdc$deleted_v" not in columns
    assert sorted(home.run("SELECT pk, ck, w FROM t_scylla_cdc_log"), key=str) == [[1, 2, None], [1, 2, [4]]]
    dropped = home.run(
        "SELECT column_name, type FROM system_schema.dropped_columns "
        f"WHERE keyspace_name = '{home.name}' AND table_name = 't_scylla_cdc_log'"
    )
    assert sorted(dropped) == [["cdc$deleted_v", "boolean"], ["v", "int"]]


def test_a_dropped_column_can_be_added_again_only_later(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, v int) WITH {ON}")
    home.run("ALTER TABLE t DROP v")

    home.refuses(
        "ALTER TABLE t ADD v int",
        "InvalidRequest",
        "Cannot add column v because a column with the same name was dropped too recently. "
        "Please retry after 5 seconds",
    )


def test_renaming_a_key_column_drops_the_old_one_from_the_log(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, v int) WITH {ON}")
    home.run("INSERT INTO t (pk, v) VALUES (1, 2)")
    home.run("ALTER TABLE t RENAME pk TO id")

    assert "pk" not in home.columns("t_scylla_cdc_log")
    assert home.run("SELECT id, v FROM t_scylla_cdc_log") == [[None, 2]]
    home.run("INSERT INTO t (id, v) VALUES (3, 4)")
    assert sorted(home.run("SELECT id, v FROM t_scylla_cdc_log"), key=str) == [[3, 4], [None, 2]]


def test_a_grown_user_type_grows_in_the_log(home: Home) -> None:
    home.run("CREATE TYPE u (a int)")
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, u u) WITH {ON}")
    home.run("INSERT INTO t (pk, u) VALUES (1, {a: 1})")
    home.run("ALTER TYPE u ADD b text")
    home.run("UPDATE t SET u.b = 'x' WHERE pk = 1")

    assert sorted(home.run("SELECT u FROM t_scylla_cdc_log"), key=str) == [[[1, None]], [[None, "x"]]]


def test_disabling_keeps_the_log_and_enabling_takes_it_up_again(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, v int) WITH {ON}")
    home.run("INSERT INTO t (pk, v) VALUES (1, 1)")
    identity = home.table("t_scylla_cdc_log", "id")
    home.run(f"ALTER TABLE t WITH {OFF}")
    home.run("INSERT INTO t (pk, v) VALUES (2, 2)")
    home.run("ALTER TABLE t ADD w int")

    assert "w" not in home.columns("t_scylla_cdc_log")
    assert home.log() == [[2, 1]]

    home.run(f"ALTER TABLE t WITH {ON}")
    home.run("INSERT INTO t (pk, w) VALUES (3, 3)")
    assert home.table("t_scylla_cdc_log", "id") == identity
    assert sorted(home.log()) == [[2, 1], [2, 3]]
    assert "cdc$deleted_w" in home.columns("t_scylla_cdc_log")


def test_a_vector_index_has_a_log_without_the_option(home: Home) -> None:
    home.run("CREATE TABLE t (pk int PRIMARY KEY, v vector<float, 2>, w int)")
    index = "CREATE CUSTOM INDEX ON t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'COSINE'}"
    if "vnodes" in home.name:
        home.refuses(index, "InvalidRequest", "requires the base table's keyspace to use tablets")
        return
    home.refuses("CREATE CUSTOM INDEX ON t (w) USING 'vector_index'", "InvalidRequest", "columns of vectors of floats")
    home.run("CREATE TABLE off (pk int PRIMARY KEY, v vector<float, 2>) WITH cdc = {'enabled': false}")
    home.refuses(index.replace("ON t", "ON off"), "InvalidRequest", "when CDC is explicitly disabled")
    home.run(index)
    home.run("INSERT INTO t (pk, v) VALUES (1, [1, 2])")
    assert home.log() == [[2, 1]]
    rows = home.run(
        f"SELECT index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = '{home.name}'",
    )
    assert [[*row[:2], dict(row[2])["class_name"]] for row in rows] == [["t_v_idx", "CUSTOM", "vector_index"]]
    home.refuses(f"ALTER TABLE t WITH {OFF}", "InvalidRequest", "Cannot disable CDC when Vector Search is enabled")
    home.refuses("DROP TABLE t_scylla_cdc_log", "Unauthorized", "Cannot DROP cdc log table t_scylla_cdc_log")
    home.run("DROP INDEX t_v_idx")
    home.run("INSERT INTO t (pk, v) VALUES (2, [1, 2])")
    assert home.log() == [[2, 1]], "the log stays, and nothing is added"
    home.refuses("DROP INDEX t_v_idx", "InvalidRequest", "could not be found in any of the tables of keyspace")


def test_altering_options_replaces_them_all(home: Home) -> None:
    home.run("CREATE TABLE t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'postimage': true, 'ttl': 7}")
    home.run(f"ALTER TABLE t WITH {ON}")
    home.run("INSERT INTO t (pk, v) VALUES (1, 1)")

    assert home.log() == [[2, 1]]
    home.refuses(
        "ALTER TABLE t WITH cdc = {'postimage': 'true'}",
        "InvalidRequest",
        'Altering CDC options requires specifying "enabled" flag',
    )
    home.refuses(
        "ALTER TABLE t WITH cdc = {'enabled': 'true', 'delta': 'some'}",
        "ConfigurationException",
        'Invalid value for CDC option "delta": some',
    )


def test_the_extension_tells_the_ttl(home: Home) -> None:
    home.run("CREATE TABLE t (pk int PRIMARY KEY) WITH cdc = {'enabled': true, 'ttl': 300}")
    home.run("CREATE TABLE plain (pk int PRIMARY KEY)")
    (extensions,) = home.table("t", "extensions") or [None]

    assert b"ttl\x03\0\0\0" + b"300" in bytes.fromhex(dict(extensions)["cdc"][2:])
    # A real server keeps other options there too.
    (others,) = home.table("plain", "extensions") or [None]
    assert "cdc" not in dict(others or ())


def test_dropping_the_base_drops_its_log(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    home.refuses("DROP TABLE t_scylla_cdc_log", "Unauthorized", "Cannot DROP cdc log table t_scylla_cdc_log")
    home.run("DROP TABLE t")

    assert home.table("t", "id") is None
    assert home.table("t_scylla_cdc_log", "id") is None
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    assert home.log() == []


def test_a_detached_log_may_be_dropped(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    home.run(f"ALTER TABLE t WITH {OFF}")
    home.run("DROP TABLE t_scylla_cdc_log")

    assert home.table("t_scylla_cdc_log", "id") is None
    home.run(f"ALTER TABLE t WITH {ON}")
    home.run("INSERT INTO t (pk) VALUES (1)")
    assert home.log() == [[2, 1]]


def test_a_detached_log_goes_with_its_base(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    home.run(f"ALTER TABLE t WITH {OFF}")
    home.run("DROP TABLE t")

    assert home.table("t_scylla_cdc_log", "id") is None


def test_a_taken_name_is_refused(home: Home) -> None:
    words = "Cannot create CDC log table for table KS.t because a table of name KS.t_scylla_cdc_log already exists"
    home.run("CREATE TABLE t_scylla_cdc_log (a int PRIMARY KEY)")
    home.refuses(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}", "InvalidRequest", words)
    assert home.table("t", "id") is None

    home.run("CREATE TABLE t (pk int PRIMARY KEY)")
    home.refuses(f"ALTER TABLE t WITH {ON}", "InvalidRequest", words)


def test_a_log_cannot_be_logged(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    home.refuses(
        f"ALTER TABLE t_scylla_cdc_log WITH {ON}",
        "InvalidRequest",
        "Cannot create a CDC log for a table KS.t_scylla_cdc_log, because creating nested CDC logs is not allowed",
    )


def test_the_columns_of_a_log_are_its_bases(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, v int) WITH {ON}")
    words = "You cannot modify the set of columns of a CDC log table directly. "
    for change in ("ADD x int", "DROP v"):
        home.refuses(
            f"ALTER TABLE t_scylla_cdc_log {change}", "InvalidRequest", words + "Modify the base table instead."
        )
    home.refuses(
        'ALTER TABLE t_scylla_cdc_log RENAME "cdc$time" TO x',
        "InvalidRequest",
        "Cannot rename a column of a CDC log table.",
    )
    home.run("ALTER TABLE t_scylla_cdc_log WITH comment = 'mine'")
    assert home.table("t_scylla_cdc_log", "comment") == ["mine"]

    home.run(f"ALTER TABLE t WITH {OFF}")
    for change in ("ADD x int", "DROP v"):
        home.refuses(
            f"ALTER TABLE t_scylla_cdc_log {change}",
            "InvalidRequest",
            words + "Although the base table has deactivated CDC, this table will continue being a CDC log table",
        )
    home.refuses(
        'ALTER TABLE t_scylla_cdc_log RENAME "cdc$time" TO x',
        "InvalidRequest",
        "You cannot rename a column of a CDC log table. Although the base table has deactivated CDC",
    )


def test_counters_are_refused(home: Home) -> None:
    home.refuses(f"CREATE TABLE t (pk int PRIMARY KEY, c counter) WITH {ON}", "InvalidRequest", "ounter")


def test_truncate_and_hand_written_log_rows(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, v int) WITH {ON}")
    home.run("INSERT INTO t (pk, v) VALUES (1, 1)")
    home.run("TRUNCATE t")
    assert home.log() == [[2, 1]]

    home.run(
        'INSERT INTO t_scylla_cdc_log ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation") '
        "VALUES (0x01, now(), 7, 77)"
    )
    assert sorted(home.log()) == [[2, 1], [77, None]]
    home.run("TRUNCATE t_scylla_cdc_log")
    assert home.log() == []


def test_changes_of_other_tables_leave_the_log_alone(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY, v int) WITH {ON}")
    if "tablets" in home.name:
        home.scylla.require("lwt on tablets")
    home.run("CREATE TABLE other (pk int PRIMARY KEY, v int)")
    home.run("INSERT INTO other (pk, v) VALUES (1, 1)")
    home.run("UPDATE t SET v = 1 WHERE pk = 1 IF v = 5")
    home.run("INSERT INTO t (pk, v) VALUES (1, 1) IF NOT EXISTS")
    home.run("INSERT INTO t (pk, v) VALUES (1, 2) IF NOT EXISTS")

    assert home.log() == [[2, 1]]


@pytest.mark.only_double("deletes that the server makes by itself are asked for at the admin interface")
def test_deletes_by_the_system(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int, ck int, PRIMARY KEY (pk, ck)) WITH {ON}")
    home.run("INSERT INTO t (pk, ck) VALUES (1, 1)")
    assert isinstance(home.scylla, Double)
    home.scylla.admin.service_delete(f"DELETE FROM {home.name}.t WHERE pk = 1 AND ck = 1")
    home.scylla.admin.service_delete(f"DELETE FROM {home.name}.t WHERE pk = 1")
    home.run("DELETE FROM t WHERE pk = 1")

    assert sorted(home.log()) == [[-4, 1], [-3, 1], [2, 1], [4, 1]]


def stream_sets(home: Home) -> list[int]:
    """How many streams each stream set of the table has, the oldest first."""
    where = f"keyspace_name = '{home.name}' AND table_name = 't'"
    stamps = home.run(f"SELECT toUnixTimestamp(timestamp) FROM system.cdc_timestamps WHERE {where}")
    return [
        len(
            home.run(
                f"SELECT stream_id FROM system.cdc_streams WHERE {where} AND timestamp = {stamp} AND stream_state = 0"
            )
        )
        for (stamp,) in reversed(stamps)
    ]


@pytest.mark.only_double("tablets split at once and to just that number; a real server takes minutes and its own view")
@pytest.mark.parametrize("home", ["tablets"], indirect=True)
def test_tablets_split_and_merge_by_their_least_count(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON} AND tablets = {{'min_tablet_count': 2}}")
    home.run("ALTER TABLE t WITH tablets = {'min_tablet_count': 8}")
    home.run("ALTER TABLE t_scylla_cdc_log WITH tablets = {'min_tablet_count': 4}")

    assert stream_sets(home) == [2, 8, 4]
    home.run(f"ALTER TABLE t WITH {OFF}")
    assert stream_sets(home) == [2, 8, 4]
    home.run("DROP TABLE t")
    assert stream_sets(home) == []


@pytest.mark.parametrize("home", ["tablets"], indirect=True)
def test_a_log_of_tablets_takes_no_conditional_writes(home: Home) -> None:
    home.run(f"CREATE TABLE t (pk int PRIMARY KEY) WITH {ON}")
    home.refuses(
        'INSERT INTO t_scylla_cdc_log ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no") VALUES (0x01, now(), 7) '
        "IF NOT EXISTS",
        "InvalidRequest",
        "LWT is not supported on CDC log tables: KS.t_scylla_cdc_log",
    )
