"""Topics: created when missing, looked at when present.

In: what each topic must be. Out: nothing, or all problems at once. A compacted data topic, or an offsets topic that is
not compacted, is said here rather than found out by lost deltas or by a topic that grows for ever. A topic that only
some table's records need is never a reason not to start: it is waited for, and the table with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from connector.delivery.failures import advice, describe
from connector.delivery.leaders import led_by_nobody
from connector.delivery.listing import listed
from connector.delivery.replicas import too_few
from connector.delivery.topic_creation import (
    create_topics,
    impossible_name,
    is_possible_name,
    not_created,
    wait_for_leaders,
    wait_until_visible,
)
from connector.delivery.topic_facts import (
    CALL_SECONDS,
    TIMESTAMPS,
    TopicFacts,
    TopicSpec,
    facts_of,
    known_facts,
    may_write,
    mismatches,
    partition_counts,
    topic_partitions,
)
from connector.errors import ConfigurationError, Problem


def ensure_topics(admin: AdminClient, specs: Iterable[TopicSpec]) -> dict[str, TopicFacts]:
    """Create what is missing, check what is there; facts of all of them by name."""
    return prepare_topics(admin, [replace(spec, essential=True) for spec in specs])[0]


def prepare_topics(admin: AdminClient, specs: Iterable[TopicSpec]) -> tuple[dict[str, TopicFacts], dict[str, str]]:
    """As `ensure_topics`, but topics that are not essential may be unusable: the facts of the others, and why not."""
    wanted = {spec.name: spec for spec in specs}
    unusable: dict[str, str] = {}

    def without(problems: list[Problem]) -> None:
        if any(wanted[str(problem.value)].essential for problem in problems):
            raise ConfigurationError(problems)
        for problem in problems:
            wanted.pop(str(problem.value), None)
            unusable[str(problem.value)] = _told(problem)

    existing = topic_partitions(admin)
    missing = [spec for name, spec in wanted.items() if name not in existing]
    without(not_created(admin, [spec for spec in missing if not spec.create]))
    without(create_topics(admin, [spec for spec in missing if spec.create]))
    existing = wait_until_visible(admin, wanted)
    wait_for_leaders(admin, {spec.name: existing[spec.name] for spec in missing if spec.name in wanted})
    facts = facts_of(admin, {name: existing[name] for name in wanted})
    without([problem for name, spec in wanted.items() for problem in mismatches(spec, facts[name])])
    return {name: facts[name] for name in wanted}, unusable


@dataclass(frozen=True, slots=True)
class CheckedTopics:
    """``problems``: nothing works with them. ``awaited``: some table's records wait until they are mended."""

    problems: list[Problem]
    awaited: list[Problem]
    warnings: list[str]


def check_topics(admin: AdminClient, specs: Iterable[TopicSpec], beside: Iterable[TopicSpec] = ()) -> CheckedTopics:
    """What is to be said of those that exist already, and of those that must or could be created; creates nothing.
    ``beside``: only that they are there with too few replicas."""
    there = listed(admin)
    existing = partition_counts(there)
    specs = list(specs)
    absent = [spec for spec in specs if spec.name not in existing and not spec.create]
    found = [*zip(absent, not_created(admin, absent), strict=True)]
    possible = {spec.name: spec for spec in specs if spec.create and is_possible_name(spec.name)}
    missing = [spec for name, spec in possible.items() if name not in existing]
    found += [(possible[str(problem.value)], problem) for problem in create_topics(admin, missing, pretend=True)]
    present = [spec for spec in specs if spec.name in existing]
    facts = facts_of(admin, {spec.name: existing[spec.name] for spec in present})
    found += [(spec, problem) for spec in present for problem in mismatches(spec, facts[spec.name])]
    found += [(spec, impossible_name(spec)) for spec in specs if not is_possible_name(spec.name)]
    return CheckedTopics(
        [problem for spec, problem in found if spec.essential],
        [problem for spec, problem in found if not spec.essential],
        [warning for spec in specs for warning in _warnings(spec, facts)]
        + too_few(there, {spec.name: spec.replication for spec in [*present, *beside] if spec.compacted}),
    )


_MISSES_CHANGES: Final = (
    "topic {} is compacted: of each key only the last change is kept, so consumers that come later, and landing, miss "
    "changes; set cleanup.policy=delete on it"
)
_STAMPED_BY_BROKERS: Final = (
    "topic {} has message.timestamp.type=LogAppendTime, whose times do not tell which transaction a record is of: one "
    "that a broker's crash leaves without its end blocks read_committed consumers until somebody ends it by hand; set "
    "CreateTime on it"
)

