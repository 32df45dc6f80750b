"""The connector as a plugin: its class, the definition of each property, what is wrong with given ones.

In: the declarations of properties, problems. Out: Connect's ``PluginInfo``, ``ConfigKeyInfo`` and ``ConfigInfos``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from connector import __version__
from connector.config import CONNECTOR_CLASS, CONNECTOR_SECTIONS, Effect, Property, Section, as_written, is_secret_name
from connector.errors import Problem
from connector.rest.displays import DEFAULTS, DISPLAYED, Display, Importance
from connector.rest.java_map import java_map_text
from connector.rest.steps import OptionsOf, step_definitions

#: As Connect shows values of the type PASSWORD.
HIDDEN = "[hidden]"
_TYPES = {"boolean": "BOOLEAN", "int": "INT", "long": "LONG", "list": "LIST", "password": "PASSWORD", "class": "CLASS"}
_GROUPS_OF_CONNECTOR = ("Scylla", "Connector", "Events")
_NULL = "Null value can not be supplied as the configuration value."
_TYPES_OF_JAVA = {"connector.class": "STRING", "custom.metric.tags": "LIST"} | dict.fromkeys(
    ("key.converter", "value.converter", "header.converter", "topic.naming.strategy", "transaction.metadata.factory"),
    "CLASS",
)


def plugins() -> list[dict[str, str]]:
    """The one there is."""
    return [{"class": CONNECTOR_CLASS, "type": "source", "version": __version__}]


def is_ours(plugin: str) -> bool:
    """Whether a name is one that Connect would take for the connector's class: full, short, or without "Connector"."""
    short = CONNECTOR_CLASS.rpartition(".")[2]
    return plugin in (CONNECTOR_CLASS, short, short.removesuffix("Connector"))


def definitions() -> list[dict[str, Any]]:
    """Every property: the connector's own ones, then Connect's, as Connect lists them."""
    found = [_definition(section, order, declared) for section, order, declared in _declared()]
    return sorted(found, key=lambda each: _is_connects(each["name"]))


def validation(config: Mapping[str, str], problems: Iterable[Problem], options_of: OptionsOf) -> dict[str, Any]:
    """Every property with its value and what is wrong with it; at the end what is no property of the connector."""
    errors: defaultdict[str, list[str]] = defaultdict(list)
    for problem in problems:
        errors[problem.property].append(error_text(problem))
    count = sum(map(len, errors.values()))
    configs: list[dict[str, Any]] = [
        {"definition": _definition(section, order, declared), "value": _value(declared, config, errors)}
        for section, order, declared in _declared()
    ]
    # Behind Connect's own properties, and before the connector's.
    at = next(place for place, each in enumerate(configs) if each["definition"]["group"] in _GROUPS_OF_CONNECTOR)
    configs[at:at] = [
        {"definition": definition, "value": _value_of_step(definition, classes, config, errors)}
        for definition, classes in step_definitions(config, options_of)
    ]
    configs += [{"definition": None, "value": _unknown(name, config, errors[name])} for name in sorted(errors)]
    groups = [*dict.fromkeys(each["definition"]["group"] for each in configs if each["definition"])]
    return {
        "name": config.get("connector.class", CONNECTOR_CLASS),
        "error_count": count,
        "groups": groups,
        "configs": configs,
    }


def _declared() -> Iterator[tuple[Section, int, Property]]:
    """Connect's and the Java connector's as those list them, then the others."""
    found = {
        declared.name: (section, order, declared)
        for section in CONNECTOR_SECTIONS
        for order, declared in enumerate(section.properties, start=1)
    }
    for name in DISPLAYED:
        yield found.pop(name)
    yield from found.values()


def _definition(section: Section, order: int, declared: Property) -> dict[str, Any]:
    shown = DISPLAYED.get(declared.name) or Display(
        section.title, order, declared.name, _importance(declared), "MEDIUM"
    )
    return {
        "name": declared.name,
        "type": _type(declared),
        "required": declared.required is not None or declared.name == "connector.class",
        "default_value": _default(declared),
        "importance": shown.importance,
        "documentation": declared.doc,
        "group": shown.group,
        "width": shown.width,
        "display_name": shown.name,
        "dependents": [],
        "order": shown.order,
    }


def _default(declared: Property) -> str | None:
    if declared.name == "connector.class":
        return None
    return DEFAULTS.get(declared.name) if declared.default is None else _text(declared.default)


def _type(declared: Property) -> str:
    if declared.name in _TYPES_OF_JAVA:
        return _TYPES_OF_JAVA[declared.name]
    label = declared.kind.label
    return _TYPES.get(label, "LIST" if label.startswith("list of") else "STRING")


def _importance(declared: Property) -> Importance:
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
    return _value_info(declared.name, _default(declared) if given is None else given, recommended, found)


def _value_of_step(
    definition: Mapping[str, Any], classes: list[str], config: Mapping[str, str], errors: dict[str, list[str]]
) -> dict[str, Any]:
    name = definition["name"]
    given = config.get(name, definition["default_value"])
    if given is not None and is_secret_name(name):
        given = HIDDEN
    return _value_info(name, given, classes, errors.pop(name, []))


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


def _is_connects(name: str) -> bool:
    return name in DISPLAYED and DISPLAYED[name].group not in _GROUPS_OF_CONNECTOR


def nulls(config: Mapping[str, str | None]) -> list[Problem]:
    """What must have a value if it is named. Connectors do without those of their own properties."""
    declared = {each.name for section in CONNECTOR_SECTIONS for each in section.properties}
    return [
        Problem(name, _NULL)
        for name, text in config.items()
        if text is None and (name not in declared or _is_connects(name))
    ]


def untyped(config: Mapping[str, str | None]) -> str:
    """In Connect's words, that a configuration has no class; what is secret in it as asterisks."""
    given = {name: text for name, text in config.items() if text is not None}
    return f"Connector config {java_map_text({**config, **as_written(given)})} contains no connector type"


def unknown_class(name: str) -> str:
    """In Connect's words, that there is no such connector."""
    ours = (
        f"PluginDesc{{klass=class {CONNECTOR_CLASS}, name='{CONNECTOR_CLASS}', version='{__version__}', "
        f"encodedVersion={__version__}, type=source, typeName='source', location='classpath'}}"
    )
    wanted = f"Failed to find any class that implements Connector and which name matches {name}"
    return f"{wanted}, available connectors are: {ours}"


def error_text(problem: Problem) -> str:
    """What is wrong, and what would be right."""
    return f"{problem.problem} ({problem.suggestion})" if problem.suggestion else problem.problem
