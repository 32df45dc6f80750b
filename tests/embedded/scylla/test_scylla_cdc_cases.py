"""The worked examples of ScyllaDB's CDC, each through a real driver, in a vnodes and in a tablets keyspace."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Cluster, NoHostAvailable, Session
from cassandra.query import BatchStatement, dict_factory

from tests.embedded.scylla.cdc_cases import TABLES, Case, all_cases
from tests.embedded.scylla.cdc_rows import log_rows
from tests.servers.double import Double
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
_names = itertools.count(1)


class Client:
    """A driver session whose timestamps the test chooses."""

    def __init__(self, cluster: Cluster, scylla: Scylla) -> None:
        self.scylla = scylla
        self.timestamp = 0
        cluster.timestamp_generator = lambda: self.timestamp
        self.session: Session = cluster.connect()

    def run(self, statement: str, timestamp: int) -> None:
        """Execute with this default timestamp; a T in the text is replaced by it."""
        self.timestamp = timestamp
        text = re.sub(r"(?<=TIMESTAMP )T([+-]\d+)?", lambda found: str(timestamp + int(found[1] or 0)), statement)
        self.session.execute(text)


@pytest.fixture(scope="module")
def client(scylla: Scylla) -> Iterator[Client]:
    cluster = scylla.cluster(row_factory=dict_factory, schema_metadata_enabled=False)
    try:
        yield Client(cluster, scylla)
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module", params=["vnodes", "tablets"])
def home(request: pytest.FixtureRequest, scylla: Scylla, client: Client) -> str:
    """A keyspace with the user type of the cases."""
    name = scylla.named(f"cases_{request.param}_{next(_names)}")
    # Few tablets: a real server has to place those of some hundred tables.
    client.session.execute(scylla.keyspace_ddl(name, tablets=request.param == "tablets", initial=4))
    client.session.execute(f"CREATE TYPE {name}.udt (a int, b int)")
    return name


@pytest.fixture
def table(home: str, client: Client) -> Iterator[Callable[[Case], str]]:
    """Makes a table for a case; gives its name. It goes with its test, except on a double, which goes as a whole."""
    made: list[str] = []

    def make(case: Case) -> str:
        name = f"{home}.{case.table}_{next(_names)}"
        ddl = TABLES[case.table].format(name=name)
        options = {"enabled": "true", **case.options}
        shown = ", ".join(f"'{option}': '{value}'" for option, value in options.items())
        client.session.execute(f"{ddl} {'AND' if ' WITH ' in ddl else 'WITH'} cdc = {{{shown}}}")
        made.append(name)
        return name

    yield make
    for name in [] if isinstance(client.scylla, Double) else made:
        client.session.execute(f"DROP TABLE {name}")


def _with_table(statement: str, case: Case, name: str) -> str:
    return re.sub(rf"\b(FROM|INTO|UPDATE) {case.table}\b", rf"\1 {name}", statement)


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_worked_example(case: Case, client: Client, table: Callable[[Case], str]) -> None:
    for statement in case.statements:
        name = table(case)
        now = client.scylla.now_us()
        for each in case.setup:
            client.run(_with_table(each, case, name), now)
        at = now + 1_000_000
        client.run(_with_table(statement, case, name), at)

        assert log_rows(client.session, name, at, since=at) == case.log


def test_every_group_has_one_stream_time_and_end(client: Client, table: Callable[[Case], str]) -> None:
    case = next(case for case in all_cases() if case.name.startswith("49"))
    name = table(case)
    at = client.scylla.now_us()
    client.run(_with_table(case.statements[0], case, name), at)

    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in client.session.execute(f"SELECT * FROM {name}_scylla_cdc_log"):
        groups.setdefault((row["cdc$stream_id"], row["cdc$time"]), []).append(row)
    assert len(groups) == 6
    for rows in groups.values():
        assert [row["cdc$batch_seq_no"] for row in rows] == list(range(len(rows)))
        assert [row["cdc$end_of_batch"] for row in rows] == [None] * (len(rows) - 1) + [True]


def test_cells_of_the_log_carry_the_write_time_and_the_ttl(client: Client, table: Callable[[Case], str]) -> None:
    case = next(case for case in all_cases() if case.name.startswith("01"))
    name = table(case)
    at = client.scylla.now_us()
    client.run(_with_table(case.statements[0], case, name), at)

    (row,) = client.session.execute(
        f'SELECT writetime("cdc$operation") AS written, ttl("cdc$operation") AS left FROM {name}_scylla_cdc_log'
    )
    assert row["written"] == at
    assert 86_300 <= row["left"] <= 86_400


def test_partitions_of_one_statement_are_logged_apart(client: Client, home: str) -> None:
    name = f"{home}.apart_{next(_names)}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}}")
    at = client.scylla.now_us()
    client.run(f"UPDATE {name} SET v = 1 WHERE pk IN (1, 2, 3)", at)

    rows = list(client.session.execute(f"SELECT * FROM {name}_scylla_cdc_log"))
    assert sorted(row["pk"] for row in rows) == [1, 2, 3]
    assert len({row["cdc$time"] for row in rows}) == 3
    assert {row.time for row in log_rows(client.session, name, at)} == {0}
    assert {(row["cdc$batch_seq_no"], row["cdc$end_of_batch"]) for row in rows} == {(0, True)}


def test_lists_of_a_batch_message_meet_on_the_same_positions(client: Client, home: str) -> None:
    """The elements of each of its statements are counted from zero, unlike those of a BATCH that is one text."""
    name = f"{home}.met_{next(_names)}"
    options = "{'enabled': 'true', 'preimage': 'true', 'postimage': 'true'}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, l list<text>) WITH cdc = {options}")
    at = client.scylla.now_us()
    client.run(f"UPDATE {name} SET l = ['old'] WHERE pk = 1", at - 1000)
    batch = BatchStatement()
    for value in ("b", "c", "a"):
        batch.add(f"UPDATE {name} USING TIMESTAMP {at} SET l = l + ['{value}'] WHERE pk = 1")
    client.session.execute(batch)

    images = [(row.operation, row.columns["l"]) for row in log_rows(client.session, name, at, since=at)]
    assert images == [(0, "{k1: 'old'}"), (1, "{k1: 'c'}"), (9, "{k1: 'old', k2: 'c'}")]
    (row,) = client.session.execute(f"SELECT l FROM {name}")
    assert row["l"] == ["old", "c"]


def test_tables_of_one_batch_are_logged_apart(client: Client, home: str) -> None:
    one, two = f"{home}.one_{next(_names)}", f"{home}.two_{next(_names)}"
    for name in (one, two):
        client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}}")
    at = client.scylla.now_us()
    client.run(
        f"BEGIN BATCH INSERT INTO {one} (pk, v) VALUES (1, 1); INSERT INTO {two} (pk, v) VALUES (1, 2); APPLY BATCH", at
    )

    for name, value in ((one, "1"), (two, "2")):
        (row,) = log_rows(client.session, name, at)
        assert (row.time, row.number, row.end, row.columns) == (0, 0, True, {"pk": "1", "v": value})


def test_conditional_writes_are_logged_when_applied(client: Client, home: str) -> None:
    name = f"{home}.conditional_{next(_names)}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}}")
    if "tablets" in home:
        client.scylla.require("lwt on tablets")
    # A real server takes the time of a conditional write from a node's clock, which may be behind.
    before = client.scylla.now_us() - 1_000_000
    for statement in (
        f"INSERT INTO {name} (pk, v) VALUES (1, 1) IF NOT EXISTS",
        f"INSERT INTO {name} (pk, v) VALUES (1, 2) IF NOT EXISTS",
        f"UPDATE {name} SET v = 3 WHERE pk = 1 IF v = 1",
        f"UPDATE {name} SET v = 4 WHERE pk = 1 IF v = 1",
        f"DELETE FROM {name} WHERE pk = 1 IF EXISTS",
    ):
        client.session.execute(statement)

    rows = log_rows(client.session, name, before)
    assert [(row.operation, row.columns.get("v")) for row in rows] == [(2, "1"), (1, "3"), (4, None)]
    assert all(0 <= row.time < 60_000_000 for row in rows)


def test_unset_values_are_not_logged(client: Client, home: str) -> None:
    name = f"{home}.unset_{next(_names)}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int, w int) WITH cdc = {{'enabled': 'true'}}")
    at = client.scylla.now_us()
    client.timestamp = at
    client.session.execute(client.session.prepare(f"INSERT INTO {name} (pk, v, w) VALUES (?, ?, ?)"), (1, None))
    client.session.execute(client.session.prepare(f"UPDATE {name} SET v = ? WHERE pk = ?"), {"pk": 2})

    (row,) = log_rows(client.session, name, at)
    assert row.columns == {"pk": "1", "cdc$deleted_v": "true"}


def test_the_default_ttl_of_the_table_counts(client: Client, home: str) -> None:
    name = f"{home}.ttl_{next(_names)}"
    client.session.execute(
        f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}} "
        "AND default_time_to_live = 77"
    )
    at = client.scylla.now_us()
    client.run(f"INSERT INTO {name} (pk, v) VALUES (1, 1)", at)
    client.run(f"UPDATE {name} USING TTL 0 SET v = 1 WHERE pk = 1", at + 1)

    assert [row.ttl for row in log_rows(client.session, name, at)] == [77, None]


def test_writes_far_ahead_are_rejected_as_a_whole(client: Client, home: str) -> None:
    name = f"{home}.ahead_{next(_names)}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}}")
    now = client.scylla.now_us()
    with pytest.raises(InvalidRequest, match='attempted to get a stream "from the future"'):
        client.run(
            f"BEGIN BATCH INSERT INTO {name} (pk, v) VALUES (1, 1) USING TIMESTAMP T; "
            f"INSERT INTO {name} (pk, v) VALUES (2, 2) USING TIMESTAMP T+60000000; APPLY BATCH",
            now,
        )

    assert list(client.session.execute(f"SELECT * FROM {name}")) == []
    assert log_rows(client.session, name, now) == []


def test_old_writes_are_judged_by_the_kind_of_keyspace(client: Client, home: str) -> None:
    name = f"{home}.old_{next(_names)}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': 'true'}}")
    statement = f"INSERT INTO {name} (pk, v) VALUES (1, 1)"
    if "vnodes" in home:
        with pytest.raises(InvalidRequest, match='attempted to get a stream "from the past"'):
            client.run(statement, 1_000_000)
    else:
        with pytest.raises(NoHostAvailable, match="could not find any CDC streams for table"):
            client.run(statement, 1_000_000)
    assert list(client.session.execute(f"SELECT * FROM {name}")) == []


def test_list_operations_name_the_keys_of_the_elements(client: Client, home: str) -> None:
    name = f"{home}.list_{next(_names)}"
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, l list<text>) WITH cdc = {{'enabled': 'true'}}")
    at = client.scylla.now_us()
    changes = ("l = ['a', 'b']", "l = ['z'] + l", "l[1] = 'c'", "l[2] = null", "l = l - ['z']")
    for number, change in enumerate(changes):
        client.run(f"UPDATE {name} SET {change} WHERE pk = 1", at + number)
    rows = sorted(client.session.execute(f"SELECT * FROM {name}_scylla_cdc_log"), key=lambda row: row["cdc$time"].time)
    whole, front, set_one, removed, discarded = rows

    (a, b), (z,) = whole["l"].keys(), front["l"].keys()
    assert list(whole["l"].values()) == ["a", "b"] and whole["cdc$deleted_l"]
    assert z.time < a.time <= b.time
    assert dict(set_one["l"]) == {a: "c"}
    assert removed["l"] is None and set(removed["cdc$deleted_elements_l"]) == {b}
    assert set(discarded["cdc$deleted_elements_l"]) == {z}
    assert client.session.execute(f"SELECT l FROM {name}").one()["l"] == ["c"]


def test_composite_keys_and_quoted_names(client: Client, home: str) -> None:
    name = f"{home}.quoted_{next(_names)}"
    client.session.execute(
        f'CREATE TABLE {name} (a text, "B" int, "order" uuid, "V w" int, PRIMARY KEY ((a, "B"), "order")) '
        "WITH cdc = {'enabled': 'true', 'preimage': 'full'}"
    )
    at = client.scylla.now_us()
    row = "b1a1f3c0-0000-4000-8000-000000000001"
    client.run(f"""INSERT INTO {name} (a, "B", "order", "V w") VALUES ('', 7, {row}, 1)""", at)
    client.run(f"""DELETE FROM {name} WHERE a = '' AND "B" = 7""", at + 1)
    client.run(f"""UPDATE {name} SET "V w" = 2 WHERE a = 'x' AND "B" IN (8) AND "order" = {row}""", at + 2)

    inserted, deleted, updated = log_rows(client.session, name, at)
    assert inserted.columns == {"a": "''", "B": "7", "order": row, "V w": "1"}
    assert (deleted.operation, deleted.columns) == (4, {"a": "''", "B": "7"})
    assert updated.columns == {"a": "'x'", "B": "8", "order": row, "V w": "2"}
    names = list(client.session.execute(f"SELECT * FROM {name}_scylla_cdc_log").column_names)
    assert names[3:] == sorted(names[3:], key=str.encode)


def test_every_kind_of_value_arrives_in_the_log_as_it_was_written(client: Client, home: str) -> None:
    values = {
        "ascii": "'a'",
        "bigint": "-5",
        "blob": "0x00ff",
        "boolean": "true",
        "date": "'2024-02-29'",
        "decimal": "1.50",
        "double": "-0.5",
        "duration": "1mo2d3ns",
        "float": "1.5",
        "inet": "'::1'",
        "int": "-1",
        "smallint": "-2",
        "text": "'ä'",
        "time": "'01:02:03.000000004'",
        "timestamp": "'2024-01-01T00:00:00.001Z'",
        "timeuuid": "now()",
        "tinyint": "-3",
        "uuid": "uuid()",
        "varint": "-123456789012345678901234567890",
        "tuple<int, text>": "(1, null)",
        "vector<float, 2>": "[1.5, -2]",
        "frozen<list<int>>": "[3, 1, 3]",
        "frozen<map<text, int>>": "{'b': 2, 'a': 1}",
        "frozen<set<int>>": "{2, 1}",
        "frozen<udt>": "{a: 1}",
    }
    if not client.scylla.able("vector"):
        del values["vector<float, 2>"]
    name = f"{home}.typed_{next(_names)}"
    columns = ", ".join(f"c{at} {type_}" for at, type_ in enumerate(values))
    client.session.execute(f"CREATE TABLE {name} (pk int PRIMARY KEY, {columns}) WITH cdc = {{'enabled': 'true'}}")
    listed = ", ".join(f"c{at}" for at in range(len(values)))
    client.run(f"INSERT INTO {name} (pk, {listed}) VALUES (1, {', '.join(values.values())})", client.scylla.now_us())

    (base,) = client.session.execute(f"SELECT {listed} FROM {name}")
    (log,) = client.session.execute(f"SELECT {listed} FROM {name}_scylla_cdc_log")
    (whole,) = client.session.execute(f"SELECT * FROM {name}_scylla_cdc_log")
    assert None not in base.values()
    assert base == log == {column: whole[column] for column in base}
