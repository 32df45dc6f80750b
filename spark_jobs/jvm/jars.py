"""Resolves the pinned sets of jars into the cache: `broker`, `spark`, `iceberg`, `registry`.

`jars.lock` names every file with its coordinate and SHA-256. In goes a set's name, out come the paths of its files,
checked; only what is missing or damaged is fetched, so that a complete cache needs no network.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector.errors import EmbeddedError
from spark_jobs.jvm import ivy
from spark_jobs.jvm.cache import cache_dir, writing
from spark_jobs.jvm.ivy import Coordinate
from spark_jobs.jvm.java import find_java

LOCK_FILE = Path(__file__).with_name("jars.lock")


@dataclass(frozen=True, slots=True)
class Jar:
    coordinate: Coordinate
    sha256: str

    def is_intact(self, path: Path) -> bool:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class JarSet:
    """A set as the lock file describes it: what was asked for, and every file that follows from it."""

    name: str
    purpose: str
    roots: tuple[Coordinate, ...]
    overrides: tuple[Coordinate, ...]
    beside_pyspark: bool
    """Leave out what pyspark's wheel contains by artifact name: two versions on one class path is one too many."""
    jars: tuple[Jar, ...]


def names() -> list[str]:
    """The sets that can be resolved."""
    return list(_sets())


def jar_set(name: str) -> JarSet:
    sets = _sets()
    if name not in sets:
        raise EmbeddedError(f"there is no set of jars named {name!r}; there are {', '.join(sets)}")
    return sets[name]


def resolve(name: str) -> list[Path]:
    """The files of a set, in the order of the lock file. Fetches what is missing, which needs Java and the network."""
    return complete(jar_set(name))


def complete(wanted: JarSet) -> list[Path]:
    """Makes a set's folder in the cache whole; its files."""
    folder = cache_dir() / "jars" / wanted.name
    if _damaged(wanted, folder):
        with writing(f"the jars for {wanted.purpose}"):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder.parent / ".lock"):
                missing = _damaged(wanted, folder)
                if missing:
                    _fill(wanted, folder, missing)
    return [folder / jar.coordinate.file_name for jar in wanted.jars]


def _damaged(wanted: JarSet, folder: Path) -> list[Jar]:
    return [jar for jar in wanted.jars if not jar.is_intact(folder / jar.coordinate.file_name)]


def _fill(wanted: JarSet, folder: Path, missing: Sequence[Jar]) -> None:
    """Fetches beside the folder and moves in only what is right, so that an interruption leaves whole files."""
    work = cache_dir() / "ivy"
    for left_behind in folder.parent.glob(f"{wanted.name}-*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    for attempt in (1, 2):
        progress = _Progress(wanted, len(missing))
        with tempfile.TemporaryDirectory(prefix=f"{wanted.name}-", dir=folder.parent) as fresh:
            ivy.fetch(find_java(), [jar.coordinate for jar in missing], Path(fresh), work, progress=progress.begin)
            for jar in missing:
                fetched = Path(fresh) / jar.coordinate.file_name
                if jar.is_intact(fetched):
                    os.replace(fetched, folder / fetched.name)
        progress.end()
        missing = _damaged(wanted, folder)
        if not missing:
            # Ivy's copies have done their work; the checked ones are what is used from now on.
            shutil.rmtree(work / "cache", ignore_errors=True)
            return
        if attempt == 1:
            # What Ivy has kept of them is damaged: forget it and fetch again.
            for jar in missing:
                kept = work / "cache" / jar.coordinate.organisation / jar.coordinate.name
                shutil.rmtree(kept, ignore_errors=True)
    wrong = ", ".join(jar.coordinate.file_name for jar in missing)
    raise EmbeddedError(f"the repository serves other files than {LOCK_FILE.name} pins (SHA-256 differs): {wrong}")


class _Progress:
    """Says on stderr what is fetched: one line that counts up on a terminal, else a line at each end."""

    def __init__(self, wanted: JarSet, total: int) -> None:
        self._label = f"{'jar' if total == 1 else 'jars'} for {wanted.purpose}"
        self._total = total
        self._done = 0
        self._live = sys.stderr.isatty()
        if not self._live:
            print(f"fetching {total} {self._label} ...", file=sys.stderr, flush=True)

    def begin(self, name: str) -> None:
        self._done += 1
        if self._live:
            text = f"fetching {self._label}: {min(self._done, self._total)} of {self._total}, {name}"
            print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr)
        print(f"fetched {self._total} {self._label}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process fetches, the others wait and find everything there."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def _sets() -> dict[str, JarSet]:
    with LOCK_FILE.open("rb") as file:
        return {name: _parse_set(name, table) for name, table in tomllib.load(file).items()}


def _parse_set(name: str, table: dict[str, Any]) -> JarSet:
    return JarSet(
        name=name,
        purpose=table["purpose"],
        roots=tuple(Coordinate.parse(text) for text in table["roots"]),
        overrides=tuple(Coordinate.parse(text) for text in table.get("overrides", ())),
        beside_pyspark=table.get("beside-pyspark", False),
        jars=tuple(Jar(Coordinate.parse(text), digest) for text, digest in table.get("files", {}).items()),
    )
