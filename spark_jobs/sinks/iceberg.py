"""Landed tables in Apache Iceberg's format, in a catalog that Spark opens for the warehouse.

In: a session and the warehouse's folder. Out: a ``Sink``. The catalog is ``scylla_cdc``: a Hadoop catalog, so that the
folder is all there is, unless the session's ``spark.sql.catalog.scylla_cdc.*`` names another. Commits are Iceberg's.
A Hadoop catalog commits by renaming a file, which a local file system does not refuse when another process was first:
there, writers of one table wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from connector.errors import LandingError
from spark_jobs.java_objects import file_system, hadoop_path, java_class, resolved
from spark_jobs.model import literal, quoted
from spark_jobs.sinks import version_hint
from spark_jobs.sinks.sink import Result, portion, retried

log = logging.getLogger(__name__)

CATALOG = "scylla_cdc"
OWN = ("changelog", "history", "parcels", "state")
"""What landing keeps for itself of a table ``t`` are tables ``t__state`` and so on beside it."""

_CATALOG_SETTINGS = {
    "": "org.apache.iceberg.spark.SparkCatalog",
    ".type": "hadoop",
    # A cached table would show a reader's session the same snapshot for half a minute.
    ".cache-enabled": "false",
}
_HADOOP = (None, "hadoop")
_PROPERTIES = {
    # Frames come distributed as they are to be written; Iceberg would shuffle and sort them once more.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    # Statistics on the columns that skip files; on hundreds of cells they would cost more than they save.
    "write.metadata.metrics.max-inferred-column-defaults": "6",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # Rows that others add meanwhile are none of a delete's business: they come after it.
    "write.delete.isolation-level": "snapshot",
    "commit.retry.num-retries": "20",
    "commit.retry.min-wait-ms": "50",
}
_LEVELS = 2
"""Of the name of a table that others read; landing's own have one more."""
_KEPT_MS = 3_600_000
"""How old a snapshot becomes without maintenance of the table: a commit each second makes metadata large."""
_EXPIRE_EVERY = 100
_SEVERAL = ", options => map('min-input-files', '2')"
_PARTS_AT_ONCE = 50
"""That are compacted by one call, for which batches wait."""
_LOCK_S, _LOCK_ASKED_S = 600, 0.02
_BYTES_PER_FILE = str(32 << 20)
_ORPHANS_FLOOR_MS = 24 * 3_600_000 + 60_000
"""Iceberg refuses to take a younger file for one that nobody will name."""


class MovedError(Exception):
    """Another writer's commit was first, and nothing was committed."""


class LockedError(LandingError):
    """Another process is writing the table."""


