"""The commands of a Makefile, as a shell gets them: with what `make` puts in place of its variables.

In: the text of one, and the environment. Out: a script. Variables that it does not set are references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connector.config.forms.script_variables import MOST_TEXT
from connector.config.forms.scripts import DOLLAR, MADE_BY_RUNNING

_ASSIGNED = re.compile(r"^(?:export[ \t]+)?([A-Za-z_][\w.\-]*)[ \t]*(\?|\+|:{1,3})?=([^\n]*)$", re.MULTILINE)
_RECIPE = re.compile(r"^\t[@+\- \t]*", re.MULTILINE)
_EXPANSION = re.compile(r"\$(?:\$|\(([A-Za-z_][\w.\-]*)\)|\{([A-Za-z_][\w.\-]*)\}|\([^()]*(?:\([^()]*\)[^()]*)*\)|.)")
_GOES_ON = re.compile(r"(?<![ \t])[ \t]*\\\r?\n[ \t]*")
_DEEPEST = 10


def commands_of(text: str, environ: Mapping[str, str]) -> str:
    """Every recipe, one behind the other."""
    recipes, others = list[str](), list[str]()
    for line in _logical_lines(text):
        (recipes if line.startswith("\t") else others).append(line)
    made = _Make(environ)
    for match in _ASSIGNED.finditer("\n".join(_GOES_ON.sub(" ", line) for line in others)):
        made.assign(match[1], match[2] or "", match[3].strip())
    return "\n".join(made.expanded(_RECIPE.sub("", recipe)) for recipe in recipes)


def _logical_lines(text: str) -> list[str]:
    found, goes_on = list[list[str]](), False
    for line in text.splitlines():
        if goes_on:
            found[-1].append(line)
        else:
            found.append([line])
        goes_on = line.endswith("\\")
    return ["\n".join(lines) for lines in found]


class _Make:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._values: dict[str, str] = {}
        self._room = MOST_TEXT

    def assign(self, name: str, operator: str, value: str) -> None:
        if operator == "?" and (name in self._environ or name in self._values):
            return
        before = f"{self._values[name]} " if operator == "+" and name in self._values else ""
        self._values[name] = before + (self.expanded(value, keep=True) if operator.startswith(":") else value)

    def expanded(self, text: str, depth: int = 0, *, keep: bool = False) -> str:
        """``keep``: to be expanded once more, so that `$$` stays what it is."""

        def replaced(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if match.group() == "$$":
                return "$$" if keep else "$"
            if name is None or depth > _DEEPEST or self._room < 0:
                return MADE_BY_RUNNING
            found = self._values.get(name)
            if found is None:
                return f"{DOLLAR}{{env:{name}}}"
            text = self.expanded(found, depth + 1, keep=keep)
            self._room -= len(text)
            return text

        return _EXPANSION.sub(replaced, text)
