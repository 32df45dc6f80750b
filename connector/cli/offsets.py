"""`scylla-cdc offsets`: positions of a stopped connector, looked at, moved, or taken over from the Java connector."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.output import Output
from connector.config import Configuration
from connector.errors import Problem, UsageError


class OffsetsCommand:
    name = "offsets"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
        show = actions.add_parser("show", help="show stored positions per table, slot and stream")
        reset = actions.add_parser("reset", help="set positions to another time")
        reset.add_argument("--to", required=True, metavar="oldest|now|MS", help="where to start")
        reset.add_argument("--table", metavar="T", help="only this table (default: all of the connector)")
        taken = actions.add_parser("import", help="resume where a Java connector stopped")
        taken.add_argument(
            "--from-topic", metavar="TOPIC", default="connect-offsets", help="Kafka Connect's offsets topic"
        )
        taken.add_argument("--from-connector", metavar="NAME", help="its name (default: this connector's)")
        for action in (show, reset, taken):
            add_configuration_arguments(action)

    def run(self, args: argparse.Namespace, output: Output) -> int:
        configuration = load_configuration(args)
        if args.action == "show":
            return _show(configuration, output)
        if args.action == "reset":
            return _reset(configuration, args, output)
        return _import(configuration, args, output)


def _show(configuration: Configuration, output: Output) -> int:
    from connector.worker.positions import Positions

    stored = sorted(Positions(configuration).stored(), key=lambda each: (each.table, each.slot, each.stream or b""))
    rows = [
        [
            str(each.table),
            each.slot,
            "mark" if each.stream is None else "0x" + each.stream.hex(),
            each.read_to,
            datetime.fromtimestamp(each.read_to / 1000, UTC).isoformat(timespec="milliseconds"),
            each.detail.get("owner") or each.detail.get("after"),
        ]
        for each in stored
    ]
    output.table(["table", "slot", "stream", "read_to", "time", "owner or after"], rows)
    return 0


def _reset(configuration: Configuration, args: argparse.Namespace, output: Output) -> int:
    from connector.worker.positions import Positions

    tables = list(configuration.connector.reading.tables)
    if args.table is not None:
        tables = [table for table in tables if str(table) == args.table]
        if not tables:
            raise UsageError([Problem("--table", "is not a table of this connector", args.table, file="command line")])
    to_ms = _moment(args.to)
    Positions(configuration).reset(tables, to_ms)
    names = ", ".join(str(table) for table in tables)
    output.result(
        {"tables": [str(table) for table in tables], "read_to": to_ms}, f"{names}: reading begins at {args.to}"
    )
    return 0


def _import(configuration: Configuration, args: argparse.Namespace, output: Output) -> int:
    from connector.worker.java_offsets import import_offsets

    report = import_offsets(configuration, args.from_topic, args.from_connector or configuration.connector.name)
    output.result(report.document(), report.text())
    return 0


def _moment(text: str) -> int:
    if text == "oldest":
        return 0
    if text == "now":
        return int(time.time() * 1000)
    try:
        moment = int(text)
    except ValueError:
        moment = -1
    if moment < 0:
        raise UsageError(
            [Problem("--to", "is not a moment", text, "oldest, now, or milliseconds since 1970", "command line")]
        )
    return moment


COMMAND = OffsetsCommand()
