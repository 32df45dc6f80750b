"""What a worker said last, as it is some time later: nobody who looks must take old words for new ones.

In: its status, how old it is, what ails the worker. Out: the status as it is shown, with a lag that has grown, or that
of those who have come to read what it read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from connector.worker.state import State
from connector.worker.status_document import RunningWorker, WorkerStatus

FRESH_SECONDS = 2.0

Said = TypeVar("Said", bound=WorkerStatus)


def aged(
    status: WorkerStatus, age: float, trouble: str | None, *, starting: bool = False, rests: bool = False
) -> RunningWorker:
    """A worker's last words, and how old they are: what was a lag then has grown since. ``rests``: it has ended and no
    other one is started, so nothing is tried any more that might fail."""
    document = status.document()
    if rests:
        document |= {"background": [], "retrying": []}
        document["background_seconds"] = dict.fromkeys(status.background_seconds, 0.0)
        for table in document["tables"].values():
            table["failing"] = []
    if age >= FRESH_SECONDS:
        for table in document["tables"].values():
            if table.get("lag_ms") is not None:
                table["lag_ms"] += round(age * 1000)
    if trouble is not None:
        document["waiting_for"] = trouble
        for each in (document, *document["tables"].values()):
            each["state"] = max(State(each["state"]), State.WAITING).value
    more = {"last_report_age_seconds": round(age, 1), "starting": starting}
    return RunningWorker.model_validate({**document, **more})


def with_lags(status: WorkerStatus, before: WorkerStatus | None) -> WorkerStatus:
    """A worker that is being given its slots knows no position yet; what was known of them before has not moved."""
    told_what_is_ours = status.delivery.rebalances > 0 and not status.slots_pending
    if before is None or told_what_is_ours:
        return status
    skipped = status.time_ms - before.time_ms
    tables = dict(status.tables)
    for name, table in status.tables.items():
        known = before.tables.get(name)
        if table.has_figures and table.lag_ms is None and known is not None and known.lag_ms is not None:
            tables[name] = table.model_copy(update={"lag_ms": known.lag_ms + max(0, skipped)})
    return status.model_copy(update={"tables": tables})


def known_slots(worker: WorkerStatus) -> set[int]:
    """Until it has restored a slot, its owner does not know how far that is."""
    return set(worker.slots).difference(worker.slots_pending)


def of_owners(workers: Sequence[Said], age: Callable[[Said], float]) -> list[Said]:
    """Places in tables that others have come to read since are where those are: a worker that hangs does not know who
    took over from it, and what it said last would be a lag that grows while nothing is late."""
    newest: dict[tuple[str, int], Said] = {}
    for worker in sorted(workers, key=age, reverse=True):
        for slot in known_slots(worker):
            newest[worker.connector, slot] = worker
    return [_with_owners_places(worker, newest, age) for worker in workers]


def _with_owners_places(worker: Said, newest: dict[tuple[str, int], Said], age: Callable[[Said], float]) -> Said:
    owners = [newest.get((worker.connector, slot), worker) for slot in worker.slots]
    if not owners or any(age(owner) >= age(worker) for owner in owners):
        return worker
    tables = dict(worker.tables)
    for name, table in worker.tables.items():
        read = [owner.tables[name] for owner in owners if name in owner.tables]
        lags = [each.lag_ms for each in read if each.lag_ms is not None]
        if len(lags) == len(owners):
            positions = [each.position_ms for each in read if each.position_ms is not None]
            tables[name] = table.model_copy(update={"lag_ms": max(lags), "position_ms": min(positions, default=None)})
    return worker.model_copy(update={"tables": tables})
