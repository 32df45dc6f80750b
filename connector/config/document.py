"""Configuration documents: what a file or a mapping holds, as a flat map of texts, as Connect holds it.

In: what a file holds. Out: ``Document``s, with the texts as they are written; ``references`` resolves them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connector.config.environment import OF_A_WORKER
from connector.config.forms import Wrapped, read_configurations
from connector.config.properties import CONNECTION, CONNECTOR, READING, Invalid
from connector.config.secret import is_secret_name, learn, shown
from connector.errors import Problem
from connector.secrets import MASK

REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}]*)\}")
_REMARK = re.compile(r"_|//|#|comments?\Z", re.IGNORECASE)
#: What these say becomes the name of a topic, a group or a table, and is read there by everybody. It is found in every
#: line about them, which would say nothing with a reference in its place.
PUBLIC_NAMES = frozenset(
    (
        *("name", "topic.prefix", "scylla.table.names", "tables", "group.id", "group.instance.id"),
        *("offset.storage.topic", "offsets.storage.topic", "status.storage.topic", "scylla.schema.topic"),
        *("config.storage.topic", "schema.topic", "errors.deadletterqueue.topic.name", "topic.heartbeat.prefix"),
        *("warehouse", "checkpoint"),
    )
)
#: What tells a connector's file from landing's, whose other names are the same.
OF_A_CONNECTOR = frozenset(("connector.class", "scylla.table.names"))
OF_THE_SOURCE = frozenset(one.name for section in (CONNECTION, READING) for one in section.properties)


@dataclass(slots=True)
class Document:
    """One file's properties. ``texts`` are resolved values, ``written`` what stands in the file."""

    file: str
    texts: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    #: Where a property came from, if not from the file.
    places: dict[str, str] = field(default_factory=dict)
    #: Properties whose reference could not be resolved: already reported, not to be looked at further.
    broken: set[str] = field(default_factory=set)
    readable: bool = True
    #: What is to be said about properties, or about what the configuration was wrapped in.
    notes: list[tuple[str, str]] = field(default_factory=list)

    def put(self, name: str, text: str, place: str | None = None) -> None:
        if not REFERENCE.fullmatch(text.strip()):
            learn(name, text)
        self.texts[name] = self.written[name] = text
        if place:
            self.places[name] = place

    def place(self, name: str) -> str:
        return self.places.get(name, self.file)

    def without_secrets(self, name: str, message: str) -> str:
        """A message about a property, with what a reference was resolved to replaced by the reference."""
        written, text = self.written.get(name, ""), self.texts.get(name, "")
        if "${" not in written or text == written:
            return message
        for part in (text, text.strip(), text.lower(), *(item.strip() for item in text.split(","))):
            if len(part) > 2:
                message = message.replace(part, written)
        return message

    def masked(self, name: str, secret: bool) -> str | None:
        """The value of a property as it may be shown: a reference as it is written, a secret as asterisks."""
        written = self.written.get(name)
        if written is None:
            return None
        if REFERENCE.search(written):
            # What stands around a reference in a secret is part of the secret; the reference itself is not.
            rest = REFERENCE.sub("", written).strip()
            return MASK if rest and (secret or is_secret_name(name)) else written
        return shown(name, written, secret=secret)


def read_documents(source: Source | None, label: str, environ: Mapping[str, str] | None = None) -> list[Document]:
    """Every configuration of a file, ``{"name", "config"}`` or flat, with every value as text; at least one."""
    if source is None:
        return [Document(label)]
    if isinstance(source, Document):
        return [source]
    if isinstance(source, Mapping):
        return [_document(label, Wrapped(source))]
    file = os.fspath(source)
    found, problems = read_configurations(source, os.environ if environ is None else environ)
    if problems:
        return [Document(file, problems=problems, readable=False)]
    named = [f"{file} ({each.label})" if len(found) > 1 and each.label else file for each in found]
    return [_document(name, each) for name, each in zip(named, found, strict=True)]


def read_document(source: Source | None, label: str, environ: Mapping[str, str] | None = None) -> Document:
    """The one configuration that a file has, or the one of its kind: ``label`` is "connector" or "worker"."""
    documents = read_documents(source, label, environ)
    if len(documents) > 1:
        documents = of_kind(documents, worker=label == "worker")
    if len(documents) == 1:
        return documents[0]
    names = ", ".join(document.texts.get("name", "one without a name") for document in documents)
    file = os.fspath(source) if isinstance(source, str | os.PathLike) else label
    document = Document(file, readable=False)
    problem = f"Holds {len(documents)} connectors ({names}), and one is wanted here"
    document.problems.append(Problem("name", problem, None, "a file for each, or `scylla-cdc migrate`", file))
    return document


