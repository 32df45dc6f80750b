"""`scylla-cdc migrate`: from a Kafka Connect user's files to this service's two, with a word on every line.

In: files of connectors and of the worker, in any form that `run` takes. Out: one line for each property: kept, no
effect, changed or impossible; with `--to`, the files. Status 2: something is impossible and has to be mended by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connector.cli.output import Output
from connector.config import (
    Configuration,
    Document,
    Line,
    Migrated,
    Verdict,
    connector_document,
    is_worker_document,
    load,
    migrate_connector,
    of_another_connector,
    read_documents,
)
from connector.errors import CdcError, ConfigurationError, FatalSourceError, Problem, UsageError
from connector.values import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType, VectorType

if TYPE_CHECKING:
    from connector.worker.java_offsets import ImportReport

FLOATS = "keys with columns of type float or double are spelled as since Java 19, other keys where Java was older"
CONNECT_OFFSETS = "connect-offsets"


class MigrateCommand:
    name = "migrate"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "files", type=Path, nargs="+", metavar="FILE", help="files of connectors, and the worker's file"
        )
        parser.add_argument("--to", type=Path, metavar="DIR", help="write the files there (default: only report)")
        parser.add_argument("--force", action="store_true", help="overwrite files in DIR")
        parser.add_argument("--online", action="store_true", help="look at the tables in ScyllaDB, too")
        parser.add_argument(
            "--import-positions", action="store_true", help="resume where the stopped Java connectors stopped"
        )
        place = parser.add_mutually_exclusive_group()
        place.add_argument(
            "--from-topic", metavar="TOPIC", help="Kafka Connect's offsets topic (default: the worker's)"
        )
        place.add_argument(
            "--from-file",
            type=Path,
            metavar="FILE",
            help="connect-standalone's file of positions (default: the worker's offset.storage.file.filename)",
        )

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from connector.formats import check_transform

        if args.import_positions and args.to is None:
            raise UsageError([Problem("--import-positions", "needs --to: positions belong to the new files")])
        connectors, worker = _sorted(args.files)
        lines = [_left(document) for document in connectors if of_another_connector(document)]
        ours = [_named(document) for document in connectors if not of_another_connector(document)]
        migrated: list[Migrated] = []
        of_worker: Migrated | None = None
        for document in ours or [Document("connector", readable=False)]:
            one, of_worker = migrate_connector(
                document, worker, cores=os.cpu_count() or 1, transform_check=check_transform
            )
            migrated += [one] if ours else []
            lines += [*one.lines, *_float_lines(one, args.online)] if ours else []
        assert of_worker is not None
        lines += of_worker.lines
        written = _write(args.to, migrated, of_worker, args.force) if args.to else {}
        possible = all(line.verdict is not Verdict.IMPOSSIBLE for line in lines)
        imported = _import(args, migrated, of_worker, written) if args.import_positions and possible else []
        unimported = ["no positions were imported: that needs files without anything impossible"]
        output.result(
            {
                "possible": possible,
                "lines": [_line_document(line) for line in lines],
                "files": [str(path) for path in written.values()],
                "positions": [report.document() for report in imported],
            },
            "\n".join(
                [
                    *_report(lines),
                    *[report.text() for report in imported],
                    *(unimported if args.import_positions and not possible else []),
                    *_steps(migrated, of_worker, written, possible, args),
                ]
            ),
        )
        return 0 if possible else 2


# -- reading ---------------------------------------------------------------------------------------------------


def _sorted(files: Iterable[Path]) -> tuple[list[Document], Document]:
    """The connectors, and the worker: what is missing of them is empty."""
    documents = [document for file in files for document in read_documents(file, "file")]
    unreadable = [problem for document in documents if not document.readable for problem in document.problems]
    if unreadable:
        raise ConfigurationError(unreadable)
    workers = [document for document in documents if is_worker_document(document)]
    if len(workers) > 1:
        text = "There is one worker's file for all connectors, and this is another one"
        raise UsageError([Problem("FILE", text, workers[1].file, f"beside {workers[0].file}", "command line")])
    connectors = [document for document in documents if not is_worker_document(document)]
    return connectors, workers[0] if workers else Document("worker")


def _named(document: Document) -> Document:
    """Files that were written for `PUT /connectors/NAME/config` have no name."""
    if "name" not in document.texts:
        name = Path(document.file).stem
        document.put("name", name)
        document.notes.append(("name", "the file has none: this is the file's own"))
    return document


def _left(document: Document) -> Line:
    text = f"another connector, {document.texts['connector.class']}: it stays where it is"
    return Line(document.file, "connector.class", Verdict.NO_EFFECT, text)


# -- looking at tables -----------------------------------------------------------------------------------------


def _float_lines(one: Migrated, online: bool) -> list[Line]:
    file, name = one.document.file, "(float keys)"
    if not online or one.configuration is None:
        return [Line(file, name, Verdict.CHANGED, f"{FLOATS}; --online looks whether there are any")]
    keys, unusable = _float_keys(one.configuration)
    lines = [Line(file, "scylla.table.names", Verdict.IMPOSSIBLE, why) for why in unusable]
    found = [f"{table}: {', '.join(columns)}" for table, columns in keys.items() if columns]
    if not found:
        return [*lines, Line(file, name, Verdict.KEPT, "no key has a column of type float or double")]
    return [*lines, Line(file, name, Verdict.CHANGED, f"{FLOATS}: {'; '.join(found)}")]


def _float_keys(configuration: Configuration) -> tuple[dict[str, list[str]], list[str]]:
    """By table; and what is wrong with the other ones."""
    from connector.source import Connection, connection_settings, describe_tables

    connection = Connection(connection_settings(configuration.connector.connection))
    try:
        connection.open()
        described = describe_tables(connection, configuration.connector.reading.tables)
    finally:
        connection.close()
    keys, unusable = dict[str, list[str]](), list[str]()
    for table, found in described.items():
        if isinstance(found, FatalSourceError):
            unusable.append(str(found))
        else:
            columns = found.description.columns
            keys[str(table)] = [each.name for each in columns if each.is_key and _has_floats(each.type)]
    return keys, unusable


def _has_floats(kind: CqlType) -> bool:
    match kind:
        case NativeType():
            return kind.name in ("float", "double")
        case ListType() | SetType() | VectorType():
            return _has_floats(kind.element)
        case MapType():
            return _has_floats(kind.key) or _has_floats(kind.value)
        case TupleType():
            return any(map(_has_floats, kind.elements))
        case UserType():
            return any(_has_floats(each) for _, each in kind.fields)


# -- writing ---------------------------------------------------------------------------------------------------


def _write(to: Path, migrated: list[Migrated], worker: Migrated, force: bool) -> dict[str, Path]:
    """The files that were written, by the file that each was made of."""
    contents: dict[str, tuple[Path, Any, bool]] = {}
    for one in migrated:
        name = one.properties.get("name", "connector")
        path = to / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name) if name != 'worker' else 'connector'}.json"
        contents[one.document.file] = (path, connector_document(name, one.properties), one.holds_secrets)
    if worker.properties:
        contents[worker.document.file] = (to / "worker.json", worker.properties, worker.holds_secrets)
    taken = [path for path, _, _ in contents.values()]
    problems = [
        Problem("--to", "is there already", str(path), "--force overwrites it", "command line")
        for path in taken
        if path.exists() and not force
    ]
    problems += [
        Problem("FILE", "two connectors have the same name", str(path), file="command line")
        for path in sorted({path for path in taken if taken.count(path) > 1})
    ]
    if any(each.exists() and not each.is_dir() for each in (to, *to.parents)):
        problems.append(Problem("--to", "is not a folder", str(to), file="command line"))
    if problems:
        raise UsageError(problems)
    to.mkdir(parents=True, exist_ok=True)
    for path, content, secret in contents.values():
        _put(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n", 0o600 if secret else 0o644)
    return {file: path for file, (path, _, _) in contents.items()}


def _put(path: Path, text: str, mode: int) -> None:
    """A file that nobody else can read before it is complete, nor after, if it holds secrets."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CdcError(f"{path} cannot be written: {error.strerror or error}") from None


