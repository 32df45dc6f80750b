"""Status of one worker, as plain data: what `status`, `/health`, metrics and the status topic show.

In: a worker. Out: a dictionary that JSON can hold; no secret is ever in it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from connector.topology import Held, Reason, visible_to

if TYPE_CHECKING:
    from connector.topology import TablePlan
    from connector.worker.worker import Worker

# Of what waits or is being retried, this many are listed; the numbers count all of them.
LISTED = 20


def snapshot(worker: Worker) -> dict[str, Any]:
    """Everything worth knowing, now."""
    now = worker.connection.clock.now_ms()
    held: dict[str, list[Held]] = {}
    for each in worker.planner.held(now):
        held.setdefault(str(each.table), []).append(each)
    tables = {
        str(name): _table(worker, plan, held.get(str(name), []), now) for name, plan in worker.planner.tables.items()
    }
    for name, reason in worker.failed_tables.items():
        tables[str(name)] = {"state": "FAILED", "error": reason, "failed_groups": 0, "held": []}
    counters = worker.reading.counters
    return {
        "worker": worker.who.client_id,
        "index": worker.who.index,
        "connector": worker.configuration.connector.name,
        "fingerprint": worker.configuration.fingerprint(),
        "tables_configured": sorted(tables),
        "time_ms": int(time.time() * 1000),
        "server_time_ms": now,
        "clock_skew_ms": round(worker.connection.clock.skew_ms),
        "state": state_of(worker, tables),
        "slots": sorted(worker.claims.owned),
        "slots_pending": sorted(worker.claiming.pending),
        "slot_count": worker.planner.book.slots,
        "tables": tables,
        "reading": {
            "rows": counters.rows,
            "pages": counters.pages,
            "reads": counters.reads,
            "batches": counters.batches,
            "queries": worker.connection.queries,
            "in_flight": worker.reading.log.in_flight,
            "waiting": worker.reading.log.waiting,
            "pause_ms": worker.reading.pause_ms,
            "retries": worker.reading.retries.total,
        },
        "delivery": {
            "commits": worker.delivery.commits,
            "aborts": worker.delivery.aborts,
            "open": worker.delivery.is_open,
            "rebalances": worker.claims.rebalances,
        },
        "retrying": _retrying(worker),
        "polls": [
            {"tables": [str(plan.table) for plan in poll.plans], "error": poll.error, "attempts": poll.attempts}
            for poll in worker.watch.polls
        ],
        "errors": {
            "last": worker.transactions.last_error,
            "kafka": worker.clients.health.error,
            "claiming": worker.claiming.error,
            "dead_letter": worker.pipeline.last_dead_letter,
        },
    }


def state_of(worker: Worker, tables: dict[str, dict[str, Any]]) -> str:
    """RUNNING, FAILED (something of it), WAITING (for slots or servers)."""
    if worker.transactions.fatal is not None or any(table["state"] == "FAILED" for table in tables.values()):
        return "FAILED"
    if not worker.delivery.ready or worker.claiming.pending:
        return "WAITING"
    return "RUNNING"


def nothing_left(status: dict[str, Any]) -> bool:
    """The worker has work, and all of it has failed."""
    tables = list(status["tables"].values())
    owned = bool(status["slots"]) and not status["slots_pending"]
    return (
        owned and bool(tables) and all(table["state"] == "FAILED" and table.get("all_failed", True) for table in tables)
    )


def _table(worker: Worker, plan: TablePlan, held: list[Held], now: int) -> dict[str, Any]:
    name = str(plan.table)
    failed = [each for each in held if each.reason is Reason.FAILED and each.range_end is not None]
    waiting = [each for each in held if each.reason is not Reason.FAILED]
    # Nothing is known yet of where these stand: without them the position would promise more than is true.
    unplaced = [each for each in waiting if each.slot is not None and each.range_end is None]
    groups = [state for slot in plan.active for state in plan.lineage.groups(slot)]
    position = visible_to(plan)
    whole = plan.failure is not None
    held_up = bool(unplaced) or (bool(waiting) and position is None)
    return {
        "state": "FAILED" if failed or whole else "WAITING" if held_up else "RUNNING",
        "all_failed": whole or (bool(groups) and len(failed) >= sum(not state.drained for state in groups)),
        "position_ms": position,
        "lag_ms": None if position is None else max(0, now - position),
        "groups": len(groups),
        "failed_groups": len(failed),
        "stream_set": plan.newest.timestamp if plan.newest is not None else None,
        "records": worker.pipeline.records[name],
        "dead_letters": worker.pipeline.dead_letters[name],
        "skipped": {what: count for (table, what), count in worker.encoder.skipped.items() if table == name},
        "error": plan.failure or (failed[0].note if failed else None),
        "expired": sum(where[0] == plan.table for where in worker.expired),
        "held": [_held(each) for each in held[:LISTED]],
        "held_count": len(held),
    }


def _held(held: Held) -> dict[str, Any]:
    return {
        "reason": held.reason.value,
        "slot": held.slot,
        "streams": [stream.hex() for stream in held.streams[:4]],
        "read_to": held.read_to,
        "at": held.at,
        "waits_for": [stream.hex() for stream in held.waits_for[:4]],
        "waits_for_slot": held.waits_for_slot,
        "note": held.note,
    }


def _retrying(worker: Worker) -> list[dict[str, Any]]:
    found = []
    for group, trouble in list(worker.reading.retries.groups.items())[:LISTED]:
        slot = getattr(group, "slot", None)
        found.append({"slot": slot, "attempts": trouble.attempts, "error": str(trouble.error)})
    return found