class IcebergSink:
    """See ``Sink``. ``ks/t/state`` is the table ``t__state`` of the namespace ``ks``: two levels fit every catalog."""

    def __init__(self, session: SparkSession, warehouse: str) -> None:
        self.session = session
        self.warehouse = warehouse
        self.catalog = _catalog(session, warehouse)
        self._is_folder = session.conf.get(f"spark.sql.catalog.{self.catalog}.type", None) == "hadoop"
        self._locks = _local_folder(session, f"{warehouse}/_locks")
        self._appends: dict[str, int] = {}
        self._own: set[str] = set()
        self._in_place: set[str] = set()

    def relation(self, table: str) -> str:
        return quoted(self.catalog, *_names(table))

    def exists(self, table: str) -> bool:
        if table not in self._in_place:
            self._mend_hint(table)
        if not self.session.catalog.tableExists(self.relation(table)):
            return False
        if table not in self._in_place:
            self._check_place(table)
            self._in_place.add(table)
        if len(table.split("/")) > _LEVELS and table not in self._own:
            # Somebody's table may have the name of one of ours, and what is ours is rewritten and deleted.
            if not self._is_own(table):
                raise LandingError(
                    f"the table {'.'.join(_names(table))} of the catalog {self.catalog} is not what landing keeps in a "
                    "table of that name: land one of the two into another warehouse"
                )
            self._own.add(table)
        return True

    def _check_place(self, table: str) -> None:
        """A folder that was copied holds tables whose files are the original's: what is written goes there, and what
        upkeep deletes is what the original needs. Other catalogs know where their tables are."""
        if not self._is_folder:
            return
        here, named = self._folder(table), str(self.loaded(table).location())
        if resolved(self.session, here) != resolved(self.session, named):
            raise LandingError(
                f"the table {here} has its files in {named}: the folder was moved or copied, and Iceberg names files "
                "by their whole paths; move it back, or land into a warehouse of its own"
            )

    def _folder(self, table: str) -> str:
        return f"{self.warehouse}/{'/'.join(_names(table))}"

    def _mend_hint(self, table: str) -> None:
        """Who may only read, as a check of what has landed, goes on all the same."""
        if not self._is_folder:
            return
        folder = self._folder(table)
        try:
            if not version_hint.is_right(self.session, folder):
                with self._alone(table, wait_s=0):
                    version_hint.make_right(self.session, folder)
        except LockedError:
            # The commit of whoever writes it does the same.
            return
        except Exception as error:
            told = str(error).partition("\n")[0]
            log.warning("%s: readers without Spark may not find its newest version: %s", folder, told)

    def is_taken(self, table: str) -> bool:
        """Whether the name of a table that others read is one that landing has for itself."""
        base, _, part = table.rpartition("__")
        log = f"{base}/{OWN[0]}"
        return part in OWN and bool(self.session.catalog.tableExists(self.relation(log))) and self._is_own(log)

    def _is_own(self, table: str) -> bool:
        """What landing keeps for itself is partitioned, what others read never is."""
        return bool(self.loaded(table).spec().isPartitioned())

    def prepare(self, table: str, columns: Mapping[str, str], partition_by: str, sorted_by: Sequence[str] = ()) -> None:
        if not self.exists(table):
            described = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
            bounded = {f"write.metadata.metrics.column.{name}": "truncate(16)" for name in sorted_by}
            chosen = {**_PROPERTIES, **bounded}
            properties = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in chosen.items())
            with self._alone(table):
                self._create_namespace(table)
                self.session.sql(
                    f"CREATE TABLE IF NOT EXISTS {self.relation(table)} ({described}) USING iceberg "
                    f"PARTITIONED BY ({quoted(partition_by)}) TBLPROPERTIES ({properties})"
                )
            return
        present = set(self.session.table(self.relation(table)).columns)
        missing = [f"{quoted(name)} {kind}" for name, kind in columns.items() if name not in present]
        if missing:
            self._sql(table, f"ALTER TABLE {self.relation(table)} ADD COLUMNS ({', '.join(missing)})")

    def append(self, table: str, frame: DataFrame) -> None:
        whole = self._whole(table, frame)
        self._retried(table, lambda: whole.writeTo(self.relation(table)).append())
        self._appends[table] = self._appends.get(table, 0) + 1
        if self._appends[table] % _EXPIRE_EVERY == 0:
            self._expire(table, _KEPT_MS)

    def replace_buckets(self, table: str, frame: DataFrame) -> None:
        """The frame may read the table: it is read anew by each attempt, at the snapshot that the commit is held to."""
        whole = self._whole(table, frame)

        def write() -> None:
            writer = whole.writeTo(self.relation(table)).option("target-file-size-bytes", _BYTES_PER_FILE)
            snapshot = self.loaded(table).currentSnapshot()
            if snapshot is not None:
                writer = writer.option("isolation-level", "serializable")
                writer = writer.option("validate-from-snapshot-id", str(snapshot.snapshotId()))
            writer.overwritePartitions()

        self._retried(table, write)

    def delete(self, table: str, condition: str) -> None:
        self._sql(table, f"DELETE FROM {self.relation(table)} WHERE {condition}")

    def compact(self, table: str, after: int | None = None, through: int | None = None) -> int | None:
        part = f"partition.{self._part(table)}"
        files = self.session.sql(f"SELECT {part} AS part, file_size_in_bytes AS size FROM {self.relation(table)}.files")
        parts, more = portion(((row["part"], row["size"]) for row in files.collect()), after, through)
        # On a local file system nobody else writes meanwhile, as batches must: so it is done in short calls.
        for at in range(0, len(parts), _PARTS_AT_ONCE):
            some = parts[at : at + _PARTS_AT_ONCE]
            where = literal(f"{self._part(table)} >= {some[0]} AND {self._part(table)} <= {some[-1]}")
            self._call(table, "rewrite_data_files", f"{_SEVERAL}, where => {where}")
        return parts[-1] if more else None

    def compact_whole(self, table: str) -> None:
        """Of a table that its users may have partitioned."""
        self._call(table, "rewrite_data_files", _SEVERAL)

    def vacuum(self, table: str, older_than_ms: int) -> None:
        self._expire(table, older_than_ms)
        orphaned = _timestamp(max(older_than_ms, _ORPHANS_FLOOR_MS))
        self._call(table, "remove_orphan_files", f", older_than => {orphaned}")

    def sizes(self, table: str) -> Mapping[int, int]:
        part = f"partition.{self._part(table)}"
        files = f"{self.relation(table)}.files"
        rows = self.session.sql(f"SELECT {part} AS part, sum(file_size_in_bytes) AS size FROM {files} GROUP BY 1")
        return {row["part"]: row["size"] for row in rows.collect()}

    def files(self, table: str) -> tuple[int, int]:
        snapshot = self.loaded(table).currentSnapshot()
        if snapshot is None:
            return 0, 0
        said = [snapshot.summary().get(f"total-{name}") for name in ("data-files", "delete-files", "files-size")]
        if None not in said:
            data, deletes, size = map(int, said)
            return data + deletes, size
        # Of a writer that sums nothing up.
        counted = f"SELECT count(*), coalesce(sum(file_size_in_bytes), 0) FROM {self.relation(table)}.files"
        row = self.session.sql(counted).first()
        assert row is not None
        return int(row[0]), int(row[1])

    def _part(self, table: str) -> str:
        """Of tables that have one column to partition by."""
        return quoted(str(self.loaded(table).spec().fields().get(0).name()))

    def _whole(self, table: str, frame: DataFrame) -> DataFrame:
        """The frame with all columns of the table, in its order; Iceberg fills in none."""
        fields = self.session.table(self.relation(table)).schema.fields
        given = set(frame.columns)
        if unknown := given - {field.name for field in fields}:
            raise LandingError(f"{table} has no columns {', '.join(sorted(unknown))}")

        def column(name: str, kind: Any) -> Column:
            return F.col(quoted(name)) if name in given else F.lit(None).cast(kind).alias(name)

        return frame.select(*(column(field.name, field.dataType) for field in fields))

    def _expire(self, table: str, older_than_ms: int) -> None:
        self._call(table, "expire_snapshots", f", older_than => {_timestamp(older_than_ms)}, retain_last => 1")

    def _call(self, table: str, procedure: str, arguments: str) -> None:
        named = literal(quoted(*_names(table)))
        self._sql(table, f"CALL {quoted(self.catalog)}.system.{procedure}(table => {named}{arguments})")

    def _sql(self, table: str, text: str) -> None:
        self._retried(table, lambda: self.session.sql(text))

    def in_namespace(self, table: str) -> None:
        """Makes the namespace of a table, if there is none."""
        with self._alone(table):
            self._create_namespace(table)

    def changed(self, table: str, work: Callable[[], Result]) -> Result:
        """A commit of somebody else's making: again while other writers are first."""
        return self._retried(table, work)

    def _create_namespace(self, table: str) -> None:
        self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self.catalog, _names(table)[0])}")

    def loaded(self, table: str) -> Any:
        """The table as Iceberg's library has it, and as it is now."""
        library = java_class(self.session, "org.apache.iceberg.spark.Spark3Util")
        return library.loadIcebergTable(self.session._jsparkSession, self.relation(table))

    def _retried(self, table: str, work: Callable[[], Result]) -> Result:
        def alone() -> Result:
            with self._alone(table):
                return work()

        return retried(alone, _is_conflict)

    @contextlib.contextmanager
    def _alone(self, table: str, wait_s: float | None = None) -> Iterator[None]:
        """On a local file system: no other process, nor another sink of this one, writes the table meanwhile."""
        if self._locks is None:
            yield
            return
        self._locks.mkdir(parents=True, exist_ok=True)
        with (self._locks / ".".join(_names(table))).open("w") as file:
            _lock(file, table, _LOCK_S if wait_s is None else wait_s)
            yield


