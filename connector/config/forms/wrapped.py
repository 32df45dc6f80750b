"""``Wrapped``: one configuration of a file, with what is to be said of what it was wrapped in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from connector.errors import Problem


@dataclass(slots=True)
class Wrapped:
    """One configuration of a file. ``notes`` are (property, text); ``problems`` are without their file."""

    content: Any
    label: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
