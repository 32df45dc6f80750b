"""Processor time of other processes, which other load on the machine leaves alone. In: a process id. Out: seconds."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float | None:
    """All its threads, user and system; None where there is no /proc."""
    return _ticks(pid, 11, 12)


def tree_cpu_seconds(pid: int) -> float | None:
    """The process, its descendants, and those of them that have ended and were waited for."""
    own = _ticks(pid, 11, 12, 13, 14)
    return None if own is None else own + sum(tree_cpu_seconds(child) or 0.0 for child in children(pid))


def _ticks(pid: int, *fields: int) -> float | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    found = stat.rpartition(")")[2].split()
    return sum(int(found[field]) for field in fields) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    # A process may have started one from any of its threads.
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    for thread in threads:
        try:
            listed = Path(f"/proc/{pid}/task/{thread}/children").read_text()
        except OSError:
            continue
        found += map(int, listed.split())
    return found
