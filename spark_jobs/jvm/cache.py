"""Where downloaded and generated things are kept between runs.

In a clone that is its `.cache/`; installed as a package, the user's cache folder. `SCYLLA_CDC_CACHE` overrides both.
"""

from __future__ import annotations

import os
from pathlib import Path

from connector.errors import ConfigurationError, Problem


def cache_dir() -> Path:
    """The cache folder; callers create what they need below it."""
    given = os.environ.get("SCYLLA_CDC_CACHE")
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
        hint = "set SCYLLA_CDC_CACHE, or HOME"
        raise ConfigurationError([Problem("HOME", "This user has no home folder", None, hint, "environment")]) from None
