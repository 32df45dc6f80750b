"""What is tried again, and for how long that is told: a group that nobody will read any more is no trouble."""

from __future__ import annotations

from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connector.errors import ReplicasAway, RetriableSourceError
from connector.source.background import Background
from connector.source.connection import Connection
from connector.source.consumer import Consumer
from connector.source.failures import ReadTimedOut
from connector.source.log_reader import LogTable, PageRead, ReadFailed, SweepRequest
from connector.source.pages import RawPage
from connector.source.reading import Reading
from connector.source.settings import ConnectionSettings, ReadingSettings
from connector.source.tables import Tables
from connector.topology import Read
from tests.servers.patience import until
from tests.topology.single import CONFIDENCE, TABLE, Single, stream, tablets

STREAMS = [stream(place) for place in (32, 64, 96, 128)]
TIMED_OUT = RetriableSourceError("it timed out")


class Requests:
    """A log reader that only notes what it was asked for."""

    in_flight = waiting = 0
    most_ahead = 64

    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def submit(self, request: Any) -> None:
        self.submitted.append(request)

    def cancel(self, group: Hashable) -> None:
        self.submitted = [each for each in self.submitted if each.group != group]

    def consumed(self, event: Any) -> None:
        self.submitted = [each for each in self.submitted if each is not event.request]

    def pump(self) -> None:
        return None


class Reader:
    """Reads four groups of two slots, by answers that the test gives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, retry_ms: int = 1) -> None:
        self.log = Requests()
        monkeypatch.setattr("connector.source.reading.LogReader", lambda *_: self.log)
        monkeypatch.setattr("connector.source.reading.COUNTING_SECONDS", 0.0)
        self.one = Single(tablets(9_000, *STREAMS), now=10_000, slots=2)
        self.background = Background()
        tables: Any = {TABLE: SimpleNamespace(log=LogTable("ks", "t_scylla_cdc_log"))}
        self.reading = Reading(
            planner=self.one.planner,
            connection=cast(Connection, SimpleNamespace(settings=ConnectionSettings(()))),
            settings=ReadingSettings(confidence_ms=CONFIDENCE, retry_base_ms=retry_ms, retry_max_ms=retry_ms),
            sink=lambda event: None,
            consumer=cast(Consumer, None),
            tables=cast(Tables, NeverStopped(tables)),
            background=self.background,
        )

    def pump(self) -> None:
        self.reading.pump(self.one.now)

    def asked(self, *, sweeps: bool) -> list[Any]:
        return [each for each in self.log.submitted if isinstance(each, SweepRequest) is sweeps]

    def read_of(self, request: Any) -> Read:
        return self.reading._active[request.group].read

    @property
    def told(self) -> list[str]:
        return [str(failing) for failing in self.background.failing()]


class NeverStopped(dict[Any, Any]):
    looked_ms = 1 << 60

    def stopped(self, table: Any) -> bool:
        return False

    def knows(self, table: Any, until_ms: int) -> bool:
        return until_ms <= self.looked_ms


def test_a_group_that_a_sweep_finds_silent_is_no_trouble_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(monkeypatch)
    monkeypatch.setattr(type(found.reading.sweeping), "pump", lambda *_: None)
    found.pump()
    requests = found.asked(sweeps=False)
    assert len(requests) == len(STREAMS)
    for request in requests:
        found.reading.handle(ReadFailed(request, TIMED_OUT, 0))
    assert "some streams are not read" in found.told[0]
    assert len(found.reading.retries.groups) == len(STREAMS)

    monkeypatch.undo()
    found.reading.sweeping.pump(found.one.now)
    [sweep] = found.asked(sweeps=True)
    found.reading.handle(PageRead(sweep, RawPage((), (), []), 1, last=True))
    assert found.one.plan.awake == 0
    found.reading._settled_due = 0.0
    found.pump()
    assert not found.told
    assert not found.reading.retries.groups


def test_nothing_is_read_before_somebody_has_looked_for_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.source.reading.DESCRIBING_SECONDS", 0.001)
    monkeypatch.setattr(NeverStopped, "looked_ms", 0)
    found = Reader(monkeypatch)
    monkeypatch.setattr(type(found.reading.sweeping), "pump", lambda *_: None)
    for _ in range(2):
        found.pump()
        assert not found.log.submitted
    monkeypatch.setattr(NeverStopped, "looked_ms", found.one.now)

    def all_are_read() -> bool:
        found.pump()
        return len(found.log.submitted) == len(STREAMS)

    until(all_are_read, 90, "the reads")


def test_what_goes_to_another_worker_is_not_ours_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(monkeypatch)
    monkeypatch.setattr(type(found.reading.sweeping), "pump", lambda *_: None)
    found.pump()
    requests = found.asked(sweeps=False)
    told, postponed = requests[0], requests[1]
    found.reading.handle(ReadFailed(told, TIMED_OUT, 0))
    found.reading.postpone(postponed.group, RetriableSourceError("its topic is away"))
    assert len(found.reading.retries.groups) == 2
    found.one.planner.release([0, 1])
    found.pump()
    assert not found.told
    assert not found.reading.retries.groups


def test_what_waits_for_a_topic_goes_on_with_it_and_what_cannot_be_read_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Groups pause for half a minute at last: a topic that was mended waited for as long."""
    found = Reader(monkeypatch, retry_ms=30_000)
    monkeypatch.setattr(type(found.reading.sweeping), "pump", lambda *_: None)
    found.pump()
    unread, *postponed = found.asked(sweeps=False)
    found.reading.handle(ReadFailed(unread, TIMED_OUT, 0))
    for request in postponed:
        found.reading.postpone(found.read_of(request), RetriableSourceError("its topic is away"))
    found.log.submitted.clear()
    found.pump()
    assert not found.log.submitted
    found.reading.go_on()
    found.pump()
    asked = {request.group.state for request in found.log.submitted}
    assert asked == {request.group.state for request in postponed}


def test_the_first_answer_tells_all_groups_whose_nodes_were_away_that_one_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("connector.source.retries.BACK_SECONDS", 600.0)
    found = Reader(monkeypatch, retry_ms=30_000)
    monkeypatch.setattr(type(found.reading.sweeping), "pump", lambda *_: None)
    found.pump()
    first, *away, late = found.asked(sweeps=False)
    for request in (first, *away):
        found.reading.handle(ReadFailed(request, ReplicasAway("its node is away"), 0))
    found.reading.handle(ReadFailed(late, ReadTimedOut("too much to do"), 0))
    state, waiting = first.group.state, {request.group.state for request in away}

    def asked_after_its_answer() -> set[Any]:
        found.log.submitted.clear()
        found.reading.retries.groups[state].not_before = 0.0
        found.reading._hurry({state}, 0.0)
        found.pump()
        (request,) = found.log.submitted
        found.reading._end(found.reading._active[request.group])
        found.log.submitted.clear()
        found.pump()
        return {request.group.state for request in found.log.submitted}

    assert asked_after_its_answer() == waiting
    for request in list(found.log.submitted):
        found.reading.handle(ReadFailed(request, ReplicasAway("their node is not"), 0))
    state = waiting.pop()
    assert not asked_after_its_answer(), "that was tried just now"
