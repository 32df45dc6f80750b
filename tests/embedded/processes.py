"""Looking at processes from outside."""

from __future__ import annotations

import os


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie that nobody has asked about yet counts as ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except ProcessLookupError:
        # It ended between the opening and the reading.
        return True
    except FileNotFoundError:
        return os.path.isdir("/proc/self")
