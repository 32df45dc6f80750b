"""What `config.unknown` makes of a name that nobody knows.

In: its value, and the known name that was meant, if one is near. Out: whether that is a problem, or a notice.
"""

from __future__ import annotations

from typing import Literal

Unknown = Literal["error", "warn", "ignore"]


def is_refused(unknown: Unknown, meant: str | None) -> bool:
    """What is nearly a known name is a slip of whoever wrote it; other names are somebody else's."""
    return unknown == "error" or (unknown == "warn" and bool(meant))
