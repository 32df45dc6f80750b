"""`scylla-cdc status`: per table and worker: state, position, lag, retries, last error. Works when nothing runs."""

from __future__ import annotations

import argparse
from typing import Any

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.output import Output


class StatusCommand:
    name = "status"
    help = "state, lag and last error of a connector's tables and workers"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_configuration_arguments(parser)

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from connector.worker.reports import status_report

        report = status_report(load_configuration(args))
        output.result(report, _text(report))
        return 0


def _text(report: dict[str, Any]) -> str:
    lines = [f"connector {report['connector']}: {report['state']}"]
    for name, table in report["tables"].items():
        lag = "" if table["lag_ms"] is None else f", {table['lag_ms'] / 1000:.1f} s behind"
        lines.append(f"  table {name}: {table['state']}{lag}, {table['records']} records")
        for label in ("dead_letters", "failed_groups"):
            if table[label]:
                lines.append(f"    {label.replace('_', ' ')}: {table[label]}")
        if table["skipped"]:
            skipped = ", ".join(f"{count} {kind}" for kind, count in sorted(table["skipped"].items()))
            lines.append(f"    skipped: {skipped}")
        if table["error"]:
            lines.append(f"    error: {table['error']}")
        lines += [f"    waits: {_held(held)}" for held in table["held"][:5]]
    for worker in report["workers"]:
        state = f"gone for {worker['age_ms'] / 1000:.0f} s" if worker["stale"] else worker["state"]
        lines.append(f"  worker {worker['worker']}: {state}, {len(worker['slots'])} slots")
        if worker["stale"]:
            continue
        lines += [
            f"    retrying slot {each['slot']}, attempt {each['attempts']}: {each['error']}"
            for each in worker["retrying"]
        ]
        lines += [f"    {kind}: {error}" for kind, error in worker["errors"].items() if error]
    lines += [f"  warning: {warning}" for warning in report["warnings"]]
    return "\n".join(lines)


def _held(held: dict[str, Any]) -> str:
    place = f"slot {held['slot']}: " if held["slot"] is not None else ""
    whom = f", for stream 0x{held['waits_for'][0]} in slot {held['waits_for_slot']}" if held["waits_for"] else ""
    note = f" ({held['note']})" if held["note"] else ""
    return f"{place}{held['reason']}{whom}{note}"


COMMAND = StatusCommand()
