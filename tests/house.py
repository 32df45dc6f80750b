"""The project's own files, for the tests that look at how the house is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("connector", "smt", "spark_jobs", "embedded")


def kept_files() -> list[Path]:
    """What is under version control; in an unpacked archive, everything that set-up did not make."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    made = {".venv", ".cache", "build", "dist", "__pycache__"}
    return [path for path in ROOT.rglob("*") if path.is_file() and not made & set(path.relative_to(ROOT).parts)]


def texts(*endings: str) -> Iterator[tuple[str, str]]:
    """Name and text of every kept text file, of those with one of the endings if any is given."""
    for path in kept_files():
        if not endings or path.name.endswith(endings):
            try:
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def matches(pattern: str, *endings: str, below: tuple[str, ...] = ("",)) -> list[str]:
    """`file:line: text` for every line of kept files that matches."""
    import re

    found = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts(*endings)
        if name.startswith(below)
        for number, line in enumerate(text.splitlines(), 1)
        if found.search(line)
    ]
