"""Heartbeats come from the worker that has their slot, and wait for their topic without holding up anything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connector.source import Background
from connector.worker import heartbeat
from connector.worker.heartbeat import HEARTBEAT_SLOT, Heartbeat
from connector.worker.unmade import Unmade


class Case:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float = 5.0) -> None:
        self.now, self.trouble = 0.0, dict[str, str]()
        monkeypatch.setattr(heartbeat, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.background = Background(lambda: self.now, lambda: self.now)
        self.record = SimpleNamespace(topic="beats")
        encoder: Any = SimpleNamespace(heartbeat=lambda: [self.record])
        pipeline: Any = SimpleNamespace(trouble=self.trouble.get)
        self.heartbeat = Heartbeat(encoder, pipeline, Unmade(self.background, 30.0, lambda: self.now), seconds)


def test_only_the_worker_with_its_slot_beats_and_not_before_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    assert not case.heartbeat.is_due({HEARTBEAT_SLOT})
    case.now = 5.0
    assert case.heartbeat.is_due({HEARTBEAT_SLOT, 3}) and not case.heartbeat.is_due({3})
    assert case.heartbeat.records() == [case.record]
    assert not case.heartbeat.is_due({HEARTBEAT_SLOT})
    assert not Case(monkeypatch, 0.0).heartbeat.is_due({HEARTBEAT_SLOT})


def test_a_topic_that_takes_no_records_is_told_and_tried_at_the_next_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(monkeypatch)
    case.now, case.trouble["beats"] = 5.0, "it has no leader"
    assert not case.heartbeat.records() and not case.heartbeat.is_due({HEARTBEAT_SLOT})
    assert "topic beats: it has no leader" in str(case.background.failing())
    case.now = 10.0
    case.trouble.clear()
    assert case.heartbeat.is_due({HEARTBEAT_SLOT}) and case.heartbeat.records() == [case.record]
