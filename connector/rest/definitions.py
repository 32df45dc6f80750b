"""The connector as a plugin: its class, the definition of each property, what is wrong with given ones.

In: the declarations of properties, problems. Out: Connect's ``PluginInfo``, ``ConfigKeyInfo`` and ``ConfigInfos``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from connector import __version__
from connector.config import CONNECTOR_CLASS, CONNECTOR_SECTIONS, Effect, Property, Section, is_secret_name
from connector.errors import Problem

#: As Connect shows values of the type PASSWORD.
HIDDEN = "[hidden]"
_TYPES = {"boolean": "BOOLEAN", "int": "INT", "long": "LONG", "list": "LIST", "password": "PASSWORD", "class": "CLASS"}


def plugins() -> list[dict[str, str]]:
    """The one there is."""
    return [{"class": CONNECTOR_CLASS, "type": "source", "version": __version__}]


def is_ours(plugin: str) -> bool:
    """Whether a name is one that Connect would take for the connector's class: full, short, or without "Connector"."""
    short = CONNECTOR_CLASS.rpartition(".")[2]
    return plugin in (CONNECTOR_CLASS, short, short.removesuffix("Connector"))


def definitions() -> list[dict[str, Any]]:
    """Every property, in the order of the documentation."""
    return [_definition(section, order, declared) for section, order, declared in _declared()]


def validation(plugin: str, config: Mapping[str, str], problems: Iterable[Problem]) -> dict[str, Any]:
    """Every property with its value and what is wrong with it; at the end what is no property of the connector."""
    errors: defaultdict[str, list[str]] = defaultdict(list)
    for problem in problems:
        errors[problem.property].append(error_text(problem))
    count = sum(map(len, errors.values()))
    configs: list[dict[str, Any]] = [
        {"definition": _definition(section, order, declared), "value": _value(declared, config, errors)}
        for section, order, declared in _declared()
    ]
    configs += [{"definition": None, "value": _unknown(name, config, errors[name])} for name in sorted(errors)]
    groups = [section.title for section in CONNECTOR_SECTIONS]
    return {"name": plugin, "error_count": count, "groups": groups, "configs": configs}


def _declared() -> Iterator[tuple[Section, int, Property]]:
    for section in CONNECTOR_SECTIONS:
        for order, declared in enumerate(section.properties, start=1):
            yield section, order, declared


def _definition(section: Section, order: int, declared: Property) -> dict[str, Any]:
    return {
        "name": declared.name,
        "type": _type(declared),
        "required": declared.required is not None,
        "default_value": _text(declared.default),
        "importance": _importance(declared),
        "documentation": declared.doc,
        "group": section.title,
        "width": "MEDIUM",
        "display_name": declared.name,
        "dependents": [],
        "order": order,
    }


def _type(declared: Property) -> str:
    label = declared.kind.label
    return _TYPES.get(label, "LIST" if label.startswith("list of") else "STRING")


def _importance(declared: Property) -> str:
    if declared.required is not None:
        return "HIGH"
    return "LOW" if declared.effect is Effect.NONE else "MEDIUM"


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | frozenset) else str(value)


def _value(declared: Property, config: Mapping[str, str], errors: dict[str, list[str]]) -> dict[str, Any]:
    given = next((config[name] for name in (declared.name, *declared.aliases) if name in config), None)
    if given is not None and (declared.secret or is_secret_name(declared.name)):
        given = HIDDEN
    found = [text for name in (declared.name, *declared.aliases) for text in errors.pop(name, [])]
    recommended = list(declared.kind.literals)
    return _value_info(declared.name, _text(declared.default) if given is None else given, recommended, found)


def _unknown(name: str, config: Mapping[str, str], found: list[str]) -> dict[str, Any]:
    # Whatever a name that nobody knows was meant to be, its value may be a secret.
    return _value_info(name, HIDDEN if name in config else None, [], found)


def _value_info(name: str, value: str | None, recommended: list[str], found: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "recommended_values": recommended,
        "errors": list(found),
        "visible": True,
    }


def error_text(problem: Problem) -> str:
    """What is wrong, and what would be right."""
    return f"{problem.problem} ({problem.suggestion})" if problem.suggestion else problem.problem
