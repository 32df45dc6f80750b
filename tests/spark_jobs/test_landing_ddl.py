"""Tables that are altered in every way while they are written to: each record lands by the version that it was made by.

The connector reads between the alterations; landing comes after all of them, or after each.
"""

from __future__ import annotations

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from tests.servers.scylla import Scylla
from tests.spark_jobs.altered_tables import Altered
from tests.spark_jobs.source_tables import WITH_SOURCE, equal

pytestmark = WITH_SOURCE

HISTORIES: dict[str, list[list[str]]] = {
    "column": [
        ["CREATE TABLE {t} (p int, c int, v text, w int, PRIMARY KEY (p, c)) WITH cdc = {{'enabled': true}}"],
        ["INSERT INTO {t} (p, c, v, w) VALUES (1, 1, 'old', 1)", "INSERT INTO {t} (p, c, v) VALUES (1, 2, 'x')"],
        ["ALTER TABLE {t} DROP v"],
        ["INSERT INTO {t} (p, c, w) VALUES (1, 3, 3)"],
        ["ALTER TABLE {t} ADD v blob"],
        ["UPDATE {t} SET v = 0x07 WHERE p = 1 AND c = 1", "UPDATE {t} SET v = 0x08 WHERE p = 2 AND c = 1"],
        ["ALTER TABLE {t} ADD m map<int, text>"],
        ["UPDATE {t} SET m[1] = 'a' WHERE p = 1 AND c = 3"],
    ],
    "fields": [
        ["CREATE TYPE {t}_a (street text, no int)"],
        [
            "CREATE TABLE {t} (p int PRIMARY KEY, u {t}_a, f frozen<{t}_a>, l list<frozen<{t}_a>>, "
            "s set<frozen<{t}_a>>) WITH cdc = {{'enabled': true}}"
        ],
        [
            "INSERT INTO {t} (p, u, f, l, s) VALUES (1, {{street: 'a', no: 1}}, {{street: 'f', no: 2}}, "
            "[{{street: 'l', no: 3}}], {{{{street: 's', no: 3}}}})",
            "UPDATE {t} SET u.no = 7 WHERE p = 2",
        ],
        ["ALTER TYPE {t}_a RENAME street TO road"],
        ["UPDATE {t} SET u.road = 'b' WHERE p = 2", "UPDATE {t} SET f = {{road: 'g', no: 4}} WHERE p = 3"],
        ["ALTER TYPE {t}_a ADD street int"],
        ["UPDATE {t} SET u.street = 5, s = s + {{{{road: 's', no: 3}}}} WHERE p = 1"],
        ["UPDATE {t} SET s = s - {{{{road: 's', no: 3}}}} WHERE p = 1"],
        ["INSERT INTO {t} (p, u) VALUES (4, {{road: 'x', no: 1, street: 2}})"],
    ],
    "renamed": [
        ["CREATE TABLE {t} (a int, b int, c int, v int, PRIMARY KEY (a, b, c)) WITH cdc = {{'enabled': true}}"],
        ["INSERT INTO {t} (a, b, c, v) VALUES (1, 2, 3, 4)", "DELETE FROM {t} WHERE a = 5 AND b > 3"],
        ["ALTER TABLE {t} RENAME b TO x"],
        ["UPDATE {t} SET v = 5 WHERE a = 1 AND x = 2 AND c = 3", "INSERT INTO {t} (a, x, c, v) VALUES (5, 4, 1, 1)"],
        ["ALTER TABLE {t} ADD b text"],
        ["INSERT INTO {t} (a, x, c, v, b) VALUES (1, 9, 3, 4, 'b')"],
        ["ALTER TABLE {t} RENAME c TO y"],
        ["ALTER TABLE {t} RENAME x TO c"],
        ["ALTER TABLE {t} RENAME y TO x"],
        ["DELETE FROM {t} WHERE a = 5 AND c > 3", "INSERT INTO {t} (a, c, x, v) VALUES (1, 8, 7, 6)"],
    ],
    "retyped": [
        [
            "CREATE TABLE {t} (p int, c timeuuid, i int, b bigint, s ascii, t text, u timeuuid, z boolean, d date, "
            "PRIMARY KEY (p, c)) WITH cdc = {{'enabled': true}}"
        ],
        [
            "INSERT INTO {t} (p, c, i, b, s, t, u, z, d) VALUES (1, 8d1c5f00-1234-11ee-8080-808080808080, -3, 5, 'a', "
            "'ä', 8d1c5f00-1234-11ee-8080-808080808081, true, '2024-02-29')"
        ],
        [
            "ALTER TABLE {t} ALTER i TYPE varint",
            "ALTER TABLE {t} ALTER b TYPE blob",
            "ALTER TABLE {t} ALTER s TYPE text",
        ],
        ["ALTER TABLE {t} ALTER t TYPE blob", "ALTER TABLE {t} ALTER u TYPE uuid", "ALTER TABLE {t} ALTER z TYPE blob"],
        ["ALTER TABLE {t} ALTER d TYPE blob", "ALTER TABLE {t} ALTER c TYPE uuid"],
        ["UPDATE {t} SET i = 99, b = 0x01 WHERE p = 1 AND c = 9d1c5f00-1234-11ee-8080-808080808080"],
        ["UPDATE {t} SET s = 'ö' WHERE p = 1 AND c = 8d1c5f00-1234-11ee-8080-808080808080"],
    ],
    "growing": [
        ["CREATE TYPE {t}_k (a int, b text)"],
        ["CREATE TABLE {t} (p int, c frozen<{t}_k>, v int, PRIMARY KEY (p, c)) WITH cdc = {{'enabled': true}}"],
        ["INSERT INTO {t} (p, c, v) VALUES (1, {{a: 1, b: 'x'}}, 1)", "INSERT INTO {t} (p, c) VALUES (1, {{a: 2}})"],
        ["ALTER TYPE {t}_k ADD n int"],
        ["UPDATE {t} SET v = 2 WHERE p = 1 AND c = {{a: 1, b: 'x'}}"],
        [
            "INSERT INTO {t} (p, c, v) VALUES (1, {{a: 1, b: 'x', n: 1}}, 3)",
            "DELETE FROM {t} WHERE p = 1 AND c = {{a: 2}}",
        ],
    ],
    "moving": [
        ["CREATE TABLE {t} (p ascii, c text, d int, v int, PRIMARY KEY (p, c, d)) WITH cdc = {{'enabled': true}}"],
        [
            "INSERT INTO {t} (p, c, d, v) VALUES ('a', 'b', 1, 1)",
            "INSERT INTO {t} (p, c, d, v) VALUES ('a', 'b', 9, 9)",
            "DELETE FROM {t} WHERE p = 'a' AND c = 'b' AND d > 3",
        ],
        ["INSERT INTO {t} (p, c, d, v) VALUES ('b', 'b', 1, 1)"],
        ["ALTER TABLE {t} ALTER p TYPE blob", "ALTER TABLE {t} ALTER c TYPE blob"],
        ["UPDATE {t} SET v = 7 WHERE p = 0x61 AND c = 0x62 AND d = 1", "DELETE FROM {t} WHERE p = 0x62 AND c = 0x62"],
        ["INSERT INTO {t} (p, c, d, v) VALUES (0x63, 0x62, 1, 1)"],
    ],
    "again": [
        ["CREATE TABLE {t} (p int, c int, v text, PRIMARY KEY (p, c)) WITH cdc = {{'enabled': true}}"],
        ["INSERT INTO {t} (p, c, v) VALUES (1, 1, 'gone')", "DELETE FROM {t} WHERE p = 2"],
        ["DROP TABLE {t}"],
        ["CREATE TABLE {t} (p text, c text, w int, PRIMARY KEY (p, c)) WITH cdc = {{'enabled': true}}"],
        ["INSERT INTO {t} (p, c, w) VALUES ('a', 'b', 1)", "DELETE FROM {t} WHERE p = 'a' AND c > 'b'"],
    ],
}


