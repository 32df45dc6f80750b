"""How Spark's JVM is started: in a Java that it runs on, without secrets in its command line, and without its noise.

In: Spark's settings. Out: a JVM that PySpark knows. Who is interrupted meanwhile leaves none behind.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext

from connector.config import is_secret_name
from connector.secrets import holds_secret, scrub
from spark_jobs.jvm import find_java, log_in, with_home
from spark_jobs.session.settings import is_submitted

_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"

# These end up in the JVM's command line, whoever gives them to Spark; `java` itself reads them from a file.
_JAVA_OPTIONS = {"spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"}


def start_jvm(settings: Mapping[str, str]) -> None:
    """Starts Spark's JVM with the settings that anybody may read; unless there is one.

    PySpark gives all settings to a new JVM in its command line, which every user of the machine can read. What is
    secret is in files of this user's for the moment of the start, and comes again, as all settings do, through the
    connection to the JVM that runs.
    """
    if _has_jvm():
        return
    secret = {name: value for name, value in settings.items() if is_secret_name(name) or holds_secret(value)}
    public = {name: value for name, value in settings.items() if name not in secret}
    arguments = os.environ.get(_SUBMIT_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="scylla-cdc-") as private:
        for name in _JAVA_OPTIONS & secret.keys():
            file = _private_file(private, name, "\n".join(map(_quoted, shlex.split(secret.pop(name)))))
            public[name] = f"@{file}"
        if secret and "--properties-file" not in (arguments or ""):
            lines = [f"{name}={_as_property(value)}" for name, value in secret.items()]
            file = _private_file(private, "secrets.conf", "\n".join(lines) + "\n")
            others = f"--properties-file {shlex.quote(file)} --load-spark-defaults {arguments or 'pyspark-shell'}"
            os.environ[_SUBMIT_ARGUMENTS] = others
        try:
            with with_home():
                SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(public.items())))
            log_in(SparkContext._jvm)
        finally:
            if arguments is None:
                os.environ.pop(_SUBMIT_ARGUMENTS, None)
            else:
                os.environ[_SUBMIT_ARGUMENTS] = arguments


def _private_file(folder: str, name: str, content: str) -> str:
    path = os.path.join(folder, name)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    return path


def _quoted(option: str) -> str:
    """An option as a file of arguments for `java` has it."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _as_property(value: str) -> str:
    """A value as a .properties file has it, which Java reads as Latin-1."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace(" ", "\\ ")
    units = escaped.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 127 else f"\\u{code:04x}" for code in codes)


@contextlib.contextmanager
def leaving_nothing() -> Iterator[None]:
    """Who is interrupted while Spark starts ends what was started: a JVM without a context outlives its parent."""
    before = _children()
    try:
        yield
    except Exception:
        raise
    except BaseException:
        for child in _children() - before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise


def _children() -> set[int]:
    """Of this process; none where the system does not tell."""
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found.update(map(int, file.read_text().split()))
    return found


@contextlib.contextmanager
def quiet_start(quiet: bool) -> Iterator[Callable[[], str]]:
    """Sends what a starting JVM writes into a file that is shown only if the start fails; its stdout is never ours.

    Where it is not to be quiet, its log goes through the filter of secrets to stderr. The JVM inherits the descriptors,
    so later noise goes there too: a vacuum tells its counts on stdout, where a command's result is to stand alone. Its
    warnings about itself cannot be configured away.
    """
    with tempfile.TemporaryFile() as file, contextlib.ExitStack() as stack:
        sys.stdout.flush()
        sys.stderr.flush()
        target = file.fileno() if quiet else _filtering(os.dup(2))
        if not quiet:
            stack.callback(os.close, target)
        for descriptor in (1, 2):
            before = os.dup(descriptor)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, descriptor)
            os.dup2(target, descriptor)

        def said() -> str:
            file.seek(0)
            return file.read().decode(errors="replace").strip()[-1000:]

        yield said


def _filtering(descriptor: int) -> int:
    """A descriptor for whole lines, which come out at the given one without secrets as long as somebody writes."""
    out, into = os.pipe()

    def copy() -> None:
        with open(out, errors="replace") as lines, open(descriptor, "w") as stderr:
            for line in lines:
                stderr.write(scrub(line))
                stderr.flush()

    threading.Thread(target=copy, daemon=True, name="jvm-log").start()
    return into


def choose_java() -> None:
    """For a JVM that is still to be started. Spark takes the first one that it comes to, of whatever release, and does
    not start in one without a module that it can do without."""
    if not _has_jvm():
        os.environ.update(find_java().spark_environment())


def _has_jvm() -> bool:
    """Of this process, or of who has submitted it."""
    return SparkContext._gateway is not None or is_submitted()
