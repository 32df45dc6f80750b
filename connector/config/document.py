"""Configuration documents: a JSON file or mapping becomes a name and a flat map of texts, as Kafka Connect holds them.

Also the environment's overrides of the worker file, and the references to secrets, which are resolved here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.config.secret import is_secret_name, learn, learn_resolved, shown
from connector.errors import Problem
from connector.secrets import MASK

ENVIRONMENT_PREFIX = "CONNECT_"
_REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}]*)\}")
#: Of a number in JSON: more digits than any bound has, and less than Python refuses to read.
_LONGEST_NUMBER = 1_000
_MOST_BYTES = 16 * 2**20
_PROVIDERS = ("env", "file", "directory")
#: What these say becomes the name of a topic, a group or a table, and is read there by everybody. It is found in every
#: line about them, which would say nothing with a reference in its place.
PUBLIC_NAMES = frozenset(
    (
        *("name", "topic.prefix", "scylla.table.names", "tables", "group.id", "group.instance.id"),
        *("offset.storage.topic", "offsets.storage.topic", "status.storage.topic", "scylla.schema.topic"),
        *("schema.topic", "errors.deadletterqueue.topic.name", "topic.heartbeat.prefix", "warehouse", "checkpoint"),
    )
)
_PROVIDER_CLASSES = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "directory",
}


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

    def put(self, name: str, text: str, place: str | None = None) -> None:
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
        if _REFERENCE.search(written):
            # What stands around a reference in a secret is part of the secret; the reference itself is not.
            rest = _REFERENCE.sub("", written).strip()
            return MASK if rest and (secret or is_secret_name(name)) else written
        return shown(name, written, secret=secret)


class _Repeated(dict[str, Any]):
    """A JSON object that remembers which of its names were given twice."""

    repeated: tuple[str, ...] = ()


def _pairs(pairs: list[tuple[str, Any]]) -> _Repeated:
    found = _Repeated(pairs)
    names = [name for name, _ in pairs]
    found.repeated = tuple(sorted({name for name in names if names.count(name) > 1})) if len(found) < len(names) else ()
    return found


def read_json(path: str | os.PathLike[str]) -> tuple[Any, list[Problem]]:
    """The JSON in a file; instead of raising, a problem says where it is not JSON."""
    file = os.fspath(path)
    try:
        text = _content(Path(file)).decode("utf-8-sig")
    except OSError as error:
        reason = "There is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        return None, [Problem("file", reason, file=file)]
    except UnicodeDecodeError as error:
        return None, [Problem("file", f"Is not UTF-8 text: byte {error.start} cannot be read", file=file)]
    try:
        # Numbers of any length keep their digits, so that their property can say what is wrong with them.
        found = json.loads(text, object_pairs_hook=_pairs, parse_int=lambda digits: int(digits[:_LONGEST_NUMBER]))
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        form = _other_form(file, text)
        if form:
            return None, [Problem("JSON", f"Is not JSON: it looks like {form}", None, "write it as JSON", file)]
        return None, [Problem("JSON", f"Is not JSON: {error.msg} at {place}", file=file)]
    except UnicodeEncodeError:
        return None, [Problem("JSON", "Holds a text that is none: half of a \\u pair (\\ud800 to \\udfff)", file=file)]
    except RecursionError:
        return None, [Problem("JSON", "Is not JSON that can be read: nested too deeply", file=file)]
    return found, []


def _content(path: Path) -> bytes:
    """What a file holds; never more than any file of settings has, for devices have no end."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except ValueError as error:  # a NUL in the path
        raise OSError(0, str(error)) from None
    if len(content) > _MOST_BYTES:
        raise OSError(0, f"has more than {_MOST_BYTES // 2**20} MiB")
    return content


def _other_form(file: str, text: str) -> str | None:
    """What a file is that is no JSON, where its name or its first line tells."""
    suffix = Path(file).suffix.lower()
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "!")))
    first = next(lines, "")
    if suffix in (".yaml", ".yml") or re.match(r"(---\s*$|[\w.\-]+:(\s|$)|- )", first):
        return "YAML"
    if suffix == ".properties" or re.match(r"[\w.\-]+\s*=", first):
        return "a .properties file"
    return None


def read_document(source: str | os.PathLike[str] | Mapping[str, Any] | None, label: str) -> Document:
    """A connector's or worker's document, ``{"name", "config"}`` or flat, with every value as text."""
    if source is None:
        return Document(label)
    if isinstance(source, Mapping):
        document, content = Document(label), source
    else:
        document = Document(os.fspath(source))
        content, document.problems = read_json(source)
        if document.problems:
            document.readable = False
            return document
    if not isinstance(content, Mapping):
        document.readable = False
        document.problems.append(
            Problem(
                "JSON", "Must be an object of properties", file=document.file, suggestion='{"name": …, "config": {…}}'
            )
        )
        return document
    _take(document, _unwrap(document, content))
    return document


