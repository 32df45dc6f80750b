"""Values of Terraform's language, as far as they can be told without it: texts, words, maps, and maps that are merged.

In: an expression, and the variables and locals that are known. Out: its value, or ``Unknown``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from connector.config.forms.script_variables import MOST_TEXT
from connector.config.substitution import reference


class Unknown:
    """Only Terraform knows it."""


Value = str | Unknown | dict[str, "Value"] | None

_DEEPEST: Final = 20
_NAME = re.compile(
    r"\s*(?:#[^\n]*|//[^\n]*|/\*.*?\*/|,|(?:\"((?:[^\"\\]|\\.)*)\"|\(?([\w.\-]+)\)?)\s*[=:]\s*)", re.DOTALL
)
_STRING = re.compile(r"\"((?:[^\"\\$]|\\.|\$\$\{|\$\{[^{}]*\}|\$(?!\{))*)\"")
_WORD = re.compile(r"true|false|null|-?[0-9.]+")
_REFERENCE = re.compile(r"((?:var|local)\.\w+)")
_CALL = re.compile(r"(\w+)\s*\(")
_INTERPOLATION = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_HEREDOC = re.compile(r"\s*<<-?[ \t]*(\w+)[^\n]*\n.*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[(\[{]|[)\]}]|[,\n]|#|//")
#: What they make of a value is the same to a connector.
_PLAIN: Final = frozenset(("jsonencode", "tomap", "tostring", "sensitive", "nonsensitive"))


@dataclass(slots=True)
class Known:
    """By `var.NAME` and `local.NAME`."""

    values: dict[str, Value] = field(default_factory=dict)
    room: int = MOST_TEXT

    def value(self, name: str) -> Value:
        """A variable that nobody sets here is taken from where Terraform takes it from, too."""
        of_environment = reference(f"TF_VAR_{name[4:]}") if name.startswith("var.") else Unknown()
        return self.values.get(name, of_environment)


def value_of(expression: str, known: Known, depth: int = 0) -> Value:
    text = expression.strip()
    if depth > _DEEPEST:
        return Unknown()
    if text.startswith("{"):
        return map_behind(text, 1, known, depth)
    if _REFERENCE.fullmatch(text):
        return known.value(text)
    if string := _STRING.fullmatch(text):
        return text_of(string[1], known)
    if _WORD.fullmatch(text):
        return None if text == "null" else text
    call = _CALL.match(text)
    if call is None or end_of(text, 0, "") != len(text):
        return Unknown()
    arguments = [*_arguments(text, call.end())]
    if call[1] == "merge":
        return _merged(arguments, known, depth)
    return value_of(arguments[0], known, depth + 1) if call[1] in _PLAIN and len(arguments) == 1 else Unknown()


def map_behind(text: str, at: int, known: Known, depth: int = 0) -> dict[str, Value]:
    """What stands behind a `{`, up to its end."""
    found: dict[str, Value] = {}
    while match := _NAME.match(text, at):
        at = match.end()
        name = match[1] if match[1] is not None else match[2]
        if name is not None:
            end = end_of(text, at)
            found[name] = value_of(text[at:end], known, depth + 1)
            at = end
    return found


def end_of(text: str, at: int, ends: str = ",\n") -> int:
    """Where an expression ends that begins here: in front of one of ``ends``, or of a bracket that it did not open."""
    if heredoc := _HEREDOC.match(text, at):
        return heredoc.end()
    depth = 0
    for match in _TOKEN.finditer(text, at):
        token = match.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            if not depth:
                return match.start()
            depth -= 1
        elif not depth and (token in ends or (token in ("#", "//") and ends)):
            return match.start()
    return len(text)


def text_of(text: str, known: Known) -> str | Unknown:
    """What stands in quotes."""

    def replaced(match: re.Match[str]) -> str:
        name = (match[1] or "").strip()
        value = "${" if match.group() == "$${" else known.value(name) if _REFERENCE.fullmatch(name) else None
        if not isinstance(value, str):
            raise ValueError
        return json.dumps(value)[1:-1]

    try:
        plain = str(json.loads(f'"{_INTERPOLATION.sub(replaced, text)}"', strict=False))
    except ValueError:
        return Unknown()
    known.room -= len(plain)
    return plain if known.room > 0 else Unknown()


def _arguments(text: str, at: int) -> Iterator[str]:
    while at < len(text):
        end = end_of(text, at, ",")
        if text[at:end].strip():
            yield text[at:end]
        if text[end : end + 1] != ",":
            return
        at = end + 1


def _merged(arguments: list[str], known: Known, depth: int) -> dict[str, Value]:
    """The last one counts; what is no map that can be told stands there by its own name."""
    found: dict[str, Value] = {}
    for argument in arguments:
        value = value_of(argument, known, depth + 1)
        found |= value if isinstance(value, dict) else {argument.strip(): Unknown()}
    return found
