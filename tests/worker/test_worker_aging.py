"""What workers said last, some time later: whose word counts of a table that somebody else reads by now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connector.worker.child import Child
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.reports import STALE_MS, _table, _workers
from connector.worker.state import State
from connector.worker.status_document import WorkerStatus
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded

NOW_MS = 1_000_000
LAG = 900


def said(slots: list[int], tables: dict[str, int | None] | None = None, age: float = 0.0, **more: Any) -> WorkerStatus:
    """So many seconds ago, by a worker that is so far behind in its tables."""
    shown = {"ks.t": LAG} if tables is None else tables
    figures = {
        name: {"state": "RUNNING", "records": 1, "lag_ms": lag, "position_ms": lag} for name, lag in shown.items()
    }
    document = {"worker": str(slots), "connector": "c", "state": "RUNNING", "fingerprint": "f", "tables_configured": ()}
    times = {"time_ms": NOW_MS - round(age * 1000), "slots": slots, "slot_count": 4, "tables": figures}
    return WorkerStatus.model_validate({**document, **times, **more})


def service(*statuses: WorkerStatus) -> Supervisor:
    orders = [WorkerOrder(loaded(), index) for index in range(len(statuses))]
    supervisor = Supervisor(["false"], orders, monotonic=lambda: NOW_MS / 1000)
    process: Any = SimpleNamespace(pid=7)
    for index, status in enumerate(statuses):
        child = Child(index, process, orders[0].configuration.group, orders[0].configuration, own=True)
        child.status, child.status_at = status.model_copy(update={"index": index}), status.time_ms / 1000
        supervisor.children[index] = child
    return supervisor


HANGS = 60.0
MINE = LAG + round(HANGS * 1000)
CASES = {
    "another has all of its slots": ([said([0, 1, 2, 3])], {"ks.t": LAG}),
    "others have all of them together": ([said([0, 2], {"ks.t": 70}), said([1, 3], age=0.4)], {"ks.t": LAG}),
    "nobody has taken over": ([said([])], {"ks.t": MINE}),
    "one of its slots has nobody": ([said([0, 2, 3])], {"ks.t": MINE}),
    "who took over does not know yet how far": ([said([0, 1, 2, 3], slots_pending=[1])], {"ks.t": MINE}),
    "who took over was older": ([said([0, 1, 2, 3], age=2 * HANGS)], {"ks.t": MINE}),
    "the slots are another connector's": ([said([0, 1, 2, 3], connector="d")], {"ks.t": MINE}),
    "another table, that nobody else reads": ([said([0, 1, 2, 3])], {"ks.t": LAG, "ks.u": MINE}),
    "whoever reads it does not know how far": ([said([0, 1, 2, 3], {"ks.t": None})], {"ks.t": MINE}),
}


@pytest.mark.parametrize(("others", "lags"), CASES.values(), ids=CASES)
def test_how_far_a_table_is_those_say_that_read_it_now(others: list[WorkerStatus], lags: dict[str, int]) -> None:
    hung = said([0, 1], dict.fromkeys(lags, LAG), HANGS)
    supervisor = service(hung, *others)
    worker = supervisor.status().workers[0]
    assert {name: table.lag_ms for name, table in worker.tables.items()} == lags
    slowest = min((each.tables["ks.t"].position_ms or LAG for each in others if lags["ks.t"] == LAG), default=LAG)
    assert worker.tables["ks.t"].position_ms == slowest
    assert worker.state is State.WAITING and worker.slots == hung.slots
    assert all(table.records == 1 for table in worker.tables.values())
    shown = f'lag_seconds{{connector="c",table="ks.t",worker="0"}} {lags["ks.t"] / 1000}'.encode()
    assert shown in metrics_page(supervisor.status), "no figure vanishes"


@pytest.mark.parametrize(("slots", "lag"), [([0, 1, 2, 3], LAG), ([2, 3], LAG + 10_000)])
def test_status_tells_of_a_table_what_its_owners_say(slots: list[int], lag: int) -> None:
    """Of one that is silent, and not for so long that it counts as gone."""
    hung = said([0, 1], age=10.0)
    assert STALE_MS > 10_000
    workers = _workers([hung, said(slots)], NOW_MS)
    table = _table("ks.t", workers, None, NOW_MS)
    assert table.lag_ms == lag and table.state is State.WAITING
