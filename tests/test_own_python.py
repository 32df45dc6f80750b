"""Processes of ours run our modules, whatever the folder holds where the user stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connector import __version__, own_python
from connector.own_python import apart, module_command
from tests.house import ROOT

_THEIRS = 'raise SystemExit("of another project")\n'


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A project with names that are also ours, or Python's."""
    for name in ("connector", "smt", "embedded"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(_THEIRS)
    for name in ("json.py", "queue.py", "secrets.py"):
        (tmp_path / name).write_text(_THEIRS)
    return tmp_path


def test_a_process_runs_what_is_ours(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/usr/bin", *sys.path[1:]])
    done = subprocess.run(module_command("connector", "--version"), cwd=elsewhere, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (f"scylla-cdc {__version__}", "")


@pytest.mark.parametrize("path", ["", str(ROOT)])
def test_so_do_the_processes_of_the_command_line_and_of_spark(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """PySpark starts its own, with `-m` as well; who has started it once has told its Pythons where we are."""
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv("PYTHONPATH", path)
    script = "import os, sys; sys.path.pop(0); from connector.own_python import keep_apart; keep_apart(); " + (
        "import subprocess; subprocess.run([sys.executable, '-m', 'connector', '--version'], check=True)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=elsewhere, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (f"scylla-cdc {__version__}", "")


def test_where_only_the_current_folder_has_us_it_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "path", [str(own_python._ROOT), "/usr/lib/python3"])
    assert apart() == []
    monkeypatch.setenv("PYTHONPATH", str(own_python._ROOT))
    assert apart() == ["-P"], "it is found there"
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3"])
    monkeypatch.chdir(own_python._ROOT)
    assert apart() == []
    monkeypatch.chdir("/")
    assert apart() == ["-P"]


def test_a_current_folder_that_is_gone_has_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3"])
    assert apart() == ["-P"]


def test_nobody_starts_a_module_in_another_way() -> None:
    files = [file for room in ("connector", "embedded", "spark_jobs", "smt") for file in (ROOT / room).rglob("*.py")]
    lines = [f"{file.name}: {line.strip()}" for file in files for line in file.read_text().splitlines()]
    assert [line for line in lines if 'sys.executable, "-m"' in line] == []