STEPS = max(map(len, HISTORIES.values()))


@pytest.mark.parametrize(("lands_after", "sink"), [((), "delta"), ((2, 5), "iceberg")], ids=["late", "now and then"])
def test_altered_tables_equal_their_source(
    spark: SparkSession,
    scylla: Scylla,
    cql: Session,
    keyspace: str,
    warehouse: str,
    lands_after: tuple[int, ...],
    sink: str,
) -> None:
    altered = Altered(spark, scylla, cql, keyspace, warehouse, HISTORIES, sink=sink)
    for at in range(STEPS):
        altered.step(
            text.format(t=name) for name, steps in HISTORIES.items() for texts in steps[at : at + 1] for text in texts
        )
        if at in lands_after:
            altered.catch_up(merge=at == lands_after[0])
    altered.catch_up(merge=bool(lands_after))
    verdicts = altered.verify()
    equal(verdicts)
    assert not any(verdict.dead_letters for verdict in verdicts), [verdict.lines() for verdict in verdicts]


def test_columns_that_are_not_published_are_not_compared(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    altered = Altered(spark, scylla, cql, keyspace, warehouse, ["t"])
    made = "CREATE TABLE t (p int PRIMARY KEY, f frozen<u>) WITH cdc = {'enabled': true}"
    altered.step(["CREATE TYPE u (a int)", made, "INSERT INTO t (p, f) VALUES (1, {a: 2})"])
    altered.catch_up()
    assert altered.publish()
    altered.step(["ALTER TABLE t ADD v int"])
    # Of no rows: all that is missing in the published table is a column.
    altered.catch_up(merge=False)
    for notes in (["the published table is behind what has landed, so it was not compared"], []):
        (verdict,) = altered.verify()
        equal([verdict])
        assert verdict.notes == notes
        altered.publish()
    altered.step(['ALTER TYPE u ADD "A" int'])
    altered.catch_up(merge=False)
    assert not altered.publish()
    (verdict,) = altered.verify()
    assert "".join(verdict.notes).startswith(
        "the published table is not kept up any more: the fields A and a of its co"
    )
