"""`verify` against a source that is written to: equal is equal, and every difference is told exactly."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from spark_jobs.sinks.formats import FORMATS
from spark_jobs.tables.lease import Lease, open_folder
from spark_jobs.verify.job import Limits
from spark_jobs.verify.report import Difference, Verdict, as_json, as_text
from tests.servers.scylla import Scylla
from tests.spark_jobs.random_tables import LITERALS
from tests.spark_jobs.source_tables import WITH_SOURCE, Ends, SourceTables, equal

pytestmark = WITH_SOURCE
SHOP = """CREATE TABLE {}.t (
    p int, c decimal, s text static, u addr static, v text, d double, n decimal, b blob, w timestamp,
    m map<text, int>, e set<decimal>, l list<int>, a addr, f frozen<addr>, PRIMARY KEY (p, c)
) WITH CLUSTERING ORDER BY (c DESC) AND cdc = {{'enabled': true}}"""


def shop(cql: Session, keyspace: str) -> str:
    cql.execute(f'CREATE TYPE {keyspace}.addr (street text, "No" int)')
    cql.execute(SHOP.format(keyspace))
    return f"{keyspace}.t"


def told(verdict: Verdict) -> list[tuple[Any, ...]]:
    return sorted(
        (each.what, *each.key.values(), each.column, str(each.source), str(each.landed)) for each in verdict.first
    )


@pytest.mark.parametrize("sink", sorted(FORMATS))
def test_every_type_at_its_edges_is_equal(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str, sink: str
) -> None:
    """Each native type as a value; those that Spark compares otherwise also in keys and inside of collections."""
    columns = ", ".join(f"v_{name} {name}" for name in LITERALS)
    odd = ("decimal", "double", "timeuuid")
    inside = {**LITERALS, "decimal": ["0", "-1.50", "1.0", "1E+10", "-3E-20"]}
    inner = ", ".join(
        f"s_{name} set<{name}>, m_{name} map<{name}, {name}>, f_{name} frozen<list<{name}>>" for name in odd
    )
    cql.execute(f"CREATE TABLE values (p int PRIMARY KEY, {columns}, {inner}) WITH cdc = {{'enabled': true}}")
    for at in range(max(map(len, LITERALS.values()))):
        values = [literals[at % len(literals)] for literals in LITERALS.values()]
        names = ", ".join(f"v_{name}" for name in LITERALS)
        cql.execute(f"INSERT INTO values (p, {names}) VALUES ({at}, {', '.join(values)})")
        for name in odd:
            value = inside[name][at % len(inside[name])]
            cql.execute(f"UPDATE values SET s_{name} = s_{name} + {{{value}}}, f_{name} = [{value}] WHERE p = 0")
            cql.execute(f"UPDATE values SET m_{name} = m_{name} + {{{value}: {value}}} WHERE p = 0")
    cql.execute(
        "CREATE TABLE keys (p decimal, d double, t timeuuid, v varint, s double static, PRIMARY KEY (p, d, t, v)) "
        "WITH CLUSTERING ORDER BY (d DESC, t ASC, v DESC) AND cdc = {'enabled': true}"
    )
    for at in range(24):
        value = {name: literals[at % len(literals)] for name, literals in LITERALS.items()}
        key = ", ".join(value[name] for name in ("decimal", "double", "timeuuid", "varint"))
        cql.execute(f"INSERT INTO keys (p, d, t, v) VALUES ({key})")
        cql.execute(f"INSERT INTO keys (p, s) VALUES ({value['decimal']}, {value['double']})")
    source = SourceTables(spark, scylla, warehouse, [f"{keyspace}.values", f"{keyspace}.keys"], sink)
    source.land()
    equal(source.verify())


def test_a_random_history_is_equal(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    """Few keys, times close together, every kind of write and delete; half of it merged, half in the tail."""
    name = shop(cql, keyspace)
    draw = random.Random(20261121)
    source = SourceTables(spark, scylla, warehouse, [name])
    for half in range(2):
        for _ in range(150):
            cql.execute(_statement(draw, scylla.now_us()))
        source.land(merge=half == 0)
    equal(source.verify())


def _statement(draw: random.Random, now_us: int) -> str:
    using = f"USING TIMESTAMP {now_us + draw.randrange(-20, 3)}"
    p, c = draw.randrange(5), draw.choice(["0", "1.0", "1.00", "2", "-3.50"])
    row, number = f"p = {p} AND c = {c}", draw.randrange(4)
    frozen = '{"No": 1}'
    written = draw.choice(
        [
            f"s = 's{number}'",
            f'u."No" = {number}',
            f"v = '{number}'",
            f"d = {draw.choice(['0.0', '-0.0', 'NaN', '1.5'])}, b = 0x0{number}",
            f"m['{number}'] = {draw.choice(['1', '2', 'null'])}",
            f"m = {{'{number}': 1}}",
            f"e = e + {{{number}, 7}}",
            f"e = e - {{{number}}}",
            f"l = l + [{number}]",
            f"l = [{number}, 9]",
            f"a.street = '{number}'",
            f'a = {{"No": {number}}}',
            f"f = {draw.choice(['null', frozen])}, n = {draw.choice(['1', '1.0', '1E+3'])}",
        ]
    )
    where = f"p = {p}" if written.startswith(("s =", "u.")) else row
    return draw.choice(
        [
            f"UPDATE t {using} SET {written} WHERE {where}",
            f"UPDATE t {using} SET {written} WHERE {where}",
            f"UPDATE t {using} SET {written} WHERE {where}",
            f"INSERT INTO t (p, c, v, w) VALUES ({p}, {c}, 'i', {number}) {using}",
            f"INSERT INTO t (p, s) VALUES ({p}, 'i') {using}",
            f"DELETE v, m, a, e FROM t {using} WHERE {row}",
            f"DELETE s, u FROM t {using} WHERE p = {p}",
            f"DELETE FROM t {using} WHERE {row}",
            draw.choice([f"DELETE FROM t {using} WHERE p = {p} AND c >= {c}", f"DELETE FROM t {using} WHERE p = {p}"]),
        ]
    )


def test_every_kind_of_difference_is_told_exactly(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    name = shop(cql, keyspace)
    first = scylla.now_us()
    second = first + 1
    for p in range(6):
        for c in range(4):
            cql.execute(
                f"INSERT INTO t (p, c, s, u, v, d, n, b, w, m, e, l, a, f) VALUES ({p}, {c}.0, 's', {{street: 'x'}}, "
                f"'v', 0.0, 1.0, 0xab, 5, {{'a': 1}}, {{1.0, 2.5}}, [1, 2], {{street: 'y', \"No\": 1}}, {{\"No\": 2}}) "
                f"USING TIMESTAMP {first}"
            )
    cql.execute(f"INSERT INTO t (p, s) VALUES (100, 'alone') USING TIMESTAMP {first}")
    source = SourceTables(spark, scylla, warehouse, [name])
    source.land()
    # Only the source has these: their log is not landed.
    changed = f"UPDATE t USING TIMESTAMP {second} SET {{}} WHERE p = 1 AND c = 2"
    for each in ("v = 'w'", "d = -0.0", "n = 1.00", "b = 0xabcd", "w = 6", "m['b'] = 2", "e = e - {2.5}", "l = [1]"):
        cql.execute(changed.format(each))
    cql.execute(changed.format('a."No" = 7'))
    cql.execute(changed.format("f = {street: 'z', \"No\": 2}"))
    cql.execute(f"DELETE FROM t USING TIMESTAMP {second} WHERE p = 3 AND c = 1.00")
    cql.execute(f"INSERT INTO t (p, c, v) VALUES (3, 9, 'new') USING TIMESTAMP {second}")
    cql.execute(f"INSERT INTO t (p, s) VALUES (4, 'other') USING TIMESTAMP {second}")
    cql.execute(f'UPDATE t USING TIMESTAMP {second} SET u."No" = 3 WHERE p = 5')
    cql.execute(f"DELETE FROM t USING TIMESTAMP {second} WHERE p = 100")
    (verdict,) = source.verify()
    assert told(verdict) == sorted(
        [
            ("cell", 1, "2.0", "a.No", "7", "1"),
            ("cell", 1, "2.0", "b", "0xabcd", "0xab"),
            ("cell", 1, "2.0", "d", "-0.0", "0.0"),
            ("cell", 1, "2.0", "e", "['1.0']", "['1.0', '2.5']"),
            ("cell", 1, "2.0", "f", "{'street': 'z', 'No': 2}", "{'street': None, 'No': 2}"),
            ("cell", 1, "2.0", "l", "[1]", "[1, 2]"),
            (
                "cell", 1, "2.0", "m",
                "[{'key': 'a', 'value': 1}, {'key': 'b', 'value': 2}]", "[{'key': 'a', 'value': 1}]",
            ),
            ("cell", 1, "2.0", "n", "1.00", "1.0"),
            ("cell", 1, "2.0", "v", "w", "v"),
            ("cell", 1, "2.0", "w", "1970-01-01T00:00:00.006+00:00", "1970-01-01T00:00:00.005+00:00"),
            ("missing row", 3, "9", "", "{'v': 'new'}", "None"),
            (
                "extra row", 3, "1.0", "", "None",
                "{'a.street': 'y', 'a.No': 1, 'b': 'qw==', 'd': 0.0, 'f': {'No': 2}, 'n': '1.0', 'v': 'v', 'w': 5, "
                "'e': ['1.0', '2.5'], 'l': [1, 2], 'm': [{'key': 'a', 'value': 1}]}",
            ),
            ("cell", 4, "s", "other", "s"),
            ("cell", 5, "u.No", "3", "None"),
            ("cell", 100, "s", "None", "alone"),
        ]
    )  # fmt: skip
    times = {each.column: (each.source_us, each.landed_us) for each in verdict.first if each.key.get("p") == 1}
    assert times["v"] == times["d"] == times["f"] == (second, first)
    assert times["a.No"] == times["m"] == (None, first), "ScyllaDB tells no times of elements"
    assert (verdict.differences, verdict.moving, verdict.rounds) == (15, 0, 2)


def test_all_differences_are_counted_and_some_listed() -> None:
    verdict = Verdict("ks.t", source_rows=1000, differences=1002, moving=3, skipped=("l",), dead_letters=2, behind=5)
    verdict.first = [
        Difference("ks.t", "cell", {"p": 1, "c": "x"}, "v", "a", None, 2000, 1000),
        Difference("ks.t", "missing row", {"p": 2}, "", {"v": "a"}, None, 7, None),
    ]
    assert verdict.lines() == [
        "ks.t: 1,000 rows, 1,002 differences, 3 rows still moving, skipped l, 2 dead letters, "
        "landing is behind by 5 records",
        "  ks.t (p=1, c=x) v: source a (written 2000), landed null (written 1000)",
        '  ks.t (p=2): not landed: {"v": "a"} (written 7)',
        "  … and 1,000 more",
    ]
    verdict.behind = None
    assert len(verdict.lines()) == 4, "nobody knows what is on its way"
    verdict.behind = 0
    assert verdict.lines()[4:] == [
        "  scylla-cdc backfill lands what is missing or older here, land --rebuild ks.t all of the table anew"
    ], "what helps, where nothing is on its way"
    assert as_json([verdict])["differences"] == 1002
    assert as_text([verdict]).splitlines()[-1] == "1,002 differences"


def test_what_moves_is_no_difference(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    """Nor is what looks the same at each reading: the source has what landing saw deleted, over and over."""
    name, over = f"{keyspace}.t", f"{keyspace}.over"
    cql.execute("CREATE TABLE t (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true}")
    cql.execute("CREATE TABLE over (p int, c int, e set<int>, PRIMARY KEY (p, c)) WITH cdc = {'enabled': true}")
    for p in range(4):
        cql.execute(f"INSERT INTO t (p, v) VALUES ({p}, 0)")
        cql.execute(f"INSERT INTO over (p, c) VALUES ({p}, 0)")
    source = SourceTables(spark, scylla, warehouse, [name, over])

    def delete_and_write() -> None:
        cql.execute("DELETE FROM over WHERE p = 0 AND c = 0")
        cql.execute("DELETE FROM over WHERE p = 1 AND c >= 0")
        cql.execute("UPDATE over SET e = e - {1} WHERE p = 2 AND c = 0")
        cql.execute("UPDATE over SET e = {} WHERE p = 3 AND c = 0")
        source.land()
        for p in range(4):
            cql.execute(f"UPDATE over SET e = e + {{1}} WHERE p = {p} AND c = 0" if p > 1 else insert.format(p))

    insert = "INSERT INTO over (p, c) VALUES ({}, 0)"
    delete_and_write()
    cql.execute("UPDATE t SET v = -1 WHERE p = 3")
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        value = 0
        while not ended.wait(0.02):
            value += 1
            cql.execute(f"UPDATE t SET v = {value} WHERE p = 0")
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(180)
        (verdict,) = source.verify(name)
    finally:
        ended.set()
        writer.join()
    assert (verdict.differences, verdict.moving) == (1, 1), verdict.lines()
    assert told(verdict) == [("cell", 3, "v", "-1", "0")]
    (verdict,) = source.verify(over, say=lambda _: delete_and_write())
    assert (verdict.differences, verdict.moving) == (0, 4), verdict.lines()


def test_waits_until_landing_has_caught_up(
    spark: SparkSession,
    scylla: Scylla,
    cql: Session,
    keyspace: str,
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody holds the lease, and lands what is missing after the first reading."""
    cql.execute("CREATE TABLE t (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true}")
    source = SourceTables(spark, scylla, warehouse, [f"{keyspace}.t"])
    source.land()
    for p in range(10):
        cql.execute(f"INSERT INTO t (p, v) VALUES ({p}, 0)")
    topic = f"p.{keyspace}.t"
    monkeypatch.setattr("spark_jobs.verify.job.Topics", lambda *_: Ends({(topic, 0): 10, (topic, 1): 0}))
    landed = source.landed(f"{keyspace}.t")
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        source.land()
        landed.append(landed.position_rows({(topic, 0): 10}, 1))

    folder = open_folder(spark, f"{source.settings.warehouse}/_leases")
    with Lease(folder, "job", 60_000):
        (verdict,) = source.verify(limits=Limits(wait_s=60, confidence_ms=0), say=say)
    assert (verdict.differences, verdict.moving, verdict.rounds, verdict.behind) == (0, 0, 2, 0), verdict.lines()
    assert [text.split(",")[0] for text in said] == [
        f"{keyspace}.t: 10 rows differ; they are looked at again in 0 s or more"
    ]


