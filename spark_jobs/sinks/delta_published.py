"""The tables that others read: business columns and nothing else, in Delta Lake's format.

In: a session and the warehouse's folder. Out: a ``Publisher``. They have a change data feed. What some readers lack is
used where it is needed: column mapping for odd names of columns, deletion vectors for tables so large that a change
should not write all rows of its file again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from connector.errors import LandingError
from spark_jobs.java_objects import resolved
from spark_jobs.model import literal, quoted
from spark_jobs.named_frames import named
from spark_jobs.sinks.delta_files import (
    Commit,
    data_files,
    extent,
    give_properties,
    is_conflict,
    is_table,
    last_transaction,
    newest_commits,
    newest_version,
    properties_of,
)
from spark_jobs.sinks.sink import (
    NOT_OURS,
    NOTE,
    SEEN,
    LostRaceError,
    merge_text,
    note_text,
    noted_in,
    retried,
    with_seen,
)

_NAMES_TO_MAP = set(" ,;{}()\n\t=")
"""Characters that Delta takes in a column's name only with column mapping."""
_FEEDS = frozenset(("_change_type", "_commit_timestamp", "_commit_version"))
RESERVED = frozenset(
    ("_condition_", "_file_name_", "_row_dropped_", "_row_id_", "_source_row_present_", "_target_row_present_")
)
"""Delta's own columns while it merges: of others of these names it says that they are ambiguous."""
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_COMMITS_LOOKED_AT = 200
_LEAST_BYTES, _MOST_BYTES = 256 << 10, 128 << 20
_PARTS = 250
"""About so many files a large table has after it was compacted."""
_SMALL_FILES = 32
"""So many files of less than half of that size are made larger ones."""
_VECTORS_FROM = 1 << 20
_FEED, _MAPPING = "delta.enableChangeDataFeed", "delta.columnMapping.mode"
_INDEXED = "delta.dataSkippingNumIndexedCols"
_VECTORS = "delta.enableDeletionVectors"
_WITHOUT_VECTORS = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2")
"""Of a table that its users let Iceberg's readers read, Delta refuses them."""
_DAY_MS = 86_400_000
_VERSIONS = {"delta.deletedFileRetentionDuration": 7 * _DAY_MS, "delta.logRetentionDuration": 30 * _DAY_MS}
"""How long Delta lets versions be read, and what it takes unless it is told: whoever vacuums keeps them no longer. Of a
log that is kept longer than they are nobody has anything, and each look at the table lists all of it."""
_OURS = " seconds"
"""How no person spells a time."""
_CLUSTERED = "DELTA_CLUSTERING_WITH_ZORDER_BY"
_MOST_DELETED, _DELETED_SORTED = 0.3, 0.1
"""Of a file's rows until it is written anew, and of the table's until ``compact`` sorts it again."""


@dataclass(frozen=True)
class _Files:
    """Those of a table: what ``size`` they should have, how many are small; rows, also deleted."""

    size: int
    small: int
    deleted: int
    rows: int


