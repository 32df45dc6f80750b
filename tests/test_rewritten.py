"""Of several processes each makes a share of what pytest imports instead of the test modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import rewritten

# What is rewritten is not run.
MODULE = "raise SystemExit\n\ndef test_it():\n    assert 1\n"


def made_by(
    process: str, folder: Path, config: pytest.Config, monkeypatch: pytest.MonkeyPatch, given: str = ""
) -> list[str]:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", process)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    # Where they go, if the environment names a place.
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(rewritten, "TESTS", folder)
    monkeypatch.setattr(config, "args", [str(folder / given)])
    rewritten.rewrite_a_share(config)
    return sorted(path.name.partition(".")[0] for path in folder.rglob("*.pyc"))


def test_each_process_makes_its_share_and_runs_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/test_b.py", "a/test_c.py", "test_d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MODULE)
    assert made_by("gw1", tmp_path, request.config, monkeypatch) == ["test_c"]
    assert made_by("gw0", tmp_path, request.config, monkeypatch) == ["test_b", "test_c", "test_d"]


def test_what_nobody_asked_for_is_left(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(MODULE)
    assert made_by("gw0", tmp_path, request.config, monkeypatch, "test_b.py::test_it[x]") == ["test_b"]


def test_what_is_wrong_with_a_module_is_said_by_who_collects_it(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_a.py").write_text("def test_it(:\n")
    (tmp_path / "test_b.py").write_text(MODULE)
    (tmp_path / "test_c.py").write_text("def test_it():\n    assert (0, 'always true')\n")
    assert made_by("gw0", tmp_path, request.config, monkeypatch) == []
    assert made_by("gw1", tmp_path, request.config, monkeypatch) == ["test_b"]
