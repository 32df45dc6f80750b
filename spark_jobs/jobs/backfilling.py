"""Lands the rows that a table had before its log: they are read from the source and appended like changes.

In: settings, access to the source, tables. Out: what was appended. Cells have the write times that the source tells;
markers and elements, of which it tells none, the lowest there is, since everything in the log is newer. So the same
rows again, an interrupted run, and changes that land meanwhile come to the same table.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from connector.errors import LandingError
from connector.table_name import TableName
from connector.values import ListType
from spark_jobs.config import Settings, described_tables
from spark_jobs.functions import register_functions
from spark_jobs.jobs.backfill_sql import change_rows
from spark_jobs.model import DEAD, DeadReason, Layout, TableDefinition, carried, parse_definition
from spark_jobs.sinks import Sink
from spark_jobs.source import (
    SourceAccess,
    SourceTable,
    described,
    new_counts,
    ranges_of,
    read_plan,
    read_source,
    reading_tasks,
)
from spark_jobs.stream import SchemaTopic, Topics, told
from spark_jobs.tables import LandedTable, Plan, Restored, check_landed, job_lease, open_sink, plan_table

_SPANS, _SPAN_S = 8, 60.0


@dataclass(frozen=True)
class Filled:
    """``rows`` of the source became ``changes``; ``dead`` ones have values that cannot be landed. ``read_twice``
    are the partitions of which the server's first answer was not to be trusted."""

    table: str
    rows: int
    changes: int
    dead: int
    left_out: tuple[str, ...]
    read_twice: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        dead = f", {self.dead:,} dead letters ({DeadReason.OUT_OF_RANGE})" if self.dead else ""
        without = f", without the lists {', '.join(self.left_out)}" if self.left_out else ""
        twice = f", {self.read_twice:,} partitions read twice" if self.read_twice else ""
        return f"{self.table}: {self.rows:,} rows read{twice}, {self.changes:,} changes landed{dead}{without}"


