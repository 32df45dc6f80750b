"""How long work tells that it goes on, away from a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from connector.cli.configuration import load_configuration
from connector.cli.main import _parser, run
from connector.cli.narration import Narration
from connector.cli.output import ConsoleOutput, JsonOutput
from connector.cli.read import QUIET_SECONDS, _Quiet
from spark_jobs.stream import Progress
from tests.config.files import CONNECTOR, WORKER
from tests.servers.patience import until


@pytest.mark.parametrize("output", [ConsoleOutput(io.StringIO(), io.StringIO()), JsonOutput(io.StringIO())])
def test_silent_work_is_told_with_how_far_it_is(output: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "connector"), Narration(output, lambda: "3 of 8 tasks done", 0.05) as narration:
        narration.say("shop.orders: reading the source …")
        # Where the processor is busy, it may have spoken before it was told what is being done.
        spoken = until(lambda: [line for line in caplog.messages if not line.startswith("working")], 90, "a word")
    assert spoken[0].startswith("shop.orders: reading the source: for ") and spoken[0].endswith("3 of 8 tasks done")
    assert not [thread for thread in threading.enumerate() if thread.name == "narration"]


def test_verify_that_compares_does_not_say_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A comparison of large tables takes hours, and says nothing else before the first rows differ."""
    landing = {"name": "l", "bootstrap.servers": "h:1", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "/w"}
    (tmp_path / "landing.json").write_text(json.dumps({**landing, "spark.jars": "none"}))
    said: list[str] = []

    def compared(*_: Any) -> list[Any]:
        said.extend(capsys.readouterr().out.splitlines())
        return []

    monkeypatch.setattr("spark_jobs.session.start_session", lambda _: None)
    monkeypatch.setattr("spark_jobs.session.needing_spark", contextlib.nullcontext)
    monkeypatch.setattr("spark_jobs.verify.verify", compared)
    assert run(["verify", str(tmp_path / "landing.json"), "--scylla", "127.0.0.1:1"]) == 0
    assert said == ["Starting Spark …", "Comparing with the source …"]


def test_reading_says_how_far_it_is_while_there_is_nothing_to_print(caplog: pytest.LogCaptureFixture) -> None:
    class Reader:
        read_to: int | None = None

    reader, now = Reader(), 100.0
    with caplog.at_level(logging.INFO, "connector"):
        quiet = _Quiet(cast(Any, reader), lambda: now)
        quiet.tick()
        assert not caplog.messages
        now += QUIET_SECONDS
        quiet.tick()
        reader.read_to = 1_795_328_220_500
        quiet.printed()
        now += QUIET_SECONDS - 1
        quiet.tick()
        now += 1
        quiet.tick()
    assert caplog.messages == [
        "nothing is read yet, 0 batches printed",
        "read up to 2026-11-22T06:17:00.500Z, 1 batches printed",
    ]


def test_landing_writes_a_line_now_and_then(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr("spark_jobs.stream.progress.NOTE_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, "spark_jobs"):
        Progress(err).batch("shop.orders", 12, {}, None)
        Progress(err, as_json=True).batch("shop.orders", 12, {}, None)
    assert caplog.messages == ["shop.orders: 12 changes, 0 merges"]
    assert json.loads(err.getvalue())["progress"]["tables"]["shop.orders"]["rows"] == 12


def test_who_forgets_the_worker_file_is_told_which_kafka_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(CONNECTOR))
    (tmp_path / "w.json").write_text(json.dumps(WORKER))

    def notices(*more: str) -> list[str]:
        arguments = ["status", str(tmp_path / "c.json"), *more]
        found = load_configuration(_parser(arguments)[0].parse(arguments)).notices
        return [notice for notice in found if "the default" in notice]

    assert "Kafka is localhost:9092, the default" in notices()[0]
    assert notices("--worker", str(tmp_path / "w.json")) == []
    monkeypatch.setenv("CONNECT_BOOTSTRAP_SERVERS", "kafka:9092")
    assert notices() == []


def test_landing_says_once_what_to_look_at_where_records_are_not_of_the_expected_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    progress = Progress(io.StringIO())
    with caplog.at_level(logging.WARNING, "spark_jobs"):
        for _ in range(2):
            progress.batch("shop.orders", 0, {"BAD_OP": 3, "NO_TS": 1}, None)
    assert caplog.messages == [
        "shop.orders: dead letters with BAD_OP: is value.converter.schemas.enable of the landing file what the "
        "connector's worker has?"
    ]
