"""The project's own files, for the tests that look at how the house is kept."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("connector", "smt", "spark_jobs", "embedded", "scylla_cdc")


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


def sleeps(text: str) -> list[int]:
    """The lines of a module that sleep, by whatever name.

    Beside `sleep` these are waits for what cannot come: on an event that is made for it or that the module never sets,
    on no descriptor, for no signal.
    """
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    made = {_last(target) for node in nodes for target in _targets(node)}
    # `.set` read as an attribute counts, called or handed on.
    ended = {_last(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "set"}
    return sorted({call.lineno for call in calls if _sleeps(call, made - ended)})


def _sleeps(call: ast.Call, never_set: set[str]) -> bool:
    name = _last(call.func)
    if name == "wait" and isinstance(call.func, ast.Attribute):
        awaited = call.func.value
        return _makes_event(awaited) or _last(awaited) in never_set
    first = call.args[:3] if name == "select" else call.args[:1]
    nothing = bool(first) and all(isinstance(each, ast.List | ast.Tuple) and not each.elts for each in first)
    return name == "sleep" or (name in {"select", "sigtimedwait"} and nothing)


def _targets(node: ast.AST) -> list[ast.expr]:
    """What an assignment binds to a new event."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            return [each for each, made in zip(target.elts, value.elts, strict=False) if _makes_event(made)]
        return [target] if _makes_event(value) else []
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None and _makes_event(node.value):
        return [node.target]
    return []


def _makes_event(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) in {"Event", "Condition"}


def _last(node: ast.expr) -> str:
    """The last name of a dotted one."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
