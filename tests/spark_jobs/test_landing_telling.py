"""What a job says of a batch that failed."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.stream import with_room


def test_a_full_disk_is_told_with_how_much_is_free_where(tmp_path: Path) -> None:
    said = with_room("No space left on device", [f"file://{tmp_path}", str(tmp_path / "none"), "s3a://bucket/w"])
    assert said.startswith("No space left on device (free now: ") and said.endswith(f" MiB in {tmp_path})")
    assert with_room("No space left on device", ["s3a://bucket/w"]) == "No space left on device"
    assert with_room("disk read", [str(tmp_path)]) == "disk read"
