"""``topic.creation.*``: groups of topics and the settings they are created with, as Kafka Connect defines them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connector.config.properties import Invalid, integer, java_pattern
from connector.errors import Problem
from connector.suggestions import nearest

_PREFIX = "topic.creation."
_OF_GROUP = ("partitions", "replication.factor")
_REPLICATION = integer(1, 32_767, also=(-1,))
_PARTITIONS = integer(1, also=(-1,))
#: Kafka's settings of a topic. Brokers of other makes have more, so only what is nearly one of these is a mistake.
_SETTINGS = """
    cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    delete.retention.ms file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
    index.interval.bytes leader.replication.throttled.replicas local.retention.bytes local.retention.ms
    max.compaction.lag.ms max.message.bytes message.downconversion.enable message.format.version
    message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.difference.max.ms
    message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
    remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms
    segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
"""
TOPIC_SETTINGS = frozenset(_SETTINGS.split())
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


def misspelt_setting(setting: str, others: Sequence[str] = ()) -> str | None:
    """The setting that was meant, if this is none but nearly one."""
    known = (*TOPIC_SETTINGS, *others)
    return None if setting in known else nearest(setting, known, 0.8)


def read_topic_creation(group_names: Sequence[str], raw: Mapping[str, str]) -> tuple[TopicCreation, list[Problem]]:
    """What ``raw`` says of topic creation, and what is wrong with it."""
    problems: list[Problem] = []
    settings: dict[str, dict[str, str]] = {name: {} for name in (*group_names, "default")}
    for name, text in raw.items():
        if not name.startswith(_PREFIX):
            continue
        rest = name[len(_PREFIX) :]
        # A name may have dots of its own.
        group = max((each for each in settings if f"{rest}.".startswith(f"{each}.")), key=len, default=None)
        if group is None:
            continue
        setting = rest[len(group) + 1 :]
        if not setting:
            problems.append(Problem(name, "Is not a setting", text, f"{_PREFIX}{group}.partitions"))
        else:
            settings[group][setting] = text
            meant = misspelt_setting(setting, (*_OF_GROUP, *(("include", "exclude") if group != "default" else ())))
            if meant:
                problems.append(
                    Problem(name, "Is not a topic setting", text, f"did you mean {_PREFIX}{group}.{meant}?")
                )
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
