"""What becomes of each line of a Java user's files: kept, no effect, changed, impossible; and the files to go on with.

In: the documents as they were read. Out: ``Line``s, one for each property and for each silent change, and the
properties that belong into our two files. Opens no connection.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.kafka import is_secret
from connector.config.loading import load
from connector.config.properties import CONNECTOR, WORKER_BY_NAME
from connector.config.transforms import TransformCheck
from connector.config.unlike_java import NO_SNAPSHOT, SNAPSHOT_MODE, rows_written
from connector.config.worker_config import Configuration
from connector.errors import ConfigurationError, Problem

#: What the service keeps in its storage topics is of another form than Kafka Connect's.
SUFFIX = "-scylla-cdc"
_STORAGE = ("offset.storage.topic", "status.storage.topic", "offsets.storage.topic")
_IDLE = ("has no effect", "belongs in", "unknown property, ignored")
_PROCESSES_PER_CORE = 2
#: What the Java connector itself has called otherwise since its version 1.2.3, without another meaning.
_RENAMED = {"scylla.name": "topic.prefix"}


class Verdict(StrEnum):
    KEPT = "kept"
    NO_EFFECT = "no effect"
    CHANGED = "changed"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Line:
    """One property of a file, or (with a name in brackets) something that no line of it says."""

    file: str
    property: str
    verdict: Verdict
    text: str = ""


@dataclass(slots=True)
class Migrated:
    """One file: what is said of its lines, and the properties to go on with; no ``configuration`` with problems."""

    document: Document
    lines: list[Line] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    configuration: Configuration | None = None

    @property
    def possible(self) -> bool:
        return all(line.verdict is not Verdict.IMPOSSIBLE for line in self.lines)

    @property
    def holds_secrets(self) -> bool:
        written = self.document.written
        return any(self.document.masked(name, _secret(name)) != written[name] for name in self.properties)


def migrate_connector(
    document: Document, worker: Document, *, cores: int, transform_check: TransformCheck | None = None
) -> tuple[Migrated, Migrated]:
    """What becomes of a connector's file, and of the worker's beside it."""
    findings, given = Findings(), deepcopy(document)
    worker = deepcopy(worker)
    renamed = [line for old, new in _RENAMED.items() for line in _renamed(given, old, new)]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("CONNECT_")}
    configuration = None
    try:
        configuration = load(given, worker, environ, transform_check=transform_check, findings=findings)
    except ConfigurationError as error:
        findings.problems += [problem for problem in error.problems if problem not in findings.problems]
    migrated = Migrated(given, renamed, configuration=configuration)
    _judge(migrated, findings)
    _tasks(migrated, worker, cores)
    migrated.lines += _silent_changes(migrated)
    of_worker = Migrated(worker)
    _judge(of_worker, findings)
    return migrated, of_worker


def _renamed(document: Document, old: str, new: str) -> Iterable[Line]:
    """A file for a version of the Java connector that knew a property by its old name alone."""
    if old not in document.written or new in document.written:
        return
    document.put(new, document.written.pop(old))
    del document.texts[old]
    file = document.file
    yield Line(
        file, old, Verdict.CHANGED, f"{new} is written in its place, as it is called since 1.2.3: topics are as before"
    )
    if "scylla.local.dc" not in document.written:
        text = (
            "up to 1.2.2 Java asked the datacenter of the first contact point alone, here nodes of all are asked: set "
            "scylla.local.dc where there are several"
        )
        yield Line(file, "(scylla.local.dc)", Verdict.CHANGED, text)


def _judge(one: Migrated, findings: Findings) -> None:
    document = one.document
    file = document.file
    for name, written in document.written.items():
        line, text = _line(document, name, findings), written
        if name in _STORAGE and line.verdict is Verdict.KEPT:
            text = f"{written}{SUFFIX}"
            said = "positions are kept in another form; `scylla-cdc offsets import` reads the old topic"
            said = "its records have another form" if name.startswith("status") else said
            line = Line(file, name, Verdict.CHANGED, f"a topic of its own, {text}: {said}")
        elif name == SNAPSHOT_MODE and line.verdict in (Verdict.KEPT, Verdict.CHANGED):
            line = _snapshot(document, line)
            text = NO_SNAPSHOT if line.verdict is Verdict.CHANGED else written
        one.lines.append(line)
        if line.verdict is not Verdict.NO_EFFECT:
            one.properties[name] = text
    for name, text in document.notes:
        if name not in document.written:
            verdict = Verdict.NO_EFFECT if text.startswith(_IDLE) else Verdict.CHANGED
            one.lines.append(Line(file, name, verdict, text))
    mine = (problem for problem in findings.problems if problem.file == file)
    for problem in mine:
        if problem.property not in document.written:
            one.lines.append(Line(file, problem.property, Verdict.IMPOSSIBLE, _told(problem)))


def _line(document: Document, name: str, findings: Findings) -> Line:
    place = document.place(name)
    problems = [problem for problem in findings.problems if problem.property == name and problem.file == place]
    if problems and name in document.broken and not any("There is no provider" in one.problem for one in problems):
        return Line(document.file, name, Verdict.KEPT, f"not found on this machine: {problems[0].problem}")
    if problems:
        return Line(document.file, name, Verdict.IMPOSSIBLE, "; ".join(map(_told, problems)))
    notices = findings.said_of(document, name)
    idle = [text for text in notices if text.startswith(_IDLE)]
    if idle:
        return Line(document.file, name, Verdict.NO_EFFECT, "; ".join(idle))
    if name in document.broken:
        text = "refers to a provider of secrets that is not supported: see config.providers in the worker's file"
        return Line(document.file, name, Verdict.IMPOSSIBLE, text)
    changed = any(text.endswith(" is used") for text in notices)
    return Line(document.file, name, Verdict.CHANGED if changed else Verdict.KEPT, "; ".join(notices))


def _snapshot(document: Document, line: Line) -> Line:
    """The Java connector never looks at the mode: a file may name any, and nothing has come of it so far."""
    mode = document.texts[SNAPSHOT_MODE].strip().lower()
    if mode in (NO_SNAPSHOT, "never"):
        return line
    rows = rows_written(mode)
    if rows is None:
        return Line(line.file, SNAPSHOT_MODE, Verdict.CHANGED, f"{NO_SNAPSHOT} is written in its place: {line.text}")
    text = f"{NO_SNAPSHOT} is written in its place, as the Java connector ignores it: here {mode} {rows}"
    return Line(line.file, SNAPSHOT_MODE, Verdict.CHANGED, f"{text}; write {mode} into the new file if you want that")


def _told(problem: Problem) -> str:
    return f"{problem.problem} ({problem.suggestion})" if problem.suggestion else problem.problem


def _silent_changes(one: Migrated) -> Iterable[Line]:
    """What is different with the same file."""
    given, file = one.document.texts, one.document.file
    prefix = given.get("topic.prefix", "<topic.prefix>")
    if "heartbeat.interval.ms" not in given:
        first = given.get("topic.heartbeat.prefix", "__debezium-heartbeat")
        topic = f"{first}{given.get('topic.delimiter', '.')}{prefix}"
        text = (
            f"Java writes heartbeats to {topic} every 30 s by default, here there are none: set 30000 if they are read"
        )
        yield Line(file, "(heartbeat.interval.ms)", Verdict.CHANGED, text)
    if (
        given.get("errors.tolerance", "").strip().lower() == "all"
        and not given.get("errors.deadletterqueue.topic.name", "").strip()
    ):
        text = f"what fails goes to the topic {prefix}.dead-letters, where Java skips it"
        yield Line(file, "(errors.deadletterqueue.topic.name)", Verdict.CHANGED, text)
    text = "records come in transactions: consumers should use isolation.level=read_committed"
    yield Line(file, "(transactions)", Verdict.CHANGED, text)


def _tasks(one: Migrated, worker: Document, cores: int) -> None:
    """Tasks are processes here, not threads of a cluster's workers."""
    tasks = _number(one.document.texts.get("tasks.max"), 1)
    processes = min(tasks, _number(worker.texts.get("offset.storage.partitions"), 25))
    if tasks > _PROCESSES_PER_CORE * cores:
        text = f"{processes} processes of one `run`, and this machine has {cores} cores: about {cores} are enough"
        file = one.document.file
        one.lines = [
            Line(file, "tasks.max", Verdict.CHANGED, text) if line.property == "tasks.max" else line
            for line in one.lines
        ]


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.strip().isdecimal() and len(text) < 9 else default


def _secret(name: str) -> bool:
    declared = CONNECTOR.get(name) or WORKER_BY_NAME.get(name)
    return declared.secret if declared else is_secret(name.rpartition("override.")[2])


def connector_document(name: str, properties: Mapping[str, str]) -> dict[str, object]:
    """The connector's file, as one would post it."""
    return {"name": name, "config": {each: text for each, text in properties.items() if each != "name"}}
