"""`scylla-cdc demo`: the whole pipeline once on this machine, with real processes, and a comparison of both its ends.

In: a seed and a number of rows. Out: a live view, then the answer; status 1 unless landed and source are the same.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from connector.cli.numbers import positive
from connector.cli.output import Output
from connector.errors import EmbeddedError, Problem, UsageError

_NEEDED = ("pyspark", "delta")
_MARKER = "made-by-scylla-cdc-demo"


class DemoCommand:
    name = "demo"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the generated rows (1)")
        parser.add_argument("--rows", type=positive, default=2000, metavar="N", help="writes (2000)")
        parser.add_argument("--keep", type=Path, metavar="DIR", help="leave files, topics and tables in this folder")

        parser.add_argument("--stay", action="store_true", help="stay up afterwards, to look at, until Ctrl-C")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        as_json = bool(getattr(args, "json", False))
        if missing := [name for name in _NEEDED if find_spec(name) is None]:
            raise EmbeddedError(f"the demo needs {', '.join(missing)}: pip install 'scylla-cdc[spark,embedded]'")
        from embedded.demo.report import Findings, text, value
        from embedded.demo.run import Demo
        from embedded.demo.view import view_for

        with _folder(args.keep) as folder, view_for(output, as_json) as view:

            def tell(found: Findings) -> None:
                view.end()
                found.seconds = view.seconds
                found.folder, found.commands = _shown(folder), _commands(folder)
                output.result(value(found), text(found))

            def stay(found: Findings, page: str) -> None:
                tell(found)
                output.say(f"\nIt stays up: {page} (Ctrl-C ends it)")

            found = Demo(folder, args.seed, args.rows, view, stay if args.stay else None).run()
            if not args.stay:
                tell(found)
        return 0 if found.good else 1


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where everything of this run lies: the given folder; else one in the cache that the next run takes over; else,
    where that cannot be written or is in use, a temporary one."""
    from spark_jobs.jvm import cache_dir

    if keep is not None:
        if keep.exists() and (not keep.is_dir() or (any(keep.iterdir()) and not (keep / _MARKER).exists())):
            raise UsageError([Problem("--keep", "is not an empty folder", str(keep), file="command line")])
        with _locked(keep) as got:
            if not got:
                raise UsageError([Problem("--keep", "is in use by another demo", str(keep), file="command line")])
            yield _emptied(keep)
        return
    with contextlib.ExitStack() as stack:
        try:
            free = stack.enter_context(_locked(cache_dir() / "demo"))
            folder = _emptied(cache_dir() / "demo") if free else None
        except OSError:
            folder = None
        yield folder or _emptied(Path(tempfile.mkdtemp(prefix="scylla-cdc-demo-")))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / _MARKER, "a") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _emptied(folder: Path) -> Path:
    folder = folder.absolute()
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != _MARKER:
            each.unlink()
    (folder / _MARKER).touch()
    (folder / "logs").mkdir()
    return folder


def _shown(folder: Path) -> str:
    """As short as it can be said."""
    relative = os.path.relpath(folder)
    return relative if not relative.startswith("..") else str(folder)


def _commands(folder: Path) -> list[str]:
    shown = _shown(folder)
    command = _shown(Path(sys.argv[0])) if sys.argv[0].endswith("scylla-cdc") else "scylla-cdc"
    return [
        f"{command} validate {shown}/connector.json \\\n      --worker {shown}/worker.json --offline",
        f"{command} embedded up \\\n      --port 9042 --kafka-port 9092 --ring-delay 0",
        f"{_shown(Path(sys.executable))} {shown}/show.py",
    ]


COMMAND = DemoCommand()
