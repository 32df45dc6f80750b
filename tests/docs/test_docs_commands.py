"""Runs the commands of the documentation that are marked to be run, and follows its links.

`<!-- run -->` before a fenced block: a `console` block's lines after `$ ` are run one by one, and where output follows,
it must be what the command prints on stdout, with `...` for anything; a `bash` block is run as one script.
`<!-- run in background -->`: the block's one command goes on until the page ends; the output must appear, then it gets
SIGTERM and must end with 0. The blocks of a page run in order, in the clone, with `.venv/bin` on PATH. What ends well
says nothing on stderr, writes no colours into a pipe, and a page leaves nothing in the temporary folder: the README's
runs the whole demo.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house import ROOT, texts
from tests.servers.patience import patience, until

SECONDS = 600
MARKED = re.compile(
    r"^<!-- run(?P<background> in background)? -->\n+```(?P<kind>console|bash)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    command: str
    output: str
    background: bool


def steps(page: str) -> Iterator[Step]:
    """The marked commands of a page, in order, each with the output it should have."""
    for block in MARKED.finditer(page):
        background = bool(block["background"])
        if block["kind"] == "bash":
            yield Step(block["body"], "", background)
            continue
        for part in re.split(r"^\$ ", block["body"], flags=re.MULTILINE)[1:]:
            command, output = re.match(r"((?:.*\\\n)*.*)\n?((?s:.*))", part).groups()  # type: ignore[union-attr]
            yield Step(command, output.strip(), background)


def looks_like(expected: str, actual: str) -> bool:
    parts = [re.escape(part) for part in expected.split("...")]
    return re.search(".*".join(parts), actual.strip(), re.DOTALL) is not None


PAGES = {name: list(steps(text)) for name, text in texts(".md")}


@pytest.mark.timeout(SECONDS * 4)
@pytest.mark.parametrize("page", [name for name, found in PAGES.items() if found])
def test_commands_do_what_the_page_says(page: str, tmp_path: Path) -> None:
    variables = environment() | {"TMPDIR": str(tmp_path)}
    with contextlib.ExitStack() as running:
        for step in PAGES[page]:
            if step.background:
                running.enter_context(in_background(step, variables))
            else:
                run(step, variables)
    until(lambda: not any(tmp_path.iterdir()), what=lambda: f"an empty folder: {list(tmp_path.iterdir())}")


def run(step: Step, variables: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step.command],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS * patience(),
    )
    assert (done.returncode, done.stderr) == (0, ""), f"$ {step.command}\n{done.stdout}{done.stderr}"
    assert "\x1b" not in done.stdout
    assert looks_like(step.output, done.stdout), f"$ {step.command}\n{done.stdout}"


@contextlib.contextmanager
def in_background(step: Step, variables: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(["bash", "-c", f"exec {step.command}"], cwd=ROOT, env=variables, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        said = b""
        deadline = time.monotonic() + SECONDS * patience()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not (said.endswith(b"\n") and looks_like(step.output, said.decode())):
                assert selector.select(max(0, deadline - time.monotonic())), f"$ {step.command}\n{said.decode()}"
                more = os.read(process.stdout.fileno(), 65536)
                assert more, f"ended: $ {step.command}\n{said.decode()}"
                said += more
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(120 * patience()) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def environment() -> dict[str, str]:
    """The user's, without what the test's own `make` left for its children, and without a wish for colours."""
    others = ("ARGS", "MAKE", "MFLAGS", "PYTEST", "SPARK_", "FORCE_COLOR", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"}


def test_links_lead_somewhere() -> None:
    prose = {
        (ROOT / name).resolve(): re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for name, text in texts(".md")
    }
    headings = {
        page: {anchor(each) for each in re.findall(r"^#+ (.+)$", text, re.MULTILINE)} for page, text in prose.items()
    }
    broken = []
    for page, text in prose.items():
        for target, place in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            there = page.parent.joinpath(target).resolve() if target else page
            if not there.exists() or (place and there in headings and place not in headings[there]):
                broken.append(f"{page.relative_to(ROOT)}: {target}#{place}")
    assert broken == []


def anchor(heading: str) -> str:
    """Of a heading, as GitHub makes it."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def test_marked_blocks_are_found() -> None:
    page = """text
<!-- run -->
```console
$ echo one \\
    two
one ...
$ true
```

```console
$ not marked
```
<!-- run in background -->
```bash
scylla-cdc embedded kafka
```
"""
    assert list(steps(page)) == [
        Step("echo one \\\n    two", "one ...", False),
        Step("true", "", False),
        Step("scylla-cdc embedded kafka\n", "", True),
    ]


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [("a ... c", "a b c", True), ("", "anything", True), ("a.c", "abc", False), ("one\n...", "one\ntwo", True)],
)
def test_output_is_compared(expected: str, actual: str, same: bool) -> None:
    assert looks_like(expected, actual) is same
