"""Lands the rows that a table had before its log: they are read from the source and appended like changes.

In: settings, access to the source, tables. Out: what was appended. Cells have the write times that the source tells;
markers and elements, of which it tells none, the lowest there is, since everything in the log is newer. So the same
rows again, an interrupted run, and changes that land meanwhile come to the same table.

Nobody but the holder of the lease writes a landed table. Where that is a job that lands, it is handed what is read in
parcels, and takes them up.
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
from spark_jobs.stream import Offsets, SchemaTopic, Topics, check_fitting, told
from spark_jobs.tables import (
    BACKFILL,
    LAND,
    Known,
    LandedTable,
    Lease,
    Parcel,
    Parcels,
    Plan,
    PublishedTable,
    Restored,
    check_landed,
    filling_lease,
    free_segment,
    holds,
    job_lease,
    leases,
    open_publisher,
    open_sink,
    plan_table,
)

_SPANS, _SPAN_S = 8, 60.0
_LOOK_S, _AWAY_S = 1.0, 30.0
"""How often it is looked whether parcels were taken up, and how long the job that lands may be away meanwhile."""


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
        plan = self._plan(table, versions, source, self.landed(table).restore())
        self._left_out(table, plan.known.layout())

    def fill(
        self, table: TableName, versions: Sequence[TableDefinition], lease: Lease, covered: Offsets | None = None
    ) -> Filled:
        """``covered`` are ends of the topics that no part of the source was read before."""
        landed = self.landed(table)
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
            check_fitting(landed, table, restored.known, plan.known)
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
        if begun.filled_to is None and begun.covered is None:
            begun = replace(begun, covered=covered)
        layout = landed.prepare(begun)
        register_functions(self.session, layout)
        counts = new_counts(self.session)
        plan_of_reading = read_plan(layout, source, left_out, ending=not layout.images, to_land=True)
        made = dead = 0
        for span in self._spans(begun.filled_to):
            rows = read_source(self.session, self.access, plan_of_reading, span, self._tasks(), counts)
            changes = change_rows(rows, layout, plan_of_reading, segment)
            begun = replace(begun, filled_to=span[-1][1], sequence=begun.sequence + 1)
            # Counted on their way: questions about a changelog cost more than the rows of a small table.
            seen, column = Observation(), F.col("segment")
            kinds = (F.count_if(column == of).alias(name) for name, of in (("made", segment), ("dead", DEAD)))
            # The source is read here, for a minute, in which this process may stand still for longer.
            landed.append(changes.observe(seen, *kinds))
            counted = told(self.session, seen)
            made, dead = made + counted["made"], dead + counted["dead"]
            # Noted only then: what came late into a segment that a successor has merged counts as never read.
            lease.check()
            landed.append(landed.note_row(begun))
            # What stays for a history is compacted by segments: all of a large table in one would be one piece.
            segment += 1
        landed.merge(layout, segment, mark, restored.positions)
        lease.check()
        done = replace(begun, filled_to=None, incomplete=None, rebuilding=False, sequence=begun.sequence + 1)
        landed.prepare(done)
        # Some of it may end by itself, which the layout did not know before.
        landed.register(replace(done, expiring=landed.expires()).layout())
        return Filled(str(table), counts.rows.value, made, dead, tuple(left_out), counts.twice.value)

    def read_beside(self, table: TableName, lease: Lease) -> tuple[Filled, int]:
        """Reads the source into parcels, and returns the lineage of the table that they are for."""
        landed, known, source, left_out = self._as_landed(table)
        layout, parcels = known.layout(), Parcels(landed)
        register_functions(self.session, layout)
        counts = new_counts(self.session)
        reading = read_plan(layout, source, left_out, ending=not layout.images, to_land=True)
        waiting = parcels.waiting()
        filled_to = known.filled_to if known.backfilled == left_out else None
        if waiting and waiting[-1].continues(known, left_out):
            filled_to = waiting[-1].filled_to
        number = waiting[-1].number if waiting else 0
        version = known.definitions[-1].version
        parcel = Parcel(number, filled_to, left_out, known.lineage, version, known.without_values)
        made = dead = 0
        if not waiting or waiting[-1] != replace(parcel, filled_to=None):
            for span in self._spans(filled_to):
                rows = read_source(self.session, self.access, reading, span, self._tasks(), counts)
                seen, column = Observation(), F.col("segment")
                kinds = (F.count_if(column == of).alias(name) for name, of in (("made", 1), ("dead", DEAD)))
                changes = change_rows(rows, layout, reading, 1).observe(seen, *kinds)
                parcel = replace(parcel, number=parcel.number + 1, filled_to=span[-1][1])
                lease.check()
                parcels.add(parcel, changes, layout)
                counted = told(self.session, seen)
                made, dead = made + counted["made"], dead + counted["dead"]
            parcels.add(replace(parcel, number=parcel.number + 1, filled_to=None), None, layout)
        return Filled(str(table), counts.rows.value, made, dead, left_out, counts.twice.value), known.lineage

    def check_beside(self, table: TableName) -> None:
        """Refuses what cannot be backfilled while a job lands it."""
        self._as_landed(table)

    def _as_landed(self, table: TableName) -> tuple[LandedTable, Known, SourceTable, tuple[str, ...]]:
        """The table as the job that lands has it now, and its source."""
        landed, source = self.landed(table), described(self.access, table)
        known = landed.known()
        if known is None:
            raise LandingError(
                f"{table}: the land that runs has not begun with it, which it does when the schemas topic has its "
                "definition: run backfill again then, or while no land runs"
            )
        _check_same(table, known, source)
        return landed, known, source, tuple(sorted(self._left_out(table, known.layout())))

    def take_up(self, table: TableName, lease: Lease) -> bool:
        """Lands the parcels that nobody has taken up. Whether all of the source is read with them."""
        landed = self.landed(table)
        parcels = Parcels(landed)
        if not (waiting := parcels.waiting()):
            return False
        restored, whole = landed.restore(), False
        publisher = open_publisher(self.session, self.settings.session_config())
        segment = free_segment(restored, PublishedTable(publisher, landed).stand() if publisher is not None else None)
        known = restored.known
        for parcel in waiting:
            if known is not None and parcel.is_for(known):
                known = parcel.taken_into(known)
                whole = parcel.filled_to is None and known.incomplete is None
                rows = parcels.rows(parcel, segment)
                landed.append(rows.unionByName(landed.note_row(known), allowMissingColumns=True))
        if known is not None:
            landed.merge(known.layout(), segment, restored.mark, restored.positions)
        lease.check()
        parcels.remove(waiting[-1].number)
        return whole

    def _tasks(self) -> int:
        return reading_tasks(self.session, self.settings)

    def _spans(self, filled_to: int | None) -> Iterator[list[tuple[int, int]]]:
        """Token ranges to read in one commit each, which says how far it goes: the first is small, and the next ones
        are as large as fits into a minute."""
        least = self._tasks()
        ranges = sorted(ranges_of(self.access, least * _SPANS))
        if filled_to is not None:
            ranges = [(max(low, filled_to), high) for low, high in ranges if high > filled_to]
        size = max(len(ranges) // _SPANS, 1)
        while ranges:
            began = time.monotonic()
            yield ranges[:size]
            ranges = ranges[size:]
            size = max(int(size * min(_SPAN_S / max(time.monotonic() - began, 0.1), _SPANS)), 1)

    def landed(self, table: TableName) -> LandedTable:
        return LandedTable(self.session, self.sink, table.keyspace, table.name)

    def _plan(
        self, table: TableName, versions: Sequence[TableDefinition], source: SourceTable, restored: Restored
    ) -> Plan:
        """The definition that landing uses; the source's own where nobody has written one down yet."""
        if not versions and restored.known is None:
            versions = [_own_definition(source)]
        plan = plan_table(self.settings, table, versions, restored.known)
        _check_same(table, plan.known, source)
        return plan

    def _left_out(self, table: TableName, layout: Layout) -> list[str]:
        return _lists(table, layout, skip=self.skip_lists)


