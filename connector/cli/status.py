"""`scylla-cdc status`: per table and worker: state, position, lag, retries, last error. Works when nothing runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.output import Output
from connector.cli.snapshot import snapshot_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connector.worker.status_document import ReportedWorker, RetryStatus, StatusReport, WaitingStatus


class StatusCommand:
    name = "status"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_configuration_arguments(parser)

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from connector.delivery import patiently
        from connector.worker.reports import status_report
        from connector.worker.state import State

        configuration = load_configuration(args)
        report = patiently(lambda: status_report(configuration))
        output.result(report.document(), _text(report))
        return 1 if report.state is State.FAILED else 0


def _text(report: StatusReport) -> str:
    asked = f", {report.target} by request" if report.target != "RUNNING" else ""
    lines = [f"connector {report.connector}: {report.state.value}{asked}{_servers(report)}"]
    if report.waiting_for is not None:
        lines.append(f"  waits for: {report.waiting_for}")
    if report.given_up is not None:
        lines.append(f"  given up: {report.given_up}")
    for name, table in report.tables.items():
        lag = "" if table.lag_ms is None else f", {table.lag_ms / 1000:.1f} s behind"
        if table.lag_ms is None and table.committed_ms == 0:
            lag = ", from the oldest change"
        lines.append(f"  table {name}: {table.state.value}{lag}, {table.records} records")
        for label, count in (("dead letters", table.dead_letters), ("failed groups", table.failed_groups)):
            if count:
                lines.append(f"    {label}: {count}")
        if table.snapshot is not None:
            lines.append(f"    snapshot: {snapshot_text(table.snapshot)}")
        if table.expired:
            lines.append(f"    changes may have expired unread: {table.expired} streams or slots")
        if table.late_changes:
            late = ", ".join(f"{count} {what}" for what, count in sorted(table.late_changes.items()))
            lines.append(f"    after the end of their streams: {late}")
        if table.skipped:
            skipped = ", ".join(f"{count} {kind}" for kind, count in sorted(table.skipped.items()))
            lines.append(f"    skipped: {skipped}")
        if table.error:
            lines.append(f"    error: {table.error}")
        lines += [f"    fails: {text}" for text in table.failing]
        lines += [f"    waits: {_waiting(each)}" for each in table.waiting[:5]]
    about_tables = {text for table in report.tables.values() for text in table.failing}
    for worker in report.workers:
        state = f"gone for {worker.age_ms / 1000:.0f} s" if worker.stale else worker.state.value
        lines.append(f"  worker {worker.worker}: {state}, {len(worker.slots)} slots{_place(worker)}{_native(worker)}")
        if worker.stale:
            continue
        if worker.waiting_for and not worker.background:
            lines.append(f"    waits for: {worker.waiting_for}")
        lines += [f"    fails: {each.text}" for each in worker.background if each.text not in about_tables]
        lines += [f"    retrying {text}" for text in _retrying(worker.retrying)]
        lines += [f"    {kind}: {error}" for kind, error in worker.errors.items() if error]
    lines += [f"  warning: {warning}" for warning in report.warnings]
    return "\n".join(lines)


def _retrying(groups: Iterable[RetryStatus]) -> list[str]:
    """What has the same cause in one line, of however many groups of streams."""
    alike: dict[str, list[RetryStatus]] = {}
    for each in groups:
        alike.setdefault(each.error, []).append(each)
    found: list[str] = []
    for error, several in alike.items():
        slots = sorted({each.slot for each in several if each.slot is not None})
        which = f"slot{'s' * (len(slots) != 1)} {', '.join(map(str, slots))}, " if slots else ""
        found.append(f"{which}attempt {max(each.attempts for each in several)}: {error}")
    return found


def _servers(report: StatusReport) -> str:
    """Both servers' versions, as the workers that run now saw them; several during an upgrade."""
    running = [worker for worker in report.workers if not worker.stale]
    scylla = sorted({worker.scylla_version for worker in running if worker.scylla_version})
    kafka = sorted({worker.kafka_version for worker in running if worker.kafka_version})
    named = [f"{name} {', '.join(found)}" for name, found in (("ScyllaDB", scylla), ("Kafka", kafka)) if found]
    return f" ({'; '.join(named)})" if named else ""


def _native(worker: ReportedWorker) -> str:
    """Whether its records are made natively, and if not, why: it takes several times the processor time."""
    native = worker.native
    if not native.on and native.why_not is None:
        return ""  # a worker of an earlier version
    return f", native path {'on' if native.on else 'off'}{f': {native.why_not}' if native.why_not else ''}"


def _place(worker: ReportedWorker) -> str:
    """Where it runs, since when, and which version; workers before 0.2 do not say."""
    if not worker.host:
        return ""
    from connector.source import instant

    since = instant(worker.started_ms / 1000)
    return f", on {worker.host}, pid {worker.pid}, version {worker.version}, since {since}"


def _waiting(each: WaitingStatus) -> str:
    place = f"slot {each.slot}: " if each.slot is not None else ""
    whom = f", for stream 0x{each.waits_for[0]} in slot {each.waits_for_slot}" if each.waits_for else ""
    note = f" ({each.note})" if each.note else ""
    return f"{place}{each.reason}{whom}{note}"


COMMAND = StatusCommand()
