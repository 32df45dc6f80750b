"""Connectors in Terraform: maps of properties, of `aws_mskconnect_connector`, `confluent_connector` and the like.

In: the text of a file. Out: the configurations in it; variables of Terraform are references to ``TF_VAR_…``, which it
takes them from, too. What is an expression is a problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from connector.config.forms.terraform_state import PROPERTY_MAPS
from connector.config.forms.wrapped import Wrapped
from connector.errors import Problem

_RESOURCE = re.compile(r"^[ \t]*resource[ \t]+\"([\w\-]+)\"[ \t]+\"([\w\-]+)\"[ \t]*\{", re.MULTILINE)
_MAP = re.compile(rf"^[ \t]*(?:{'|'.join(PROPERTY_MAPS)})[ \t]*=[ \t]*(?:\w+\([ \t]*)?\{{", re.MULTILINE)
_NAME = re.compile(r"^[ \t]*name[ \t]*=[ \t]*\"([^\"$]+)\"", re.MULTILINE)
_ENTRY = re.compile(
    r"\s*(?:#[^\n]*|//[^\n]*|/\*.*?\*/|,|(?:\"((?:[^\"\\]|\\.)*)\"|\(?([\w.\-]+)\)?)\s*[=:]\s*)", re.DOTALL
)
_STRING = re.compile(r"\"((?:[^\"\\$]|\\.|\$\$\{|\$\{[^{}]*\}|\$(?!\{))*)\"[ \t]*(?=[,\n}#/]|\Z)")
_WORD = re.compile(r"(true|false|null|-?[0-9.]+|var\.\w+)[ \t]*(?=[,\n}#/]|\Z)")
_OTHER = re.compile(r"[^\n]*")
_INTERPOLATION = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"\s*var\.(\w+)\s*")
_DECLARED = re.compile(r"^[ \t]*variable[ \t]+\"(\w+)\"[ \t]*\{([^{}]*)\}", re.MULTILINE)
_DEFAULT = re.compile(r"^[ \t]*default[ \t]*=[ \t]*(?:\"([^\"\n]*)\"|([\w.\-]+))", re.MULTILINE)


class _Expression(ValueError):
    """Only Terraform knows its value."""


def terraform_connectors(text: str, environ: Mapping[str, str]) -> list[Wrapped]:
    """Every resource that has a map of properties."""
    defaults = {
        name: default[1] if default[1] is not None else default[2]
        for name, body in _DECLARED.findall(text)
        if (default := _DEFAULT.search(body)) and f"TF_VAR_{name}" not in environ
    }
    resources = [*_RESOURCE.finditer(text)]
    found = []
    for resource, following in zip(resources, [*resources[1:], None], strict=False):
        body = text[resource.end() : following.start() if following else len(text)]
        maps = [body[match.end() :] for match in _MAP.finditer(body)]
        if not maps or "connector" not in resource[1]:
            continue
        wrapped = Wrapped({}, resource[2])
        for inner in maps:
            wrapped.content |= dict(_entries(inner, defaults, wrapped))
        name = _NAME.search(body)
        if name:
            wrapped.content.setdefault("name", name[1])
        found.append(wrapped)
    return found


def _entries(text: str, defaults: Mapping[str, str], wrapped: Wrapped) -> Iterator[tuple[str, str]]:
    at = 0
    while match := _ENTRY.match(text, at):
        at = match.end()
        name = match[1] if match[1] is not None else match[2]
        if name is None:
            continue
        string, word = _STRING.match(text, at), _WORD.match(text, at)
        given = string or word or _OTHER.match(text, at)
        assert given is not None
        at = given.end()
        try:
            value = _string(string[1], defaults) if string else _word(word[1] if word else "", defaults)
        except _Expression:
            hint = "its value in its place; or the whole as `terraform show -json` tells it, in a .json file"
            wrapped.problems.append(Problem(name, "Is an expression, which only Terraform knows", None, hint))
            continue
        if value is not None:
            yield name, value


def _word(word: str, defaults: Mapping[str, str]) -> str | None:
    if not word:
        raise _Expression
    return _variable(word, defaults) if word.startswith("var.") else None if word == "null" else word


def _string(text: str, defaults: Mapping[str, str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        return "${" if match.group() == "$${" else _variable(match[1], defaults)

    try:
        plain = json.loads(f'"{_INTERPOLATION.sub(replaced, text)}"', strict=False)
    except json.JSONDecodeError:
        raise _Expression from None
    return str(plain)


def _variable(expression: str, defaults: Mapping[str, str]) -> str:
    variable = _VARIABLE.fullmatch(expression)
    if variable is None:
        raise _Expression
    return defaults[variable[1]] if variable[1] in defaults else f"${{env:TF_VAR_{variable[1]}}}"
