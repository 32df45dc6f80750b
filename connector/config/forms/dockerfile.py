"""The worker of an image or a container: ``ENV CONNECT_…`` in a Dockerfile, ``docker run -e CONNECT_…`` in a script.

In: the text of one. Out: the variables of the last stage, with what it begins from, and the image of that; those of
each container that is run, and its image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from connector.config.environment import is_debezium_image
from connector.config.forms.shell_words import expanded, words_of
from connector.config.substitution import Variables

_RUN = re.compile(r"\b(?:docker|podman|nerdctl)[ \t]+(?:container[ \t]+)?(?:run|create)\b")
_INSTRUCTION = re.compile(r"\s*(\w+)\s+(.*)", re.DOTALL)


def image_variables(text: str) -> tuple[dict[str, str], str]:
    """Variables that containers of the image have, and the image that it is made from."""
    stages: dict[str, tuple[dict[str, str], str]] = {}
    variables: dict[str, str] = {}
    image, known = "", dict[str, str]()
    for name, rest in _instructions(text):
        if name == "FROM":
            parts = [each for each in rest.split() if not each.startswith("--")]
            base = expanded(parts[0], Variables({}, known)) if parts else ""
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


def run_variables(text: str, known: Variables) -> Iterator[tuple[dict[str, str], str]]:
    """Of every container that a script runs."""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        if line.lstrip().startswith("#") or not _RUN.search(line):
            continue
        variables: dict[str, str] = {}
        words, image = [*words_of(line)], ""
        for word, following in zip(words, [*words[1:], ""], strict=True):
            given = following if word in ("-e", "--env") else word.removeprefix("--env=") if "--env=" in word else ""
            name, equals, value = expanded(given, known).partition("=")
            if equals:
                variables[name] = value
            image = word if is_debezium_image(word) else image
        yield variables, image


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
        yield name, expanded(value.strip(), variables)
        return
    for word in words_of(rest):
        name, equals, value = word.partition("=")
        yield name, expanded(value, variables) if equals else None
