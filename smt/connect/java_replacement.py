"""Replacement texts as Java writes them, for its regular expressions.

In: an expression, a replacement, a topic. Out: the topic that the replacement gives.
"""

from __future__ import annotations

import re
from typing import Final

from connector.java_regex import java_pattern

_PART: Final = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$(\d)|([\\$])", re.DOTALL)


def check_regex(text: str) -> None:
    java_pattern(text)


def replaced(pattern: re.Pattern[str], replacement: str, text: str) -> str | None:
    """Java's ``matches`` and then ``replaceFirst``: None where the expression does not match the text as a whole."""
    if pattern.fullmatch(text) is None:
        return None
    return pattern.sub(lambda match: expanded(replacement, match), text, count=1)


def check_replacement(pattern: re.Pattern[str], replacement: str) -> str | None:
    """What Java would say of a replacement at each record, None if nothing."""
    for found in _PART.finditer(replacement):
        _, name, digit, lonely = found.groups()
        if lonely is not None:
            return "a backslash or dollar sign that is meant literally needs a backslash before it"
        if name is not None and name not in pattern.groupindex:
            return f"the expression has no group {name}"
        if digit is not None and int(digit) > pattern.groups:
            return f"the expression has no group {digit}"
    return None


def expanded(replacement: str, match: re.Match[str]) -> str:
    """Java's replacement text: ``$1``, ``${name}``, and a backslash before what is meant literally."""
    out, at, groups = [], 0, match.re.groups
    while at < len(replacement):
        found = _PART.match(replacement, at)
        if found is None:
            out.append(replacement[at])
            at += 1
            continue
        literal, name, digit, lonely = found.groups()
        at = found.end()
        if literal is not None:
            out.append(literal)
        elif name is not None:
            out.append(match.group(name) or "")
        elif lonely is not None:
            raise IndexError(f"Illegal group reference in {replacement!r}")
        else:
            number = int(digit)
            # Java takes as many digits as still name a group.
            while at < len(replacement) and replacement[at].isdigit() and number * 10 + int(replacement[at]) <= groups:
                number = number * 10 + int(replacement[at])
                at += 1
            out.append(match.group(number) or "")
    return "".join(out)