def is_worker_document(document: Document) -> bool:
    """Whether a file is a worker's rather than a connector's."""
    names = document.texts.keys()
    return bool(OF_A_WORKER & names) and not (OF_A_CONNECTOR | OF_THE_SOURCE | {"topic.prefix"}) & names


def of_another_connector(document: Document) -> bool:
    """Whether a file is a connector's that is none of ours."""
    text = document.texts.get("connector.class")
    if text is None or any(name.startswith("scylla.") for name in document.texts):
        return False
    try:
        CONNECTOR["connector.class"].kind.parse(text)
    except Invalid:
        return True
    return False


def of_kind(documents: Sequence[Document], *, worker: bool) -> list[Document]:
    """The workers, or our connectors, of a file that may hold both and other connectors; all, if there is none.

    What has no properties at all is the place where a worker was looked for."""
    found = [each for each in documents if is_worker_document(each) == worker and not of_another_connector(each)]
    empty = [each for each in documents if not each.texts]
    found = (found or empty) if worker else ([each for each in found if each.texts] or found)
    if not found:
        return list(documents)
    text = "has no effect here: another connector stays where it is"
    if not worker:
        others = [each.texts.get("name", each.file) for each in documents if of_another_connector(each)]
        found[0].notes += [(name, text) for name in others]
    return found


def _document(file: str, wrapped: Wrapped) -> Document:
    document = Document(file, notes=wrapped.notes)
    document.problems = [replace(problem, file=file) for problem in wrapped.problems]
    document.readable = not document.problems
    if isinstance(wrapped.content, Mapping):
        _take(document, _unwrap(document, wrapped.content))
    else:
        document.readable = False
        hint = '{"name": …, "config": {…}}'
        document.problems.append(Problem("JSON", "Must be an object of properties", file=file, suggestion=hint))
    return document


def _unwrap(document: Document, content: Mapping[str, Any]) -> dict[str, Any]:
    config = content.get("config")
    if not isinstance(config, Mapping):
        if "config" in content:
            learn("config", config)
            document.problems.append(Problem("config", "Must be an object of properties", file=document.file))
        report_repeated(document, content)
        return {name: value for name, value in content.items() if name != "config"}
    report_repeated(document, content)
    report_repeated(document, config)
    flat = dict(config)
    for name, value in content.items():
        if name == "name":
            inner = flat.setdefault("name", value)
            if inner != value:
                document.problems.append(Problem("name", "Differs from the name inside config", file=document.file))
        elif name == "initial_state" and str(value).strip().lower() in ("paused", "stopped"):
            document.notes.append((name, "is not looked at: `scylla-cdc run` runs what it is given"))
        elif name not in ("config", "initial_state", "tasks", "type"):
            # Whatever it is, it may hold a password, and its name says where it stands.
            learn(name, value)
            document.problems.append(
                Problem(name, "Is next to config instead of inside it", None, "move it into config", document.file)
            )
    return flat


def report_repeated(document: Document, content: Mapping[str, Any]) -> None:
    """What an object of a file gives twice; of a mapping that was read from none that is not known."""
    for name in getattr(content, "repeated", ()):
        # JSON has no comments: people write them as members, which Kafka Connect does not look at.
        if _REMARK.match(name):
            continue
        *others, last = dict.fromkeys(map(str, getattr(content, "lines", {}).get(name, ("",))))
        one_line = f"on line {last}" if last else None
        place = f"on lines {', '.join(others)} and {last}" if others else one_line
        document.problems.append(Problem(name, "Is given twice", None, place, document.file))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _take(document: Document, flat: Mapping[str, Any]) -> None:
    for name, value in flat.items():
        if value is None:
            continue
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            document.put(name, ",".join(_text(item) for item in value))
        elif isinstance(value, list | Mapping):
            # Never shown: it may hold a password at any depth.
            learn(name, value)
            hint = 'for example "a,b" for a list'
            document.problems.append(
                Problem(name, "Must be a string, a number or a boolean", None, hint, document.file)
            )
        else:
            document.put(name, _text(value))


Source = str | os.PathLike[str] | Mapping[str, Any] | Document
