"""Random tables that are written to, altered and snapshotted, and what becomes of them.

In: tables and a source of randomness. Out: ``Histories``, a step at a time. What is altered: columns that come, go and
come back, also as another type, keys that are renamed and exchanged, fields that are renamed and added, types of
columns, tables that are dropped and created again.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator
from typing import Any

import pyarrow
from cassandra import DriverException, InvalidRequest
from cassandra.protocol import ConfigurationException, LazyProtocolHandler

from spark_jobs.tables.registration import open_publisher
from tests.servers.patience import until
from tests.spark_jobs.altered_tables import Altered
from tests.spark_jobs.published_rows import read_elsewhere
from tests.spark_jobs.random_tables import PLAIN_NAMES, RandomTable
from tests.spark_jobs.source_tables import equal

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
WRITES = 12
_SECONDS = 1
"""The TTL of what has ended in the end."""
_LONG = 100_000
NAMES = ("t0", "t1", "t2")


def random_tables(rnd: random.Random, keyspace: str) -> list[RandomTable]:
    """One with TTLs that end, one that is snapshotted, and one whose names may differ by case only."""
    more: list[dict[str, Any]] = [
        {"ttls": (_SECONDS, _LONG, 0)},
        {"ttls": (_LONG, 0), "snapshotted": True},
        {"names": PLAIN_NAMES},
    ]
    lower = [name for name in PLAIN_NAMES if name.islower()]
    return [
        RandomTable(rnd, keyspace, name, **{"names": lower, "timed": False, **each}) for name, each in zip(NAMES, more)
    ]


class Histories:
    """Tables that are written to and altered."""

    def __init__(self, altered: Altered, tables: list[RandomTable], rnd: random.Random) -> None:
        # The usual one gives the connection up when it cannot decode an answer.
        altered.cql.client_protocol_handler = LazyProtocolHandler
        self.altered = altered
        self.tables = tables
        self.rnd = rnd

    def begin(self) -> None:
        self.altered.step(statement for table in self.tables for statement in table.invent())

    def write(self) -> None:
        now_us = self.altered.scylla.now_us()
        for table in self.tables:
            for _ in range(WRITES):
                # Nothing is set in a list that is null.
                with contextlib.suppress(InvalidRequest):
                    try:
                        self.altered.cql.execute(table.statement(now_us))
                    except DriverException as error:
                        # What a condition did not meet is answered, and may be a time that Python does not know.
                        if "Failed decoding" not in str(error):
                            raise
        self.altered.step(())

    def alter(self) -> Iterator[str]:
        """Two alterations of each table; those that the server refuses, or that need what is not there, have not
        happened."""
        for table in self.tables:
            for _ in range(2):
                before = copy.deepcopy({name: value for name, value in vars(table).items() if name != "rnd"})
                what = self.rnd.choice(ALTERATIONS)
                statements = table.alteration(what)
                try:
                    self.altered.step(statements)
                    if statements:
                        yield what
                except (InvalidRequest, ConfigurationException):
                    assert len(statements) == 1, statements
                    vars(table).update(before)

    def snapshot(self) -> None:
        for table in self.tables:
            if table.snapshotted:
                self.altered.snapshot(f"{table.keyspace}.{table.name}")

    def live(self, rounds: int) -> list[str]:
        """All that happens, in its order; what is late has landed in the end."""
        happened: list[str] = []
        self.begin()
        for _ in range(rounds):
            self.write()
            if self.rnd.random() < 0.5:
                self.snapshot()
                happened.append("snapshot")
            if self.rnd.random() < 0.5:
                self.altered.catch_up(merge=self.rnd.random() < 0.6, all_of_it=False)
                happened.append("landed")
            if self.rnd.random() < 0.2:
                self.altered.publish()
                happened.append("published")
            happened += self.alter()
        self.write()
        self.altered.catch_up()
        return happened

    def ended(self) -> None:
        """Waits until nothing is left that ends soon, by anybody's clock."""
        now_us = self.altered.scylla.now_us()
        until(lambda: self.altered.scylla.now_us() > now_us + (_SECONDS + 1) * 1_000_000, 60, "the end of short TTLs")

    def same(self) -> None:
        """Everything equals the source: what landed, and what others read."""
        published = self.altered.publish()
        assert len(published) >= len(self.tables) - 1, "only of one do names differ by case alone"
        verdicts = self.altered.verify()
        equal(verdicts)
        wrong = [
            verdict.lines()
            for name, verdict in zip(self.altered.names, verdicts)
            if verdict.dead_letters or (verdict.notes and name in published)
        ]
        assert not wrong, wrong
        for name in published:
            self._same_elsewhere(name)

    def _same_elsewhere(self, name: str) -> None:
        """What is read without Spark is what Spark reads."""
        altered, landed = self.altered, self.altered.landed(name)
        publisher = open_publisher(altered.spark, altered.settings.session_config())
        assert publisher is not None
        read = told(pyarrow.table(publisher.session.table(publisher.relation(landed.folder)).toArrow()))
        folder = f"{altered.settings.warehouse}/{landed.folder}"
        elsewhere = told(read_elsewhere(folder, altered.settings.sink))
        assert sorted(map(_plain, read)) == sorted(map(_plain, elsewhere)), name


def _plain(row: dict[str, Any]) -> str:
    """Text that is the same for the same row. PyIceberg shows a null map or list of structs as an empty one."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value] or None
        return value

    return repr(sorted((name, plain(value)) for name, value in row.items()))


def told(table: pyarrow.Table) -> list[dict[str, Any]]:
    """Its rows, with times and days as numbers at any depth: Python's end with the year 9999, and ScyllaDB's do not."""
    numbered = pyarrow.schema([field.with_type(_numbered(field.type)) for field in table.schema])
    rows: list[dict[str, Any]] = table.cast(numbered).to_pylist()
    return rows


def _numbered(kind: pyarrow.DataType) -> pyarrow.DataType:
    def part(field: pyarrow.Field) -> pyarrow.Field:
        return field.with_type(_numbered(field.type))

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.int64()
    if pyarrow.types.is_date32(kind):
        return pyarrow.int32()
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([part(field) for field in kind])
    if pyarrow.types.is_map(kind):
        return pyarrow.map_(part(kind.key_field), part(kind.item_field))
    if pyarrow.types.is_list(kind):
        return pyarrow.list_(part(kind.value_field))
    if pyarrow.types.is_large_list(kind):
        return pyarrow.large_list(part(kind.value_field))
    return kind
