"""Where downloaded and generated things are kept between runs.

In a clone that is its `.cache/`; installed as a package, the user's cache folder. `SCYLLA_CDC_CACHE` overrides both.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from connector.errors import ConfigurationError, EmbeddedError, Problem

VARIABLE = "SCYLLA_CDC_CACHE"


def cache_dir() -> Path:
    """The cache folder; callers create what they need below it."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().absolute()
    clone = Path(__file__).resolve().parents[2]
    if (clone / "pyproject.toml").is_file():
        return clone / ".cache"
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "scylla-cdc"
    except RuntimeError:
        # A user that is a number only, and no HOME: not the folder for temporary files, into which anybody writes.
        hint = f"set {VARIABLE}, or HOME"
        raise ConfigurationError([Problem("HOME", "This user has no home folder", None, hint, "environment")]) from None


@contextlib.contextmanager
def writing(what: str) -> Iterator[None]:
    """Within it, a cache that cannot be written, or is full, is one error that says where it is and what moves it."""
    try:
        yield
    except OSError as error:
        where = f"{error.strerror}: {error.filename}" if error.filename else error.strerror or str(error)
        raise EmbeddedError(
            f"{what} cannot be kept in {cache_dir()}: {where}; {VARIABLE} names another folder"
        ) from error
