"""The transforms and predicates that a configuration names, shown as Connect shows them: a group for each.

In: the configuration, what each class may be told, problems by the names of properties. Out: definitions with values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from connector.config import PREDICATES, TRANSFORMS
from connector.rest.cluster import StepOption, Steps

_WORDS: dict[Steps, tuple[str, str]] = {
    "transforms": ("Transforms", "Transformation"),
    "predicates": ("Predicates", "Predicate"),
}
_CLASSES: dict[Steps, list[str]] = {
    "transforms": sorted(name for name in TRANSFORMS if "." in name),
    "predicates": sorted(name for name in PREDICATES if "." in name),
}
#: What every transform may be told, of whatever class.
_OF_ALL: dict[Steps, tuple[tuple[str, str, str | None, str], ...]] = {
    "transforms": (
        ("predicate", "STRING", None, "Alias of a predicate: the transform is for the records that it chooses."),
        ("negate", "BOOLEAN", "false", "Whether it is for the other records."),
    ),
    "predicates": (),
}
#: Where Java's options are not as important as usual: HIGH if they are required, else MEDIUM.
_IMPORTANCE = {
    "ExtractField.field": "MEDIUM",
    "ExtractField.field.syntax.version": "HIGH",
    "HasHeaderKey.name": "MEDIUM",
    "HoistField.field": "MEDIUM",
    "MaskField.replacement": "LOW",
    "SetSchemaMetadata.schema.name": "HIGH",
    "SetSchemaMetadata.schema.version": "HIGH",
    "TimestampConverter.field": "HIGH",
    "TimestampConverter.unix.precision": "LOW",
    "TimestampRouter.timestamp.format": "HIGH",
    "TimestampRouter.topic.format": "HIGH",
    "TopicNameMatches.pattern": "MEDIUM",
}
_RANK = ("HIGH", "MEDIUM", "LOW")

OptionsOf = Callable[[Steps, str], Sequence[StepOption]]


def step_definitions(config: Mapping[str, str], options_of: OptionsOf) -> list[tuple[dict[str, Any], list[str]]]:
    """Each with the values that it may have, if they are few; in the order of Connect."""
    return [
        each
        for what in _WORDS
        for alias in dict.fromkeys(map(str.strip, config.get(what, "").split(",")))
        if alias
        for each in _of_step(what, alias, config.get(f"{what}.{alias}.type", "").strip(), options_of)
    ]


def _of_step(
    what: Steps, alias: str, class_name: str, options_of: OptionsOf
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    group, title = _WORDS[what]
    word, prefix = title.lower(), f"{what}.{alias}."

    def shown(name: str, kind: str, required: bool, default: str | None, doc: str, **more: Any) -> dict[str, Any]:
        return {
            "name": prefix + name,
            "type": kind,
            "required": required,
            "default_value": default,
            "documentation": doc,
            "group": f"{group}: {alias}",
            "dependents": [],
            **more,
        }

    # These two stand out.
    first: dict[str, Any] = {"importance": "HIGH", "width": "LONG"}
    of_class = shown("type", "CLASS", True, None, f"Class for the '{alias}' {word}.", **first)
    yield of_class | {"display_name": f"{title} type for {alias}", "order": 0}, _CLASSES[what]
    version = shown("plugin.version", "STRING", False, None, f"Version of the '{alias}' {word}.", **first)
    yield version | {"display_name": f"{title} version for {alias}", "order": 1}, []

    short = class_name.rpartition(".")[2].partition("$")[0]
    options = [(one.name, one.type, one.required, one.default, one.doc) for one in options_of(what, class_name)]
    if options or class_name in TRANSFORMS:
        options += [(name, kind, False, default, doc) for name, kind, default, doc in _OF_ALL[what]]
    weighed = [
        (_IMPORTANCE.get(f"{short}.{name}", "HIGH" if required else "MEDIUM"), name, kind, required, default, doc)
        for name, kind, required, default, doc in options
    ]
    # As Java orders them.
    weighed.sort(key=lambda each: (not each[3], _RANK.index(each[0]), each[1]))
    for order, (importance, name, kind, required, default, doc) in enumerate(weighed, start=2):
        more = {"importance": importance, "width": "NONE", "display_name": name, "order": order}
        yield shown(name, kind, required, default, doc, **more), []
