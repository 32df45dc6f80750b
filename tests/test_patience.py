"""Deadlines grow with what the tests have of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.servers import patience


@pytest.mark.parametrize(
    ("quota", "ours"), [("50000 100000", 0.5), ("max 100000", None), ("6400000 100000", None), ("", None)]
)
def test_a_container_has_no_more_of_the_machine_than_it_may_use(
    quota: str, ours: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    if quota:
        patience._QUOTA.write_text(quota + "\n")
    assert patience.cores() == (3.0 if ours is None else ours)
