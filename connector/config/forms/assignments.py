"""Where a script sets its variables.

In: the text of a script. Out: ``Assignment``s, in their order.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: In front of the name of a variable that a shell is told to set.
DECLARED = r"[ \t]*(?:(?:export|readonly|local|declare)[ \t]+(?:-\w+[ \t]+)*)?"
_BEHIND = r"(^|&&|\|\||[;&|]|\b(?:do|then|else)(?=[ \t]))[ \t]*"
_IN_QUOTES = r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\."
_VALUE = rf"([A-Za-z_]\w*)(\+?)=((?:{_IN_QUOTES}|\$\([^()\n]*\)|[^\s;&|'\"\\])*)"
_ASSIGNED = re.compile(_BEHIND + _VALUE, re.MULTILINE)
#: Of several variables in one line, perhaps.
_DECLARATION = re.compile(
    rf"{_BEHIND}(export|readonly|local|declare)(?=[ \t])((?:{_IN_QUOTES}|\$\([^()\n]*\)|[^\n;&|'\"\\])*)", re.MULTILINE
)
_ONE_OF_THEM = re.compile(rf"(?<=[ \t]){_VALUE}")
#: A loop over words, and what reads them from somewhere.
_IN_ROUNDS = re.compile(
    r"(?:^|[;|&]|\bdo\b)[ \t]*(?:(?:for|select)[ \t]+([A-Za-z_]\w*)[ \t]+in\b"
    r"|(?:while[ \t]+)?(?:IFS=\S*[ \t]+)?read[ \t]+(?:-\w+[ \t]+)*([A-Za-z_][\w \t]*))",
    re.MULTILINE,
)


class Assignment(NamedTuple):
    """``text``: as it stands there; None where each round of a loop sets another one. ``adds``: to what it was before.
    ``behind``: what stands in front of it in its line. ``is_local``: to the call of a function."""

    place: int
    name: str
    text: str | None
    adds: bool = False
    behind: str = ""
    is_local: bool = False


def assignments(text: str) -> list[Assignment]:
    found = [
        Assignment(match.start(2), match[2], match[4], bool(match[3]), match[1]) for match in _ASSIGNED.finditer(text)
    ]
    for line in _DECLARATION.finditer(text):
        found += [
            Assignment(match.start(1), match[1], match[3], bool(match[2]), line[1], line[2] == "local")
            for match in _ONE_OF_THEM.finditer(text, line.start(3), line.end(3))
        ]
    for match in _IN_ROUNDS.finditer(text):
        found += [Assignment(match.start(), name, None) for name in (match[1] or match[2]).split()]
    return sorted(found, key=lambda one: one.place)
