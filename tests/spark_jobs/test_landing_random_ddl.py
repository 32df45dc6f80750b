"""Random tables under random alterations, landed at any lag and once more from the beginning: the rows of the source.

What is altered: columns that come, go and come back, also as another type, keys that are renamed and exchanged, fields
that are renamed and added, types of columns, tables that are dropped and created again.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Session
from cassandra.protocol import ConfigurationException
from pyspark.sql import SparkSession

from tests.servers.scylla import Scylla
from tests.spark_jobs.altered_tables import Altered
from tests.spark_jobs.random_tables import PLAIN_NAMES, RandomTable
from tests.spark_jobs.source_tables import WITH_SOURCE, equal

pytestmark = WITH_SOURCE

ALTERATIONS = [
    "add",
    "drop",
    "again",
    "again as another",
    "retype",
    "rename field",
    "field",
    "swap",
    "rename",
    "recreate",
]
ROUNDS, WRITES = 5, 12


class Histories:
    """Tables that are written to and altered."""

    def __init__(self, altered: Altered, tables: list[RandomTable], rnd: random.Random) -> None:
        self.altered = altered
        self.tables = tables
        self.rnd = rnd

    def write(self) -> None:
        now_us = self.altered.scylla.now_us()
        for table in self.tables:
            for _ in range(WRITES):
                # Nothing is set in a list that is null.
                with contextlib.suppress(InvalidRequest):
                    self.altered.cql.execute(table.statement(now_us))
        self.altered.step(())

    def alter(self) -> Iterator[str]:
        """Two alterations of each table; those that the server refuses have not happened."""
        for table in self.tables:
            for _ in range(2):
                before = copy.deepcopy({name: value for name, value in vars(table).items() if name != "rnd"})
                what = self.rnd.choice(ALTERATIONS)
                statements = table.alteration(what)
                try:
                    self.altered.step(statements)
                    yield what
                except (InvalidRequest, ConfigurationException):
                    assert len(statements) == 1, statements
                    vars(table).update(before)


@pytest.mark.parametrize("seed", [1])
def test_random_histories_of_definitions_land_as_the_source(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str, seed: int
) -> None:
    scylla.require("vector")
    rnd = random.Random(seed)
    names = ["t0", "t1", "t2"]
    tables = [RandomTable(rnd, keyspace, name, names=PLAIN_NAMES, timed=False) for name in names]
    altered = Altered(spark, scylla, cql, keyspace, warehouse, names)
    histories, done = Histories(altered, tables, rnd), set()
    altered.step(statement for table in tables for statement in table.invent())
    for at in range(ROUNDS):
        histories.write()
        if at % 2:
            altered.catch_up(merge=at == 1)
        done.update(histories.alter())
    histories.write()
    altered.catch_up()
    _same(altered)
    altered.again()
    _same(altered)
    assert len(done) > len(ALTERATIONS) // 2, done


def _same(altered: Altered) -> None:
    verdicts = altered.verify()
    equal(verdicts)
    assert not any(verdict.dead_letters for verdict in verdicts), [verdict.lines() for verdict in verdicts]