def _check_same(table: TableName, known: Known, source: SourceTable) -> None:
    noted = known.definitions[-1].table_id
    if noted is not None and noted != source.table_id:
        raise LandingError(
            f"{table}: the source's table is not the landed one (it was re-created); "
            "run backfill when the connector has published the new one"
        )
    told = known.source or known.definitions[-1]
    ours = {column.name: column.type for column in told.columns}
    # A CQL file has no columns that its records do not carry.
    theirs = [column for column in source.columns if not column.is_key and (noted is not None or column.name in ours)]
    if new := sorted(f"{each.name} {each.type.cql()}" for each in theirs if ours.get(each.name) != each.type):
        raise LandingError(
            f"{table}: the source has {', '.join(new)}, of which the landed table's definition does not know yet; run "
            "backfill when land has it from the schemas topic, or correct table.definitions"
        )


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
    """Backfills the tables one after another; all are checked before the first is changed. Beside a job that lands,
    that is handed what is read."""
    chosen = list(tables) or list(settings.tables)
    sink = open_sink(session, settings.session_config())
    filling = Filling(session, sink, settings, access, skip_lists)
    if _holder(filling) == LAND:
        return _beside(filling, chosen, say)
    versions, covered = told_by_kafka(session, settings, chosen, say)
    with job_lease(session, settings, BACKFILL) as lease:
        for table in chosen:
            filling.check(table, versions.get(str(table), ()))
        done: list[Filled] = []
        for table in chosen:
            lease.check()
            if filling.take_up(table, lease):
                say(f"{table}: what an earlier backfill has read is taken up")
                done.append(Filled(str(table), 0, 0, 0, ()))
                continue
            say(f"{table}: reading the source")
            done.append(filling.fill(table, versions.get(str(table), ()), lease, covered))
    return done


