"""The documents of the status: names and values are a contract, other versions are read, states have one order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ValidationError

from connector import secrets
from connector.worker.http import health_of
from connector.worker.messages import EndMessage, StatusMessage, from_line, to_line
from connector.worker.metrics import metrics_page
from connector.worker.state import State
from connector.worker.status_document import (
    Document,
    FailingStatus,
    NativeStatus,
    PollStatus,
    ReadingStatus,
    RetryStatus,
    ServiceStatus,
    SnapshotStatus,
    TableStatus,
    WaitingStatus,
    WorkerStatus,
    scrubbed_text,
)

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("status.json").read_text())
# The members that every version has.
OLDEST = {
    "worker": "w",
    "fingerprint": "5f2c",
    "tables_configured": ["ks.t"],
    "time_ms": 5,
    "state": "RUNNING",
    "slots": [1],
    "slot_count": 3,
    "tables": {},
}


def test_a_recorded_status_comes_back_as_it_was() -> None:
    assert ServiceStatus.model_validate(RECORDED).document() == RECORDED


def test_members_are_the_recorded_ones() -> None:
    """Each is known, and the recording has each."""
    worker = RECORDED["workers"][0]
    table = worker["tables"]["ks.t"]
    documents: list[tuple[type[Document], dict[str, Any]]] = [
        (ServiceStatus, RECORDED),
        (TableStatus, table),
        (WaitingStatus, table["waiting"][0]),
        (ReadingStatus, worker["reading"]),
        (RetryStatus, worker["retrying"][0]),
        (PollStatus, worker["polls"][0]),
        (FailingStatus, worker["background"][0]),
        (SnapshotStatus, table["snapshot"]),
        (NativeStatus, worker["native"]),
    ]
    for model, recorded in documents:
        assert list(model.model_fields) == list(recorded), model
    own = [name for name in worker if name != "last_report_age_seconds"]
    assert list(WorkerStatus.model_fields) == own


def test_a_table_that_could_not_be_described_has_no_figures() -> None:
    status = ServiceStatus.model_validate(RECORDED)
    gone = status.workers[0].tables["ks.gone"]
    assert gone.document() == RECORDED["workers"][0]["tables"]["ks.gone"]
    assert not gone.has_figures
    samples = [
        sample
        for family in text_string_to_metric_families(metrics_page(lambda: status).decode())
        for sample in family.samples
    ]
    assert {sample.labels["table"] for sample in samples if "table" in sample.labels} == {"ks.t"}
    figures = {sample.name: sample.value for sample in samples if sample.labels.get("table") == "ks.t"}
    assert figures["scylla_cdc_records_total"] == 12
    assert figures["scylla_cdc_waiting_groups"] == 1
    assert figures["scylla_cdc_lag_seconds"] == 1.5


def test_every_metric_names_its_connector_and_keeps_to_prometheus_conventions() -> None:
    page = metrics_page(lambda: ServiceStatus.model_validate(RECORDED)).decode()
    families = list(text_string_to_metric_families(page))
    for family in families:
        assert family.documentation.endswith("."), family.name
        assert not family.name.endswith(("_ms", "_count", "_total")), family.name
        assert {sample.labels["connector"] for sample in family.samples} == {"shop"}, family.name
        if family.type == "counter":
            assert {sample.name for sample in family.samples} == {f"{family.name}_total"}
    values = {(sample.name, sample.labels.get("le")): sample.value for family in families for sample in family.samples}
    for name in ("delivery_latency_seconds", "batch_rows", "transaction_records"):
        cumulative = [values[f"scylla_cdc_{name}_bucket", bound] for bound in ("1.0", "10.0", "+Inf")]
        assert cumulative == [3, 4, 5] and values[f"scylla_cdc_{name}_count", None] == 5
        assert values[f"scylla_cdc_{name}_sum", None] == 25.5
    [build] = [family for family in families if family.name == "scylla_cdc_build_info"]
    assert build.samples[0].labels["version"] == "0.1.0"
    [servers] = [family for family in families if family.name == "scylla_cdc_servers_info"]
    assert servers.samples[0].labels["scylla_version"] == "2026.1.0"


def test_two_connectors_of_one_process_have_their_own_figures() -> None:
    workers = [{**RECORDED["workers"][0], "index": index, "connector": f"c{index}"} for index in (0, 1)]
    own = {name: {"state": "RUNNING", "workers_running": number} for name, number in (("c0", 1), ("c1", 4))}
    status = ServiceStatus.model_validate({**RECORDED, "connector": "c0,c1", "workers": workers, "connectors": own})
    families = {each.name: each for each in text_string_to_metric_families(metrics_page(lambda: status).decode())}
    rows = {(sample.labels["worker"], sample.labels["connector"]) for sample in families["scylla_cdc_rows"].samples}
    assert rows == {("0", "c0"), ("1", "c1")}
    running = {sample.labels["connector"]: sample.value for sample in families["scylla_cdc_workers"].samples}
    assert running == {"c0": 1, "c1": 4}
    assert families["scylla_cdc_build_info"].samples[0].labels["connector"] == "c0,c1"


def test_a_newer_and_an_older_version_are_read() -> None:
    newer = {**RECORDED["workers"][0], "colour": "blue", "state": "DREAMING"}
    newer["reading"] = {**newer["reading"], "dreams": 3}
    status = WorkerStatus.model_validate(newer)
    assert status.state is State.WAITING, "neither good nor final"
    assert status.reading.rows == 20
    assert status.document() == {**newer, "state": "WAITING"}, "what is not known is passed on"
    older = WorkerStatus.model_validate(OLDEST)
    assert (older.state, older.slots, older.background, older.waiting_for) == (State.RUNNING, (1,), (), None)
    assert older.document() == OLDEST


@pytest.mark.parametrize(
    "change", [{"state": 5}, {"slots": ["x"]}, {"slot_count": 2**40}, {"tables": {"ks.t": {}}}, {"time_ms": None}]
)
def test_what_is_no_status_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WorkerStatus.model_validate({**OLDEST, **change})


def test_health_names_what_has_failed_and_what_came_too_late() -> None:
    health = health_of(ServiceStatus.model_validate(RECORDED)).document()
    assert health == {
        "state": "FAILED",
        "waiting_for": None,
        "failing": [
            "ks.gone is FAILED: table ks.gone does not exist",
            "ks.t is FAILED: column v: 3 bytes are no int",
            "ks.t: changes of the table's columns are not seen",
        ],
        "late_changes": {"ks.t": {"delivered": 2}},
        "expired": {},
    }


@pytest.mark.parametrize(
    ("states", "together"),
    [
        (["RUNNING", "STOPPED"], "RUNNING"),
        (["RUNNING", "WAITING"], "WAITING"),
        (["WAITING", "FAILED", "RUNNING"], "FAILED"),
        (["STOPPED"], "STOPPED"),
    ],
)
def test_states_have_one_order(states: list[str], together: str) -> None:
    assert max(map(State, states)) is State(together)


@pytest.mark.parametrize(
    ("change", "nothing_left"),
    [
        ({}, True),
        ({"slots": []}, False),
        ({"slots_pending": [2]}, False),
        ({"tables": {}}, False),
        ({"tables": {"ks.t": {"state": "FAILED", "all_failed": False}}}, False),
        ({"tables": {"ks.t": {"state": "WAITING", "all_failed": True}}}, False),
    ],
)
def test_nothing_is_left_once_all_of_it_failed(change: dict[str, Any], nothing_left: bool) -> None:
    failed = {**OLDEST, "slots_pending": [], "tables": {"ks.t": {"state": "FAILED", "error": "gone"}}}
    assert WorkerStatus.model_validate({**failed, **change}).nothing_left is nothing_left


@pytest.mark.parametrize(
    "secret", ["s3cret-of-status", 's3cret "quoted"', "s3crét", "tab\tbed-secret", "half\ud800way", None]
)
def test_what_leaves_a_worker_is_the_document_without_secrets(secret: str | None) -> None:
    if secret is not None:
        secrets.register(secret)
    said = f"login with {secret!r} refused" if secret is not None else 'plain, "quoted", é'
    error = {**RECORDED["workers"][0]["background"][0], "error": said, "text": f"\\{said}"}
    status = WorkerStatus.model_validate({**OLDEST, "background": [error], "errors": {"last": said}})
    text = scrubbed_text(status)
    assert json.loads(text) == secrets.scrubbed(status.document())
    assert json.loads(to_line(StatusMessage(status=status))) == {"event": "status", "status": json.loads(text)}
    if secret is not None:
        assert "refused" in text and secrets.MASK in text
    assert text.isascii()


def test_halves_of_characters_are_told_so_that_a_report_is_understood() -> None:
    # Of an error whose text was cut, or of bytes that are no text.
    secrets.register("canary\udcffseven")
    said = "cut\ud83d, and canary\udcffseven, \ud83d\ude00"
    status = WorkerStatus.model_validate({**OLDEST, "errors": {"last": said}})
    message = from_line(to_line(StatusMessage(status=status)).encode())
    assert isinstance(message, StatusMessage)
    assert message.status.errors["last"] == f"cut\ufffd, and {secrets.MASK}, \U0001f600"
    assert from_line(to_line(EndMessage(cause=said)).encode()) == EndMessage(cause=message.status.errors["last"])


def test_a_text_without_anything_to_hide_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets.register("s3cret-of-nobody")
    monkeypatch.setattr(secrets, "scrubbed", None)
    assert scrubbed_text(WorkerStatus.model_validate(OLDEST)).startswith('{"worker":"w","fingerprint":"5f2c",')
