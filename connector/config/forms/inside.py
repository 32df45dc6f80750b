"""Connectors inside of what other tools read: tasks of Ansible, workflows, init containers, requests, values of charts.

In: a document of JSON or YAML. Out: each connector in it, be it there as an object or in a script that posts it. What a
tool has yet to fill in is a problem.
"""

from __future__ import annotations

import re
import shlex
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connector.config.forms.shapes import as_text, mapping, mappings
from connector.config.forms.templates import TEMPLATE
from connector.config.forms.wrapped import Wrapped
from connector.errors import Problem

_CLASS = "connector.class"
#: What stands beside a connector's name, and what beside the address that it is sent to.
_NAMED = frozenset(("config", "configs", "configuration", "ConnectorConfiguration"))
_NAMES = ("name", "ConnectorName")
_SENT = frozenset(("body", "data", "json"))
#: What a script sees: of a container, of a pipeline's job, of a step.
_VARIABLES = ("environment", "variables", "env")
_OF_MANY = re.compile(r"connectors\Z", re.IGNORECASE)
_ADDRESS = re.compile(r"/connectors/([^/\s?{}]+)/config\b")
_OF_WORKFLOW = re.compile(r"\$\{\{\s*(?:secrets|vars|env)\.(\w+)\s*\}\}")
_MENTIONED = re.compile(r"\$\{?([A-Za-z_]\w*)")

#: What a tool does with a text before a shell reads it.
Prepared = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Place:
    """A value, and what is known around it: what a connector there is called, and what its script's variables are."""

    value: Any
    name: str | None = None
    is_of_many: bool = False
    variables: ChainMap[str, str] = field(default_factory=ChainMap)


def connectors_inside(document: Any, environ: Mapping[str, str], prepared: Prepared = str) -> Iterator[Wrapped]:
    """In the order in which they stand there."""
    places = [_Place(document)]
    while places:
        place = places.pop()
        if isinstance(place.value, str):
            if _CLASS in place.value and "{" in place.value:
                yield from _in_text(place, environ, prepared)
        elif isinstance(place.value, list):
            places += [replace(place, value=each, name=None, is_of_many=False) for each in reversed(place.value)]
        elif isinstance(place.value, Mapping):
            if isinstance(place.value.get(_CLASS), str):
                name = str(place.value.get("name") or place.name or "")
                # Without a name it is what several connectors of a file have in common, written once.
                if name or not getattr(place.value, "is_brought_along", False):
                    yield _filled(Wrapped(_named(place.value, place.name), name))
            else:
                named = _beside_a_name(place.value)
                yield from (_of_its_name(place.value, key) for key in named)
                places += reversed([each for key, each in _members(place) if key not in named])


def _members(place: _Place) -> Iterator[tuple[Any, _Place]]:
    given: Mapping[str, Any] = place.value
    own = {name: text for kind in _VARIABLES for name, text in _environment(given.get(kind)).items()}
    variables = place.variables.new_child(own) if own else place.variables
    address = given.get("url") or given.get("uri")
    sent = _ADDRESS.search(str(mapping(address).get("raw") or address or ""))
    for key, value in given.items():
        name = sent[1] if sent and key in _SENT else str(key) if place.is_of_many else place.name
        yield key, _Place(value, name, bool(_OF_MANY.search(str(key))), variables)


def _beside_a_name(given: Mapping[str, Any]) -> list[str]:
    """The members that are configurations of the connector whose name stands beside them."""
    named = any(isinstance(given.get(name), str) for name in _NAMES)
    return [key for key, value in given.items() if named and key in _NAMED and _CLASS in mapping(value)]


def _of_its_name(given: Mapping[str, Any], key: str) -> Wrapped:
    name = next(given[each] for each in _NAMES if isinstance(given.get(each), str))
    others = [each for each in given if each not in (*_NAMES, key)]
    notes = [(str(each), "has no effect here: it is for the tool that reads this file") for each in others]
    return _filled(Wrapped({"name": name, "config": given[key]}, name, notes))


def _named(config: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    return {"name": name, "config": config} if name and "name" not in config else dict(config)


def _in_text(place: _Place, environ: Mapping[str, str], prepared: Prepared) -> Iterator[Wrapped]:
    # Most files have none.
    from connector.config.forms.scripts import DOLLAR, posted_connectors, without_comments

    names = dict.fromkeys(_MENTIONED.findall(place.value))
    known = [f"{name}={shlex.quote(place.variables[name])}\n" for name in names if name in place.variables]
    script = without_comments(_OF_WORKFLOW.sub(r"${env:\1}", prepared("".join(known) + place.value)))
    for wrapped in posted_connectors(script.replace("${env:", f"{DOLLAR}{{env:"), environ):
        if place.name and "name" not in wrapped.content:
            wrapped.content = _named(wrapped.content, place.name)
            wrapped.label = place.name
        yield _filled(wrapped)


def _environment(given: Any) -> dict[str, str]:
    """The variables of a container or a step."""
    if isinstance(given, Mapping):
        pairs = [(str(name), value) for name, value in given.items()]
    else:
        pairs = [(str(each.get("name")), each.get("value")) for each in mappings(given)]
        texts = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
        pairs += [(name, value) for name, equals, value in (each.partition("=") for each in texts) if equals]
    return {name: as_text(value) for name, value in pairs if isinstance(value, str | int | float)}


def _filled(wrapped: Wrapped) -> Wrapped:
    """Without what the tool has yet to fill in."""
    config = wrapped.content.get("config", wrapped.content)
    given = [*config.items(), ("name", wrapped.content.get("name"))]
    templates = dict.fromkeys(name for name, value in given if isinstance(value, str) and TEMPLATE.search(value))
    for name in templates:
        hint = "its value in its place, a variable of the environment, ${env:NAME}; or give what the tool makes of it"
        wrapped.problems.append(Problem(str(name), "Is a template, which another tool fills in", None, hint))
    left = {name: value for name, value in config.items() if name not in templates}
    if "config" in wrapped.content:
        left = {name: value for name, value in wrapped.content.items() if name not in templates} | {"config": left}
    wrapped.content = left
    return wrapped
