"""`snapshot.mode=initial_only`: when a `run` has nothing more to do.

In: what its workers were started for, and what they say. Out: whether the rows of all tables are delivered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from connector.worker.child import Child
from connector.worker.order import WorkerOrder

log = logging.getLogger(__name__)


def only_snapshots_and_over(orders: Iterable[WorkerOrder], children: Iterable[Child]) -> bool:
    """Nothing else was wanted, and of each connector some worker knows them committed."""
    wanted = {order.configuration.group: order.configuration.connector.reading for order in orders}
    if any(reading.snapshot_mode != "initial_only" for reading in wanted.values()):
        return False
    said = ((child.group, child.status) for child in children if child.own)
    over = wanted.keys() == {group for group, status in said if status is not None and status.snapshots_over}
    if over:
        log.info("the rows of all tables are delivered: nothing more was wanted (snapshot.mode=initial_only)")
    return over
