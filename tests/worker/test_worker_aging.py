"""What workers said last, some time later: whose word counts of a table that somebody else reads by now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connector.config import Configuration
from connector.errors import RetriableDeliveryError
from connector.worker.child import Child
from connector.worker.elsewhere import Elsewhere
from connector.worker.holding import Target
from connector.worker.metrics import metrics_page
from connector.worker.order import WorkerOrder
from connector.worker.reports import SILENT_MS, STALE_MS, _left_behind, _table, _workers
from connector.worker.state import State
from connector.worker.status_document import ReportedWorker, WorkerStatus
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


@pytest.mark.parametrize("rests", ["PAUSED", "given up", ""])
def test_nothing_fails_any_more_for_workers_that_ended_and_are_not_started(rests: str) -> None:
    """Asked to pause while ScyllaDB was away, say: hours later that was still told, and an alert for it."""
    failing = {"task": "source", "text": "ScyllaDB does not answer", "seconds": 400.0}
    status = said([0], background=[failing], background_seconds={"source": 400.0}, retrying=[{"attempts": 3}])
    table = status.tables["ks.t"].model_copy(update={"failing": ("some streams are not read",)})
    supervisor = service(status.model_copy(update={"tables": {"ks.t": table}}))
    [tenant] = supervisor.tenants.values()
    tenant.target = Target.PAUSED if rests == "PAUSED" else Target.RUNNING
    tenant.over = rests if rests == "given up" else None
    metric = b'background_failing_seconds{connector="c",task="source",worker="0"}'
    assert supervisor.status().failing == ("ScyllaDB does not answer",), "it has not ended yet"
    child = supervisor.children.pop(0)
    assert child.status is not None
    supervisor._last[0] = child.status, child.status_at
    shown = supervisor.status()
    [worker] = shown.workers
    told = (shown.failing, worker.tables["ks.t"].failing, len(worker.background), len(worker.retrying))
    assert told == (((), (), 0, 0) if rests else (("ScyllaDB does not answer",), ("some streams are not read",), 1, 1))
    assert metric + (b" 0.0" if rests else b" 400.0") in metrics_page(supervisor.status)
    assert worker.tables["ks.t"].records == 1, "no figure vanishes"


@pytest.mark.parametrize(("slots", "lag"), [([0, 1, 2, 3], LAG), ([2, 3], LAG + 10_000)])
def test_status_tells_of_a_table_what_its_owners_say(slots: list[int], lag: int) -> None:
    """Of one that is silent, and not for so long that it counts as gone."""
    hung = said([0, 1], age=10.0)
    assert STALE_MS > 10_000
    workers = _workers([hung, said(slots)], NOW_MS)
    table = _table("ks.t", workers, None, NOW_MS)
    assert table.lag_ms == lag and table.state is State.WAITING


LEFT = {
    "who had it said so": ([said([0, 1], age=60)], {}, LAG + 60_000),
    "what is committed since is less": ([said([0, 1], age=60)], {0: 30_000, 1: 20_000}, 30_000),
    "who had it gave it away in order": ([], {0: 4_000, 1: 5_000}, 5_000),
    "who had it before is long gone": ([said([0, 1], age=900_000)], {0: 4_000, 1: 4_000}, 4_000),
    "who has it now counts": ([said([0, 1], age=60), said([0, 1, 2, 3])], {0: 90_000, 1: 90_000}, None),
    "nothing is known": ([], {}, None),
    "it begins with the oldest": ([], {0: NOW_MS, 1: NOW_MS}, None),
    "of another table nothing is known": ([said([0, 1], {"ks.u": LAG}, age=60)], {}, None),
}


@pytest.mark.parametrize(("others", "committed", "lag"), LEFT.values(), ids=LEFT)
def test_slots_that_nobody_has_count_from_the_last_word_about_them(
    others: list[WorkerStatus], committed: dict[int, int], lag: int | None
) -> None:
    """Those who are there know nothing of them: what they say alone would be too little."""
    there = said([2, 3])
    workers = _workers([there, *others], NOW_MS)
    stored = {("ks.t", slot): NOW_MS - behind for slot, behind in committed.items()}
    left = _left_behind(workers, stored, NOW_MS)("ks.t")
    assert left == lag
    present = [worker for worker in workers if not worker.stale]
    assert _table("ks.t", present, None, NOW_MS, left=left).lag_ms == max(LAG, lag or 0)


def reported(status: WorkerStatus, age_ms: int = 500) -> ReportedWorker:
    return ReportedWorker.model_validate({**status.document(), "age_ms": age_ms, "stale": False})


ELSEWHERE = {
    "another process reads all of it": ([reported(said([0, 1, 2, 3]))], LAG),
    "this process has a part of it, and another one the rest": ([reported(said([1, 3]))], LAG),
    "nobody there has all of it": ([reported(said([0]))], MINE),
    "who took over is silent as well": ([reported(said([0, 1, 2, 3]), SILENT_MS + 1)], MINE),
    "it is what ours said itself": ([reported(said([0, 1]))], MINE),
    "Kafka does not tell": (RetriableDeliveryError("away"), MINE),
}


@pytest.mark.parametrize(("there", "lag"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_worker_that_hangs_is_not_late_with_what_another_process_reads(
    there: list[ReportedWorker] | RetriableDeliveryError, lag: int
) -> None:
    def read(configuration: Configuration) -> list[ReportedWorker]:
        if isinstance(there, RetriableDeliveryError):
            raise there
        return there

    supervisor = service(said([0, 1], age=HANGS), said([0] if lag == LAG else [2]))
    supervisor.elsewhere = Elsewhere(lambda: NOW_MS / 1000, read)
    assert supervisor.status().workers[0].tables["ks.t"].lag_ms == MINE
    supervisor._look_after()
    assert supervisor.elsewhere._thread is not None
    supervisor.elsewhere._thread.join()
    status = supervisor.status()
    assert [worker.index for worker in status.workers] == [0, 1], "others are in no status of ours"
    assert status.workers[0].tables["ks.t"].lag_ms == lag
    assert status.workers[0].state is State.WAITING


def test_a_worker_that_has_ended_owns_no_slots() -> None:
    """Whoever has them by now counts them; where nobody has, as while it ends again and again, an alert says so."""
    supervisor = service(said([0, 1]), said([2, 3]))

    def slots() -> list[float]:
        lines = metrics_page(supervisor.status).decode().splitlines()
        return [float(line.split()[-1]) for line in lines if line.startswith("scylla_cdc_slots{")]

    assert slots() == [2.0, 2.0]
    supervisor._ended(supervisor.children[0], -9)
    assert slots() == [0.0, 2.0] and supervisor.status().workers[0].slots == (0, 1), "it is known what it had"


def test_nobody_looks_elsewhere_while_all_say_something() -> None:
    supervisor = service(said([0, 1]), said([2, 3]))
    supervisor._look_after()
    assert supervisor.elsewhere._thread is None
