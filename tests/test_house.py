"""Rules for the files themselves: size, names, openings, and what must not stand in any of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.house import PRODUCT, ROOT, matches, texts

MOST_LINES = 450
NAMELESS = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}

# In pieces, so that this file does not contain what it looks for.
REGISTRIES = (
    "pypi" + r"\.org",
    "python" + r"hosted\.org",
    "maven" + r"\.org",
    "maven" + r"\.apache\.org",
    "sonatype" + r"\.(org|com)",
    "npmjs" + r"\.(org|com)",
    "conda" + r"\.anaconda",
    "(index|find|extra)-" + "(url|links)",
)
MACHINE_PATHS = r"(?<![\w./$}:*~-])/(home|root|Users|work|workspace|workspaces)/[\w.]"
UNFINISHED = r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|NotImplemented" + "Error"
SWITCHED_OFF = r"mark\.(sk" + r"ip|sk" + r"ipif|xf" + r"ail)\b|pytest\.(sk" + r"ip|xf" + r"ail)\("
SLEEP = r"\bsle" + r"ep\("


def product_texts() -> list[tuple[str, str]]:
    return [(name, text) for name, text in texts(".py") if name.startswith(PRODUCT)]


def test_files_stay_small() -> None:
    counted = [(name, text.count("\n")) for name, text in product_texts()]
    assert [f"{name}: {lines} lines" for name, lines in counted if lines > MOST_LINES] == []


def test_files_are_named_after_what_they_hold() -> None:
    assert [name for name, _ in texts(".py") if Path(name).name in NAMELESS] == []


def test_modules_open_with_their_purpose() -> None:
    assert [name for name, text in product_texts() if not ast.get_docstring(ast.parse(text))] == []


def test_packages_are_marked_as_typed() -> None:
    assert [name for name in PRODUCT if not (ROOT / name / "py.typed").is_file()] == []


@pytest.mark.parametrize("host", REGISTRIES)
def test_no_registry_is_named(host: str) -> None:
    # The Makefile passes the option that keeps such an address out of the lock file.
    assert [line for line in matches(host) if "--no-emit-" not in line] == []


def test_no_path_of_one_machine() -> None:
    assert matches(MACHINE_PATHS) == []


def test_nothing_is_left_unfinished() -> None:
    assert matches(UNFINISHED, ".py", ".md", ".sh") == []


def test_no_test_is_switched_off() -> None:
    assert matches(SWITCHED_OFF, ".py", below=("tests/",)) == []


def test_no_test_sleeps() -> None:
    assert matches(SLEEP, ".py", below=("tests/",)) == []


def test_version_is_said_once() -> None:
    from connector import __version__

    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("pattern", "bad", "good"),
    [
        (MACHINE_PATHS, "see " + "/ro" + "ot/project", "a/root/b and ~/work/x and ${HOME}/work/x"),
        (UNFINISHED, "# TO" + "DO later", "# to do"),
        (SWITCHED_OFF, "@pytest.mark.sk" + "ip", "@pytest.mark.kafka"),
        (SLEEP, "time.sle" + "ep(1)", "asleep"),
    ],
)
def test_patterns_notice(pattern: str, bad: str, good: str) -> None:
    assert re.search(pattern, bad) and not re.search(pattern, good)
