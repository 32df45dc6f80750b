"""Who does not answer is shown while it is waited for, and hides nothing of the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from connector.source import Connection, ConnectionSettings
from connector.worker import checks, process
from connector.worker.messages import Message, WaitingMessage
from tests.config.files import loaded
from tests.servers.patience import until


@dataclass
class Shown:
    waiting_for: str | None = "starting"


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A server's, until it is set."""
    monkeypatch.setattr(checks, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(process, "SILENT_SECONDS", 0.05)
    ends = threading.Event()
    yield ends
    ends.set()


def test_who_is_silent_is_named_beside_who_refuses(monkeypatch: pytest.MonkeyPatch, silence: threading.Event) -> None:
    monkeypatch.setattr(checks, "_check_kafka", lambda *_: silence.wait())
    source, kafka = "127.0.0.1:1", "127.0.0.1:2"
    configuration = loaded({"scylla.cluster.ip.addresses": source}, {"bootstrap.servers": kafka})
    shown, stop = Shown(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(checks.wait_until_checked, configuration, stop, shown)
        try:
            words = (f"connecting to {source}", "refused", f"Kafka at {kafka}: no answer yet", "since 20")
            until(lambda: all(word in (shown.waiting_for or "") for word in words), what=lambda: f"{words} in {shown}")
            assert not found.done()
        finally:
            stop.set()
        assert found.result() == [], "it ends although nobody answers"


def test_a_worker_says_for_whose_first_answer_it_waits(silence: threading.Event) -> None:
    said: list[Message] = []
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        source = Connection(ConnectionSettings((("db", 9042),)))
        asked = pool.submit(process._patiently, "connecting to ScyllaDB", silence.wait, stop, said.append, source)
        try:
            until(lambda: said, what="a word of it")
            assert said == [WaitingMessage(doing="connecting to ScyllaDB", error="db:9042: no answer yet")]
        finally:
            stop.set()
        with pytest.raises(process.Stopped):
            asked.result()
