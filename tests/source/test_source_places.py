"""A table whose log does not answer takes no places from others, however many streams it has."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connector.source.background import Background
from connector.source.connection import Connection
from connector.source.consumer import Consumer
from connector.source.log_reader import LogTable, PageRead
from connector.source.pages import RawPage
from connector.source.reading import Reading
from connector.source.settings import ConnectionSettings, ReadingSettings
from connector.source.sweeping import LATE_MS
from connector.source.tables import Tables
from connector.table_name import TableName
from connector.topology import Planner, View
from tests.source.test_source_retries import NeverStopped, Requests
from tests.topology.single import CONFIDENCE, WHOLE, stream, tablets

SILENT, MUTE, WELL = (TableName("ks", name) for name in ("silent", "mute", "well"))
MANY = [stream(place) for place in range(1, 129)]


class Counted(Requests):
    @property
    def in_flight(self) -> int:  # type: ignore[override]
        return len(self.submitted)

    @property
    def tables(self) -> Counter[str]:
        return Counter(request.table.name for request in self.submitted)


class Read:
    """Reads of all tables, as far as the planner wants them; sweeps are left out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *silent: TableName, budget: float = 500.0) -> None:
        self.log, self.now = Counted(), 10_000
        monkeypatch.setattr("connector.source.reading.LogReader", lambda *_: self.log)
        self.sets = {each: tablets(9_000, *MANY) for each in silent} | {WELL: tablets(9_000, WHOLE)}
        self.planner = Planner(list(self.sets), slots=1, owner="me", confidence_ms=CONFIDENCE, lookback_ms=0)
        self.poll()
        self.planner.restore(0, [])
        for _ in range(2):
            self.planner.commit_entries(self.now)
            self.planner.committed()
        tables: dict[Any, Any] = {each: SimpleNamespace(log=LogTable("ks", each.name)) for each in self.sets}
        self.reading = Reading(
            planner=self.planner,
            connection=cast(Connection, SimpleNamespace(settings=ConnectionSettings(()))),
            settings=ReadingSettings(confidence_ms=CONFIDENCE, sweeps=False, max_queries_per_second=budget),
            sink=lambda event: None,
            consumer=cast(Consumer, None),
            tables=cast(Tables, NeverStopped(tables)),
            background=Background(),
        )

    def poll(self) -> None:
        for table, found in self.sets.items():
            wanted = self.planner.wanted(table, [9_000], self.now)
            self.planner.observe(table, View((9_000,), dict.fromkeys(wanted, found)), self.now)

    def later(self) -> None:
        self.now += 1_000
        self.poll()
        self.reading.pump(self.now)

    def answer(self, table: TableName) -> None:
        [request] = [each for each in self.log.submitted if each.table.name == table.name]
        self.reading.handle(PageRead(request, RawPage((), (), []), 1, last=True))


@pytest.mark.parametrize("silent", [(SILENT,), (SILENT, MUTE)], ids=["one", "two"])
def test_others_are_read_beside_a_log_that_does_not_answer(
    silent: tuple[TableName, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Read(monkeypatch, *silent)
    for _ in range(20):
        found.later()
        assert found.log.tables["well"] == 1, "far ahead of the others, it waits for none of them"
        found.answer(WELL)
    assert all(found.log.tables[each.name] >= 20 for each in silent)
    assert len(found.log.submitted) < ReadingSettings().max_in_flight


def test_reads_that_waited_begin_when_others_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Read(monkeypatch, SILENT)
    found.later()
    seen: set[bytes] = set()
    while len(seen) < len(MANY):
        asked = [each for each in found.log.submitted if each.table.name == SILENT.name]
        fresh = {each.streams[0] for each in asked} - seen
        assert fresh, f"{len(seen)} of {len(MANY)}"
        seen |= fresh
        for request in asked:
            found.reading.handle(PageRead(request, RawPage((), (), []), 1, last=True))
        found.reading.pump(found.now)
    found.later()
    found.planner.release([0])
    found.reading.pump(found.now)
    assert not found.log.submitted


def test_a_budget_that_makes_changes_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Read(monkeypatch, SILENT).reading.late_ms == 0
    # All groups are awake, since nothing is swept.
    scarce = Read(monkeypatch, SILENT, budget=(len(MANY) + 1) / 10)
    assert scarce.reading.pause_ms == 10_000
    assert scarce.reading.late_ms == 10_000 - LATE_MS