def _unwrap(document: Document, content: Mapping[str, Any]) -> dict[str, Any]:
    config = content.get("config")
    if not isinstance(config, Mapping):
        if "config" in content:
            learn("config", config)
            document.problems.append(Problem("config", "Must be an object of properties", file=document.file))
        _report_repeated(document, content)
        return {name: value for name, value in content.items() if name != "config"}
    _report_repeated(document, content)
    _report_repeated(document, config)
    flat = dict(config)
    for name, value in content.items():
        if name == "name":
            inner = flat.setdefault("name", value)
            if inner != value:
                document.problems.append(Problem("name", "Differs from the name inside config", file=document.file))
        elif name not in ("config", "initial_state", "tasks", "type"):
            # Whatever it is, it may hold a password, and its name says where it stands.
            learn(name, value)
            document.problems.append(
                Problem(name, "Is next to config instead of inside it", None, "move it into config", document.file)
            )
    return flat


def _report_repeated(document: Document, content: Mapping[str, Any]) -> None:
    for name in getattr(content, "repeated", ()):
        document.problems.append(Problem(name, "Is given twice", file=document.file))


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


def environment_properties(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Worker properties in the environment: property → (variable, text). ``__`` stands for ``_``, ``___`` for ``-``."""
    found = {}
    for variable, text in sorted(environ.items()):
        if variable.startswith(ENVIRONMENT_PREFIX) and len(variable) > len(ENVIRONMENT_PREFIX):
            rest = variable[len(ENVIRONMENT_PREFIX) :].lower()
            name = rest.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
            found[name] = (variable, text)
    return found


def provider_names(worker: Document) -> dict[str, str]:
    """Which provider each name in ``${name:…}`` means, including those the worker file names itself."""
    names = {provider: provider for provider in _PROVIDERS}
    for alias in worker.written.get("config.providers", "").split(","):
        alias = alias.strip()
        if not alias:
            continue
        class_name = worker.written.get(f"config.providers.{alias}.class", "")
        known = _PROVIDER_CLASSES.get(class_name.rsplit(".", 1)[-1])
        if known:
            names[alias] = known
        elif alias not in names:
            worker.problems.append(
                Problem(
                    f"config.providers.{alias}.class",
                    "This provider of secrets is not supported",
                    class_name or None,
                    "supported: " + ", ".join(_PROVIDER_CLASSES),
                    worker.file,
                )
            )
    return names


def resolve_references(document: Document, environ: Mapping[str, str], providers: Mapping[str, str]) -> None:
    """Replaces ``${env:NAME}``, ``${file:/path:key}`` and ``${directory:/path:name}`` in ``texts``."""
    for name, written in document.written.items():
        if "${" not in written:
            continue

        def replace(match: re.Match[str], name: str = name) -> str:
            provider, path, key = match.group(1).strip(), (match.group(2) or "").strip(), match.group(3).strip()
            kind = providers.get(provider)
            if kind is None:
                problem = f"There is no provider '{provider}' for {match.group()}"
                hint = "known: " + ", ".join(sorted(providers))
                document.problems.append(Problem(name, problem, None, hint, document.place(name)))
                document.broken.add(name)
                return match.group()
            found, problem = _look_up(kind, path, key, environ)
            if found is None:
                document.problems.append(Problem(name, f"{match.group()}: {problem}", None, None, document.place(name)))
                document.broken.add(name)
                return match.group()
            if name not in PUBLIC_NAMES:
                learn_resolved(name, found, match.group())
            return found

        document.texts[name] = _REFERENCE.sub(replace, written)
        learn(name, document.texts[name])


def _look_up(kind: str, path: str, key: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    if kind == "env":
        found = environ.get(key)
        return found, f"the environment variable {key} is not set"
    target = Path(path) / key if kind == "directory" else Path(path)
    try:
        content = _content(target).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "is not UTF-8 text"
        return None, f"the file {target} cannot be read: {reason}"
    if kind == "directory":
        return content.rstrip("\r\n"), ""
    return java_properties(content).get(key), f"the file {target} has no key {key}"


def java_properties(content: str) -> dict[str, str]:
    """The pairs of a ``.properties`` file: ``=``, ``:`` or blanks between, ``#`` and ``!`` comments, continuation."""
    pairs = {}
    lines = iter(content.splitlines())
    for line in lines:
        logical = line.lstrip()
        if not logical or logical[0] in "#!":
            continue
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, "").lstrip()
        match = re.match(r"((?:\\.|[^\\=:\s])*)(?:\s*[=:]\s*|\s+)?(.*)", logical, re.DOTALL)
        assert match is not None
        pairs[_unescape(match.group(1))] = _unescape(match.group(2))
    return pairs


def _unescape(text: str) -> str:
    plain = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def replace(match: re.Match[str]) -> str:
        if match.group(1):
            return chr(int(match.group(1), 16))
        return plain.get(match.group(2), match.group(2))

    plainly = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", replace, text, flags=re.DOTALL)
    # Java writes what lies beyond 16 bits as two halves; a half alone is none of any text.
    return plainly.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
