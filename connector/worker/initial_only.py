"""`snapshot.mode=initial_only`: when a `run` has nothing more to do, and what it ends with.

In: what its workers were started for, and what they say. Out: whether nothing is left to be delivered; if so, whether
that is because all rows are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from connector.worker.child import Child
from connector.worker.order import WorkerOrder
from connector.worker.status_document import WorkerStatus

log = logging.getLogger(__name__)


def status_behind_snapshots(orders: Iterable[WorkerOrder], children: Iterable[Child]) -> int | None:
    """None while rows are to be delivered, or changes are wanted as well. Of each connector some worker knows what is
    committed."""
    wanted = {order.configuration.group: order.configuration.connector.reading for order in orders}
    if any(reading.snapshot_mode != "initial_only" for reading in wanted.values()):
        return None
    said = ((child.group, child.status) for child in children if child.own)
    over = {group: status for group, status in said if status is not None and status.snapshots_over}
    return None if wanted.keys() != over.keys() else _status(over.values())


def _status(over: Iterable[WorkerStatus]) -> int:
    shots = [(name, table.snapshot) for status in over for name, table in status.tables.items()]
    for name in sorted(name for name, shot in shots if shot is None):
        log.error(
            "%s: none of its rows is delivered: it was started before, without a snapshot, and snapshot.mode="
            "initial_only makes one of tables without saved positions (see docs/snapshots.md)",
            name,
        )
    stopped = sorted(name for name, shot in shots if shot is not None and shot.kind == "initial" and shot.stopped)
    for name in stopped:
        log.error("%s: not all of its rows are delivered: its snapshot was stopped", name)
    if stopped or any(shot is None for _, shot in shots):
        return 1
    log.info("the rows of all tables are delivered: nothing more was wanted (snapshot.mode=initial_only)")
    return 0
