"""Style and types of the whole tree, by the tools that are configured in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house import ROOT


@pytest.mark.parametrize(
    "arguments",
    [["ruff", "check", "--output-format", "concise"], ["ruff", "format", "--check"], ["mypy"]],
    ids=["ruff-check", "ruff-format", "mypy-strict"],
)
def test_tool_has_nothing_to_say(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
