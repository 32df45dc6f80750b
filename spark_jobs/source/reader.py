"""The source's rows as a Spark frame: executors connect by themselves and read token ranges, or single partitions.

In: a ``Layout``, the source's description and access. Out: a frame with one row per clustering row and one per
partition that has static values: keys with identities, cells as stored with tie keys and write times. Nothing passes
through the driver but the ranges.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from connector.changes import TableDescription
from connector.errors import LandingError
from connector.source import BaseQuery, Row, SecondLooks, TokenRange, base_query, dealt, read_keys, scan
from connector.values import CqlType, ListType, MapType, SetType, UserType, split_fields
from spark_jobs.config import Settings
from spark_jobs.functions import element_rows, order_bytes, tie_bytes
from spark_jobs.model import PARTITION, ROW, Cell, Elements, Layout, Stored, quoted, stored_type
from spark_jobs.source.access import SourceAccess
from spark_jobs.source.values import stored_value

Column = Callable[[Sequence["Record"]], list[Any]]
Record = tuple[int, Row]
"""A row of the result, and whether it speaks of its partition's statics or of itself."""


@dataclass(frozen=True)
class Part:
    """One column of the frame: what it is made of, and how. Travels to the executors."""

    name: str
    kind: str
    at: int
    type: CqlType
    what: str
    of: int
    """PARTITION, ROW, or 0 for both."""
    field: int = -1
    stored: Stored | None = None


@dataclass(frozen=True)
class Counts:
    """What the tasks of a reading add to: clustering rows, and partitions that had to be read a second time because the
    server may have made their row up."""

    rows: Accumulator[int]
    twice: Accumulator[int]


@dataclass(frozen=True)
class ReadPlan:
    query: BaseQuery
    parts: tuple[Part, ...]
    clustering: int
    statics: tuple[int, ...]
    cells: tuple[Cell, ...]
    elements: tuple[Elements, ...]

    @property
    def ddl(self) -> str:
        return ", ".join(["kind int", *(f"{quoted(part.name)} {part.kind}" for part in self.parts)])


def reading_tasks(session: SparkSession, settings: Settings) -> int:
    """How many tasks read the source at once."""
    return settings.source_tasks or 2 * session.sparkContext.defaultParallelism


def new_counts(session: SparkSession) -> Counts:
    context = session.sparkContext
    return Counts(context.accumulator(0), context.accumulator(0))


def read_plan(
    layout: Layout,
    description: TableDescription,
    skipped: Sequence[str] = (),
    ending: bool = False,
    to_land: bool = False,
) -> ReadPlan:
    """What to read: the columns that both the landed table and the source have, with the same type. With ``ending``
    also when cells will end that have a TTL. ``to_land``: also columns that nobody is shown, and those that are shown
    with an earlier type: what is read of them is stored where records of the source's type are."""
    sourced = {column.name: column.type for column in description.columns if not column.is_key}
    landed = {column.name: column for column in layout.definition.columns if column.kind in ("static", "regular")}
    known = {column.name: column for column, _ in layout.recorded} | landed if to_land else landed
    common = [name for name in known if name in sourced and name not in skipped]
    if not to_land:
        common = [name for name in common if sourced[name] == landed[name].type]
    keys = (*description.partition_key, *description.clustering_key)
    if [key.type for key in layout.keys] != [column.type for column in keys]:
        raise LandingError(
            f"{layout.definition.name}: the primary key differs from the source's; was the table re-created?"
        )
    cells, elements = _as_sourced(layout, {name: sourced[name] for name in common})
    read = {cell.column for cell, _ in cells} | {part.column for part in elements}
    common = [name for name in common if name in read]
    query = base_query(description, common, ending)
    place = {name: at for at, name in enumerate(query.columns)}
    times = {name: len(query.columns) + at for at, name in enumerate(query.timed)}
    parts: list[Part] = []
    for at, key in enumerate(layout.keys):
        of = ROW if key.clustering else 0
        parts.append(Part(key.value, stored_type(key.type), at, key.type, "value", of))
        if key.identity_kind in ("order", "tie"):
            parts.append(Part(key.identity, "binary", at, key.type, key.identity_kind, of))
    for cell, field in cells:
        of, at, type_ = PARTITION if cell.static else ROW, place[cell.column], sourced[cell.column]
        parts.append(Part(cell.stored.value, stored_type(cell.stored.type), at, type_, "value", of, field))
        if cell.stored.tie:
            parts.append(Part(cell.stored.tie, "binary", at, type_, "tie", of, field))
        if cell.column in times:
            parts.append(Part(cell.stored.time, "bigint", times[cell.column], type_, "time", of))
            if ending:
                left = times[cell.column] + len(query.timed)
                parts.append(Part(end_name(cell.stored), "bigint", left, type_, "end", of))
    for part in elements:
        of = PARTITION if part.static else ROW
        kind = f"array<{part.stored.element_type(timed=False)}>"
        parts.append(
            Part(part.stored.elements, kind, place[part.column], part.type, "elements", of, stored=part.stored)
        )
    statics = tuple(place[name] for name in common if known[name].kind == "static")
    return ReadPlan(query, tuple(parts), len(layout.clustering), statics, tuple(cell for cell, _ in cells), elements)