# -- positions -------------------------------------------------------------------------------------------------


def _old_place(one: Migrated, worker: Document, args: argparse.Namespace) -> str | Path:
    """The topic, or the file of a worker that was run by `connect-standalone`."""
    if args.from_topic or args.from_file:
        return args.from_topic or args.from_file  # type: ignore[no-any-return]
    topic = one.document.texts.get("offsets.storage.topic") or worker.texts.get("offset.storage.topic")
    file = worker.texts.get("offset.storage.file.filename", "").strip()
    return Path(file) if file and not topic else topic or CONNECT_OFFSETS


def _import(
    args: argparse.Namespace, migrated: list[Migrated], of_worker: Migrated, written: dict[str, Path]
) -> list[ImportReport]:
    from connector.delivery import patiently
    from connector.errors import TransactionAborted, UnknownOutcome
    from connector.worker.java_offsets import import_offsets

    # With its references resolved, as those of the connectors are.
    old_worker = of_worker.document
    worker = written.get(old_worker.file)
    imported = []
    for one in migrated:
        configuration = load(written[one.document.file], worker)
        place = _old_place(one, old_worker, args)
        taken_over = partial(import_offsets, configuration, place, configuration.connector.name)
        imported.append(patiently(taken_over, TransactionAborted, UnknownOutcome))
    return imported


