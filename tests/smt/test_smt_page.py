"""Every example of docs/smt.md is run, and every option has one."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from connector.cli.transform import run_lines
from smt import build_transform
from smt.options import EXTRACT_OPTIONS, FLATTEN_OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "smt.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```smt\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def parse(example: str) -> tuple[str, dict[str, str], list[str], list[dict[str, Any]]]:
    head, *lines = example.strip().splitlines()
    type_name, *pairs = head.split()
    options = dict(pair.split("=", 1) for pair in pairs)
    given = [line[2:] for line in lines if line.startswith("< ")]
    expected = [{"headers": {}, **json.loads(line[2:])} for line in lines if line.startswith("> ")]
    return type_name, options, given, expected


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str) -> None:
    type_name, options, given, expected = parse(example)
    out = io.StringIO()
    run_lines(build_transform(type_name, options), io.StringIO("\n".join(given)), out)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == expected


def test_every_option_has_an_example() -> None:
    shown = {name for example in EXAMPLES for name in parse(example)[1]}
    assert shown >= set(EXTRACT_OPTIONS) | set(FLATTEN_OPTIONS)
    for name in EXTRACT_OPTIONS:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("code", PYTHON)
def test_python(code: str) -> None:
    exec(compile(code, "docs/smt.md", "exec"), {})
