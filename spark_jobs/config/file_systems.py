"""What landing needs of the file system that a warehouse or a lease is on.

In: the parsed properties. Out: problems, each with the settings that make it safe. Two things must never be done twice:
a commit of a certain number, and a lease's file. Some object stores cannot refuse the second one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from connector.errors import Problem

_CREATES_ONCE = frozenset(("", "file", "hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "gs", "dbfs", "maprfs"))
"""Here the creation, or the renaming, of a file fails if there is one of its name."""
RENAMES = frozenset(("", "file", "hdfs", "viewfs", "maprfs"))
"""Here a file is renamed in one step, which is what Iceberg's Hadoop catalog commits by."""
_ICEBERG = "spark.sql.catalog.scylla_cdc"
_OF_ONE_PROCESS = "S3SingleDriverLogStore"
"""Delta's log store that keeps apart the writers of its own process, and of no other one."""


def place_problems(values: Mapping[str, Any], passed_on: Mapping[str, str], file: str) -> list[Problem]:
    """Warehouses where commits, and leases where holders, could overwrite each other."""
    warehouse = str(values["warehouse"])
    scheme = _scheme(warehouse)
    found: list[Problem] = []
    if values["sink"] == "iceberg":
        own = f"{_ICEBERG}.catalog-impl" in passed_on or passed_on.get(f"{_ICEBERG}.type", "hadoop") != "hadoop"
        if not own and scheme not in RENAMES:
            text = f"Iceberg's Hadoop catalog can lose commits on {scheme}://, which renames no file in one step"
            remedy = f'set "{_ICEBERG}.type" to "rest", "hive" or "glue", with its other settings'
            found.append(Problem("warehouse", text, warehouse, remedy, file))
    elif scheme not in _CREATES_ONCE and f"spark.delta.logStore.{scheme}.impl" not in passed_on:
        text = f"Delta Lake's commits on {scheme}:// can overwrite each other"
        found.append(Problem("warehouse", text, warehouse, _log_store(scheme), file))
    lease = values["lease.folder"]
    where = _scheme(str(lease or warehouse))
    if where not in _CREATES_ONCE:
        text = f"Two jobs could hold one lease on {where}://, where a file can be created twice"
        remedy = "set lease.folder to a folder on HDFS, on a disk that the drivers share, or on gs:// or abfss://"
        name = "lease.folder" if lease else "warehouse"
        found.append(Problem(name, text, str(lease or warehouse), remedy, file))
    return found


def has_one_writer(warehouse: str, passed_on: Mapping[str, str]) -> bool:
    """Whether its log store in Delta is one that only one process may use."""
    chosen = passed_on.get(f"spark.delta.logStore.{_scheme(warehouse)}.impl", "")
    return chosen.endswith(_OF_ONE_PROCESS)


def _scheme(path: str) -> str:
    scheme = urlsplit(path).scheme.lower()
    # Of a path on Windows.
    return "" if len(scheme) == 1 else scheme


def _log_store(scheme: str) -> str:
    setting = f"spark.delta.logStore.{scheme}.impl"
    if not scheme.startswith("s3"):
        return f"set {setting} to a log store that creates each commit once"
    return (
        f"set {setting} to io.delta.storage.S3DynamoDBLogStore, with its table in "
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName, and the jar io.delta:delta-storage-s3-dynamodb; "
        "or another log store that creates each commit once"
    )
