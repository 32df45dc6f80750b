"""An archive of the broker's classes, from which a JVM starts in less than half the time (class data sharing).

A Java and a class path go in; out come the options that use the archive, if `embedded.prepare_classes` has written one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from spark_jobs.jvm import Java, cache_dir

# An archive that does not fit the Java or the jars (they were replaced since) is passed over without a word.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


def archive_path(java: Java, classpath: str) -> Path:
    """One archive per Java and class path: the JVM compares both and would ignore another's."""
    runtime = java.home / "lib" / "modules"
    changed = runtime.stat().st_mtime_ns if runtime.exists() else 0
    identity = hashlib.sha256(f"{java.executable} {changed} {classpath}".encode()).hexdigest()
    return cache_dir() / "kafka" / f"classes-{identity[:16]}.jsa"


def archive_options(java: Java, classpath: str) -> list[str]:
    """What makes the JVM start from the archive; nothing when there is none."""
    path = archive_path(java, classpath)
    return [f"-XX:SharedArchiveFile={path}", *QUIET] if path.is_file() else []