def _holder(filling: Filling) -> str | None:
    """What the holder of the job's lease does."""
    return holds(leases(filling.session, filling.settings), filling.settings.name)


def _beside(filling: Filling, tables: Sequence[TableName], say: Callable[[str], None]) -> list[Filled]:
    """Hands what is read to the job that lands, and waits until all of it has landed."""
    with filling_lease(filling.session, filling.settings) as lease:
        for table in tables:
            filling.check_beside(table)
        read: dict[TableName, tuple[Filled, int]] = {}
        for table in tables:
            lease.check()
            say(f"{table}: reading the source; land takes up what is read")
            read[table] = filling.read_beside(table, lease)
        for table, (_, lineage) in read.items():
            _wait_until_taken(filling, lease, table, say)
            known = filling.landed(table).known()
            if known is None or known.lineage != lineage:
                raise LandingError(f"{table}: it was made anew while the source was read; run backfill again")
    return [filled for filled, _ in read.values()]


def _wait_until_taken(filling: Filling, lease: Lease, table: TableName, say: Callable[[str], None]) -> None:
    """Until the job that lands has the table's parcels. If it is away for long, they are landed here."""
    parcels = Parcels(filling.landed(table))
    away_since: float | None = None
    say(f"{table}: waiting for land")
    while parcels.waiting():
        lease.check()
        if _holder(filling) is not None:
            away_since = None
        elif away_since is None:
            away_since = time.monotonic()
        elif time.monotonic() - away_since >= _AWAY_S:
            # Who has come back meanwhile has the lease, and the parcels.
            with contextlib.suppress(LandingError), job_lease(filling.session, filling.settings, BACKFILL) as job:
                filling.take_up(table, job)
        time.sleep(_LOOK_S)


def told_by_kafka(
    session: SparkSession, settings: Settings, tables: Sequence[TableName], say: Callable[[str], None]
) -> tuple[Mapping[str, Sequence[TableDefinition]], Offsets | None]:
    """The versions of the schemas topic, and those of CQL files for tables that it has nothing of; and where the
    topics of these tables end now, None if Kafka does not tell."""
    found: dict[str, Sequence[TableDefinition]] = {}
    ends: Offsets | None = None
    for name, definition in described_tables(settings).items():
        found[name] = [definition if definition.output.images else carried(definition)[0]]
    try:
        with contextlib.closing(Topics(session, settings.kafka())) as topics:
            found.update(SchemaTopic(topics, settings.schema_topic).read())
            ends = topics.offsets([topic for table in tables for topic in settings.topics_of(table)])
    except LandingError as error:
        say(f"{error}; the definitions are the landed tables' own, or the source's")
    return found, ends


def _own_definition(source: SourceTable) -> TableDefinition:
    """As the connector would publish it, with the output that landing needs."""
    output = {"format": "legacy", "collections": "delta", "range_deletes": "topic"}
    return parse_definition(json.dumps({**source.content, "version": source.fingerprint, "output": output}))
