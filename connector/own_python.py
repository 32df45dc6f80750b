"""Modules of ours in processes of their own, whatever lies in the folder where the user stands.

In: the module's name. Out: a command. `python -m` looks into the current folder first: a `connector` or a `json.py`
there, of somebody's own project, was run instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def module_command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, *apart(), "-m", module, *arguments]


def apart() -> list[str]:
    """Options of Python; none where we come from the current folder ourselves, and may be nowhere else."""
    try:
        ours = bool(sys.path) and Path(sys.path[0] or ".").resolve() == _ROOT and not _found_anyway()
    except OSError:
        # The current folder is there no more.
        ours = False
    return [] if ours else ["-P"]


def _found_anyway() -> bool:
    """Whether every Python finds us, wherever it is started: what stands first in our path is from there then."""
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return any(Path(each).resolve() == _ROOT for each in named)


def keep_apart() -> None:
    """All Pythons that this process starts, those of Spark included."""
    if apart():
        os.environ["PYTHONSAFEPATH"] = "1"
