"""`backfill`: rows from before the log land once, whatever else lands, and however often it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from cassandra.cluster import Session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from connector.cql_names import quote_identifier
from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.functions import register_functions
from spark_jobs.jobs import backfilling
from spark_jobs.jobs.backfill_sql import change_rows
from spark_jobs.jobs.backfilling import Filled, _own_definition, backfill, refuse_lists
from spark_jobs.model import PARTITION, ROW, changelog_columns
from spark_jobs.source import described, ranges_of, read_plan
from spark_jobs.source.reader import _Reader, _schema
from spark_jobs.tables.landing_plan import check_rebuilt, plan_table
from spark_jobs.tables.lease import Lease, open_folder
from spark_jobs.tables.notes import Known
from tests.servers.scylla import Scylla
from tests.spark_jobs.random_tables import ODD_NAMES
from tests.spark_jobs.source_tables import WITH_SOURCE, Ends, SourceTables, equal, source_access

pytestmark = WITH_SOURCE
ORDERS = """CREATE TABLE {}.t (
    p int, c decimal, s text static, su addr static, ss set<decimal> static, v text, n decimal, w timestamp,
    m map<text, int>, e set<decimal>, l list<int>, a addr, f frozen<addr>, PRIMARY KEY (p, c)
)"""


def test_partitions_of_static_values_make_no_rows(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    """Next to others, in pages of one row; rows of a key alone look the same, and stay."""
    names = [f"{keyspace}.{name}" for name in static_partitions(cql, more=1)]
    source = SourceTables(spark, scylla, warehouse, names)
    source.access = replace(source.access, connection=source.access.connection.but(fetch_size=1))
    assert [table.rows for table in filled(source, *names)] == [16, 12]
    verdicts = source.verify()
    equal(verdicts)
    assert [(verdict.source_rows, verdict.landed_rows) for verdict in verdicts] == [(16, 16), (12, 12)]


@pytest.mark.parametrize("tablets", [True, False])
def test_pages_of_every_size_have_the_same_rows(
    scylla: Scylla, cql: Session, unique: Callable[[str], str], tablets: bool
) -> None:
    """What a backfill and a verification read."""
    keyspace = unique("ks").replace("-", "_")
    cql.execute(scylla.keyspace_ddl(keyspace, tablets=tablets))
    cql.set_keyspace(keyspace)
    for name, count in static_partitions(cql, more=5).items():
        for size in (1, 2, 3, 5000):
            access = source_access(scylla)
            access = replace(access, connection=access.connection.but(fetch_size=size))
            table = described(access, TableName(keyspace, name))
            layout = Known((_own_definition(table),)).layout()
            plan, (p, c) = read_plan(layout, table), (key.value for key in layout.keys)
            reader = _Reader(access, plan, to_arrow_schema(_schema(plan)), [ranges_of(access, 2)])
            read = [row for page in reader.by_range(iter([pa.record_batch({"id": [0]})])) for row in page.to_pylist()]
            rows = [row for row in read if row["kind"] == ROW]
            statics = [row for row in read if row["kind"] == PARTITION]
            assert len(rows) == count, f"pages of {size}"
            assert {row[p] for row in rows if row[c] == 1} == set(range(1, 24, 2))
            assert sorted(row[p] for row in statics) == [key for key in range(24) if key % 4], f"pages of {size}"


def static_partitions(cql: Session, more: int) -> dict[str, int]:
    """Tables with partitions of static values alone, of rows alone and of both, of which some have ``more`` rows than
    one: their names and how many rows."""
    cql.execute("CREATE TABLE valued (p int, c int, s text static, v int, PRIMARY KEY (p, c))")
    cql.execute("CREATE TABLE keyed (p int, c int, s text static, PRIMARY KEY (p, c))")
    for p in range(24):
        for name in ("valued", "keyed"):
            if p % 4:
                cql.execute(f"INSERT INTO {name} (p, s) VALUES ({p}, 's{p}')")
            if p % 2:
                cql.execute(f"INSERT INTO {name} (p, c) VALUES ({p}, 1)")
        for c in range(2, 2 + more) if p % 6 == 1 else ():
            cql.execute(f"INSERT INTO valued (p, c, v) VALUES ({p}, {c}, {p})")
    for name in ("valued", "keyed"):
        cql.execute(f"ALTER TABLE {name} WITH cdc = {{'enabled': true}}")
    return {"valued": 12 + 4 * more, "keyed": 12}


def filled(source: SourceTables, *names: str, lists: bool = True) -> list[Filled]:
    chosen = [TableName(*name.split(".")) for name in names]
    return backfill(source.spark, source.settings, source.access, chosen, skip_lists=lists)


def test_history_before_the_log_then_changes(
    spark: SparkSession,
    scylla: Scylla,
    cql: Session,
    keyspace: str,
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of a table without a log; then changes of every kind, some landed before the backfill, some after it."""
    cql.execute(f"CREATE TYPE {keyspace}.addr (street text, no int)")
    cql.execute(ORDERS.format(keyspace))
    for p in range(8):
        cql.execute(f"INSERT INTO t (p, s, su, ss) VALUES ({p}, 's', {{no: 1}}, {{1.0, 2.0}})")
        for c in range(5):
            cql.execute(
                f"INSERT INTO t (p, c, v, n, w, m, e, l, a, f) VALUES ({p}, {c}.0, 'v', 1.0, 5, {{'a': 1, 'b': 2}}, "
                "{1.0, 2.5}, [1, 2], {street: 'y', no: 1}, {no: 2})"
            )
    cql.execute("INSERT INTO t (p, s) VALUES (100, 'alone')")
    cql.execute("UPDATE t SET v = 'no marker' WHERE p = 101 AND c = 1")
    cql.execute("ALTER TABLE t WITH cdc = {'enabled': true}")
    name = f"{keyspace}.t"
    source = SourceTables(spark, scylla, warehouse, [name], "delta")
    landed_first = [
        "UPDATE t SET v = 'new', m = m + {'c': 3}, e = e - {2.5}, a.no = 9 WHERE p = 0 AND c = 0",
        "DELETE FROM t WHERE p = 0 AND c = 1",
        "DELETE FROM t WHERE p = 1",
        "DELETE FROM t WHERE p = 2 AND c > 1 AND c < 4",
        "DELETE m['a'], v, s FROM t WHERE p = 3 AND c = 0",
        "UPDATE t SET m = {'z': 9}, ss = ss - {2.0}, su.street = 'x' WHERE p = 3 AND c = 1",
        "INSERT INTO t (p, c) VALUES (4, 77)",
        "UPDATE t SET v = 'late' WHERE p = 4 AND c = 0",
    ]
    for statement in landed_first:
        cql.execute(statement)
    source.land()
    place = (f"p.{name}", 0)
    monkeypatch.setattr(backfilling, "Topics", lambda *_: Ends({place: 5}))
    (first,) = filled(source, name)
    assert first.left_out == ("l",) and first.dead == 0
    (verdict,) = source.verify()
    equal([verdict])
    assert verdict.skipped == ("l",), "a list of which SELECT tells no keys"
    for statement in (
        "DELETE FROM t WHERE p = 5 AND c = 1",
        "UPDATE t SET e = e - {1.0}, m = m - {'b'}, f = null WHERE p = 5 AND c = 2",
        "DELETE FROM t WHERE p = 6 AND c >= 3",
        "DELETE su, ss FROM t WHERE p = 7",
        "DELETE v FROM t WHERE p = 0 AND c = 0",
    ):
        cql.execute(statement)
    source.land(merge=False)
    equal(source.verify())
    monkeypatch.setattr(backfilling, "Topics", lambda *_: Ends({place: 9}))
    _interrupted(source, name, monkeypatch)
    again = filled(source, name)
    equal(source.verify())
    known = source.landed(name).known()
    assert known is not None and known.covered == {place: 5}, (
        "deletes that are lost behind the first are not told by others"
    )
    assert known.lineage == 3, "each of them is published as a whole, whatever of it is in a segment that was published"
    assert 0 < again[0].rows < first.rows, "what was read before the interruption is not read again"
    assert again[0].changes > 0
    assert source.landed(name).restore().unmerged == 0