# -- saying it -------------------------------------------------------------------------------------------------


def _report(lines: list[Line]) -> list[str]:
    """By file; what needs a look comes last, where people look first."""
    order = (Verdict.KEPT, Verdict.NO_EFFECT, Verdict.CHANGED, Verdict.IMPOSSIBLE)
    width = max((len(line.property) for line in lines), default=0)
    found: list[str] = []
    for file in dict.fromkeys(line.file for line in lines):
        found.append(file)
        mine = [line for line in lines if line.file == file]
        for line in sorted(mine, key=lambda line: order.index(line.verdict)):
            found.append(f"  {line.verdict.value:<10}  {line.property:<{width}}  {line.text}".rstrip())
    return found


def _line_document(line: Line) -> dict[str, str]:
    return {"file": line.file, "property": line.property, "verdict": line.verdict.value, "text": line.text}


def _steps(
    migrated: list[Migrated], worker: Migrated, written: dict[str, Path], possible: bool, args: argparse.Namespace
) -> list[str]:
    if not written:
        return [] if args.to else ["nothing was written: --to DIR writes the files"]
    found = [f"wrote {path}{_mode(path)}" for path in written.values()]
    if not possible:
        return [*found, "what is impossible was left as it is: mend it there, `scylla-cdc validate` tells what is left"]
    path = written.get(worker.document.file)
    of_worker = f" --worker {path}" if path else ""
    if path is None:
        found.append("there was no worker's file: Kafka is named by CONNECT_BOOTSTRAP_SERVERS or a --worker file")
    for one in migrated:
        files = f"{written[one.document.file]}{of_worker}"
        place = _old_place(one, worker.document, args)
        found.append(f"next: stop the Java connector {one.properties.get('name')}; then")
        if not args.import_positions:
            option = "--from-file" if isinstance(place, Path) else "--from-topic"
            found.append(f"  scylla-cdc offsets import {files} {option} {place}")
        found.append(f"  scylla-cdc run {files}")
    return found


def _mode(path: Path) -> str:
    return " (mode 0600: it holds secrets)" if path.stat().st_mode & 0o77 == 0 else ""


COMMAND = MigrateCommand()
