"""`scylla-cdc read`: the changes of a table as JSON lines, straight from its log, without Kafka."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from connector.cli.output import Output, to_json
from connector.cli.stop import stop_on_sigterm
from connector.errors import Problem, UsageError

if TYPE_CHECKING:
    from connector.source.read_changes import ChangeReader
    from connector.source.settings import ConnectionSettings, ReadingSettings

DEFAULT_ADDRESS = "127.0.0.1:9042"


class ReadCommand:
    name = "read"
    help = "the changes of a table as JSON lines, without Kafka"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("table", metavar="TABLE", help="keyspace.table")
        parser.add_argument("--scylla", metavar="HOST:PORT", help=f"where ScyllaDB is (default: {DEFAULT_ADDRESS})")
        parser.add_argument(
            "--config", type=Path, metavar="CONFIG.json", help="address, login, TLS, confidence from here"
        )
        parser.add_argument("--from", type=int, dest="from_ms", metavar="MS", help="begin here (default: the oldest)")
        parser.add_argument("--until", type=int, metavar="MS", help="read up to here, then end (default: now)")
        parser.add_argument("--follow", action="store_true", help="go on until stopped")
        parser.add_argument("--confidence", type=int, metavar="MS", help="confidence window (default: 30000)")
        parser.add_argument("--raw", action="store_true", help="the rows of the log as well")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from connector.source.read_changes import ChangeReader

        if args.follow and args.until is not None:
            raise UsageError([Problem("--follow", "contradicts --until", file="command line")])
        connection, reading = _settings(args)
        if args.confidence is not None:
            reading = replace(reading, confidence_ms=args.confidence)
        reader = ChangeReader(
            connection,
            [args.table],
            reading=reading,
            from_ms=args.from_ms,
            until_ms=args.until,
            follow=args.follow,
        )
        with stop_on_sigterm() as stop, reader:
            _print(reader, args.raw, stop)
        return 0


def _print(reader: ChangeReader, raw: bool, stop: threading.Event) -> None:
    from connector.formats.readable import batch_document

    for batch in reader.batches(stop.is_set):
        sys.stdout.write(to_json(batch_document(batch, raw)) + "\n")
        sys.stdout.flush()


def _settings(args: argparse.Namespace) -> tuple[ConnectionSettings, ReadingSettings]:
    from connector.config import load
    from connector.source.from_config import connection_settings, reading_settings
    from connector.source.settings import ConnectionSettings, ReadingSettings

    password = os.environ.get("SCYLLA_PASSWORD")
    if args.config is not None:
        # Only the connector's side matters here: no worker file is asked for.
        configuration = load(args.config, {"bootstrap.servers": "unused:9092", "group.id": "read"}, {**os.environ})
        connection = connection_settings(configuration.connector.connection)
        reading = reading_settings(configuration.connector.reading)
    else:
        connection, reading = ConnectionSettings(()), ReadingSettings()
        if password is not None:
            connection = replace(connection, user=os.environ.get("SCYLLA_USER", "cassandra"))
    if args.scylla is not None or not connection.contact_points:
        connection = replace(connection, contact_points=(_address(args.scylla or DEFAULT_ADDRESS),))
    if password is not None:
        connection = replace(connection, password=password)
    return connection, reading


def _address(text: str) -> tuple[str, int]:
    from connector.config.address import parse_contact_points

    try:
        point = parse_contact_points(text)[0]
    except (ValueError, IndexError) as error:
        raise UsageError([Problem("--scylla", str(error) or "is empty", text, "HOST:PORT", "command line")]) from None
    return point.host, point.port


COMMAND = ReadCommand()
