"""Configurations as they are found in the world, and what `validate --offline` must answer to each.

In: the files of ``configurations/``: a line that says what it is, then parts, each behind ``=== <file's name>`` (or
``environment``), the last one the answer. ``python -m tests.config.real_files`` writes the answers anew, to be read
before they are kept.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from connector.cli.main import run

FOLDER = Path(__file__).parent / "configurations"


@dataclass(frozen=True)
class RealFiles:
    """``parts``: the content of each file; ``answer``: the status, and each error or note, a line each."""

    about: str
    parts: dict[str, bytes]
    answer: str


def read(path: Path) -> RealFiles:
    about, *rest = path.read_bytes().split(b"\n=== ")
    parts = dict(part.split(b"\n", 1) if b"\n" in part else (part, b"") for part in rest)
    answer = parts.pop(b"answer").decode()
    return RealFiles(about.decode(), {name.decode(): content for name, content in parts.items()}, answer)


def answer_of(case: RealFiles, folder: Path) -> str:
    """What the command answers to the files, put into a folder."""
    variables = case.parts.get("environment", b"").decode()
    environ = {name: text for name, text in os.environ.items() if not name.startswith(("CONNECT_", "AWS_"))}
    # Stores of secrets are asked at an address where nobody is.
    environ |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    environ |= dict(line.split("=", 1) for line in variables.splitlines())
    connectors, worker = [], []
    for name, content in case.parts.items():
        path = folder / name
        if name != "environment":
            path.write_bytes(content)
            (worker if name.startswith("worker.") else connectors).append(str(path))
    out, err = io.StringIO(), io.StringIO()
    arguments = ["validate", "--offline", "--json", *worker, *connectors]
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environ, clear=True))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        status = run(arguments)
    problems = json.loads(out.getvalue())["problems"]
    lines = [f"status: {status}"]
    for one in problems:
        hint = f" ({one['suggestion']})" if one["suggestion"] else ""
        lines.append(f"error: {one['file']}: {one['property']}: {one['problem']}{hint}")
    lines += [line for line in err.getvalue().splitlines() if line.startswith("note: ")]
    return "".join(f"{line}\n" for line in lines).replace(f"{folder}{os.sep}", "")


def cases() -> dict[str, RealFiles]:
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.case"))}


def _write_answers() -> None:
    for path in sorted(FOLDER.glob("*.case")):
        with tempfile.TemporaryDirectory() as folder:
            answer = answer_of(read(path), Path(folder))
        kept, _, _ = path.read_bytes().rpartition(b"=== answer\n")
        path.write_bytes(kept + b"=== answer\n" + answer.encode())


if __name__ == "__main__":
    sys.exit(_write_answers())