@dataclass(frozen=True)
class Filling:
    """Where and how tables are backfilled. Whoever calls holds the lease."""

    session: SparkSession
    sink: Sink
    settings: Settings
    access: SourceAccess
    skip_lists: bool

    def check(self, table: TableName, versions: Sequence[TableDefinition]) -> None:
        """Refuses what cannot be backfilled, before anything is changed."""
        source = described(self.access, table)
        plan = self._plan(table, versions, source, self._landed(table).restore())
        self._left_out(table, plan.known.layout())

    def fill(self, table: TableName, versions: Sequence[TableDefinition]) -> Filled:
        landed = self._landed(table)
        source = described(self.access, table)
        restored = landed.restore()
        plan = self._plan(table, versions, source, restored)
        left_out = self._left_out(table, plan.known.layout())
        if restored.has_rows and not plan.recreated:
            moving = check_landed(table, restored.known, plan.known)
            if moving:
                raise LandingError(
                    f"{table}: the type of a key column was changed; run land first, which adapts the rows"
                )
        mark, segment = restored.mark, restored.segment
        if plan.recreated:
            # Before the new table is noted: a crash between the two finds it new again.
            landed.clear(segment, restored.positions)
            mark, segment = segment, segment + 1
        # Noted before the rows are there: a rebuild must not take the topics for all there ever was.
        noted = tuple(sorted({*left_out, *(plan.known.backfilled or ())}))
        sequence = plan.known.sequence if plan.changed else plan.known.sequence + 1
        # Whoever reads the published table gets what is read here as a whole.
        begun = replace(plan.known, backfilled=noted, sequence=sequence, lineage=plan.known.lineage + 1)
        if plan.changed or restored.known is None or restored.known.backfilled != noted:
            begun = replace(begun, filled_to=None)
        layout = landed.prepare(begun)
        register_functions(self.session, layout)
        counts = new_counts(self.session)
        plan_of_reading = read_plan(layout, source, left_out, ending=not layout.images)
        made = dead = 0
        for span in self._spans(begun.filled_to):
            tasks = reading_tasks(self.session, self.settings)
            rows = read_source(self.session, self.access, plan_of_reading, span, tasks, counts)
            changes = change_rows(rows, layout, plan_of_reading, segment)
            begun = replace(begun, filled_to=span[-1][1], sequence=begun.sequence + 1)
            # Counted on their way: questions about a changelog cost more than the rows of a small table.
            seen, column = Observation(), F.col("segment")
            kinds = (F.count_if(column == of).alias(name) for name, of in (("made", segment), ("dead", DEAD)))
            landed.append(changes.observe(seen, *kinds).unionByName(landed.note_row(begun), allowMissingColumns=True))
            counted = told(self.session, seen)
            made, dead = made + counted["made"], dead + counted["dead"]
        landed.merge(layout, segment, mark, restored.positions)
        landed.prepare(replace(begun, filled_to=None, incomplete=None, rebuilding=False, sequence=begun.sequence + 1))
        # Some of it may end by itself, which the layout did not know before.
        done = landed.known() or begun
        landed.register(done.layout())
        return Filled(str(table), counts.rows.value, made, dead, tuple(left_out), counts.twice.value)

    def _spans(self, filled_to: int | None) -> Iterator[list[tuple[int, int]]]:
        """Token ranges to read in one commit each, which says how far it goes: the first is small, and the next ones
        are as large as fits into a minute."""
        least = reading_tasks(self.session, self.settings)
        ranges = sorted(ranges_of(self.access, least * _SPANS))
        if filled_to is not None:
            ranges = [(max(low, filled_to), high) for low, high in ranges if high > filled_to]
        size = max(len(ranges) // _SPANS, 1)
        while ranges:
            began = time.monotonic()
            yield ranges[:size]
            ranges = ranges[size:]
            size = max(int(size * min(_SPAN_S / max(time.monotonic() - began, 0.1), _SPANS)), 1)

    def _landed(self, table: TableName) -> LandedTable:
        return LandedTable(self.session, self.sink, table.keyspace, table.name)

    def _plan(
        self, table: TableName, versions: Sequence[TableDefinition], source: SourceTable, restored: Restored
    ) -> Plan:
        """The definition that landing uses; the source's own where nobody has written one down yet."""
        if not versions and restored.known is None:
            versions = [_own_definition(source)]
        plan = plan_table(self.settings, table, versions, restored.known)
        noted = plan.known.definitions[-1].table_id
        if noted is not None and noted != source.table_id:
            raise LandingError(
                f"{table}: the source's table is not the landed one (it was re-created); "
                "run backfill when the connector has published the new one"
            )
        return plan

    def _left_out(self, table: TableName, layout: Layout) -> list[str]:
        return _lists(table, layout, skip=self.skip_lists)


def refuse_lists(settings: Settings, access: SourceAccess, tables: Sequence[TableName] = ()) -> None:
    """Refuses tables that have lists by what the source alone says: nobody waits for Spark to be told."""
    for table in tables or settings.tables:
        definition = _own_definition(described(access, table))
        _lists(table, plan_table(settings, table, [definition], None).known.layout(), skip=False)


def _lists(table: TableName, layout: Layout, *, skip: bool) -> list[str]:
    lists = [part.column for part in layout.elements if isinstance(part.type, ListType)]
    if lists and not skip:
        raise LandingError(
            f"{table}: a SELECT does not return the keys of list elements, so {', '.join(lists)} cannot be "
            "backfilled; --lists=skip leaves them out: they will hold only what the log wrote"
        )
    return lists


def backfill(
    session: SparkSession,
    settings: Settings,
    access: SourceAccess,
    tables: Sequence[TableName] = (),
    skip_lists: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> list[Filled]:
    """Backfills the tables one after another; all are checked before the first is changed."""
    chosen = list(tables) or list(settings.tables)
    sink = open_sink(session, settings.session_config())
    versions = known_versions(session, settings, say)
    filling = Filling(session, sink, settings, access, skip_lists)
    with job_lease(session, settings, "backfill") as lease:
        for table in chosen:
            filling.check(table, versions.get(str(table), ()))
        done: list[Filled] = []
        for table in chosen:
            lease.check()
            say(f"{table}: reading the source")
            done.append(filling.fill(table, versions.get(str(table), ())))
    return done


def known_versions(
    session: SparkSession, settings: Settings, say: Callable[[str], None]
) -> Mapping[str, Sequence[TableDefinition]]:
    """The versions of the schemas topic, and those of CQL files for tables that it has nothing of."""
    found: dict[str, Sequence[TableDefinition]] = {}
    for name, definition in described_tables(settings).items():
        found[name] = [definition if definition.output.images else carried(definition)[0]]
    if not settings.schema_topic:
        return found
    try:
        with contextlib.closing(Topics(session, settings.kafka())) as topics:
            found.update(SchemaTopic(topics, settings.schema_topic).read())
    except LandingError as error:
        say(f"{error}; the definitions are the landed tables' own, or the source's")
    return found


def _own_definition(source: SourceTable) -> TableDefinition:
    """As the connector would publish it, with the output that landing needs."""
    output = {"format": "legacy", "collections": "delta", "range_deletes": "topic"}
    return parse_definition(json.dumps({**source.content, "version": source.fingerprint, "output": output}))
