"""``topic.creation.*``: groups of topics and the settings they are created with, as Kafka Connect defines them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connector.config.kind import Invalid, integer, java_pattern, nearest
from connector.errors import Problem

_PREFIX = "topic.creation."
_REPLICATION = integer(1, 32_767, also=(-1,))
_PARTITIONS = integer(1, also=(-1,))
#: Topic settings that are numbers, so that a wrong one is said before the broker says it.
_NUMBERS = (
    "retention.ms",
    "retention.bytes",
    "segment.bytes",
    "segment.ms",
    "max.message.bytes",
    "min.insync.replicas",
)


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """Settings for the topics that a group's patterns match; -1 leaves a number to the broker."""

    name: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)

    def matches(self, topic: str) -> bool:
        """Patterns match whole names, as in Kafka Connect."""
        if any(java_pattern(pattern).fullmatch(topic) for pattern in self.exclude):
            return False
        return any(java_pattern(pattern).fullmatch(topic) for pattern in self.include)


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """Groups in order, then the default."""

    groups: tuple[TopicGroup, ...] = ()
    default: TopicGroup = field(default_factory=lambda: TopicGroup("default"))

    def settings_for(self, topic: str) -> TopicGroup:
        """The first group that matches the topic, else the default."""
        return next((group for group in self.groups if group.matches(topic)), self.default)


def read_topic_creation(group_names: Sequence[str], raw: Mapping[str, str]) -> tuple[TopicCreation, list[Problem]]:
    """What ``raw`` says of topic creation, and what is wrong with it."""
    problems: list[Problem] = []
    settings: dict[str, dict[str, str]] = {name: {} for name in (*group_names, "default")}
    for name, text in raw.items():
        if not name.startswith(_PREFIX) or name == "topic.creation.groups":
            continue
        group, _, setting = name[len(_PREFIX) :].partition(".")
        if group not in settings:
            meant = nearest(group, settings)
            hint = f"did you mean {_PREFIX}{meant}.{setting}?" if meant else f"add {group} to topic.creation.groups"
            problems.append(Problem(name, f"`topic.creation.groups` names no '{group}'", text, hint))
        elif not setting:
            problems.append(Problem(name, "Names no setting", text, f"{_PREFIX}{group}.partitions"))
        else:
            settings[group][setting] = text
    groups = tuple(_group(name, settings[name], problems) for name in group_names if name != "default")
    default = _group("default", settings["default"], problems)
    return TopicCreation(groups, default), problems


def _group(name: str, settings: dict[str, str], problems: list[Problem]) -> TopicGroup:
    config = dict(settings)
    include = _patterns(name, "include", config.pop("include", ""), problems)
    exclude = _patterns(name, "exclude", config.pop("exclude", ""), problems)
    numbers = {}
    for setting, kind in (("partitions", _PARTITIONS), ("replication.factor", _REPLICATION)):
        text = config.pop(setting, "-1")
        try:
            numbers[setting] = kind.parse(text)
        except Invalid as invalid:
            problems.append(Problem(f"{_PREFIX}{name}.{setting}", invalid.problem, text, invalid.suggestion))
    for setting in _NUMBERS:
        if setting in config and not re.fullmatch(r"-?[0-9]+", config[setting].strip()):
            problems.append(Problem(f"{_PREFIX}{name}.{setting}", "Must be a whole number", config[setting]))
    if name != "default" and not include:
        problems.append(
            Problem(f"{_PREFIX}{name}.include", "A group needs the patterns of its topics", None, "for example .*")
        )
    return TopicGroup(
        name, include, exclude, numbers.get("partitions", -1), numbers.get("replication.factor", -1), config
    )


def _patterns(group: str, which: str, text: str, problems: list[Problem]) -> tuple[str, ...]:
    patterns = tuple(item.strip() for item in text.split(",") if item.strip())
    for pattern in patterns:
        try:
            java_pattern(pattern)
        except Invalid as invalid:
            problems.append(Problem(f"{_PREFIX}{group}.{which}", invalid.problem, pattern))
    return patterns