def _as_sourced(layout: Layout, sourced: Mapping[str, CqlType]) -> tuple[list[tuple[Cell, int]], tuple[Elements, ...]]:
    """The cells and collections of these columns where values of these types are stored; of a user type's field with
    its place among the fields, which keep theirs when they are renamed."""
    cells: list[tuple[Cell, int]] = []
    seen: Counter[str] = Counter()
    for cell in layout.cells:
        if (type_ := sourced.get(cell.column)) is None:
            continue
        field = -1
        if cell.field is not None:
            field, fields = seen[cell.column], type_.fields if isinstance(type_, UserType) else ()
            seen[cell.column] += 1
            if field >= len(fields):
                continue
            type_ = fields[field][1]
        cells += [(replace(cell, stored=stored), field) for stored in _stored_as(cell, type_)]
    elements: list[Elements] = []
    for part in layout.elements:
        for stored in _stored_as(part, sourced[part.column]) if part.column in sourced else ():
            assert isinstance(stored.type, ListType | SetType | MapType)
            elements.append(replace(part, type=stored.type, stored=stored))
    return cells, tuple(elements)


def _stored_as(part: Cell | Elements, type_: CqlType) -> list[Stored]:
    return [stored for stored in (part.stored, *part.older) if stored.type == type_][:1]


def end_name(stored: Stored) -> str:
    """The reader's column of the second in which a cell ends."""
    return f"end_{stored.physical}"


def read_source(
    session: SparkSession,
    access: SourceAccess,
    plan: ReadPlan,
    ranges: Sequence[TokenRange],
    tasks: int,
    counts: Counts,
) -> DataFrame:
    """The whole table. Each evaluation of the frame reads it again, and adds what it reads to ``counts``."""
    runs = dealt(ranges, tasks)
    reader = _Reader(access.for_tasks(), plan, to_arrow_schema(_schema(plan)), runs, counts=counts)
    return session.range(0, len(runs), 1, len(runs)).mapInArrow(reader.by_range, _schema(plan))


def read_partitions(frame: DataFrame, access: SourceAccess, layout: Layout, plan: ReadPlan) -> DataFrame:
    """The partitions whose key values are the rows of ``frame``."""
    keys = tuple(key.type for key in layout.partition)
    reader = _Reader(access.for_tasks(), plan, to_arrow_schema(_schema(plan)), keys=keys)
    wanted = frame.select(*(quoted(key.value) for key in layout.partition))
    return wanted.mapInArrow(reader.by_key, _schema(plan))


def source_keys(layout: Layout) -> list[str]:
    """The key columns of the reader's frame, with the identities that SQL makes."""
    columns: list[str] = []
    for key in layout.keys:
        columns.append(quoted(key.value))
        if key.identity_kind == "text":
            columns.append(f"CAST({quoted(key.value)} AS string) AS {quoted(key.identity)}")
        elif key.identity != key.value:
            columns.append(quoted(key.identity))
    return columns


def _schema(plan: ReadPlan) -> StructType:
    return StructType.fromDDL(plan.ddl)