def _killed(*_: Any) -> DataFrame:
    raise LandingError("it was killed")


def _interrupted(source: SourceTables, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backfill that loses its lease while it reads the second of its parts: nobody may have merged that."""
    read, tell, spans, parts = backfilling.read_source, backfilling.told, [], []

    def reading(*arguments: Any) -> DataFrame:
        spans.append(arguments[3])
        return read(*arguments)

    def telling(*arguments: Any) -> Any:
        parts.append(arguments)
        return tell(*arguments)

    def check(_: Lease) -> None:
        if len(parts) > 1:
            raise LandingError("it was taken over")

    with monkeypatch.context() as patch:
        patch.setattr(backfilling, "read_source", reading)
        patch.setattr(backfilling, "told", telling)
        patch.setattr(Lease, "check", check)
        # In two parts each has rows of the few partitions.
        patch.setattr(backfilling, "_SPANS", 2)
        with pytest.raises(LandingError, match="it was taken over"):
            filled(source, name)
    known = source.landed(name).known()
    assert known is not None and known.filled_to == spans[0][-1][1]


def test_columns_that_a_frozen_table_leaves_out_or_keeps_otherwise_are_read_all_the_same(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    """Rows exist by them, and who thaws the table is shown them: they were null for good. So were those whose type had
    become another one, which the table shows. Of a field with a capital letter Spark knew nothing."""
    cql.execute(f'CREATE TYPE {keyspace}.addr (street text, no int, "seenAt" timestamp)')
    cql.execute(
        "CREATE TABLE t (p int, c int, v int, a addr, f frozen<addr>, m map<int, frozen<addr>>, x ascii, "
        "PRIMARY KEY (p, c))"
    )
    table, name = TableName(keyspace, "t"), f"{keyspace}.t"
    source = SourceTables(spark, scylla, warehouse, [name])
    frozen = source.configured(warehouse, **{"schema.evolution": "freeze"})
    landed, versions = source.landed(name), [_own_definition(described(source.access, table))]
    landed.prepare(plan_table(frozen, table, versions, None).known)
    for column in ("s text static", "n int", "e set<int>"):
        cql.execute(f"ALTER TABLE t ADD {column}")
    cql.execute(f"ALTER TYPE {keyspace}.addr ADD zip int")
    cql.execute("ALTER TABLE t ALTER x TYPE text")
    cql.execute("INSERT INTO t (p, s) VALUES (1, 'alone')")
    whole = "{street: 's', no: 1, zip: 3}"
    cql.execute("INSERT INTO t (p, c, v, n, e) VALUES (2, 1, 1, 7, {3})")
    cql.execute(f"INSERT INTO t (p, c, a, f, m, x) VALUES (3, 1, {whole}, {whole}, {{1: {whole}}}, 'x')")
    with pytest.raises(LandingError, match=r"the source has a addr, e set<int>, .*, x text, of which .* not know yet"):
        backfill(spark, frozen, source.access)
    versions.append(_own_definition(described(source.access, table)))
    landed.prepare(plan_table(frozen, table, versions, landed.known()).known)
    backfill(spark, frozen, source.access)
    blank, kept = [None] * 5, ("s", 1, None)
    assert sorted(map(tuple, spark.table(name).collect())) == [
        (1, None, *blank),
        (2, 1, None, None, None, 1, None),
        (3, 1, kept, kept, {1: kept}, None, "x"),
    ]
    landed.prepare(plan_table(source.settings, table, versions, landed.known()).known)
    equal(source.verify())


def test_columns_and_fields_of_every_name_are_read(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str
) -> None:
    """Spark refused what is asked of a table with a column named row, or of a type with a field like seenAt."""
    names = [quote_identifier(name) for name in (*ODD_NAMES, "at", "unfit", "seenAt", "end_v", "at_row")]
    cql.execute(f"CREATE TYPE {keyspace}.odd ({', '.join(f'{name} timestamp' for name in names[-5:])})")
    kinds = ("odd", "list<timestamp>", "set<timestamp>", "map<timestamp, frozen<odd>>", "frozen<odd>", *["int"] * 99)
    columns = [f"{name} {kind}" for name, kind in zip(names, kinds)]
    cql.execute(f"CREATE TABLE t (p1 int, c1 frozen<odd>, {', '.join(columns)}, PRIMARY KEY (p1, c1))")
    table = described(source_access(scylla), TableName(keyspace, "t"))
    layout = Known((_own_definition(table),), expiring=True).layout()
    register_functions(spark, layout)
    plan = read_plan(layout, table, ending=True, to_land=True)
    made = change_rows(spark.createDataFrame([], _schema(plan)), layout, plan, 1)
    assert made.columns == list(changelog_columns(layout)) and len(plan.cells) + len(plan.elements) > len(names)


def test_a_table_that_was_never_landed_gets_the_sources_definition(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    cql.execute("CREATE TABLE t (p int PRIMARY KEY, row text, w timestamp) WITH cdc = {'enabled': true}")
    cql.execute("CREATE TABLE lists (p int PRIMARY KEY, l list<int>) WITH cdc = {'enabled': true}")
    cql.execute("CREATE TABLE empty (p int, c int, v text, PRIMARY KEY (p, c)) WITH cdc = {'enabled': true}")
    for p in range(20):
        cql.execute(f"INSERT INTO t (p, row) VALUES ({p}, 'v')")
    cql.execute("INSERT INTO t (p, w) VALUES (50, 9223372036854775807)")
    source = SourceTables(spark, scylla, warehouse, [f"{keyspace}.t", f"{keyspace}.empty", f"{keyspace}.lists"])
    with pytest.raises(LandingError, match=r"lists: .*, so l cannot be backfilled; --lists=skip leaves them out"):
        filled(source, lists=False)
    refuse_lists(source.settings, source.access, [TableName(keyspace, "t"), TableName(keyspace, "empty")])
    with pytest.raises(LandingError, match="so l cannot be backfilled"):
        refuse_lists(source.settings, source.access)  # which asks the source alone, before there is a session
    assert source.landed(f"{keyspace}.t").known() is None, "all tables are checked before the first is changed"
    lease = Lease(open_folder(spark, f"{source.settings.warehouse}/_leases"), "job", 60_000)
    with lease, pytest.raises(LandingError, match=r"t: the land that runs has not begun with it"):
        filled(source, f"{keyspace}.t")
    done, empty = filled(source, f"{keyspace}.t", f"{keyspace}.empty")
    assert (done.rows, done.dead) == (21, 1)
    assert (empty.rows, empty.changes) == (0, 0)
    verdict, nothing = source.verify(f"{keyspace}.t", f"{keyspace}.empty")
    assert (nothing.differences, nothing.source_rows) == (0, 0)
    assert (verdict.differences, verdict.dead_letters) == (1, 1), verdict.lines()
    assert verdict.first[0].what == "missing row" and verdict.first[0].key == {"p": 50}


def test_backfill_races_with_writers(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    cql.execute("CREATE TABLE t (p int, c int, v int, e set<int>, PRIMARY KEY (p, c))")
    for p in range(200):
        cql.execute(f"INSERT INTO t (p, c, v, e) VALUES ({p}, 0, 0, {{1, 2}})")
    cql.execute("ALTER TABLE t WITH cdc = {'enabled': true}")
    source = SourceTables(spark, scylla, warehouse, [f"{keyspace}.t"])
    ended = threading.Event()

    def write() -> None:
        turn = 0
        while not ended.wait(0.002):
            turn += 1
            p = turn % 200
            kind = turn % 5
            if kind == 0:
                cql.execute(f"DELETE FROM t WHERE p = {p} AND c = 0")
            elif kind == 1:
                cql.execute(f"UPDATE t SET e = e - {{1}}, v = {turn} WHERE p = {p} AND c = 0")
            elif kind == 2:
                cql.execute(f"INSERT INTO t (p, c, v, e) VALUES ({p}, {turn % 3}, {turn}, {{{turn}}})")
            elif kind == 3:
                cql.execute(f"DELETE FROM t WHERE p = {p} AND c >= 1")
            else:
                cql.execute(f"UPDATE t SET e = e + {{{turn}}} WHERE p = {p} AND c = 0")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        filled(source, f"{keyspace}.t")
    finally:
        ended.set()
        writer.join()
    source.land()
    equal(source.verify())


def test_a_truncated_table_begins_anew_after_that_time(
    spark: SparkSession,
    scylla: Scylla,
    cql: Session,
    keyspace: str,
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rebuild without the beginning of the topics, from the source; refused without access to it."""
    from spark_jobs.jobs.rebuilding import rebuild

    cql.execute("CREATE TABLE t (p int, c int, v int, e set<int>, PRIMARY KEY (p, c)) WITH cdc = {'enabled': true}")
    for p in range(5):
        cql.execute(f"INSERT INTO t (p, c, v, e) VALUES ({p}, 0, 0, {{1}})")
    name = f"{keyspace}.t"
    source = SourceTables(spark, scylla, warehouse, [name])
    source.land()
    table = TableName(keyspace, "t")
    truncated_ms = scylla.now_ms() + 1
    cql.execute("TRUNCATE t")
    cql.execute(f"INSERT INTO t (p, c, v, e) VALUES (1, 1, 1, {{2}}) USING TIMESTAMP {truncated_ms * 1000 + 5}")
    monkeypatch.setattr("spark_jobs.jobs.rebuilding.Topics", lambda *_: Ends({(f"p.{name}", 0): 3}, beginning=2))
    with pytest.raises(LandingError, match=rf"p\.{name}, partition 0 begins at offset 2: .* is read from the source"):
        rebuild(spark, source.settings, table, truncated_ms)
    with monkeypatch.context() as patch, pytest.raises(LandingError, match="it was killed"):
        patch.setattr(backfilling, "read_source", _killed)
        rebuild(spark, source.settings, table, truncated_ms, source.access)
    with pytest.raises(LandingError, match="a rebuild ended before it had read the source"):
        check_rebuilt(table, source.landed(name).known())
    done = rebuild(spark, source.settings, table, access=source.access)  # what was truncated once is gone for good
    assert done is not None and done.rows == 1
    source.land()
    equal(source.verify())
    monkeypatch.setattr("spark_jobs.jobs.rebuilding.Topics", lambda *_: Ends({(f"p.{name}", 0): 3}))
    with pytest.raises(LandingError, match="it was backfilled, so it cannot be rebuilt from its topics alone"):
        rebuild(spark, source.settings, table)