def _lock(file: IO[str], table: str, wait_s: float) -> None:
    """Waits for a lock no longer than any commit takes: a process that was stopped keeps it as long as it lives."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LockedError(
                    f"{table}: another process is writing it, and did not end that within {wait_s} s; "
                    f"if it was stopped, continue or kill it ({file.name} is its lock)"
                ) from None
            time.sleep(_LOCK_ASKED_S)


def _names(table: str) -> tuple[str, str]:
    namespace, *rest = table.split("/")
    return namespace, "__".join(rest)


def _catalog(session: SparkSession, warehouse: str) -> str:
    """The session's catalog for the warehouse. A session that has it for another warehouse gets one more."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    settings = dict(_CATALOG_SETTINGS)
    if session.conf.get(f"{prefix}.catalog-impl", None) or session.conf.get(f"{prefix}.type", None) not in _HADOOP:
        # The user's own knows where its tables are.
        del settings[".type"]
    else:
        settings[".warehouse"] = warehouse
    name = CATALOG
    if ".warehouse" in settings and session.conf.get(f"{prefix}.warehouse", None) not in (None, warehouse):
        name = f"{CATALOG}_{zlib.crc32(warehouse.encode()):08x}"
    for suffix, value in settings.items():
        if session.conf.get(f"spark.sql.catalog.{name}{suffix}", None) is None:
            session.conf.set(f"spark.sql.catalog.{name}{suffix}", value)
    return name


def _local_folder(session: SparkSession, folder: str) -> Path | None:
    """The folder as this machine's files have it; None on any other file system."""
    path = hadoop_path(session, folder)
    system = file_system(session, path)
    if system.getUri().getScheme() != "file":
        return None
    return Path(os.fspath(str(system.makeQualified(path).toUri().getPath())))


def _timestamp(age_ms: int) -> str:
    return f"timestamp_millis({int(time.time() * 1000) - age_ms})"


def _is_conflict(error: Exception) -> bool:
    """Whether nothing was committed because another writer was first; not if nobody knows what was committed."""
    text = str(error)
    return isinstance(error, MovedError) or (
        "CommitStateUnknown" not in text
        and any(mark in text for mark in ("CommitFailedException", "ValidationException", "Found conflicting files"))
    )
