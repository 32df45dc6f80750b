"""Commands that ask Kafka once do not end with what passes while its brokers change; what they write, they write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.cli.main import run
from connector.config import load
from connector.delivery import KafkaClients, TransactionalProducer, asked_once, ensure_topics
from connector.errors import CdcError, RetriableDeliveryError, TransactionAborted, UnknownOutcome
from connector.worker import reports
from connector.worker.positions import Positions
from connector.worker.settings import offsets_spec
from embedded.kafka import EmbeddedKafka
from tests.config.files import CONNECTOR

pytestmark = pytest.mark.kafka

Passing = Callable[..., list[str]]


@pytest.fixture
def files(kafka: EmbeddedKafka, unique: Callable[[str], str], tmp_path: Path) -> list[str]:
    """Of a connector that has run, and does not any more."""
    name = unique("c")
    worker = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": name, "offset.storage.topic": f"{name}-offsets"}
    worker |= {"offset.storage.partitions": "2", "status.storage.topic": f"{name}-status"}
    worker |= {"offset.storage.replication.factor": "1"}
    signals = {"signal.enabled.channels": "kafka", "signal.kafka.topic": f"{name}-signals"}
    written = []
    for kind, properties in (("connector", {**CONNECTOR, "name": name, **signals}), ("worker", worker)):
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(properties))
        written.append(path)
    configuration = load(*written)
    ensure_topics(KafkaClients({"bootstrap.servers": kafka.bootstrap_servers}).admin(), [offsets_spec(configuration)])
    Positions(configuration).reset(configuration.connector.reading.tables, 5)
    return [str(written[0]), "--worker", str(written[1])]


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passing]:
    """Has calls of a function fail with these errors, one after the other, before they go through."""
    monkeypatch.setattr(asked_once, "PAUSE_SECONDS", 0.0)
    told: list[list[CdcError]] = []

    def fail(owner: Any, name: str, *errors: CdcError) -> None:
        real, left = getattr(owner, name), list(errors)
        told.append(left)

        def call(*given: Any, **named: Any) -> Any:
            if left:
                raise left.pop(0)
            return real(*given, **named)

        monkeypatch.setattr(owner, name, call)

    yield fail
    assert told and not any(told), "all of it was met"


def test_positions_are_moved_though_the_transaction_was_aborted(
    files: list[str], passing: Passing, capsys: pytest.CaptureFixture[str]
) -> None:
    passing(TransactionalProducer, "flush", TransactionAborted("LEADER_NOT_AVAILABLE"))
    passing(TransactionalProducer, "commit", UnknownOutcome("committing: _TIMED_OUT"))
    assert run(["offsets", "reset", "--to", "2024-01-01T00:00:00Z", *files, "--json"]) == 0
    moved = json.loads(capsys.readouterr().out)["read_to"]
    assert run(["offsets", "show", *files, "--json"]) == 0
    assert {row["read_to"] for row in json.loads(capsys.readouterr().out)} == {moved}


def test_positions_are_shown_though_a_broker_went_away(
    files: list[str], passing: Passing, capsys: pytest.CaptureFixture[str]
) -> None:
    passing(Positions, "_partitions", RetriableDeliveryError("listing topics: _TRANSPORT"))
    assert run(["offsets", "show", *files, "--json"]) == 0
    assert {row["read_to"] for row in json.loads(capsys.readouterr().out)} == {5}


@pytest.mark.parametrize("command", [["status"], ["snapshot", "show"]], ids=" ".join)
def test_the_state_is_told_though_a_broker_went_away(files: list[str], passing: Passing, command: list[str]) -> None:
    passing(reports, "partitions_of", RetriableDeliveryError("listing topics: _TRANSPORT"))
    assert run([*command, *files]) == 0


def test_a_signal_is_given_though_no_controller_was_there_yet(files: list[str], passing: Passing) -> None:
    from connector import delivery

    passing(delivery, "ensure_topics", RetriableDeliveryError("creating topic: Failed while waiting for controller"))
    assert run(["snapshot", "start", *files]) == 0
