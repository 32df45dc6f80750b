"""`scylla-cdc transform`: applies a transform to records that come as JSON lines on stdin, in order, to stdout.

A line is `{"topic", "key", "value", "headers"}`, and `"partition", "timestamp", "offset"` where they are known; key and
value are bare or `{"schema", "payload"}`, `null` is null bytes. Dropped records print nothing. Options are checked
before stdin is read.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from connector.cli.output import Output
from connector.config import is_secret_name
from connector.errors import CdcError, ConfigurationError, Problem, UsageError

if TYPE_CHECKING:
    from smt import Place, Record, SmtOptionError, Transform

_MEMBERS = ("topic", "key", "value", "headers", "partition", "timestamp", "offset")
_PLACE = ("partition", "timestamp", "offset")


class TransformCommand:
    name = "transform"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--type",
            required=True,
            metavar="TYPE",
            help="extract-new-state (safe defaults), or a class of Java's, in full or short: "
            "ScyllaExtractNewRecordState, ScyllaFlattenColumns, ReplaceField$Value, … (docs/smt.md lists them)",
        )
        parser.add_argument(
            "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the transform; repeatable"
        )

    def run(self, args: argparse.Namespace, output: Output) -> int:
        transform = _build(args.type, args.option)
        for note in transform.notes:
            output.note(note)
        if isinstance(sys.stdin, io.TextIOWrapper):
            # A line that is no text is named by its number, like any other line that is no record.
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        run_lines(transform, sys.stdin, output.stdout)
        return 0


def run_lines(transform: Transform, lines: IO[str], out: IO[str]) -> None:
    """Applies the transform to each line; the first line that it cannot be applied to ends the work."""
    from smt import SmtOptionError, SmtRecordError

    schemas: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record, wrapped = _read(line, number, schemas)
            found = transform.apply(record)
            written = None if found is None else _line(found, wrapped)
        except RecursionError:
            raise CdcError(f"line {number} of stdin is nested too deeply") from None
        except SmtOptionError as error:
            raise ConfigurationError(_problems(error, f"line {number} of stdin")) from None
        except SmtRecordError as error:
            raise CdcError(f"line {number} of stdin: {error}") from None
        if written is not None:
            out.write(written)
            # Whoever reads a live topic through a pipe wants each record when it comes.
            out.flush()


def _build(type_name: str, pairs: Sequence[str]) -> Transform:
    from smt import SmtOptionError, build_transform

    options: dict[str, str] = {}
    problems = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            problems.append(Problem("--option", "Must be name=value", pair, file="command line"))
        elif name.strip() in options:
            problems.append(Problem(name.strip(), "Is given twice", value, file="command line"))
        else:
            options[name.strip()] = value
    try:
        transform = build_transform(type_name, options)
    except SmtOptionError as error:
        raise UsageError([*problems, *_problems(error, "command line")]) from None
    if problems:
        raise UsageError(problems)
    return transform


def _problems(error: SmtOptionError, place: str) -> list[Problem]:
    return [
        Problem(
            one.option or "--type",
            one.problem,
            None if is_secret_name(one.option) else one.value,
            one.suggestion,
            place,
        )
        for one in error.problems
    ]


def _read(line: str, number: int, schemas: dict[str, Any]) -> tuple[Record, tuple[bool, bool]]:
    """The record of a line, and whether its key and its value came with their schemas around them."""
    from smt import Place, Record, unwrap

    def fail(reason: str) -> CdcError:
        return CdcError(f"line {number} of stdin {reason}")

    try:
        line.encode()
        given = json.loads(line)
        if "\\u" in line:
            json.dumps(given, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise fail(f"is not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeEncodeError:
        raise fail("is no text: not UTF-8, or half of a \\u pair") from None
    except ValueError:
        raise fail("holds a number of more digits than can be read") from None
    if not isinstance(given, dict):
        raise fail('is no record: {"topic", "key", "value", "headers"} is expected')
    unknown = [name for name in given if name not in _MEMBERS]
    if unknown:
        raise fail(f"has an unknown member {unknown[0]!r}: {', '.join(_MEMBERS)} are expected")
    headers = given.get("headers") or {}
    topic = given.get("topic") or ""
    if not isinstance(headers, dict) or not isinstance(topic, str):
        raise fail("is no record: topic is a text and headers are an object")
    key_schema, key, key_wrapped = unwrap(given.get("key"), schemas)
    value_schema, value, value_wrapped = unwrap(given.get("value"), schemas)
    place = Place(*(given.get(name) for name in _PLACE))
    if any(part is not None and type(part) is not int for part in place):
        raise fail("is no record: partition, timestamp and offset are whole numbers")
    headers_of = list(headers.items())
    record = Record(topic, key, value, headers_of, key_schema, value_schema, place if any(_known(place)) else None)
    return record, (key_wrapped, value_wrapped)


def _known(place: Place) -> list[bool]:
    return [part is not None for part in place]


def _line(record: Record, wrapped: tuple[bool, bool]) -> str:
    from smt import json_text, json_value, wrap

    place = record.place._asdict() if record.place is not None else {}
    line = {
        "topic": record.topic,
        "key": wrap(record.key_schema, record.key, wrapped[0]),
        "value": wrap(record.value_schema, record.value, wrapped[1]),
        "headers": {name: json_value(value) for name, value in record.headers},
        **{name: part for name, part in place.items() if part is not None},
    }
    return json_text(line) + "\n"


COMMAND = TransformCommand()
