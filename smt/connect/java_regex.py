"""Regular expressions and replacement texts as Java writes them.

In: Java's spelling. Out: a Python expression, and the topic that a replacement gives.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_NAMED_REFERENCE: Final = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_CLASSES: Final = {
    "Alpha": "a-zA-Z",
    "Lower": "a-z",
    "Upper": "A-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0B\f\r",
    "Blank": r" \t",
    "ASCII": r"\x00-\x7F",
}
_POSIX: Final = re.compile(r"\\([pP])\{(\w+)\}")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_PART: Final = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$(\d)|([\\$])", re.DOTALL)


@lru_cache(maxsize=256)
def java_pattern(regex: str) -> re.Pattern[str]:
    """A Java expression as a Python one; ``ValueError`` where it is none, or has no counterpart."""
    text = _QUOTED.sub(lambda found: re.escape(found[1]), regex)
    text = _NAMED_REFERENCE.sub(r"(?P=\1)", _NAMED_GROUP.sub("(?P<", text))
    text = text.replace(r"\z", r"\Z") if r"\Z" not in text else text
    text = _POSIX.sub(_posix, text)
    if re.search(r"(?<!\\)&&", text) and "[" in text:
        raise ValueError("Invalid regex: intersections of character classes (&&) are not supported")
    try:
        # Java's \d, \w and \s mean ASCII.
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise ValueError(f"Invalid regex: {error}") from None


def _posix(found: re.Match[str]) -> str:
    members = _CLASSES.get(found[2])
    if members is None:
        raise ValueError(f"Invalid regex: the character class {found[0]} is not supported")
    before = found.string[: found.start()]
    inside = before.count("[") - before.count(r"\[") > before.count("]") - before.count(r"\]")
    if inside and found[1] == "P":
        raise ValueError(f"Invalid regex: {found[0]} within a character class is not supported")
    return members if inside else f"[{'^' if found[1] == 'P' else ''}{members}]"


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
