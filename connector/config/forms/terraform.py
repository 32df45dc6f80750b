"""Connectors in Terraform: maps of properties, of `aws_mskconnect_connector`, `confluent_connector` and the like.

In: the text of a file, and the folder with the values that Terraform reads by itself. Out: the configurations in it;
variables of which it has no value are references to ``TF_VAR_…``, which Terraform takes them from, too. What is an
expression is a problem.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from connector.config.contents import file_text
from connector.config.forms.terraform_state import PROPERTY_MAPS
from connector.config.forms.wrapped import Wrapped
from connector.config.substitution import reference
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
_VALUE = r"[ \t]*=[ \t]*(?:\"((?:[^\"\\\n]|\\.)*)\"|([\w.\-]+))?"
_DEFAULT = re.compile(rf"^[ \t]*(default){_VALUE}", re.MULTILINE)
_ASSIGNED = re.compile(rf"^(\w+){_VALUE}", re.MULTILINE)

#: By variable; None is Terraform's null.
_Values = dict[str, str | None]


class _Expression(ValueError):
    """Only Terraform knows its value."""


def terraform_connectors(text: str, environ: Mapping[str, str], folder: Path) -> list[Wrapped]:
    """Every resource that has a map of properties."""
    values: _Values = {}
    for name, body in _DECLARED.findall(text):
        if (default := _DEFAULT.search(body)) and f"TF_VAR_{name}" not in environ:
            _assign(values, name, default)
    for path in (folder / "terraform.tfvars", *sorted(folder.glob("*.auto.tfvars"))):
        for assigned in _ASSIGNED.finditer(file_text(path) or ""):
            _assign(values, assigned[1], assigned)
    resources = [*_RESOURCE.finditer(text)]
    found = []
    for resource, following in zip(resources, [*resources[1:], None], strict=False):
        body = text[resource.end() : following.start() if following else len(text)]
        maps = [body[match.end() :] for match in _MAP.finditer(body)]
        if not maps or "connector" not in resource[1]:
            continue
        wrapped = Wrapped({}, resource[2])
        for inner in maps:
            wrapped.content |= dict(_entries(inner, values, wrapped))
        name = _NAME.search(body)
        if name:
            wrapped.content.setdefault("name", name[1])
        found.append(wrapped)
    return found


def _assign(values: _Values, name: str, given: re.Match[str]) -> None:
    """What is more than a text or a word has no place in a property."""
    values.pop(name, None)
    with contextlib.suppress(_Expression):
        values[name] = _word(given[3] or "", {}) if given[2] is None else _string(given[2], {})


def _entries(text: str, values: _Values, wrapped: Wrapped) -> Iterator[tuple[str, str]]:
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
            value = _string(string[1], values) if string else _word(word[1] if word else "", values)
        except _Expression:
            hint = "its value in its place; or the whole as `terraform show -json` tells it, in a .json file"
            wrapped.problems.append(Problem(name, "Is an expression, which only Terraform knows", None, hint))
            continue
        if value is not None:
            yield name, value


def _word(word: str, values: _Values) -> str | None:
    if not word:
        raise _Expression
    return _variable(word, values) if word.startswith("var.") else None if word == "null" else word


def _string(text: str, values: _Values) -> str:
    def replaced(match: re.Match[str]) -> str:
        value = "${" if match.group() == "$${" else _variable(match[1], values)
        if value is None:
            raise _Expression
        return json.dumps(value)[1:-1]

    try:
        plain = json.loads(f'"{_INTERPOLATION.sub(replaced, text)}"', strict=False)
    except json.JSONDecodeError:
        raise _Expression from None
    return str(plain)


def _variable(expression: str, values: _Values) -> str | None:
    variable = _VARIABLE.fullmatch(expression)
    if variable is None:
        raise _Expression
    return values[variable[1]] if variable[1] in values else reference(f"TF_VAR_{variable[1]}")
