"""The file that names the newest version of an Iceberg table in a Hadoop catalog.

In: a session and a table's folder. Out: whether the file is right, and the file made right. After each commit Iceberg
deletes it and gives its name to another one: a job that is killed there leaves none, or a late one. Spark goes by the
folder's files then, and the next commit writes it; but who reads without Spark opens this file alone, and of a table
that rests there is no next commit. One that names a version that is gone, as a writer does that went on after a long
pause, nobody reads any more.
"""

from __future__ import annotations

import re
import uuid

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_jobs.java_objects import file_system, file_text, hadoop_path

_NAME = "version-hint.text"
_VERSION = re.compile(r"v([0-9]+)\.(?:[a-z]+\.)?metadata\.json(?:\.gz)?")
_ATTEMPTS = 5


def is_right(session: SparkSession, folder: str) -> bool:
    """Also where no table is. Nothing is listed where the file is right."""
    metadata = f"{folder}/metadata"
    if not _exists(session, metadata):
        return True
    named = _named(session, metadata)
    if named is not None and _has(session, metadata, named) and not _has(session, metadata, named + 1):
        return True
    newest = _newest(session, metadata)
    return newest is None or named == newest


def make_right(session: SparkSession, folder: str) -> None:
    """Does no harm to a writer at the same time. Both name a version after it was committed, and where a file system
    renames over no file the first of them wins: if that was the older version, the look that follows finds it."""
    metadata = f"{folder}/metadata"
    hint = hadoop_path(session, f"{metadata}/{_NAME}")
    files = file_system(session, hint)
    for _ in range(_ATTEMPTS):
        if is_right(session, folder):
            return
        files.delete(hint, False)
        made = hadoop_path(session, f"{metadata}/{uuid.uuid4()}-version-hint.temp")
        try:
            stream = files.create(made, False)
            try:
                stream.write(bytearray(str(_newest(session, metadata)), "ascii"))
            finally:
                stream.close()
            files.rename(made, hint)
        finally:
            files.delete(made, False)


def _named(session: SparkSession, metadata: str) -> int | None:
    try:
        text = file_text(session, hadoop_path(session, f"{metadata}/{_NAME}"))
    except Py4JJavaError:
        # There is none, or its checksum is another one's.
        return None
    return int(text) if text.isdecimal() else None


def _has(session: SparkSession, metadata: str, version: int) -> bool:
    return _exists(session, f"{metadata}/v{version}.metadata.json")


def _newest(session: SparkSession, metadata: str) -> int | None:
    place = hadoop_path(session, metadata)
    listed = file_system(session, place).listStatusIterator(place)
    newest = None
    while listed.hasNext():
        if (found := _VERSION.fullmatch(str(listed.next().getPath().getName()))) is not None:
            newest = max(newest or 0, int(found[1]))
    return newest


def _exists(session: SparkSession, path: str) -> bool:
    place = hadoop_path(session, path)
    return bool(file_system(session, place).exists(place))
