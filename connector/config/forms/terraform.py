"""Connectors in Terraform: maps of properties, of `aws_mskconnect_connector`, `confluent_connector` and the like.

In: the text of a file, and the folder with the values that Terraform reads by itself. Out: the configurations in it;
variables of which it has no value are references to ``TF_VAR_…``, which Terraform takes them from, too. What is an
expression is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from connector.config.contents import file_text
from connector.config.forms.terraform_state import NAMES, PROPERTY_MAPS
from connector.config.forms.terraform_values import Known, Unknown, Value, end_of, map_behind, text_of, value_of
from connector.config.forms.wrapped import Wrapped
from connector.config.properties import idle_reason
from connector.errors import Problem

_RESOURCE = re.compile(r"^[ \t]*resource[ \t]+\"([\w\-]+)\"[ \t]+\"([\w\-]+)\"[ \t]*\{", re.MULTILINE)
_MAP = re.compile(rf"^[ \t]*({'|'.join(PROPERTY_MAPS)})[ \t]*=[ \t]*", re.MULTILINE)
_LOCALS = re.compile(r"^[ \t]*locals[ \t]*\{", re.MULTILINE)
_NAME = re.compile(rf"^[ \t]*(?:{'|'.join(NAMES)})[ \t]*=[ \t]*\"((?:[^\"\\]|\\.)*)\"", re.MULTILINE)
_DECLARED = re.compile(r"^[ \t]*variable[ \t]+\"(\w+)\"[ \t]*\{([^{}]*)\}", re.MULTILINE)
_VALUE = r"[ \t]*=[ \t]*(?:\"((?:[^\"\\\n]|\\.)*)\"|([\w.\-]+))?"
_DEFAULT = re.compile(rf"^[ \t]*(default){_VALUE}", re.MULTILINE)
_ASSIGNED = re.compile(rf"^(\w+){_VALUE}", re.MULTILINE)
#: Locals may be made of others, in any order; few are made of those that are.
_ROUNDS = 3
_HINT = "its value in its place; or the whole as `terraform show -json` tells it, in a .json file"


def terraform_connectors(text: str, environ: Mapping[str, str], folder: Path) -> list[Wrapped]:
    """Every resource that has a map of properties."""
    known = Known()
    for name, body in _DECLARED.findall(text):
        if (default := _DEFAULT.search(body)) and f"TF_VAR_{name}" not in environ:
            _assign(known, name, default)
    for path in (folder / "terraform.tfvars", *sorted(folder.glob("*.auto.tfvars"))):
        for assigned in _ASSIGNED.finditer(file_text(path) or ""):
            _assign(known, assigned[1], assigned)
    for _ in range(_ROUNDS):
        locals_ = [map_behind(text, block.end(), known) for block in _LOCALS.finditer(text)]
        known.values |= {f"local.{name}": value for block in locals_ for name, value in block.items()}
    resources = [*_RESOURCE.finditer(text)]
    found = []
    for resource, following in zip(resources, [*resources[1:], None], strict=False):
        body = text[resource.end() : following.start() if following else len(text)]
        maps = [*_MAP.finditer(body)]
        if not maps or "connector" not in resource[1]:
            continue
        wrapped = Wrapped({}, resource[2])
        for match in maps:
            _take(wrapped, match[1], value_of(body[match.end() : end_of(body, match.end())], known))
        if (name := _NAME.search(body)) and isinstance(plain := text_of(name[1], known), str):
            wrapped.content.setdefault("name", plain)
        found.append(wrapped)
    return found


def _take(wrapped: Wrapped, name: str, value: Value) -> None:
    for property_, inner in (value if isinstance(value, dict) else {name: Unknown()}).items():
        if isinstance(inner, str):
            wrapped.content[property_] = inner
        elif reason := idle_reason(property_, worker=False):
            wrapped.notes.append((property_, f"has no effect here: {reason}"))
        elif inner is not None:
            text = "Is an expression, which only Terraform knows"
            wrapped.problems.append(Problem(property_, text, None, _HINT))


def _assign(known: Known, name: str, given: re.Match[str]) -> None:
    """What is more than a text or a word has no place in a property."""
    value = value_of(given[3] or "", Known()) if given[2] is None else text_of(given[2], Known())
    known.values.pop(f"var.{name}", None)
    if value is None or isinstance(value, str):
        known.values[f"var.{name}"] = value
