"""Cells, elements and inserts with a TTL: landed, published and backfilled they end when they end in the source.

The short ones have ended when the tables are compared; of the long ones it is asked how they will look after their end.
"""

from __future__ import annotations

from typing import Any

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from spark_jobs.fold import NOW
from spark_jobs.jobs.backfilling import backfill
from spark_jobs.tables import published_table
from spark_jobs.tables.landed_table import LandedTable
from spark_jobs.tables.published_table import PublishedTable
from spark_jobs.tables.registration import open_publisher
from tests.servers.patience import until
from tests.servers.scylla import Scylla
from tests.spark_jobs.source_tables import WITH_SOURCE, SourceTables, equal

pytestmark = WITH_SOURCE

LONG_S = 5000
COLUMNS = "p int, c int, s text static, v text, w int, m map<text, int>, f set<int>, PRIMARY KEY (p, c)"
WRITES = (
    "INSERT INTO {t} (p, c, v, w, m) VALUES (1, 1, 'goes', 1, {{'a': 1}}) USING TTL 1",
    "INSERT INTO {t} (p, c, v) VALUES (1, 2, 'goes') USING TTL 1",
    "UPDATE {t} SET w = 2 WHERE p = 1 AND c = 2",
    "INSERT INTO {t} (p, c, v) VALUES (1, 3, 'stays')",
    "UPDATE {t} USING TTL 1 SET w = 3, m = m + {{'goes': 1}}, f = f + {{1}} WHERE p = 1 AND c = 3",
    "UPDATE {t} SET m = m + {{'stays': 2}} WHERE p = 1 AND c = 3",
    "UPDATE {t} USING TTL 1 SET v = 'goes' WHERE p = 1 AND c = 4",
    "UPDATE {t} USING TTL 0 SET v = 'stays' WHERE p = 1 AND c = 4",
    "UPDATE {t} USING TTL 1 SET v = 'goes', m = {{'goes': 1}} WHERE p = 1 AND c = 5",
    "UPDATE {t} USING TTL {long} SET v = 'long', m = {{'long': 1}} WHERE p = 1 AND c = 5",
    "UPDATE {t} USING TTL {long} SET v = 'long' WHERE p = 1 AND c = 6",
    "UPDATE {t} USING TTL 1 SET v = 'goes' WHERE p = 1 AND c = 6",
    "INSERT INTO {t} (p, c, v, w) VALUES (1, 7, 'long', 7) USING TTL {long}",
    "UPDATE {t} USING TTL 1 SET s = 'goes' WHERE p = 2",
    "INSERT INTO {t} (p, s) VALUES (3, 'long') USING TTL {long}",
    "INSERT INTO {t} (p, c, v) VALUES (3, 1, 'long') USING TTL {long}",
)
NOW_ROWS = [(1, 2), (1, 3), (1, 4), (1, 5), (1, 7), (3, 1)]
LATER_ROWS = [(1, 2), (1, 3), (1, 4)]


class Ending(SourceTables):
    """The tables, and what they show at a time."""

    def keys(self, name: str, now: str = NOW) -> list[tuple[Any, Any]]:
        landed = self.landed(name)
        known = landed.known()
        assert known is not None
        shown = self.spark.sql(landed.view_text(known.layout(), now)).select("p", "c").collect()
        return sorted((row["p"], row["c"]) for row in shown)


@pytest.fixture
def tables(spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str) -> Ending:
    for name, default in (("t", 0), ("d", 1)):
        cql.execute(
            f"CREATE TABLE {name} ({COLUMNS}) WITH cdc = {{'enabled': true}} AND default_time_to_live = {default}"
        )
    for text in WRITES:
        cql.execute(text.format(t="t", long=LONG_S))
    for key in (1, 2):
        cql.execute(f"INSERT INTO d (p, c, v) VALUES (1, {key}, 'x')" + (" USING TTL 0" if key == 2 else ""))
    found = Ending(spark, scylla, warehouse, [f"{keyspace}.t", f"{keyspace}.d"])
    found.reading = {"cdc.include.metadata": "true"}

    def ended() -> bool:
        there = [sorted((row.p, row.c) for row in cql.execute(f"SELECT p, c FROM {name}")) for name in ("t", "d")]
        return there == [NOW_ROWS, [(1, 2)]]

    until(ended, 60, "the short ones end")
    return found


def test_what_has_ended_is_gone_and_the_rest_stays(
    tables: Ending, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both clocks are this machine's.
    monkeypatch.setattr("spark_jobs.verify.sql._CLOCKS_S", 0)
    first, second = tables.names
    tables.land(merge=False)
    equal(tables.verify())
    tables.land()
    equal(tables.verify())
    assert tables.keys(first) == NOW_ROWS and tables.keys(second) == [(1, 2)]
    assert tables.keys(first, f"{NOW} + {LONG_S}") == LATER_ROWS
    _clocks_may_be_apart(tables, first, monkeypatch)
    _publishes_what_has_ended(tables, first, monkeypatch)

    other = tables.configured(f"{warehouse}/other", sink="delta")
    backfill(tables.spark, other, tables.access)
    equal(tables.verify(settings=other))
    tables.settings = other
    assert tables.keys(first) == NOW_ROWS
    assert tables.keys(first, f"{NOW} + {LONG_S}") == LATER_ROWS, "a backfill asks for the TTL"


def _publishes_what_has_ended(tables: Ending, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any change of the rows."""
    publisher = open_publisher(tables.spark, tables.settings.session_config())
    assert publisher is not None
    landed: LandedTable = tables.landed(name)
    published, known = PublishedTable(publisher, landed), landed.known()
    assert known is not None
    before = published.publish(known, None, 9, {})
    assert published.publish(known, before, 9, {}).at_s >= before.at_s, "nothing has ended"
    relation = publisher.relation(landed.folder)
    rows = publisher.session.table(relation)
    assert rows.count() == len(NOW_ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(published_table.time, "time", lambda: float(before.at_s + LONG_S + 60))
        after = published.publish(known, before, 9, {})
    assert published.differences(known, before) > 0 and published.differences(known, after) == 0
    found = publisher.session.table(relation).select("p", "c").collect()
    assert sorted((row["p"], row["c"]) for row in found) == LATER_ROWS


def _clocks_may_be_apart(tables: Ending, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one side says has ended, and the other says it will soon, is no difference."""
    apart_s = 100_000
    for shift in (apart_s, -apart_s):
        moved = ", ".join(f"{column} = {column} + {shift}" for column in ("marker_ttl", "l_v", "l_w"))
        tables.spark.sql(f"UPDATE {tables.landed(name).state.relation} SET {moved}")
        if shift > 0:
            (verdict,) = tables.verify(name)
            assert verdict.differences > 0, "so far apart no clocks are"
            monkeypatch.setattr("spark_jobs.verify.sql._CLOCKS_S", 2 * apart_s)
            (verdict,) = tables.verify(name)
            assert verdict.differences == 0 and verdict.moving > 0, verdict.lines()
            monkeypatch.setattr("spark_jobs.verify.sql._CLOCKS_S", 0)
