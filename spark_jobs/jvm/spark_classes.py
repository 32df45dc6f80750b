"""An archive of the classes that Spark's JVM loads before it has landed anything: with it, a job starts sooner.

In: the settings of a session whose JVM this process starts. Out: the same with the option that uses the archive, if
`spark_jobs.prepare_classes` has written one. A JVM archives classes of its class path alone: the pinned jars are put
there instead of being loaded, and copied, by Spark. Without an archive, or with one that the JVM refuses, Spark starts
as ever, and the log says so.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from spark_jobs.jvm.cache import cache_dir

log = logging.getLogger(__name__)

_JARS = "spark.jars"
_CLASS_PATH = "spark.driver.extraClassPath"
_OPTIONS = "spark.driver.extraJavaOptions"
# Whoever sets one of these has a say in what Spark's class path is.
_FOREIGN = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH")


def with_class_path(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with the pinned jars on the class path; as they are where that is somebody else's business."""
    given = [jar for jar in settings.get(_JARS, "").split(",") if jar]
    ours = sorted(jar for jar in given if Path(jar).parent == cache_dir() / "jars" / "spark")
    master = settings.get("spark.master", "")
    # Executors that are processes of their own have the class path from elsewhere.
    if not ours or _CLASS_PATH in settings or not (master == "local" or master.startswith("local[")) or _is_foreign():
        return dict(settings)
    others = ",".join(jar for jar in given if jar not in ours)
    kept = {name: value for name, value in settings.items() if name != _JARS} | ({_JARS: others} if others else {})
    return {**kept, _CLASS_PATH: os.pathsep.join(ours)}


def with_archive(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that have the class path, with the archive of its classes."""
    path = archive_path(settings)
    if path is None:
        return dict(settings)
    if not path.is_file():
        log.info(
            "Spark starts without an archive of its classes: python -m spark_jobs.prepare_classes makes it, if Java can"
        )
        return dict(settings)
    # In front: what somebody has configured counts for more.
    option = shlex.quote(f"-XX:SharedArchiveFile={path}")
    return {**settings, _OPTIONS: f"{option} {settings.get(_OPTIONS, '')}".strip()}


def archive_path(settings: Mapping[str, str]) -> Path | None:
    """Where the archive for these settings is or would be: one per Java, pyspark and jars, as they are now."""
    java, spark = _java(), _pyspark()
    if _CLASS_PATH not in settings or java is None or spark is None or _is_foreign():
        return None
    jars = settings[_CLASS_PATH].split(os.pathsep)
    try:
        states = [f"{each} {os.stat(each).st_mtime_ns}" for each in (str(java), str(spark / "jars"), *jars)]
    except OSError:
        return None
    return cache_dir() / "spark" / f"classes-{_digest(str(java), str(spark))}-{_digest(*states)}.jsa"


def tell_refusal(settings: Mapping[str, str], pid: int | None) -> None:
    """Says whether the JVM that was started does not use the archive it was told of."""
    path = archive_path(settings)
    if pid is None or path is None or f"-XX:SharedArchiveFile={path}" not in settings.get(_OPTIONS, ""):
        return
    try:
        mapped = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return
    if str(path.resolve()) not in mapped:
        log.info("Spark's JVM does not take the archive of its classes, and starts without: %s", path)


def _is_foreign() -> bool:
    spark = _pyspark()
    return any(name in os.environ for name in _FOREIGN) or spark is None or (spark / "conf").exists()


def _pyspark() -> Path | None:
    """The folder of the pyspark that starts when nothing else is said."""
    found = importlib.util.find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin else None


def _java() -> Path | None:
    """What Spark's scripts start."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return Path(found).resolve() if found else None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
