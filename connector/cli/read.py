"""`scylla-cdc read`: the changes of a table as JSON lines, straight from its log, without Kafka."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from connector.cli.moments import FORMS, beginning, moment, told
from connector.cli.output import Output
from connector.errors import Problem, UsageError
from connector.stop_signals import stopped_by
from connector.worker.plausible_times import iso

if TYPE_CHECKING:
    from connector.source import ChangeReader, ConnectionSettings, ReadingSettings

log = logging.getLogger(__name__)

# For so long nothing is printed before a word is said.
QUIET_SECONDS = 10.0
DEFAULT_ADDRESS = "127.0.0.1:9042"


class ReadCommand:
    name = "read"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("table", metavar="TABLE", help="keyspace.table")
        parser.add_argument(
            "--scylla",
            metavar="HOST:PORT",
            help=f"address of ScyllaDB (default: {DEFAULT_ADDRESS}); login by SCYLLA_USER, SCYLLA_PASSWORD",
        )
        parser.add_argument(
            "--config",
            type=Path,
            metavar="CONFIG.json",
            help="take address, login, TLS and confidence window from this file",
        )
        parser.add_argument(
            "--worker",
            type=Path,
            metavar="W.json",
            help="with --config: the file that declares its secret providers",
        )
        parser.add_argument(
            "--from", type=beginning, dest="from_ms", metavar="TIME", help=f"start: {FORMS} (default: the oldest row)"
        )
        parser.add_argument("--until", type=moment, metavar="TIME", help=f"end: {FORMS} (default: now)")
        parser.add_argument("--follow", action="store_true", help="keep reading until stopped")
        parser.add_argument("--confidence", type=int, metavar="MS", help="confidence window (default: 30000)")
        parser.add_argument(
            "--patience",
            type=_seconds,
            metavar="SECONDS",
            help="exit with an error when polling streams or reading changes has failed for this long "
            "(default: 120; inf: never)",
        )
        parser.add_argument("--raw", action="store_true", help="include the rows of the log")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from connector.source import PATIENCE_SECONDS, ChangeReader

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
            patience=PATIENCE_SECONDS if args.patience is None else args.patience,
        )
        with stopped_by(signal.SIGTERM, signal.SIGHUP) as stop, reader:
            _announce(args, reading.confidence_ms)
            _print(reader, args.raw, stop, output)
        return 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return seconds


def _print(reader: ChangeReader, raw: bool, stop: threading.Event, output: Output) -> None:
    from connector.formats import batch_document

    quiet = _Quiet(reader)

    def stopped() -> bool:
        quiet.tick()
        return stop.is_set()

    for batch in reader.batches(stopped):
        output.record(batch_document(batch, raw))
        quiet.printed()


class _Quiet:
    """Says on stderr how far reading is, as long as there is nothing to print."""

    def __init__(self, reader: ChangeReader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader, self._clock, self._batches, self._due = reader, clock, 0, clock() + QUIET_SECONDS

    def printed(self) -> None:
        self._batches += 1
        self._due = self._clock() + QUIET_SECONDS

    def tick(self) -> None:
        if self._clock() >= self._due:
            self._due = self._clock() + QUIET_SECONDS
            reached = self._reader.read_to
            where = "nothing is read yet" if reached is None else f"read up to {iso(max(0, reached))}"
            log.info("%s, %d batches printed", where, self._batches)


def _announce(args: argparse.Namespace, confidence_ms: int) -> None:
    begin = "the oldest row" if not args.from_ms else told(args.from_ms)
    end = "until stopped" if args.follow else f"until {'now' if args.until is None else told(args.until)}"
    log.info("reading %s from %s %s", args.table, begin, end)
    if confidence_ms >= 1000:
        log.info(
            "changes are printed once they are older than the confidence window of %.0f s (--confidence)",
            confidence_ms / 1000,
        )


def _settings(args: argparse.Namespace) -> tuple[ConnectionSettings, ReadingSettings]:
    from connector.config import environment_login, load_connector
    from connector.source import ConnectionSettings, ReadingSettings, connection_settings, reading_settings

    login = environment_login(os.environ)
    if args.config is not None:
        configured = load_connector(args.config, args.worker)
        connection = connection_settings(configured.connection)
        if configured.connection.tls.warning:
            log.warning("TLS to ScyllaDB: %s", configured.connection.tls.warning)
        reading = reading_settings(configured.reading)
    else:
        connection, reading = ConnectionSettings(()), ReadingSettings()
    if args.scylla is not None or not connection.contact_points:
        connection = replace(connection, contact_points=(_address(args.scylla or DEFAULT_ADDRESS),))
    if login is not None:
        connection = replace(connection, user=connection.user or login[0], password=login[1])
    return connection, reading


def _address(text: str) -> tuple[str, int]:
    from connector.config import parse_contact_points

    try:
        point = parse_contact_points(text)[0]
    except (ValueError, IndexError) as error:
        raise UsageError([Problem("--scylla", str(error) or "is empty", text, "HOST:PORT", "command line")]) from None
    return point.host, point.port


COMMAND = ReadCommand()
