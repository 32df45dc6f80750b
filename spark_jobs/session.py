"""The only place that builds a SparkSession.

In: a landing configuration (or parts of one). Out: a session with the settings that landed values depend on, with the
landed tables of the warehouse registered by name, so that ``session.table("ks.t")`` reads them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession as SparkSession  # of `start_session`, for who names what it returns

from connector.config import is_secret_name
from connector.errors import ConfigurationError, LandingError
from connector.secrets import holds_secret, scrub
from spark_jobs.config import folder
from spark_jobs.java_objects import java_class
from spark_jobs.jvm import cache_dir, find_java, log_in, tell_refusal, with_archive, with_class_path, with_home
from spark_jobs.sinks import table_format

JARS_VARIABLE = "SCYLLA_CDC_SPARK_JARS"
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
# These end up in the JVM's command line, whoever gives them to Spark; `java` itself reads them from a file.
_JAVA_OPTIONS = {"spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"}

VALUES = {
    # A map with the keys -0.0 and 0.0 is legal in CQL; Spark otherwise makes one key of them and fails.
    "spark.sql.legacy.disableMapKeyNormalization": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Not INT96, which delta-rs and others read as nanoseconds: times beyond those of 1677 to 2262 became others.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Columns v and V are two, and so are tables; a name that contains ${...} means just that.
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    # What SQL means that is written here: a note with a quote in it, or a column named offset, must not depend on what
    # else a user's Spark is for.
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.groupByOrdinal": "true",
}
"""Settings that decide what a landed value is: they hold in every session, the user's settings cannot change them."""

DEFAULTS = {
    "spark.app.name": "scylla-cdc-landing",
    "spark.driver.memory": "2g",
    # Merges and views of a cluster; on one machine there are as many as cores.
    "spark.sql.shuffle.partitions": "32",
    # Batches are short and cores few: parallel collection costs less than G1's concurrent threads.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-UsePerfData",
    # Listing files for a vacuum otherwise takes 10,000 tasks, however few the files are.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    # A batch is written to several partitions of the changelog at once; without this Spark sorts it first.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.session.localRelationCacheThreshold": "67108864",
    # The text of a wide table's plan is megabytes, and nobody reads it: Spark makes it of each query all the same.
    "spark.sql.maxPlanStringLength": "2000",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.codegen.logging.maxLines": "0",
    # What follows from conditions, for each column of each step of a plan, takes time by the square of a table's width:
    # most of all that a table of some hundred columns costs. Landing's conditions stand where they are to be met.
    "spark.sql.constraintPropagation.enabled": "false",
    # Every table has some twenty plans that come again with each batch: compiled code must outlive the other tables'.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Java is told of each column where in Python it is made, by half a dozen messages, and looks at its own stack; for
    # errors that end on one line.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Workers of a JVM of our own find this package from their start on.
_PYTHON = {"spark.python.daemon.module": "spark_jobs.python_daemon"}
# With Spark's choice a JVM without Hadoop's native library starts a dozen processes (chmod, readlink) for each batch.
# It is for two runs with one checkpoint, and each run has one of its own. The name is that of the installed Spark.
_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    )
}