@dataclass(frozen=True)
class _Reader:
    """Runs on executors: one connection per task."""

    access: SourceAccess
    plan: ReadPlan
    schema: pa.Schema
    runs: Sequence[Sequence[TokenRange]] = ()
    keys: tuple[CqlType, ...] = ()
    counts: Counts | None = None

    def by_range(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        if not numbers:
            return
        pages = _Pages(self.plan, self.schema)
        looks = SecondLooks()
        with self.access.connected() as connection:
            for span in (span for number in numbers for span in self.runs[number]):
                for page in scan(connection, self.plan.query, span, looks):
                    batch, rows = pages.batch(page.rows)
                    if self.counts is not None:
                        self.counts.rows.add(rows)
                    yield batch
        if self.counts is not None:
            self.counts.twice.add(looks.partitions)

    def by_key(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoders = [tie_bytes(type_) for type_ in self.keys]
        pages = _Pages(self.plan, self.schema)
        rows = [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns))]
        if not rows:
            return
        keys = [[encode(value) or b"" for encode, value in zip(encoders, row)] for row in rows]
        with self.access.connected() as connection:
            for page in read_keys(connection, self.plan.query.by_key(), keys, self.plan.query.description):
                yield pages.batch(page.rows)[0]


class _Pages:
    """Pages of raw rows as record batches. Remembers the partition whose statics it has passed on."""

    def __init__(self, plan: ReadPlan, schema: pa.Schema) -> None:
        self._plan = plan
        self._schema = schema
        self._columns = [_column(part) for part in plan.parts]
        self._partition: Row | None = None

    def batch(self, rows: Sequence[Row]) -> tuple[pa.RecordBatch, int]:
        """The batch, and how many clustering rows it has."""
        records = list(self._records(rows))
        columns: list[list[Any]] = [[kind for kind, _ in records]]
        columns += [column(records) for column in self._columns]
        arrays = [pa.array(values, type=field.type) for values, field in zip(columns, self._schema)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema), columns[0].count(ROW)

    def _records(self, rows: Sequence[Row]) -> Iterator[Record]:
        plan = self._plan
        width = len(plan.query.partition_key)
        for row in rows:
            if plan.statics and row[:width] != self._partition:
                self._partition = row[:width]
                if any(row[at] is not None for at in plan.statics):
                    yield PARTITION, row
            # A partition without rows shows its statics with a clustering key of nulls.
            if not plan.clustering or row[width] is not None:
                yield ROW, row


def _column(part: Part) -> Column:
    """The values of one column for many rows; null where the record is about something else."""
    convert = _cell(part)
    at, of = part.at, part.of
    return lambda records: [None if of and kind != of else convert(row[at]) for kind, row in records]


def _cell(part: Part) -> Callable[[bytes | None], Any]:
    if part.what == "time":
        return lambda raw: None if raw is None else int.from_bytes(raw, "big", signed=True)
    if part.what == "end":
        return lambda raw: None if raw is None else int(time.time()) + int.from_bytes(raw, "big", signed=True)
    if part.what == "elements":
        assert part.stored is not None
        return _elements(part.stored)
    type_ = part.type
    if part.field >= 0:
        assert isinstance(type_, UserType)
        inner = _made(part.what, type_.fields[part.field][1])
        count, spelled, at = len(type_.fields), type_.cql(), part.field
        return lambda raw: inner(split_fields(raw, count, spelled)[at]) if raw else None
    return _made(part.what, type_)


def _made(what: str, type_: CqlType) -> Callable[[bytes | None], Any]:
    value = stored_value(type_)
    if what == "value":
        return value
    make = tie_bytes(type_) if what == "tie" else order_bytes(type_)
    return lambda raw: make(value(raw))


def _elements(stored: Stored) -> Callable[[bytes | None], Any]:
    """The elements of a collection; those of a list have no keys here."""
    assert stored.role == "elements"
    made = element_rows(stored)
    value = stored_value(stored.type)
    if isinstance(stored.type, MapType):
        return lambda raw: made(value(raw)) if raw else None
    if stored.element_value is None:
        return lambda raw: made([(item, True) for item in value(raw)]) if raw else None
    return lambda raw: made([(None, item) for item in value(raw)]) if raw else None
