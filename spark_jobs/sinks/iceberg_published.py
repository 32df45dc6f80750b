"""The tables that others read: business columns and nothing else, in Apache Iceberg's format.

In: a session and the warehouse's folder. Out: a ``Publisher``. ``ks/t`` is the table ``ks.t`` of the catalog that the
sink writes to, so whoever knows that catalog finds it. Changes are merged on read: small files of rows and of deleted
positions, which are made large ones now and then.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, ByteType, DataType, IntegerType, MapType, ShortType, StructField, StructType

from connector.errors import LandingError
from spark_jobs.java_objects import java_class
from spark_jobs.model import quoted
from spark_jobs.named_frames import named
from spark_jobs.sinks.columns import new_columns
from spark_jobs.sinks.iceberg import OWN, IcebergSink, MovedError
from spark_jobs.sinks.sink import (
    NOT_OURS,
    NOTE,
    SEEN,
    LostRaceError,
    TableFormat,
    merge_text,
    note_text,
    noted_in,
    with_seen,
)

_SNAPSHOT_PROPERTY = f"spark.sql.iceberg.snapshot-property.{NOTE}"
_FORMAT_VERSION, _LEAST_VERSION = "format-version", 2
"""Asked for as a property is, which it never becomes."""
_PROPERTIES = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "true",
    # Each tells of all snapshots, those of a week: one has 12 MB where one a minute is made.
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "20",
}
_OWN = {f"{NOTE}.published": "true"}
"""Stays where commits with notes have expired, and users have chosen other properties."""
_FORMER = _PROPERTIES | {"write.metadata.previous-versions-max": "100"}
"""What earlier versions gave instead of an own one."""
_RESERVED = frozenset(
    ("_deleted", "_file", "_last_updated_sequence_number", "_partition", "_pos", "_row_id", "_spec_id")
)
"""Its columns of metadata: of a table with others of these names it reads neither."""
_COMMITS_LOOKED_AT = 200
_MAIN, _BRANCH = "main", "scylla_cdc_"
_TURN = "turn"
_SAME_ROWS = "replace"
"""What Iceberg calls the commits that compact."""
_TIDIED_EVERY = 64
"""Publications leave a few small files each."""
_MARGIN_MS = 60_000
"""Between a snapshot that is to stay and those that may go."""


class IcebergPublisher:
    """See ``Publisher``. Settings of a commit are those of a session that nobody else has."""

    def __init__(self, session: SparkSession, warehouse: str) -> None:
        jsession: Any = session._jsparkSession
        self.session = SparkSession(session.sparkContext, jsession.cloneSession())
        self.retention_ms: int | None = None
        self._sink = IcebergSink(self.session, warehouse)
        self._since: dict[str, int] = {}
        self._gone_on_from: dict[str, int | None] = {}
        self._seen: dict[str, int] = {}

    def relation(self, table: str) -> str:
        return self._sink.relation(table)

    def schema(self, table: str) -> StructType | None:
        return self.session.table(self.relation(table)).schema if self._sink.exists(table) else None

    def stored(self, schema: StructType) -> StructType:
        """Iceberg has no integers of less than 32 bits."""
        stored = _wide(schema)
        assert isinstance(stored, StructType)
        return stored

    def note(self, table: str) -> Mapping[str, Any] | None:
        found = self._noted(self._sink.loaded(table))
        return None if found is None else found[1]

    def changed_by_others(self, table: str) -> str | None:
        loaded = self._sink.loaded(table)
        newest, known = loaded.currentSnapshot(), None
        if newest is not None:
            self._seen[table] = int(newest.sequenceNumber())
        log = loaded.history()
        places = range(log.size() - 1, max(log.size() - _COMMITS_LOOKED_AT, 0) - 1, -1)
        newest_first = (loaded.snapshot(log.get(at).snapshotId()) for at in places)
        for snapshot, earlier in pairwise(chain(newest_first, [None])):
            if snapshot is None or (known is not None and snapshot.sequenceNumber() <= known):
                # It has expired, or was there as others' commits were looked at before ours was made.
                return None
            if earlier is not None and earlier.sequenceNumber() > snapshot.sequenceNumber():
                return f"go back to its snapshot {snapshot.snapshotId()}"
            noted = _note_of(snapshot)
            if noted is None and snapshot.operation() != _SAME_ROWS:
                return f"{snapshot.operation()} rows in its snapshot {snapshot.snapshotId()}"
            if noted is not None and known is None:
                known = int(noted.get(SEEN, snapshot.sequenceNumber()))
        return None

    def turn(self, table: str) -> int:
        found = self._noted(self._sink.loaded(table)) if self._sink.exists(table) else None
        self._gone_on_from[table] = None if found is None else found[0]
        return _turn_of(found)

    def replace(
        self, table: str, frame: DataFrame, note: Mapping[str, Any], indexed: int, rows_per_file: int, turn: int
    ) -> None:
        wanted = self.stored(frame.schema)
        rows = frame.to(wanted)
        there = self.schema(table)
        self._check_own(table, there)
        if there is None:
            self._sink.in_namespace(table)
            with self._noting(note, turn):
                self._create(table, rows)
            return
        if self._has_become(table, there, wanted, turn):
            self._overwrite(table, rows, note, turn)
            return

        def made_anew() -> None:
            loaded = self._sink.loaded(table)
            self._check(table, loaded, turn)
            self._with_properties(rows.writeTo(self.relation(table)), loaded).createOrReplace()

        with self._noting(note, turn):
            self._sink.changed(table, made_anew)
        self._gone_on_from[table] = self._newest(table)

    def _has_become(self, table: str, there: StructType, wanted: StructType, turn: int) -> bool:
        """Whether it has the wanted columns, perhaps by now. A table that is replaced by another one ends the streams
        of its readers, and forgets of which snapshot the next one was made: only where a column gets another type, or
        files are laid out by one that goes, it has to be. One that nothing was written to has neither."""
        stay = StructType([field for field in there if field.name in wanted.names])
        gone = [name for name in there.names if name not in wanted.names]
        new, loaded = new_columns(stay, wanted), self._sink.loaded(table)
        if new is None or loaded.currentSnapshot() is None:
            return False
        if gone and (loaded.spec().isPartitioned() or loaded.sortOrder().isSorted()):
            return False

        def without() -> None:
            self._check(table, self._sink.loaded(table), turn)
            self.session.sql(f"ALTER TABLE {self.relation(table)} DROP COLUMNS ({', '.join(map(quoted, gone))})")

        if gone:
            self._sink.changed(table, without)
        # Rows that are there have none of what is new.
        if new.fields:
            self.widen(table, new)
        return True

    def is_own(self, table: str) -> bool:
        return self._sink.exists(table) and not self._sink.is_taken(table) and self._is_made_here(table)

    def _is_made_here(self, table: str) -> bool:
        loaded = self._sink.loaded(table)
        if loaded.currentSnapshot() is None:
            return False
        if self._noted(loaded) is not None:
            return True
        # The commits with our notes may have expired; its properties stay.
        there = loaded.properties()
        return any(all(there.get(name) == value for name, value in each.items()) for each in (_OWN, _FORMER))

    def _check_own(self, table: str, there: StructType | None) -> None:
        """Refuses to make a table anew that somebody else has made, or to take a name that is landing's own."""
        taken = self._sink.is_taken(table)
        if there is not None and not taken and not self._is_made_here(table):
            taken = bool(self.session.table(self.relation(table)).limit(1).count())
        if taken:
            raise LandingError(NOT_OURS.format(place=self.relation(table)))

    def widen(self, table: str, columns: StructType) -> None:
        types = java_class(self.session, "org.apache.spark.sql.types.DataType")
        schemas = java_class(self.session, "org.apache.iceberg.spark.SparkSchemaUtil")
        added = schemas.convert(types.fromJson(self.stored(columns).json()).asNullable())
        self._sink.changed(table, lambda: self._sink.loaded(table).updateSchema().unionByNameWith(added).commit())

    def merge(
        self,
        table: str,
        frame: DataFrame,
        on: str,
        columns: Sequence[str],
        gone: str,
        note: Mapping[str, Any],
        turn: int,
    ) -> None:
        with named(frame, "published") as source:
            self._in_turn(
                table,
                with_seen(note, self._seen.get(table)),
                turn,
                lambda branch: self.session.sql(merge_text(branch, source, on, columns, gone)),
            )

    def overwrite(self, table: str, frame: DataFrame, note: Mapping[str, Any], turn: int) -> None:
        rows = frame.to(self.stored(frame.schema))
        self._overwrite(table, rows, with_seen(note, self._seen.get(table)), turn)

    def _overwrite(self, table: str, rows: DataFrame, note: Mapping[str, Any], turn: int) -> None:
        """With the columns where the table has them."""
        ordered = rows.select(*map(quoted, (self.schema(table) or rows.schema).names))
        self._in_turn(table, note, turn, lambda branch: ordered.writeTo(branch).overwrite(F.lit(True)))

    def stay(self, table: str, note: Mapping[str, Any], turn: int) -> None:
        there = self.schema(table)
        assert there is not None
        nothing = self.session.createDataFrame([], there)
        self._in_turn(
            table, with_seen(note, self._seen.get(table)), turn, lambda branch: nothing.writeTo(branch).append()
        )

    def enroll(self, table: str, name: str) -> None:
        """It is in the catalog that the sink writes to."""

    def tidy(self, table: str) -> None:
        self._sink.changed(table, lambda: self._own(self._sink.loaded(table)))
        self._since[table] = self._since.get(table, 0) + 1
        if self._since[table] >= _TIDIED_EVERY:
            self._since[table] = 0
            self._sink.compact_whole(table)

    def _own(self, loaded: Any) -> None:
        if missing := [name for name in _OWN if loaded.properties().get(name) is None]:
            update = loaded.updateProperties()
            for name in missing:
                update.set(name, _OWN[name])
            update.commit()

    def compact(self, table: str) -> None:
        self._sink.compact_whole(table)

    def vacuum(self, table: str, older_than_ms: int) -> None:
        loaded = self._sink.loaded(table)
        if (found := self._noted(loaded)) is not None:
            # What was compacted has no note: without the last one the table would be published anew as a whole.
            age_ms = int(time.time() * 1000) - loaded.snapshot(found[0]).timestampMillis()
            older_than_ms = max(older_than_ms, age_ms + _MARGIN_MS)
        self._sink.vacuum(table, older_than_ms)

    def _in_turn(self, table: str, note: Mapping[str, Any], turn: int, write: Callable[[str], Any]) -> None:
        """Writes to a branch of its own, given by its name in SQL, and makes that the table if that is as it was.

        It is the catalog that compares, in the commit: whoever is paused anywhere before that changes nothing.
        """

        def attempt() -> None:
            loaded = self._sink.loaded(table)
            self._check(table, loaded, turn)
            before = loaded.currentSnapshot().snapshotId()
            branch = f"{_BRANCH}{uuid.uuid4().hex}"
            loaded.manageSnapshots().createBranch(branch, before).commit()
            write(f"{self.relation(table)}.{quoted(f'branch_{branch}')}")
            self._gone_on_from[table] = self._forward(table, branch, before)

        with self._noting(note, turn):
            self._sink.changed(table, attempt)

    def _forward(self, table: str, branch: str, before: int) -> int:
        """Makes a branch the table, in a commit that is refused if the table is not what the branch was made of. Other
        branches were made of what was then: none of them can follow any more."""
        metadata = java_class(self.session, "org.apache.iceberg.TableMetadata")
        operations = self._sink.loaded(table).operations()
        base = operations.current()
        made = base.ref(branch)
        if base.currentSnapshot().snapshotId() != before or made is None:
            raise MovedError(f"{table} was changed meanwhile")
        newest = made.snapshotId()
        changed = metadata.buildFrom(base).setBranchSnapshot(newest, _MAIN)
        for name in list(base.refs().keySet().toArray()):
            if name.startswith(_BRANCH):
                changed = changed.removeRef(name)
        operations.commit(base, changed.build())
        return int(newest)

    def _create(self, table: str, rows: DataFrame) -> None:
        try:
            self._with_properties(rows.writeTo(self.relation(table))).create()
        except AnalysisException as error:
            if error.getCondition() != "TABLE_OR_VIEW_ALREADY_EXISTS":
                raise
            raise LostRaceError(f"{table} was published by another job meanwhile") from error
        self._gone_on_from[table] = self._newest(table)

    def _with_properties(self, writer: DataFrameWriterV2, there: Any = None) -> DataFrameWriterV2:
        """``there``: a table that becomes another one, of which its users may have chosen some, and a later format."""
        chosen, version = {}, _LEAST_VERSION
        if there is not None:
            chosen = there.properties()
            version = max(version, there.operations().current().formatVersion())
        writer = writer.using("iceberg").tableProperty(_FORMAT_VERSION, str(version))
        for name, value in (_PROPERTIES | _OWN).items():
            writer = writer.tableProperty(name, chosen.get(name) or value)
        return writer

    def _newest(self, table: str) -> int | None:
        found = self._noted(self._sink.loaded(table))
        return None if found is None else found[0]

    def _check(self, table: str, loaded: Any, turn: int) -> None:
        """That the table is what the caller goes on from: a number alone could be another job's as well."""
        found = self._noted(loaded)
        own = table not in self._gone_on_from or self._gone_on_from[table] == (None if found is None else found[0])
        if not own or _turn_of(found) >= turn:
            raise LostRaceError(f"{table} was published by another job meanwhile")

    def _noted(self, loaded: Any) -> tuple[int, Mapping[str, Any]] | None:
        """The last commit with a note: its snapshot, and what it says. Of branches that nobody made the table nothing
        counts."""
        snapshot = loaded.currentSnapshot()
        for _ in range(_COMMITS_LOOKED_AT):
            if snapshot is None:
                return None
            if (noted := _note_of(snapshot)) is not None:
                return int(snapshot.snapshotId()), noted
            parent = snapshot.parentId()
            snapshot = None if parent is None else loaded.snapshot(parent)
        return None

    @contextmanager
    def _noting(self, note: Mapping[str, Any], turn: int) -> Iterator[None]:
        self.session.conf.set(_SNAPSHOT_PROPERTY, note_text({**note, _TURN: turn}))
        try:
            yield
        finally:
            self.session.conf.unset(_SNAPSHOT_PROPERTY)


def _note_of(snapshot: Any) -> Mapping[str, Any] | None:
    text = snapshot.summary().get(NOTE)
    return None if text is None else noted_in(text)


def _turn_of(found: tuple[int, Mapping[str, Any]] | None) -> int:
    turn = None if found is None else found[1].get(_TURN)
    return turn if isinstance(turn, int) else 0


def _wide(kind: DataType) -> DataType:
    if isinstance(kind, ByteType | ShortType):
        return IntegerType()
    if isinstance(kind, ArrayType):
        return ArrayType(_wide(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_wide(kind.keyType), _wide(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType([StructField(each.name, _wide(each.dataType), each.nullable) for each in kind])
    return kind


FORMAT = TableFormat(
    name="iceberg",
    jar_sets=("spark", "iceberg"),
    settings={},
    needs_class="org.apache.iceberg.spark.SparkCatalog",
    coordinate="org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    open=IcebergSink,
    publisher=IcebergPublisher,
    beside=OWN,
    reserved=_RESERVED,
)