class DeltaPublisher:
    """See ``Publisher``. Settings of a commit are those of a session that nobody else has."""

    def __init__(self, session: SparkSession, warehouse: str) -> None:
        jsession: Any = session._jsparkSession
        self.session = SparkSession(session.sparkContext, jsession.cloneSession())
        self.warehouse = warehouse
        self.retention_ms: int | None = None
        self._seen: dict[str, int] = {}
        # What is merged is made once, by who asks for it: of tables that are being written.
        self.session.conf.set("spark.databricks.delta.merge.materializeSource", "none")
        # Two commits each, four times a day: of a silent table they would push the one with the note out of the log.
        self.session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")

    def path(self, table: str) -> str:
        return f"{self.warehouse}/{table}"

    def relation(self, table: str) -> str:
        return quoted("delta", self.path(table))

    def schema(self, table: str) -> StructType | None:
        if not is_table(self.session, self.path(table)):
            return None
        return self.session.table(self.relation(table)).schema

    def stored(self, schema: StructType) -> StructType:
        return schema

    def note(self, table: str) -> Mapping[str, Any] | None:
        commits = newest_commits(self.session, self.path(table), _COMMITS_LOOKED_AT)
        return next((noted for commit in commits if (noted := _noted(commit)) is not None), None)

    def changed_by_others(self, table: str) -> str | None:
        self._seen[table] = newest_version(self.session, self.path(table))
        known: int | None = None
        for commit in newest_commits(self.session, self.path(table), _COMMITS_LOOKED_AT):
            if known is not None and commit.version <= known:
                break
            noted = _noted(commit)
            if noted is None and commit.changes_rows():
                return f"{commit.operation()} in its version {commit.version}"
            if noted is not None and known is None:
                known = int(noted.get(SEEN, commit.version))
        return None

    def turn(self, table: str) -> int:
        if self.schema(table) is None:
            return 0
        return last_transaction(self.session, self.path(table), NOTE) or 0

    def replace(
        self, table: str, frame: DataFrame, note: Mapping[str, Any], indexed: int, rows_per_file: int, turn: int
    ) -> None:
        properties = {
            **_properties(_names(frame.schema)),
            # Of other columns the bounds are never asked for, and dates beyond the year 9999 some readers cannot parse.
            _INDEXED: str(indexed),
        }
        self._check_own(table)
        is_there = self.schema(table) is not None
        if not is_there:
            # What the session gives new tables is its users' choice as well.
            names = {name: name.replace("delta.", _DEFAULTS, 1) for name in _VERSIONS}
            given = {name: self.session.conf.get(default, None) for name, default in names.items()}
            properties |= _keeping({name: text for name, text in given.items() if text}, self.retention_ms)
        defaults = {name.replace("delta.", _DEFAULTS, 1): value for name, value in properties.items()}
        if is_there:
            there = properties_of(self.session, self.path(table))
            if {**there, **properties}.get(_MAPPING, "none") != "none":
                # Delta refuses to take columns away, or to make them others, where names are mapped and there is a
                # feed. `tidy` comes after every replacement, also of a process that ends here, and begins it anew.
                properties[_FEED] = "false"
            give_properties(self.session, self.path(table), properties)
        for name, value in defaults.items():
            self.session.conf.set(name, value)
        try:
            sorted_ = frame.sortWithinPartitions(*map(quoted, frame.columns[:indexed])) if indexed else frame
            writer = sorted_.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            writer = writer.option("userMetadata", note_text(note)).option("maxRecordsPerFile", str(rows_per_file))
            writer.option("txnAppId", NOTE).option("txnVersion", str(turn)).save(self.path(table))
        finally:
            for name in defaults:
                self.session.conf.unset(name)
        self._check_noted(table, note)

    def is_own(self, table: str) -> bool:
        return bool(self.turn(table)) or (self.schema(table) is not None and self.note(table) is not None)

    def _check_own(self, table: str) -> None:
        """Refuses to make a table anew that somebody else has made."""
        if self.schema(table) is None or self.is_own(table):
            return
        if self.session.table(self.relation(table)).limit(1).count():
            raise LandingError(NOT_OURS.format(place=self.path(table)))

    def widen(self, table: str, columns: StructType) -> None:
        names = _names(columns) + (self.schema(table) or columns).names
        give_properties(self.session, self.path(table), _properties(names))
        added = self.session.createDataFrame([], columns).write.format("delta").mode("append")
        added.option("mergeSchema", "true").save(self.path(table))

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
        note = with_seen(note, self._seen.get(table))
        settings = {
            "spark.databricks.delta.commitInfo.userMetadata": note_text(note),
            "spark.databricks.delta.write.txnAppId": NOTE,
            "spark.databricks.delta.write.txnVersion": str(turn),
        }
        for name, value in settings.items():
            self.session.conf.set(name, value)
        try:
            with named(frame, "published") as source:
                text = merge_text(self.relation(table), source, on, columns, gone)
                merged = retried(lambda: self.session.sql(text), is_conflict)
        finally:
            for name in settings:
                self.session.conf.unset(name)
        if not merged.take(1):
            # It tells no numbers of rows, so it did nothing.
            raise LostRaceError(f"{table} was published by another job meanwhile")

    def overwrite(self, table: str, frame: DataFrame, note: Mapping[str, Any], turn: int) -> None:
        # Without a condition Delta takes it for a replacement, and the clustering away that its users have chosen.
        self._write(table, frame, "overwrite", note, turn, replaceWhere="true")

    def stay(self, table: str, note: Mapping[str, Any], turn: int) -> None:
        there = self.schema(table)
        assert there is not None
        self._write(table, self.session.createDataFrame([], there), "append", note, turn)

    def _write(self, table: str, frame: DataFrame, mode: str, note: Mapping[str, Any], turn: int, **more: str) -> None:
        note = with_seen(note, self._seen.get(table))
        writer = frame.write.format("delta").mode(mode).options(**more)
        writer = writer.option("userMetadata", note_text(note)).option("txnAppId", NOTE)
        writer = writer.option("txnVersion", str(turn))
        retried(lambda: writer.save(self.path(table)), is_conflict)
        self._check_noted(table, note)

    def _check_noted(self, table: str, note: Mapping[str, Any]) -> None:
        """Delta leaves out, without a word, what has the number of a commit that is there."""
        if self.note(table) != json.loads(json.dumps(note)):
            raise LostRaceError(f"{table} was published by another job meanwhile")

    def enroll(self, table: str, name: str) -> None:
        schema = name.rpartition(".")[0]
        self.session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        place = literal(self.path(table))
        self.session.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {place}")
        found = self.session.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
        if resolved(self.session, found) != resolved(self.session, self.path(table)):
            # As of another warehouse, or of this one before it was moved: who asks for the name would read that.
            raise LandingError(
                f"the table {name} of the catalog has its files in {found}, not in {self.path(table)}: drop it there "
                "if nobody needs it, or name another publish.catalog"
            )

    def tidy(self, table: str) -> None:
        number, size = extent(self.session, self.path(table))
        there = properties_of(self.session, self.path(table))
        wanted: dict[str, str] = {}
        mapped = there.get(_MAPPING, "none") != "none"
        if mapped:
            # What a replacement took away. Of other tables only their users take it.
            schema = self.schema(table)
            assert schema is not None
            wanted[_FEED] = _properties(_names(schema))[_FEED]
        wanted.update(_keeping(there, self.retention_ms))
        # Without them Delta says of mapped names by a number alone that readers must know them. Some look for a list:
        # delta-rs shows nulls then, where it refuses, and DuckDB refuses, where it reads.
        refused = any(there.get(name, "").lower() == "true" for name in _WITHOUT_VECTORS)
        if (mapped or size >= _VECTORS_FROM) and _VECTORS not in there and not refused:
            wanted[_VECTORS] = "true"
        if wanted:
            give_properties(self.session, self.path(table), wanted)
        if number > _SMALL_FILES and (files := self._files(table)).small > _SMALL_FILES:
            self._optimize(table, files, "")

    def compact(self, table: str) -> None:
        files = self._files(table)
        indexed = int(properties_of(self.session, self.path(table)).get(_INDEXED, "0"))
        if indexed and files.deleted > _DELETED_SORTED * files.rows:
            first = quoted(self.session.table(self.relation(table)).columns[0])
            try:
                self._optimize(table, files, f" ZORDER BY ({first})")
                return
            except Exception as error:
                if _CLUSTERED not in str(error):
                    raise
                # Its users have it clustered by columns of their choice, which is an order as well.
        self._optimize(table, files, "")

    def _optimize(self, table: str, files: _Files, order: str) -> None:
        """Files stay small enough that readers of few keys skip most of a large table."""
        optimize = "spark.databricks.delta.optimize"
        settings = {"minFileSize": files.size // 2, "maxFileSize": files.size, "maxDeletedRowsRatio": _MOST_DELETED}
        for name, value in settings.items():
            self.session.conf.set(f"{optimize}.{name}", str(value))
        retried(lambda: self.session.sql(f"OPTIMIZE {self.relation(table)}{order}"), is_conflict)

    def _files(self, table: str) -> _Files:
        found = data_files(self.session, self.path(table)).selectExpr(
            "size", "deletionVector.cardinality AS deleted", "int(get_json_object(stats, '$.numRecords')) AS rows"
        )
        each = found.collect()
        total = sum(row["size"] for row in each)
        size = min(max(total // _PARTS, _LEAST_BYTES), _MOST_BYTES)
        return _Files(
            size=size,
            small=sum(row["size"] < size // 2 for row in each),
            deleted=sum(row["deleted"] or 0 for row in each),
            rows=sum(row["rows"] or 0 for row in each),
        )

    def vacuum(self, table: str, older_than_ms: int) -> None:
        there = properties_of(self.session, self.path(table))
        give_properties(self.session, self.path(table), _keeping(there, self.retention_ms))
        self.session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self.session.sql(f"VACUUM {self.relation(table)} RETAIN {older_than_ms / 3_600_000} HOURS")


def _noted(commit: Commit) -> Mapping[str, Any] | None:
    said = commit.said()
    return None if said is None else noted_in(said)


def _keeping(there: Mapping[str, str], retention_ms: int | None) -> dict[str, str]:
    """What lets versions be read for so long: more than Delta's own times, or what was more and is no longer."""
    if retention_ms is None:
        return {}
    wanted_ms = max(retention_ms, min(_VERSIONS.values()))
    # What its users have chosen is theirs, and Delta wants the log to be kept for as long as deleted files.
    chosen = any(not there.get(name, _OURS).endswith(_OURS) for name in _VERSIONS)
    found = {
        name: f"interval {wanted_ms // 1000}{_OURS}"
        for name, usual_ms in _VERSIONS.items()
        if wanted_ms > usual_ms or there.get(name, "").endswith(_OURS) or not (chosen or wanted_ms == usual_ms)
    }
    return {name: text for name, text in found.items() if there.get(name) != text}


def _properties(names: Sequence[str]) -> dict[str, str]:
    """What a table with columns and fields of these names must be."""
    found = {_FEED: "true" if feedless(names) is None else "false"}
    if _NAMES_TO_MAP & {char for name in names for char in name}:
        found[_MAPPING] = "name"
    return found


def feedless(names: Iterable[str]) -> str | None:
    """Why a table with columns and fields of these names has no change data feed; None if it has one."""
    for name in sorted(names):
        if "`" in name:
            # Delta's own merge fails to spell it while it writes the feed.
            return f"{name} has a back quote, which Delta's change data feed cannot write"
        if name.lower() in _FEEDS:
            return f"{name} is the name of a column of Delta's change data feed"
    return None


def _names(schema: StructType) -> list[str]:
    """Names of columns, and of all fields inside of them."""
    found: list[str] = []

    def look(part: Any) -> None:
        if isinstance(part, dict):
            if "fields" in part:
                found.extend(field["name"] for field in part["fields"])
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(json.loads(schema.json()))
    return found