def session_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Every Spark setting of a session for this configuration; values that landed data depends on win."""
    given = {name: str(value) for name, value in config.items() if name.startswith("spark.")}
    settings = {**DEFAULTS, **table_format(config).settings, **given}
    master = settings.setdefault("spark.master", os.environ.get("MASTER", "local[*]"))
    if master.startswith("local"):
        settings = {**settings, **LOCAL, "spark.sql.shuffle.partitions": str(_local_cores(master)), **given}
    warehouse = folder(str(config.get("warehouse", "warehouse")))
    settings.setdefault("spark.sql.warehouse.dir", f"{warehouse}/_catalog")
    if "spark.jars" not in settings and "spark.jars.packages" not in settings:
        # Under spark-submit the jars are its business.
        ours = [] if "PYSPARK_GATEWAY_PORT" in os.environ else _fetched(table_format(config).jar_sets)
        jars = [named] if (named := os.environ.get(JARS_VARIABLE)) else ours
        if jars:
            settings["spark.jars"] = ",".join(map(_jar_list, jars))
    return {**settings, **VALUES}


def _fetched(sets: Iterable[str]) -> list[str]:
    """The folders of jars that set-up, or a command as `land`, has left in the cache."""
    try:
        folders = [cache_dir() / "jars" / name for name in sets]
    except ConfigurationError:  # a user without a home has fetched nothing into it
        return []
    return [str(path) for path in folders if path.is_dir()]


def _submitted() -> dict[str, str]:
    """What spark-submit was told, which counts for more than the defaults here; nothing when it is not used."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def with_submitted(config: Mapping[str, Any], submitted: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with what spark-submit was told: where to run is its business, the rest the file's.

    >>> with_submitted({"spark.master": "local[*]", "spark.app.name": "a"}, {"spark.master": "yarn"})
    {'spark.master': 'yarn', 'spark.app.name': 'a'}
    >>> with_submitted({"spark.master": "yarn"}, {"spark.master": "local[*]", "spark.app.name": "a"})
    {'spark.master': 'yarn', 'spark.app.name': 'a'}
    """
    # Without --master it says so.
    untold = {"spark.master": "local[*]", "spark.submit.deployMode": "client"}
    told = {name: submitted[name] for name in untold if submitted.get(name, untold[name]) != untold[name]}
    return {**submitted, **config, **told}


def _local_cores(master: str) -> int:
    """How many tasks a local master runs at once.

    >>> _local_cores("local[2]"), _local_cores("local")
    (2, 1)
    """
    named = master.partition("[")[2].partition("]")[0].partition(",")[0]
    known = named.isascii() and named.isdigit() and len(named) < 10
    return int(named) if known else (os.cpu_count() or 1) if named else 1


def _jar_list(text: str) -> str:
    """Jar paths separated by commas, or one folder that holds them."""
    folder = Path(text)
    if "," not in text and folder.is_dir():
        return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
    return text


def open_session(config: Mapping[str, Any]) -> SparkSession:
    """A session for a landing configuration, with its landed tables registered."""
    session = start_session(config)
    from spark_jobs.tables import register_landed

    register_landed(session, config)
    return session


def start_session(config: Mapping[str, Any]) -> SparkSession:
    """A session without looking into the warehouse. Missing Java or jars are one line, not a stack trace."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Python workers import the product's own packages: a local session starts them outside the clone's folder.
    root = str(Path(__file__).resolve().parent.parent)
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    _choose_java()
    settings = session_settings(with_submitted(config, _submitted()))
    here = settings["spark.master"].startswith("local")
    if here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own = SparkContext._gateway is None
    if own:
        settings = with_archive(with_class_path(settings))
        if here:
            settings = {**_PYTHON, **({} if "SPARK_HOME" in os.environ else _CHECKPOINTS), **settings}
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    level = str(config.get("log.level", "OFF"))
    with _quiet(level == "OFF") as said, _leaving_nothing():
        try:
            _start_jvm(settings)
            session = builder.getOrCreate()
        except Exception as error:
            raise LandingError(f"Spark did not start: {error}; {said()}") from error
    if own:
        tell_refusal(settings, getattr(getattr(SparkContext._gateway, "proc", None), "pid", None))
    session.sparkContext.setLogLevel(level)
    if level != "OFF":
        # A JVM that is told to end says by which signal.
        logger = java_class(session, "org.slf4j.LoggerFactory").getLogger("org.apache.spark.SparkContext")
        java_class(session, "org.apache.spark.util.SignalUtils").registerLogger(logger)
    else:
        # PySpark's own loggers repeat what is raised anyway, with every stack there is.
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if own:
        _outlive_terminal(session)
    form = table_format(config)
    require_class(session, form.needs_class, form.coordinate)
    return session


