"""The worker of an image: ``ENV CONNECT_…`` in a Dockerfile.

In: the text of one. Out: the variables of the last stage, with what it begins from, and the image of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from connector.config.forms.shell_words import expanded, words_of
from connector.config.substitution import Variables, substituted

_INSTRUCTION = re.compile(r"\s*(\w+)\s+(.*)", re.DOTALL)


def image_variables(text: str) -> tuple[dict[str, str], str]:
    """Variables that containers of the image have, and the image that it is made from."""
    stages: dict[str, tuple[dict[str, str], str]] = {}
    variables: dict[str, str] = {}
    image, known = "", dict[str, str]()
    for name, rest in _instructions(text):
        if name == "FROM":
            parts = [each for each in rest.split() if not each.startswith("--")]
            base = _expanded(parts[0], Variables({}, known)) if parts else ""
            variables, image = stages.get(base, ({}, base))
            variables = dict(variables)
            known = {**known, **variables}
            if len(parts) == 3 and parts[1].upper() == "AS":
                stages[parts[2]] = variables, image
        elif name == "ARG":
            known |= {key: value for key, value in _pairs(rest, Variables({}, known)) if value is not None}
        elif name == "ENV":
            given = {key: value for key, value in _pairs(rest, Variables({}, known)) if value is not None}
            variables |= given
            known |= given
    return variables, image


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#") or (lines and not line.strip()):
            continue
        lines.append(line.rstrip().removesuffix("\\"))
        if line.rstrip().endswith("\\"):
            continue
        match = _INSTRUCTION.fullmatch("\n".join(lines))
        lines = []
        if match:
            yield match[1].upper(), match[2].strip()


def _pairs(rest: str, variables: Variables) -> Iterator[tuple[str, str | None]]:
    """``NAME=value`` as often as it comes, or ``NAME`` and all that is behind it."""
    if re.match(r"[^\s='\"]+\s+[^=\s]", rest) and not re.match(r"[^\s=]+=", rest):
        name, _, value = rest.partition(" ")
        yield name, _expanded(value.strip(), variables)
        return
    for word in words_of(rest):
        name, equals, value = word.partition("=")
        yield name, _expanded(value, variables) if equals else None


def _expanded(text: str, variables: Variables) -> str:
    return expanded(text, variables, _in_place)


def _in_place(text: str, variables: Variables) -> str:
    try:
        return substituted(text, variables)
    except ValueError:
        return text
