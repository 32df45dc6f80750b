"""`scylla-cdc offsets`: positions of a stopped connector, looked at, moved, or taken over from the Java connector."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.moments import FORMS, moment, told
from connector.cli.output import Output
from connector.config import Configuration
from connector.errors import Problem, UsageError
from connector.suggestions import did_you_mean
from connector.worker.plausible_times import iso

if TYPE_CHECKING:
    from connector.table_name import TableName
    from connector.worker.positions import StoredPosition

OLDEST = 0
_COLUMNS = ("table", "slot", "stream", "read_to", "time", "owner", "after")


class OffsetsCommand:
    name = "offsets"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
        show = actions.add_parser("show", help="show stored positions: a line per table, or per slot and stream")
        show.add_argument("--slots", action="store_true", help="a line for each slot and stream (always with --json)")
        reset = actions.add_parser("reset", help="set positions to another time")
        reset.add_argument(
            "--to", required=True, type=_target, metavar=f"oldest|now|{FORMS}", help="where to start; shown as a date"
        )
        reset.add_argument("--dry-run", action="store_true", help="only report what would be done")
        taken = actions.add_parser("import", help="resume where a Java connector stopped")
        place = taken.add_mutually_exclusive_group()
        place.add_argument(
            "--from-topic", metavar="TOPIC", default="connect-offsets", help="Kafka Connect's offsets topic"
        )
        place.add_argument(
            "--from-file", metavar="FILE", type=Path, help="connect-standalone's offset.storage.file.filename"
        )
        taken.add_argument("--from-connector", metavar="NAME", help="its name (default: this connector's)")
        for action in (show, reset, taken):
            action.add_argument("--table", metavar="T", help="only this table (default: all of the connector)")
            add_configuration_arguments(action)

    def run(self, args: argparse.Namespace, output: Output) -> int:
        configuration = load_configuration(args)
        if args.action == "show":
            return _show(configuration, args, output)
        if args.action == "reset":
            return _reset(configuration, args, output)
        return _import(configuration, args, output)


def _show(configuration: Configuration, args: argparse.Namespace, output: Output) -> int:
    from connector.delivery import patiently
    from connector.worker.positions import Positions

    wanted = None if args.table is None else {str(table) for table in _tables(configuration, args.table)}
    stored = sorted(
        (each for each in patiently(Positions(configuration).stored) if wanted is None or str(each.table) in wanted),
        key=lambda each: (each.table, each.slot, each.stream or b""),
    )
    if args.slots or getattr(args, "json", False):
        output.table(_COLUMNS, [_row(each) for each in stored])
    else:
        output.table(("table", "slots", "slowest", "fastest", "streams", "owners"), _summary(stored))
    return 0


def _row(each: StoredPosition) -> list[Any]:
    stream = "mark" if each.stream is None else "0x" + each.stream.hex()
    owner, after = each.detail.get("owner"), each.detail.get("after")
    return [str(each.table), each.slot, stream, each.read_to, _when(each.read_to), owner, after]


def _summary(stored: Sequence[StoredPosition]) -> Iterable[list[Any]]:
    """A line per table: its slots, how far they are, how many streams have positions of their own."""
    for table in dict.fromkeys(each.table for each in stored):
        its = [each for each in stored if each.table == table]
        marks = [each for each in its if each.stream is None]
        reached = [each.read_to for each in marks or its]
        owners = sorted({str(each.detail["owner"]) for each in marks if each.detail.get("owner")})
        shown = ", ".join(owners[:3]) + (f" and {len(owners) - 3} more" if len(owners) > 3 else "")
        yield [str(table), len(marks), _when(min(reached)), _when(max(reached)), len(its) - len(marks), shown]


def _when(ms: int) -> str:
    return "oldest" if ms == OLDEST else iso(ms)


def _tables(configuration: Configuration, given: str | None) -> list[TableName]:
    tables = list(configuration.connector.reading.tables)
    if given is None:
        return tables
    chosen = [table for table in tables if str(table) == given]
    if not chosen:
        hint = did_you_mean(given, [str(table) for table in tables])
        raise UsageError([Problem("--table", "is not a table of this connector", given, hint, file="command line")])
    return chosen


def _reset(configuration: Configuration, args: argparse.Namespace, output: Output) -> int:
    from connector.delivery import patiently
    from connector.errors import TransactionAborted, UnknownOutcome
    from connector.worker.positions import Positions

    tables, to_ms, positions = _tables(configuration, args.table), args.to, Positions(configuration)
    where = "the oldest change in the log" if to_ms == OLDEST else told(to_ms)
    before: dict[str, int] = {}
    if args.dry_run:
        patiently(positions.refuse_while_running)
        for each in patiently(lambda: positions.stored() if positions.exist() else []):
            before[str(each.table)] = min(before.get(str(each.table), each.read_to), each.read_to)
        lines = [
            f"  {table}: reading would begin at {where}, now at {_told(before.get(str(table)))}" for table in tables
        ]
        text = "\n".join(["Dry run, nothing was changed.", *lines])
    else:
        # What became of a transaction does not matter: the next one says the same.
        patiently(lambda: positions.reset(tables, to_ms), TransactionAborted, UnknownOutcome)
        text = f"{', '.join(map(str, tables))}: reading begins at {where}{_of_snapshots(configuration)}"
    result: dict[str, Any] = {"tables": [str(table) for table in tables], "read_to": to_ms}
    result |= {"time": None if to_ms == OLDEST else iso(to_ms), "dry_run": args.dry_run}
    if args.dry_run:
        result["before"] = {str(table): before.get(str(table)) for table in tables}
    output.result(result, text)
    return 0


def _of_snapshots(configuration: Configuration) -> str:
    """What becomes of the rows that are older than the log."""
    if configuration.connector.output.strict or configuration.connector.reading.snapshot_mode in ("no_data", "never"):
        return ""
    return (
        "\nNo snapshot begins by this, and one that is under way goes on where it stood. "
        "To have all rows written again: scylla-cdc snapshot start"
    )


def _told(ms: int | None) -> str:
    if ms is None:
        return "no stored position"
    return "the oldest change in the log" if ms == OLDEST else told(ms)


def _import(configuration: Configuration, args: argparse.Namespace, output: Output) -> int:
    from connector.delivery import patiently
    from connector.errors import TransactionAborted, UnknownOutcome
    from connector.worker.java_offsets import import_offsets

    place, name = args.from_file or args.from_topic, args.from_connector or configuration.connector.name
    tables = None if args.table is None else _tables(configuration, args.table)
    taken_over = partial(import_offsets, configuration, place, name, tables)
    report = patiently(taken_over, TransactionAborted, UnknownOutcome)
    output.result(report.document(), report.text())
    return 0


def _target(text: str) -> int:
    return OLDEST if text.strip().lower() == "oldest" else moment(text)


COMMAND = OffsetsCommand()