def why_ended(session: SparkSession) -> str | None:
    """Why nothing can be done with this session any more; None while Spark runs.

    What Spark itself raises then is a refused connection, or that the context is stopped: never who ended it.
    """
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None and (status := process.poll()) is not None:
        # A JVM that a signal ends in order, its shutdown hooks included, exits with 128 and the signal's number.
        number = -status if status < 0 else status - 128
        by = signal.Signals(number).name if number in set(signal.Signals) else f"status {status}"
        return f"Spark's JVM (process {process.pid}) was ended by {by}"
    try:
        if session.sparkContext._jsc.sc().isStopped():
            return "Spark's context was stopped by something else than this job"
    except OSError as error:
        return f"Spark's JVM does not answer: {error.strerror}"
    except Exception as error:
        # py4j's own errors, which are no OSError once its first connection has failed.
        return f"Spark's JVM does not answer: {type(error).__name__}"
    return None


def end_spark() -> bool:
    """At once, whatever it does: whoever waits for it, in whatever thread, gets an error. False: there is none yet.
    Under spark-submit, where the JVM is not this process's, only what runs there is given up."""
    if SparkContext._gateway is None:
        return False
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        if SparkContext._active_spark_context is None:
            return False
        SparkContext._active_spark_context.cancelAllJobs()
        return True
    process.kill()
    process.wait()
    return True


def _outlive_terminal(session: SparkSession) -> None:
    """A terminal that is gone tells all its processes at once. The JVM goes on: the program whose it is decides, and it
    ends with that."""
    signals, handlers = (java_class(session, f"sun.misc.{name}") for name in ("Signal", "SignalHandler"))
    signals.handle(signals("HUP"), handlers.SIG_IGN)


@contextlib.contextmanager
def needing_spark(session: SparkSession) -> Iterator[None]:
    """Within it, the end of Spark is one error that says why, instead of a failure of whatever was being done."""
    try:
        yield
    finally:
        require_spark(session)


def require_spark(session: SparkSession) -> None:
    """Raises the error that says why Spark has ended, if it has."""
    if (why := why_ended(session)) is not None:
        raise LandingError(f"{why}; start it again: landing goes on where it stood")


def _start_jvm(settings: Mapping[str, str]) -> None:
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


def require_class(session: SparkSession, name: str, coordinate: str) -> None:
    """Says which jar is missing before Spark says it in fifty lines."""
    try:
        loader = java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()
        java_class(session, "java.lang.Class").forName(name, False, loader)
    except Exception as error:
        raise LandingError(
            f"Spark has no {name.rsplit('.', 1)[-1]}: the jar of {coordinate} is missing; "
            f"set {JARS_VARIABLE} to a folder of jars, or give spark-submit --packages {coordinate}; "
            "`python -m spark_jobs.jvm jars` fetches all that landing needs into the cache"
        ) from error


@contextlib.contextmanager
def _leaving_nothing() -> Iterator[None]:
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
def _quiet(quiet: bool) -> Iterator[Callable[[], str]]:
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


def _choose_java() -> None:
    """For a JVM that is still to be started. Spark takes the first one that it comes to, of whatever release, and does
    not start in one without a module that it can do without."""
    if not _has_jvm():
        os.environ.update(find_java().spark_environment())


def _has_jvm() -> bool:
    """Of this process, or of who has submitted it."""
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def tasks_done(session: SparkSession) -> str:
    """How far the stages are that run now, in words; nothing between two of them. May be asked by any thread."""
    try:
        tracker = session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception as error:  # of py4j, whatever it is when Spark ends: it is only asked for a word of progress
        logging.getLogger(__name__).debug("no progress is known: %s", error)
        return ""
    known = [stage for stage in stages if stage is not None]
    if not known:
        return ""
    return f"{sum(stage.numCompletedTasks for stage in known)} of {sum(stage.numTasks for stage in known)} tasks done"
