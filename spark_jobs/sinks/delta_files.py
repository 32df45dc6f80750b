"""What a Delta table's log says of it: the files that it consists of, its properties. No file is opened.

In: a session and a table's folder. Out: whether it is a table; a frame with a row for each file, of the columns of the
log's ``add`` entries; numbers of commits; properties, also given to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.java_objects import file_system, file_text, hadoop_path, java_class
from spark_jobs.model import literal, quoted

_INFORMATION, _NAMED_WITHIN = '"commitInfo"', 20
_FILES = ('{"add":', '{"remove":')
_COMMITTED = re.compile(r"[0-9]{20}\.(json|checkpoint)")


def is_conflict(error: Exception) -> bool:
    """Whether nothing was committed because another writer was first."""
    text = str(error)
    return any(
        mark in text for mark in ("DELTA_CONCURRENT", "ConcurrentAppend", "ConcurrentModification", "MetadataChanged")
    )


def is_table(session: SparkSession, folder: str) -> bool:
    """Whether anything was committed there: a job that is killed before leaves a log's folder without a commit."""
    log = hadoop_path(session, f"{folder}/_delta_log")
    files = file_system(session, log)
    if not files.exists(log):
        return False
    listed = files.listStatusIterator(log)
    while listed.hasNext():
        if _COMMITTED.match(listed.next().getPath().getName()):
            return True
    return False


def data_files(session: SparkSession, path: str) -> DataFrame:
    """Those of the newest version."""
    return DataFrame(_newest(session, path).allFiles().toDF(), session)


def extent(session: SparkSession, path: str) -> tuple[int, int]:
    """Number and bytes of the newest version's files. Delta's writers note them beside each commit; of one by somebody
    else Spark sums them up, by jobs that take longer than a small commit."""
    newest = _newest(session, path)
    noted = newest.checksumOpt()
    if noted.isDefined():
        return int(noted.get().numFiles()), int(noted.get().tableSizeBytes())
    return int(newest.numOfFiles()), int(newest.sizeInBytes())


def last_transaction(session: SparkSession, path: str, application: str) -> int | None:
    """The number of the last commit that an application has numbered. Delta notes all of these beside each commit; of
    one by somebody else it makes the table's whole state, by jobs that are a good part of what a start costs."""
    newest = _newest(session, path)
    noted = newest.checksumOpt()
    listed = noted.get().setTransactions() if noted.isDefined() else None
    if listed is not None and listed.isDefined():
        each = [listed.get().apply(at) for at in range(listed.get().size())]
        return next((int(one.version()) for one in each if one.appId() == application), None)
    found: Any = newest.transactions().get(application)
    return int(found.get()) if found.isDefined() else None


@dataclass(frozen=True)
class Commit:
    """One of a table's log, by its file."""

    version: int
    text: str

    def said(self) -> str | None:
        """What its writer has said in it."""
        told = self._information().get("userMetadata")
        return told if isinstance(told, str) else None

    def operation(self) -> str:
        """What its writer calls it."""
        return str(self._information().get("operation", "a commit"))

    def changes_rows(self) -> bool:
        """Whether there are others after it: files that were only made larger, or sorted, hold the same."""
        files = (json.loads(line) for line in self.text.split("\n") if line.startswith(_FILES))
        return any(part.get("dataChange") for line in files for part in line.values())

    def _information(self) -> dict[str, Any]:
        # Of all that a commit holds, what its writer says is one line, and mostly the first.
        lines = (line for line in self.text.split("\n") if _INFORMATION in line[:_NAMED_WITHIN])
        return next((dict(json.loads(line)["commitInfo"]) for line in lines), {})


def newest_version(session: SparkSession, path: str) -> int:
    return int(_newest(session, path).version())


def newest_commits(session: SparkSession, path: str, at_most: int) -> Iterator[Commit]:
    """The newest first. From the log's own files: a statement for it runs as a job."""
    newest = newest_version(session, path)
    for version in range(newest, max(newest - at_most, -1), -1):
        commit = hadoop_path(session, f"{path}/_delta_log/{version:020}.json")
        if not file_system(session, commit).exists(commit):
            # A checkpoint stands for it and for all before it.
            return
        yield Commit(version, file_text(session, commit))


def forget_commits(session: SparkSession, path: str, older_than_ms: int) -> None:
    """Deletes those that are older, up to the last checkpoint before that, by whole hours. Delta does so by whole days,
    and whoever looks at a table lists all that there are: of a commit every two seconds that soon costs more than they
    do."""
    log, newest = _log(session, path), _newest(session, path)
    age = java_class(session, "java.util.OptionalLong").of(older_than_ms)
    boxed = java_class(session, "scala.jdk.javaapi.OptionConverters").toScala(age)
    hours = java_class(session, "org.apache.spark.sql.delta.TruncationGranularity").HOUR()
    log.cleanUpExpiredLogs(newest, getattr(log, "cleanUpExpiredLogs$default$2")(), boxed, hours)


def _log(session: SparkSession, path: str) -> Any:
    return java_class(session, "org.apache.spark.sql.delta.DeltaLog").forTable(session._jsparkSession, path)


def _newest(session: SparkSession, path: str) -> Any:
    log = _log(session, path)
    return log.update(*(getattr(log, f"update$default${at}")() for at in (1, 2, 3)))


def partitioned_by(session: SparkSession, path: str) -> str:
    """Of a table that has one column to partition by."""
    return str(_newest(session, path).metadata().partitionColumns().head())


def properties_of(session: SparkSession, path: str) -> dict[str, str]:
    """From the log, not by a statement: who starts asks for those of each table."""
    return dict(json.loads(_newest(session, path).metadata().json())["metaData"]["configuration"])


def give_properties(session: SparkSession, path: str, wanted: Mapping[str, str]) -> None:
    """Those that it has not; a table that has all gets no commit."""
    there = properties_of(session, path)
    if missing := {name: value for name, value in wanted.items() if there.get(name) != value}:
        session.sql(f"ALTER TABLE {quoted('delta', path)} SET TBLPROPERTIES ({property_list(missing)})")


def property_list(properties: Mapping[str, str]) -> str:
    """As SQL has it between its parentheses."""
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
