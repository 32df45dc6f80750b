"""`scylla-cdc snapshot`: snapshots of a connector that runs: begun, stopped, paused, resumed, looked at.

What is wanted is written to the connector's topic of signals, as anybody may who knows Debezium's.
"""

from __future__ import annotations

import argparse
import re
import secrets
from typing import TYPE_CHECKING

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.output import Output
from connector.config import Configuration
from connector.errors import FatalDeliveryError, Problem, UsageError
from connector.suggestions import did_you_mean

if TYPE_CHECKING:
    from connector.worker.status_document import SnapshotStatus

ACTIONS = {
    "start": "write the rows of tables to their topics, once more",
    "stop": "end snapshots; what is delivered stays",
    "pause": "let snapshots wait; changes go on",
    "resume": "go on with what was paused",
}


_UNHEARD = (
    "no worker of connector {} reports: it is obeyed when one starts again, and not if this would be its first start "
    "with signals"
)


class SnapshotCommand:
    name = "snapshot"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
        for name, text in ACTIONS.items():
            action = actions.add_parser(name, help=text)
            action.add_argument(
                "--table", action="append", metavar="T", help="only this table (default: all); may be repeated"
            )
            if name == "start":
                action.add_argument("--where", metavar="CQL", help="only rows that this condition is true of")
            add_configuration_arguments(action)
        add_configuration_arguments(actions.add_parser("show", help="show the last snapshot of each table"))

    def run(self, args: argparse.Namespace, output: Output) -> int:
        configuration = load_configuration(args)
        return _show(configuration, output) if args.action == "show" else _signal(configuration, args, output)


def _signal(configuration: Configuration, args: argparse.Namespace, output: Output) -> int:
    from connector.delivery import SmallTopic, ensure_topics, patiently
    from connector.worker.settings import kafka_clients, signals_spec
    from connector.worker.signals import Signal, condition

    if not configuration.connector.reading.signals:
        told = 'set "signal.enabled.channels": "kafka", and start the connector again'
        raise UsageError([Problem("signal.enabled.channels", "the connector hears no signals", None, told)])
    tables = _tables(configuration, args.table)
    names = tuple(re.escape(each) for each in tables)
    where = getattr(args, "where", None)
    try:
        if where is not None and not (where := condition(where)):
            raise ValueError("says nothing: without it all rows are written")
    except ValueError as error:
        raise UsageError([Problem("--where", str(error), where, file="command line")]) from None
    filters = tuple((name, where) for name in names) if where else ()
    signal = Signal(f"cli-{secrets.token_hex(4)}", args.action, names, filters)
    clients, spec = kafka_clients(configuration), signals_spec(configuration)
    with clients.named():
        patiently(lambda: ensure_topics(clients.admin(), [spec]))
        running, untold = _heard_by_somebody(configuration)
    topic = SmallTopic(clients, spec, configuration.group)
    topic.write(configuration.connector.output.topic_prefix.encode(), signal.record())
    what = {"signal": signal.id, "action": args.action, "tables": tables, "where": where, "running": running}
    text = f"asked to {args.action}: {', '.join(tables)} (signal {signal.id})"
    if not running:
        text += f"\n{untold or _UNHEARD.format(configuration.connector.name)}"
    output.result(what, text)
    return 0


def _heard_by_somebody(configuration: Configuration) -> tuple[bool | None, str]:
    """Whether a worker of the connector runs; None: nobody tells us, and why. Who may ask for a snapshot need not see
    what workers report."""
    from connector.delivery import patiently
    from connector.worker.reports import reported_workers

    try:
        return any(not worker.stale for worker in patiently(lambda: reported_workers(configuration))), ""
    except FatalDeliveryError as error:
        return None, f"whether a worker hears it is not known: {error}"


def _tables(configuration: Configuration, given: list[str] | None) -> list[str]:
    known = [str(table) for table in configuration.connector.reading.tables]
    wrong = [each for each in given or () if each not in known]
    if wrong:
        raise UsageError(
            Problem("--table", "is not a table of this connector", each, did_you_mean(each, known), file="command line")
            for each in wrong
        )
    return given or known


def _show(configuration: Configuration, output: Output) -> int:
    from connector.delivery import patiently
    from connector.worker.reports import status_report

    tables = patiently(lambda: status_report(configuration)).tables
    shown = {name: table.snapshot for name, table in tables.items() if table.snapshot is not None}
    document = {name: shot.model_dump(mode="json") for name, shot in shown.items()}
    lines = []
    for name, shot in shown.items():
        lines.append(f"{name}: {snapshot_text(shot)}")
        if not shot.ended:
            lines += [f"    fails: {text}" for text in tables[name].failing]
    output.result({"snapshots": document}, "\n".join(lines) or "no table has or had a snapshot")
    return 0


def snapshot_text(shot: SnapshotStatus) -> str:
    """One snapshot in one line."""
    state = "complete" if shot.ended else f"{shot.done:.0%} of the table"
    if shot.stopped:
        state = "stopped"
    elif shot.paused:
        state += ", paused"
    waits = f"; {shot.undecided} partitions change all the time and are read again" if shot.undecided else ""
    waits += f"; rows of {shot.refused} ranges are refused: it does not end without them" if shot.refused else ""
    goes = "" if shot.ended else pace_text(shot.rows_per_second, shot.seconds_left)
    return f"{shot.kind}, {state}, {shot.rows} rows by the workers that run now{goes}{waits}"


def pace_text(rows_per_second: float, seconds_left: int | None) -> str:
    """How fast, and how long yet; nothing while that is not known."""
    rate = f", {rows_per_second:,.0f} rows/s" if rows_per_second else ""
    if seconds_left is None:
        return rate
    minutes = round(seconds_left / 60)
    left = f"{seconds_left} s" if seconds_left < 100 else f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"
    return f"{rate}, about {left} to go"


COMMAND = SnapshotCommand()
