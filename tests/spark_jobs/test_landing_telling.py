"""What a job says of a batch that failed."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.cli.maintain import COMMAND
from connector.cli.output import ConsoleOutput
from spark_jobs.config import Settings
from spark_jobs.jobs.upkeep import Upkeep
from spark_jobs.stream import one_line, with_room


def test_a_full_disk_is_told_with_how_much_is_free_where(tmp_path: Path) -> None:
    said = with_room("No space left on device", [f"file://{tmp_path}", str(tmp_path / "none"), "s3a://bucket/w"])
    assert said.startswith("No space left on device (free now: ") and said.endswith(f" MiB in {tmp_path})")
    assert with_room("No space left on device", ["s3a://bucket/w"]) == "No space left on device"
    assert with_room("disk read", [str(tmp_path)]) == "disk read"


def test_an_error_that_spark_raises_once_more_is_told_by_what_it_says() -> None:
    """ "Full stacktrace of original doTryWithCallerStacktrace caller" was all that was said of a table that failed."""
    raised = (
        "An error occurred while calling o1.save.\n"
        ": org.apache.spark.sql.delta.DeltaAnalysisException: [DELTA_X] What is wrong\n\tat org.apache.A.b(C.scala:1)\n"
        "\tSuppressed: org.apache.spark.util.Utils$OriginalTryStackTraceException: "
        "Full stacktrace of original doTryWithCallerStacktrace caller\n\t\tat org.apache.A.b(C.scala:1)\n"
    )
    assert one_line(Exception(raised)) == "[DELTA_X] What is wrong"
    assert one_line(Exception(f"{raised}Caused by: java.io.IOException: the disk\n\tat A.b")) == "the disk"
    refused = (
        "An error occurred.\n: a.DeltaException: [X] violated by row with values:\n - id : 1\n - v : bad\n\tat A.b"
    )
    assert one_line(Exception(refused)) == "[X] violated by row with values: id : 1, v : bad"


@pytest.mark.parametrize(("problem", "status"), [(None, 0), ("why", 1)])
def test_upkeep_of_which_a_table_failed_ends_with_status_1(
    problem: str | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [Upkeep("ks.t", (), 0, 0, 0, 0, problem=problem), Upkeep("ks.u", (), 0, 0, 0, 0)]
    monkeypatch.setattr("spark_jobs.session.start_session", lambda config: None)
    monkeypatch.setattr("spark_jobs.session.needing_spark", contextlib.nullcontext)

    def maintained(session: None, settings: Settings, dry_run: bool, say: Callable[[str], None]) -> list[Upkeep]:
        say("ks.t: making larger files …")
        return done

    monkeypatch.setattr("spark_jobs.jobs.maintain", maintained)
    config = {"name": "j", "bootstrap.servers": "k:1", "topic.prefix": "p", "tables": ["ks.t", "ks.u"]}
    file = tmp_path / "landing.json"
    file.write_text(json.dumps({**config, "warehouse": str(tmp_path), "spark.jars": "a.jar"}), encoding="utf-8")
    told = io.StringIO()
    assert COMMAND.run(argparse.Namespace(config=str(file), dry_run=False), ConsoleOutput(told, told)) == status
    assert told.getvalue().startswith("Starting Spark …\nks.t: making larger files …\n")
    assert ("ks.t: upkeep failed: why" in told.getvalue()) == bool(status)
