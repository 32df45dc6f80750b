"""Files of ``NAME=value`` lines, as `docker compose` reads those that `env_file` names.

In: the text of a file. Out: its variables, and how each was quoted; None where a line is none. Or, as Docker itself
reads them, whatever stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from connector.config.substitution import Variables, substituted

_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*(=)?[ \t]*")
#: With names and colons that other programs' files have.
_NAME_OF_COMPOSE = re.compile(r"[ \t]*(?:export[ \t]+)?([\w.\-\[\]]+)[ \t]*([=:])?[ \t]*")
_SINGLE = re.compile(r"'((?:[^'\\]|\\.)*)'[ \t]*(?:#[^\n]*)?(?:\n|\Z)", re.DOTALL)
_DOUBLE = re.compile(r"\"((?:[^\"\\]|\\.)*)\"[ \t]*(?:#[^\n]*)?(?:\n|\Z)", re.DOTALL)
_REST = re.compile(r"([^\n]*)(?:\n|\Z)")
_BETWEEN = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[ \t]*(?:#[^\n]*)?\Z)?")
_COMMENT = re.compile(r"(?<![^ \t])#")
#: In double quotes. Before all other characters a backslash is one: `CORP\user` is a login.
_ESCAPED = re.compile(r"\\([abfnrtv\"\\$])")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "$": "$$"}

Quote = Literal["", "'", '"']


@dataclass(frozen=True, slots=True)
class Line:
    """``value`` None: the name alone, of a variable that the process hands on. In double quotes ``$$`` is a ``$``."""

    name: str
    value: str | None
    quote: Quote = ""


def env_lines(text: str, *, any_names: bool = False) -> list[Line] | None:
    """Every variable of a file, in its order. ``any_names``: also those that no shell has, as compose takes them."""
    lines = list(_lines("\n".join(text.splitlines()), _NAME_OF_COMPOSE if any_names else _NAME))
    return None if None in lines else [line for line in lines if line is not None]


def env_file_variables(text: str, variables: Variables) -> dict[str, str] | None:
    """As compose hands them to a service: with what stands for ``$NAME`` where there are no single quotes."""
    lines, found = env_lines(text, any_names=True), dict[str, str]()
    if lines is None:
        return None
    for line in lines:
        known = Variables(variables.environ, {**variables.of_file, **found})
        if line.value is None:
            if known.value(line.name) is not None:
                found[line.name] = known.text(line.name)
        else:
            found[line.name] = line.value if line.quote == "'" else _expanded(line.value, line.quote, known)
    return found


def raw_variables(text: str, variables: Variables) -> dict[str, str] | None:
    """As `docker run --env-file` takes them, and compose with ``format: raw``: what stands behind the ``=``."""
    found = dict[str, str]()
    for line in text.splitlines():
        name, equals, value = line.lstrip().partition("=")
        if name.startswith("#"):
            continue
        name = name.strip()
        if len(name.split()) > 1:
            return None
        if equals:
            found[name] = value
        elif variables.value(name) is not None:
            found[name] = variables.text(name)
    return found


def _expanded(text: str, quote: Quote, variables: Variables) -> str:
    try:
        return substituted(text, variables)
    except ValueError:
        # As compose took it before it looked at variables here: a password, or a reference of Kafka Connect's.
        return text.replace("$$", "$") if quote else text


def _lines(text: str, named: re.Pattern[str]) -> Iterator[Line | None]:
    at = _after_blanks(text, 0)
    while at < len(text):
        name = named.match(text, at)
        if name is None:
            yield None
            return
        line, at = _line(name[1], text, name.end(), bool(name[2]))
        yield line
        at = _after_blanks(text, at)


def _after_blanks(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()


def _line(name: str, text: str, at: int, has_value: bool) -> tuple[Line | None, int]:
    rest = _REST.match(text, at)
    assert rest is not None
    if not has_value:
        return (None if rest[1].strip() else Line(name, None)), rest.end()
    if single := _SINGLE.match(text, at):
        return Line(name, single[1].replace("\\'", "'"), "'"), single.end()
    if double := _DOUBLE.match(text, at):
        plain = _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), double[1])
        return Line(name, plain, '"'), double.end()
    value = rest[1].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return Line(name, value[1:-1], "'"), rest.end()
    return Line(name, _without_comment(value)), rest.end()


def _without_comment(value: str) -> str:
    """What has a quote in it is none: it is the password of an unquoted login."""
    last_quote = max(value.rfind('"'), value.rfind("'"))
    comment = _COMMENT.search(value, last_quote + 1)
    return value if comment is None else value[: comment.start()].rstrip()
