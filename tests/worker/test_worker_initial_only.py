"""`snapshot.mode=initial_only`: a `run` that ends says whether all rows are delivered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connector.worker.initial_only import status_behind_snapshots
from connector.worker.state import State
from connector.worker.status_document import SnapshotStatus, TableStatus, WorkerStatus

DONE = SnapshotStatus(ended=True)


def order(group: str, mode: str = "initial_only") -> Any:
    reading = SimpleNamespace(snapshot_mode=mode)
    return SimpleNamespace(configuration=SimpleNamespace(group=group, connector=SimpleNamespace(reading=reading)))


def child(group: str, *shots: SnapshotStatus | None, over: bool = True) -> Any:
    status = WorkerStatus(
        worker="w",
        fingerprint="f",
        tables_configured=(),
        time_ms=1,
        state=State.RUNNING,
        slots=(),
        slot_count=1,
        tables={f"ks.{at}": TableStatus(state=State.RUNNING, snapshot=shot) for at, shot in enumerate(shots)},
        snapshots_over=over,
    )
    return SimpleNamespace(group=group, own=True, status=status)


@pytest.mark.parametrize(
    ("orders", "children", "ends_with"),
    [
        ([order("a")], [child("a", DONE, DONE)], 0),
        ([order("a")], [child("a", DONE, over=False)], None),
        ([order("a"), order("b")], [child("a", DONE)], None),
        ([order("a"), order("b")], [child("a", DONE), child("b", DONE)], 0),
        ([order("a"), order("b", "initial")], [child("a", DONE), child("b", DONE)], None),
        ([order("a"), order("b")], [child("a", DONE), child("b", None)], 1),
        ([order("a")], [child("a", DONE, SnapshotStatus(ended=True, stopped=True))], 1),
        ([order("a")], [child("a", SnapshotStatus(ended=True, stopped=True, kind="incremental"))], 0),
    ],
)
def test_a_run_ends_with_0_when_the_rows_of_all_tables_are_delivered(
    orders: list[Any], children: list[Any], ends_with: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        assert status_behind_snapshots(orders, children) == ends_with
    assert ("the rows of all tables are delivered" in caplog.text) == (ends_with == 0)


def test_it_says_which_rows_are_not_delivered(caplog: pytest.LogCaptureFixture) -> None:
    stopped = SnapshotStatus(ended=True, stopped=True)
    assert status_behind_snapshots([order("a")], [child("a", DONE, None, stopped)]) == 1
    assert "ks.1: none of its rows is delivered" in caplog.text
    assert "ks.2: not all of its rows are delivered: its snapshot was stopped" in caplog.text
    assert "ks.0" not in caplog.text
