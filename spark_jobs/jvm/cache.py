"""Where downloaded and generated things are kept between runs.

In a clone that is its `.cache/`; installed as a package, the user's cache folder. `SCYLLA_CDC_CACHE` overrides both.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache folder; callers create what they need below it."""
    given = os.environ.get("SCYLLA_CDC_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    clone = Path(__file__).resolve().parents[2]
    if (clone / "pyproject.toml").is_file():
        return clone / ".cache"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "scylla-cdc"
