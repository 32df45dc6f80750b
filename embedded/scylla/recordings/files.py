"""The three kinds of recordings as values, and their files.

In: a path; gzip or plain, told by the bytes, not by the name. Out: a `Seeded`, `Answers` or `Histories`; a
`RecordingError` that names file and line where the file is damaged or no recording. Fields that a recording may lack
have defaults, fields that nobody knows are kept out of the comparison.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.errors import Problem, UsageError

# Bound values: the bytes of the wire, None, or this for a value that is not set.
UNSET = "unset"
# Recordings have no number of their format so far; one that names a later one is not understood.
FORMAT = 1

Batch = list[dict[str, Any]]
Place = tuple[tuple[str, ...], int]


class RecordingError(UsageError):
    """A file that is no recording, or not whole."""

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        place = f"{path}, line {line}" if line is not None else str(path)
        super().__init__([Problem("recording", problem, file=place)])


@dataclass(frozen=True)
class Write:
    """One step of a seeded recording: a statement, or several that are one UNLOGGED batch."""

    kind: str
    statements: list[tuple[str, list[str | None]]]
    answer: Any = "ok"


@dataclass
class Seeded:
    """`logs`: per table, per partition and write timestamp, the log's batches. `rows`: the base tables at the end."""

    keyspace: str
    tablets: bool
    floor: int
    types: dict[str, list[list[str]]]
    creates: list[tuple[str, str]]
    writes: list[Write]
    logs: dict[str, dict[Place, list[Batch]]] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)
    version: str = ""
    # The primary keys, as the server that played it describes them; not written.
    keys: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Answers:
    """`answers`: statements with columns and rows, or error and message; the keyspace is `{k}` in all texts."""

    answers: list[dict[str, Any]]
    columns: dict[str, list[list[Any]]]
    local: dict[str, str]
    supported: dict[str, list[str]]
    tablets: bool
    version: str = ""


@dataclass
class Histories:
    """As `Answers`, each statement with all columns of the keyspace after it; `logs` per table and partition."""

    keyspace: str
    tablets: bool
    statements: list[dict[str, Any]]
    logs: dict[str, dict[str, Batch]]
    version: str = ""


Recording = Seeded | Answers | Histories


def read_recording(path: Path) -> Recording:
    """What the file holds; which kind it is, is told by its content."""
    text = _text(path)
    if not text.strip():
        raise RecordingError(path, "the file is empty")
    first = text.split("\n", 1)[0]
    try:
        head = json.loads(first)
    except ValueError:
        head = None
    try:
        if isinstance(head, dict) and "statements" not in head and "answers" not in head:
            return _seeded(path, text, head)
        try:
            whole = json.loads(text)
        except ValueError as error:
            raise RecordingError(path, f"not JSON: {error}", getattr(error, "lineno", None)) from None
        return _whole(path, whole)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise RecordingError(path, f"not a recording: {type(error).__name__}: {error}") from None


def write_recording(recording: Recording, path: Path) -> None:
    """The file in the form of its kind; gzip when the name ends so, and then the same bytes every time."""
    text = "\n".join(_lines(recording)) + "\n"
    content = text.encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}") from None
    if content[:2] == b"\x1f\x8b":
        unpacked = zlib.decompressobj(wbits=31)
        try:
            text = unpacked.decompress(content)
        except zlib.error as error:
            whole = _readable_lines(content)
            raise RecordingError(path, f"the gzip file is damaged: {error}", whole + 1) from None
        if not unpacked.eof:
            raise RecordingError(path, "the gzip file is damaged: it ends too early", text.count(b"\n") + 1)
        content = text
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise RecordingError(path, "not UTF-8", content.count(b"\n", 0, error.start) + 1) from None


def _readable_lines(content: bytes) -> int:
    """How many lines come out of a damaged gzip file before the damage."""
    unpacked, lines = zlib.decompressobj(wbits=31), 0
    for at in range(0, len(content), 512):
        try:
            lines += unpacked.decompress(content[at : at + 512]).count(b"\n")
        except zlib.error:
            break
    return lines


def _seeded(path: Path, text: str, head: dict[str, Any]) -> Seeded:
    if not isinstance(head.get("keyspace"), str):
        raise RecordingError(path, 'not a recording: the first line has no "keyspace"', 1)
    _check_format(path, head)
    seeded = Seeded(
        keyspace=head["keyspace"],
        tablets=bool(head.get("tablets", False)),
        floor=int(head.get("floor", 0)),
        types={name: [list(each) for each in fields] for name, fields in head.get("types", {}).items()},
        creates=[],
        writes=[],
        version=str(head.get("version", "")),
    )
    for number, line in enumerate(text.split("\n")[1:], 2):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            _add(seeded, item)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = "not JSON" if isinstance(error, json.JSONDecodeError) else "not a line of a recording"
            raise RecordingError(path, f"{what}: {error}", number) from None
    if not seeded.creates or not seeded.writes:
        raise RecordingError(path, "the recording has no tables or no statements: it is not whole", number)
    missing = [table for table, _ in seeded.creates if table not in seeded.rows]
    if missing:
        raise RecordingError(path, f"the rows of {', '.join(missing)} are missing: the file is not whole", number)
    return seeded