def test_landing_that_stands_still_is_told(
    spark: SparkSession,
    scylla: Scylla,
    cql: Session,
    keyspace: str,
    warehouse: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cql.execute("CREATE TABLE t (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true}")
    source = SourceTables(spark, scylla, warehouse, [f"{keyspace}.t"])
    source.land()
    cql.execute("INSERT INTO t (p, v) VALUES (1, 1)")
    topic = f"p.{keyspace}.t"
    monkeypatch.setattr("spark_jobs.verify.job.Topics", lambda *_: Ends({(topic, 0): 5, (topic, 1): 7}))
    landed = source.landed(f"{keyspace}.t")
    landed.append(landed.position_rows({(topic, 1): 6}, 1))
    with Lease(open_folder(spark, f"{source.settings.warehouse}/_leases"), "job", 60_000):
        (held,) = source.verify(limits=Limits(wait_s=0.2, confidence_ms=0))
    assert (held.differences, held.moving, held.behind) == (1, 0, 6)
    assert "1 differences, landing is behind by 6 records" in held.lines()[0]
    # Who rearranges what has landed is not waited for: nothing lands meanwhile.
    with Lease(open_folder(spark, f"{source.settings.warehouse}/_leases"), "job", 60_000, "rebuild"):
        (rearranged,) = source.verify(limits=Limits(wait_s=600, confidence_ms=600_000))
    assert (rearranged.differences, rearranged.rounds, rearranged.behind) == (1, 2, 6)


def test_tables_that_cannot_be_compared_are_one_line_each(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    names = [f"{keyspace}.{name}" for name in ("gone", "never", "again", "wider")]
    for name in ("gone", "again", "wider"):
        cql.execute(f"CREATE TABLE {name} (p int PRIMARY KEY, v int) WITH cdc = {{'enabled': true}}")
    source = SourceTables(spark, scylla, warehouse, names)
    source.land(*(name for name in names if not name.endswith("never")))
    cql.execute("DROP TABLE gone")
    cql.execute("DROP TABLE again")
    cql.execute("CREATE TABLE again (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true}")
    cql.execute("ALTER TABLE wider ADD more text")
    verdicts = {verdict.table.partition(".")[2]: verdict for verdict in source.verify()}
    assert "does not exist in the source" in verdicts["gone"].lines()[0]
    assert "nothing of it has been landed yet" in verdicts["never"].lines()[0]
    assert "was re-created" in verdicts["again"].lines()[0]
    assert verdicts["wider"].lines()[1] == f"  {keyspace}.wider, column more: source text, landed null"
    assert {name: (verdict.differences, len(verdict.lines())) for name, verdict in verdicts.items()} == {
        "gone": (1, 1),
        "never": (1, 1),
        "again": (1, 1),
        "wider": (1, 2),
    }
