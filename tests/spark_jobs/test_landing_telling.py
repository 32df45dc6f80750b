"""What a job says of a batch that failed."""

from __future__ import annotations

from pathlib import Path

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
