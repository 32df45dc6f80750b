"""Rules for the files themselves: size, names, openings, and what must not stand in any of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from connector.cli.logs import _OUR_LOGGERS
from tests.house import PRODUCT, ROOT, matches, sleeps, texts

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
OF_THE_JVM = r"\bsession\._j" + r"vm\b"
SLEEPERS = {"tests/servers/patience.py"}
# Soaks make faults that last.
SOAKS = ("tests/soak/", "tests/worker/test_worker_soak.py")


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


def test_what_is_logged_is_shown() -> None:
    """Loggers of other names than the packages' speak up from warnings on, and no level can be set for them."""
    ours = tuple(f'"{name}.' for name in _OUR_LOGGERS)
    named = re.compile(r"^log = logging\.getLogger\((.*)\)$", re.MULTILINE)
    found = [(name, said) for name, text in product_texts() for said in named.findall(text)]
    assert found and [each for each in found if each[1] != "__name__" and not each[1].startswith(ours)] == []


def test_nothing_is_left_unfinished() -> None:
    assert matches(UNFINISHED, ".py", ".md", ".sh") == []


def test_classes_of_the_jvm_are_found_by_their_whole_names() -> None:
    """Elsewhere they would be spelled in parts, and the JVM looks for each part: see `spark_jobs/java_objects.py`."""
    found = matches(OF_THE_JVM, ".py", below=(*PRODUCT, "bench/"))
    assert [each for each in found if not each.startswith("spark_jobs/java_objects.py:")] == []


def test_no_test_is_switched_off() -> None:
    assert matches(SWITCHED_OFF, ".py", below=("tests/",)) == []


def test_no_test_sleeps() -> None:
    tests = [(name, text) for name, text in texts(".py") if name.startswith("tests/") and name not in SLEEPERS]
    assert [f"{name}:{line}" for name, text in tests for line in sleeps(text)] == []
    letting = re.compile(r"\blet_" + r"pass\b")
    assert [name for name, text in tests if letting.search(text) and not name.startswith(SOAKS)] == []


def test_a_pause_of_the_product_is_a_sleep() -> None:
    assert matches(r"\bEvent\(\)\.wait\(", ".py", below=(*PRODUCT, "bench/")) == []


@pytest.mark.parametrize(
    "line",
    [
        "time.sle" + "ep(1)",
        "from time import sleep\nsle" + "ep(1)",
        "await asyncio.sle" + "ep(1)",
        "threading.Event().wait(3)",
        "Event().wait(timeout=3)",
        "pause = threading.Event()\npause.wait(0.05)",
        "self._pause: Event = Event()\nself._pause.wait(0.05)",
        "pause, ended = Event(), Event()\nended.set()\npause.wait(1)",
        "(pause := Event()).is_set()\npause.wait(1)",
        "select.select([], [], [], 0.2)",
        "signal.sigtimedwait([], 0.2)",
    ],
)
def test_sleeping_is_noticed(line: str) -> None:
    assert sleeps(line) != []


@pytest.mark.parametrize(
    "line",
    [
        "asleep()",
        "process.wait(30)",
        "ended = threading.Event()\nThread(target=ended.set).start()\nended.wait(30)",
        "self.opened = Event()\nself.opened.set()\nfollowing.opened.wait(20)",
        "select.select([pipe], [], [], 0.2)",
        "signal.sigtimedwait([signal.SIGUSR1], 0.2)",
    ],
)
def test_waiting_for_something_is_no_sleep(line: str) -> None:
    assert sleeps(line) == []


def test_the_glossary_names_what_is_in_the_code() -> None:
    rows = re.findall(r"^\| \*\*.*\|([^|]*)\|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    code = "\n".join(text for _, text in product_texts())
    assert len(named) > 15
    assert {name for name in named if not re.search(rf"\b{name}\b", code)} == set()


def test_pages_name_files_that_exist() -> None:
    named = {
        (page, name)
        for page, text in texts(".md")
        for name in re.findall(rf"`((?:{'|'.join(PRODUCT)}|tests|docs|bench|config)/[\w/.-]+)`", text)
    }
    assert len(named) > 50
    assert sorted((page, name) for page, name in named if not list(ROOT.glob(f"{name.rstrip('/')}*"))) == []


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
        (OF_THE_JVM, "self.session._j" + "vm.java.util.ArrayList()", "SparkContext._j" + "vm"),
    ],
)
def test_patterns_notice(pattern: str, bad: str, good: str) -> None:
    assert re.search(pattern, bad) and not re.search(pattern, good)
