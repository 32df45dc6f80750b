"""Bounds of snapshots: how much of what was read may wait in memory, how fast it is read.

`Snapshots` with everything beside it in the test's hands.
"""

from __future__ import annotations

from typing import Any

import pytest

from connector.errors import FatalSourceError, ReplicasAway, RetriableSourceError
from connector.source import snapshots
from connector.source.background import FIRST_PAUSE
from connector.source.limits import SnapshotPace
from connector.topology import MIN_TOKEN
from tests.source.test_source_snapshots import BYTES, Stage, selected
from tests.topology.single import WHOLE, stream


def test_what_is_held_is_bounded_by_its_bytes() -> None:
    stage = Stage(max_bytes=2 * BYTES)
    for upto in (0, 1):
        stage.read(selected(ck=1, v=1), upto=upto)
        stage.pump()
    assert stage.snapshots.held_bytes == 2 * BYTES and not stage.chores.waiting
    stage.to(10_100)
    assert not stage.snapshots.held_bytes and len(stage.chores.waiting) == 1


def test_what_is_being_read_has_its_part_of_what_may_be_held() -> None:
    stage = Stage(streams=(stream(64), WHOLE), max_bytes=BYTES)
    stage.pump()
    assert len(stage.chores.waiting) == 1
    stage = Stage(streams=(stream(64), WHOLE), max_bytes=2 * BYTES)
    stage.pump()
    assert len(stage.chores.waiting) == 2


def test_reads_slow_down_while_answers_do() -> None:
    pace = SnapshotPace(50.0, 0.0)
    for _ in range(10):
        pace.answered(0.02, 1, 0.0)
    assert pace.rate == 50.0
    for _ in range(4):
        pace.answered(0.5, 1, 0.0)
    assert pace.rate < 10.0
    assert pace.take(0.0)
    assert not pace.take(0.05)
    for _ in range(40):
        pace.answered(0.02, 1, 0.0)
    assert pace.rate == 50.0


@pytest.mark.parametrize(("error", "slows"), [(FatalSourceError("no such column"), 0), (RetriableSourceError(""), 1)])
def test_a_table_that_cannot_be_read_rests_and_does_not_hold_up_others(
    error: Exception, slows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    now = snapshots.time.monotonic()
    monkeypatch.setattr(snapshots.time, "monotonic", lambda: now)
    usual = stage.snapshots._pace.rate
    for failures in range(1, 5):
        stage.chores.answer(None, error)
        pause = FIRST_PAUSE * 2 ** (failures - 1)
        now += pause - 0.01
        stage.pump()
        assert not stage.chores.waiting
        # A little more than is left: what a clock adds up depends on how long the machine has been up.
        now += 0.02
        stage.pump()
        assert len(stage.chores.waiting) == 1
        assert stage.snapshots._pace.rate == usual / 2 ** (failures * slows)
    stage.read(selected(ck=1, v=1), upto=0)
    now += 0.01
    stage.pump()
    assert len(stage.chores.waiting) == 1, "what works is read on at once"


def test_rows_that_nobody_gets_are_told_and_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One range of a table is refused at each attempt, the others are read meanwhile: what is said of it stays."""
    stage = Stage(streams=(stream(64), WHOLE))
    now = snapshots.time.monotonic()
    monkeypatch.setattr(snapshots.time, "monotonic", lambda: now)
    monkeypatch.setattr(stage.background, "monotonic", lambda: now)
    usual, refusals, upto = stage.snapshots._pace.rate, 0, 0
    stage.pump()
    for _ in range(2000):
        now += 0.1
        stage.pump()
        if not stage.chores.waiting:
            continue
        call: Any = stage.chores.waiting[0][0]
        low = call.keywords.get("span", call.args[0].args[2])[0]
        if low == MIN_TOKEN:
            stage.chores.answer(None, ReplicasAway("reading from 10.0.0.1:9042: Unavailable"))
            refusals += 1
        else:
            upto += 1
            stage.read(selected(ck=1, v=1), upto=low + 1)
            stage.to(stage.one.now + 100)
        if refusals:
            (failing,) = stage.background.failing()
            assert f"rows from token(pk) > {MIN_TOKEN} on: reading from 10.0.0.1:9042" in failing.error
            assert stage.snapshots.refused(stage.one.plan.table) == (refusals > 1), "one that is made up for is no news"
    assert stage.snapshots._pace.rate == usual, "a replica that is away is not asked too much"
    assert 4 < refusals < 15 and upto > 1000, "in 200 s"
    assert failing.lasting > 190
