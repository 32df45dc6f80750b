"""What a command asks of Kafka once is asked again while that may help, and no longer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from connector.delivery import asked_once, patiently
from connector.delivery.asked_once import PASSING_SECONDS
from connector.errors import (
    CdcError,
    FatalDeliveryError,
    RetriableDeliveryError,
    StillRunning,
    TransactionAborted,
    UnknownOutcome,
)

AWAY = RetriableDeliveryError("listing topics: _TRANSPORT")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_once, "PAUSE_SECONDS", 0.0)


def answering(*answers: CdcError | str) -> tuple[Callable[[], str], list[CdcError | str]]:
    """A call with these answers, one after the other, and those that are left."""
    left = list(answers)

    def call() -> str:
        answer = left.pop(0)
        if isinstance(answer, CdcError):
            raise answer
        return answer

    return call, left


def test_what_passes_is_told_once_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    call, left = answering(AWAY, RetriableDeliveryError("reading topic t: LEADER_NOT_AVAILABLE"), AWAY, "there")
    with caplog.at_level(logging.INFO, asked_once.__name__):
        assert patiently(call) == "there"
    assert caplog.messages == [f"{AWAY}; trying again"] and not left


@pytest.mark.parametrize("error", [FatalDeliveryError("no"), StillRunning("it runs"), TransactionAborted("aborted")])
def test_what_does_not_pass_is_said_at_once(error: CdcError) -> None:
    call, left = answering(error, "there")
    with pytest.raises(type(error)):
        patiently(call)
    assert left == ["there"]


def test_what_may_be_done_once_more_is() -> None:
    call, _ = answering(TransactionAborted("aborted"), AWAY, UnknownOutcome("unknown"), "done")
    assert patiently(call, TransactionAborted, UnknownOutcome) == "done"


def test_what_lasts_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(asked_once, "time", SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None))
    asked: list[float] = []

    def call() -> str:
        nonlocal now
        asked.append(now)
        now += PASSING_SECONDS / 3
        raise AWAY

    with pytest.raises(RetriableDeliveryError, match="listing topics"):
        patiently(call)
    assert len(asked) == 3 and asked[-1] < PASSING_SECONDS