#: What a broker writes where a transaction ends: a batch of one record.
END_BYTES: Final = 78
#: More than what is kept of one thing, be all of its names as long as they may be.
STATE_BYTES: Final = 16_384

_TAKES_NO_END: Final = (
    "topic {} has max.message.bytes={}: it takes no record, and not even the end of a transaction (78 bytes). One that "
    "is under way there blocks its producer and all read_committed consumers until the limit is raised and then the "
    "broker that coordinates the transaction is restarted; raise it"
)
_TAKES_LITTLE: Final = (
    "topic {} has max.message.bytes={}, and what is kept in it may be larger: nothing that it belongs to is delivered "
    "then; raise it"
)


def _is_compacted(spec: TopicSpec, facts: Mapping[str, TopicFacts]) -> bool:
    """As it is, or as it would be created."""
    if (known := facts.get(spec.name)) is not None:
        return bool(known.compacted)
    return "compact" in spec.config.get("cleanup.policy", "")


def _needs_its_times(spec: TopicSpec) -> bool:
    return spec.keeps_all or spec.config.get(TIMESTAMPS) == "CreateTime"


def _lacks_its_times(spec: TopicSpec, facts: Mapping[str, TopicFacts]) -> bool:
    return _needs_its_times(spec) and facts[spec.name].stamped


def _warnings(spec: TopicSpec, facts: Mapping[str, TopicFacts]) -> list[str]:
    """What is true of a topic, as it is or as it would be created, and no reason not to write to it."""
    found = [_MISSES_CHANGES.format(spec.name)] if spec.keeps_all and _is_compacted(spec, facts) else []
    if spec.name not in facts:
        return found
    if _lacks_its_times(spec, facts):
        found.append(_STAMPED_BY_BROKERS.format(spec.name))
    limit = facts[spec.name].max_message_bytes
    if limit < END_BYTES:
        found.append(_TAKES_NO_END.format(spec.name, limit))
    elif spec.compacted and limit < STATE_BYTES:
        found.append(_TAKES_LITTLE.format(spec.name, limit))
    return found


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """``misfit``: what is not as it must be."""

    misfit: str | None = None
    warnings: tuple[str, ...] = ()


def seen_topics(admin: AdminClient, specs: Iterable[TopicSpec]) -> dict[str, SeenTopic]:
    """Those that exist, by name. Those that are missing are no matter here."""
    existing = topic_partitions(admin)
    wanted = [spec for spec in specs if existing.get(spec.name)]
    facts = known_facts(admin, {spec.name: existing[spec.name] for spec in wanted})
    found = {}
    for spec in wanted:
        if spec.name in facts:
            problems = "; ".join(map(_told, mismatches(spec, facts[spec.name])))
            found[spec.name] = SeenTopic(problems or None, tuple(_warnings(spec, facts)))
    return found


def look_at_topic(
    admin: AdminClient, spec: TopicSpec, writer: Callable[[], AdminClient] | None = None
) -> TopicFacts | str:
    """What a topic is now, or why it takes no records, as far as its brokers say. One that is missing is created if it
    may be. ``writer`` logs in as those who write to it: brokers tell rights to whose they are."""
    name = spec.name
    try:
        topic = admin.list_topics(timeout=CALL_SECONDS).topics.get(name)
    except KafkaException as caught:
        return describe(caught.args[0])
    if topic is None:
        try:
            return ensure_topics(admin, [spec])[name]
        except ConfigurationError as error:
            return "; ".join(map(_told, error.problems))
    if topic.error is not None:
        return describe(topic.error)
    why = led_by_nobody(topic)
    if why is not None:
        return describe(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, why))
    known = known_facts(admin, {name: len(topic.partitions)})
    if name not in known:
        return "the topic is not known to every broker yet"
    if writer is not None and not may_write(writer(), name):
        # To find that out by a record takes a transaction of all tables back.
        return advice(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    least = known[name].least_replicas
    for number, partition in sorted(topic.partitions.items()):
        if len(partition.isrs) < min(least, len(partition.replicas)):
            return f"its partition {number} has {len(partition.isrs)} replicas in sync, min.insync.replicas is {least}"
    return known[name]


def _told(problem: Problem) -> str:
    return f"{problem.problem}; {problem.suggestion}" if problem.suggestion else problem.problem