def _add(seeded: Seeded, item: dict[str, Any]) -> None:
    if "create" in item:
        seeded.creates.append((item["table"], item["create"]))
    elif "statements" in item:
        statements = [(text, list(values)) for text, values in item["statements"]]
        for text, values in statements:
            if not isinstance(text, str):
                raise ValueError(f"{text!r} is not a statement")
            for value in values:
                bytes.fromhex(value) if value is not None and value != UNSET else None
        seeded.writes.append(Write(item.get("kind", ""), statements, item.get("answer", "ok")))
    elif "log" in item:
        place = (tuple(item["partition"]), int(item["us"]))
        seeded.logs.setdefault(item["table"], {})[place] = item["log"]
    elif "rows" in item:
        seeded.rows[item["table"]] = [row if isinstance(row, str) else json.dumps(row) for row in item["rows"]]
    else:
        raise ValueError(f"neither a table, statements, a log nor rows but {', '.join(item) or 'nothing'}")


def _whole(path: Path, item: Any) -> Answers | Histories:
    if not isinstance(item, dict):
        raise RecordingError(path, "not a recording: no JSON object")
    _check_format(path, item)
    version = str(item.get("version", ""))
    if "answers" in item:
        _check_statements(path, item["answers"])
        return Answers(
            item["answers"],
            item.get("columns", {}),
            item.get("local", {}),
            item.get("supported", {}),
            tablets=bool(item.get("tablets", _made_with_tablets(item["answers"], path))),
            version=version,
        )
    if "statements" in item:
        _check_statements(path, item["statements"])
        keyspace, tablets = str(item.get("keyspace", "")), bool(item.get("tablets", False))
        return Histories(keyspace, tablets, item["statements"], item.get("logs", {}), version)
    raise RecordingError(path, "not a recording: neither tables with statements, nor answers, nor a history")


def _check_statements(path: Path, statements: Any) -> None:
    for number, each in enumerate(statements, 1):
        if not isinstance(each, dict) or not isinstance(each.get("statement"), str):
            raise RecordingError(path, f"not a recording: entry {number} has no statement")


def _check_format(path: Path, item: dict[str, Any]) -> None:
    if item.get("format", FORMAT) != FORMAT:
        raise RecordingError(
            path, f"its format {item['format']} is not known here (known: {FORMAT}): a newer scylla-cdc made it", 1
        )


def _made_with_tablets(answers: list[dict[str, Any]], path: Path) -> bool:
    """Recordings of answers did not say so at first; what a write from the past is told gives it away."""
    told = any("could not find any CDC streams for table" in str(each.get("message")) for each in answers)
    return told or "tablets" in path.name


def _lines(recording: Recording) -> Iterator[str]:
    if isinstance(recording, Seeded):
        yield from _seeded_lines(recording)
    elif isinstance(recording, Answers):
        content = {
            "answers": recording.answers,
            "columns": recording.columns,
            "local": recording.local,
            "supported": recording.supported,
            "tablets": recording.tablets,
            "version": recording.version,
        }
        yield json.dumps(content, indent=1, sort_keys=True)
    else:
        content = {
            "version": recording.version,
            "keyspace": recording.keyspace,
            "tablets": recording.tablets,
            "statements": recording.statements,
            "logs": recording.logs,
        }
        yield json.dumps(content, indent=1)


def _seeded_lines(seeded: Seeded) -> Iterator[str]:
    yield json.dumps(
        {
            "version": seeded.version,
            "keyspace": seeded.keyspace,
            "tablets": seeded.tablets,
            "floor": seeded.floor,
            "types": seeded.types,
        }
    )
    for table, text in seeded.creates:
        yield json.dumps({"create": text, "table": table})
    for write in seeded.writes:
        yield json.dumps({"kind": write.kind, "statements": write.statements, "answer": write.answer})
    for table, _ in seeded.creates:
        for (partition, us), log in seeded.logs.get(table, {}).items():
            yield json.dumps({"table": table, "partition": partition, "us": us, "log": log})
        yield json.dumps({"table": table, "rows": seeded.rows[table]})
