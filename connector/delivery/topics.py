"""Topics: created when missing, looked at when present.

In: what each topic must be. Out: nothing, or all problems at once. A compacted data topic, or an offsets topic that is
not compacted, is said here rather than found out by lost deltas or by a topic that grows for ever. A topic that only
some table's records need is never a reason not to start: it is waited for, and the table with it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, NewTopic, ResourceType

from connector.delivery.end_offsets import end_offsets
from connector.delivery.failures import FORBIDDEN, describe, is_transient, translated
from connector.delivery.leaders import led_by_nobody
from connector.delivery.listing import listed
from connector.delivery.replicas import (
    brokers_there,
    less_than_usual,
    may_be_of_replicas,
    tell_other_number,
    too_few,
    wanted,
)
from connector.errors import ConfigurationError, FatalDeliveryError, Problem, RetriableDeliveryError

log = logging.getLogger(__name__)

CALL_SECONDS = 15.0
VISIBLE_SECONDS = 15.0
PAUSE_SECONDS = 0.1
#: Names that a topic may have.
_POSSIBLE = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
# For new partitions are not waited for longer: what is sent to one too early is noticed where it is delivered.
LED_SECONDS = 5.0


#: Why a broker that is only asked whether it would create a topic says no.
_STANDS_AGAINST_IT = FORBIDDEN | {
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
}

TIMESTAMPS = "message.timestamp.type"
_RETENTION = ("retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic that the connector needs. ``partitions`` and ``replication`` of -1 leave it to the broker.

    ``replication`` None: nobody has said it, and what stands there is nowhere else (`connector/delivery/replicas.py`).
    ``compacted`` None means "either".
    """

    name: str
    partitions: int = -1
    replication: int | None = -1
    config: Mapping[str, str] = field(default_factory=dict)
    compacted: bool | None = None
    least_partitions: int = 1
    property: str = "topic.prefix"
    create: bool = True
    #: Whether nothing at all works without it; otherwise some table's records wait, and others go on.
    essential: bool = True
    #: Of its records each one counts, not only the last one of a key.
    keeps_all: bool = False


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What an existing topic is; ``compacted`` None: we may not see it. ``deletes``: what is old, or too much."""

    name: str
    partitions: int
    compacted: bool | None
    max_message_bytes: int
    least_replicas: int = 1
    #: Whether brokers say when a record was written, not who wrote it.
    stamped: bool = False
    deletes: bool = False


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
    without([_forbidden(spec) for spec in missing if not spec.create])
    without(_create(admin, [spec for spec in missing if spec.create]))
    existing = _visible(admin, wanted)
    _wait_for_leaders(admin, {spec.name: existing[spec.name] for spec in missing if spec.name in wanted})
    facts = _facts(admin, {name: existing[name] for name in wanted})
    without([problem for name, spec in wanted.items() for problem in _mismatches(spec, facts[name])])
    return {name: facts[name] for name in wanted}, unusable


def topic_partitions(admin: AdminClient) -> dict[str, int]:
    """Number of partitions of every topic that we may see."""
    return _seen(listed(admin))


def _seen(there: ClusterMetadata) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in there.topics.items() if topic.error is None}


def partitions_of(admin: AdminClient, name: str) -> int | None:
    """How many one topic has; None: there is none. Of one that we may not see nobody tells whether it is there."""
    there = topic_partitions(admin).get(name)
    if there is not None:
        return there
    try:
        # Not by its metadata: brokers create a topic that somebody asks for so (`auto.create.topics.enable`).
        described = admin.describe_topics(TopicCollection([name]), request_timeout=CALL_SECONDS)
        return len(described[name].result(CALL_SECONDS).partitions)
    except KafkaException as caught:
        error: KafkaError = caught.args[0]
        if error.code() in FORBIDDEN:
            text = f"we have no right to see topic {name}, if there is one: grant DESCRIBE on it"
            raise FatalDeliveryError(text) from None
        if error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION):
            raise translated(error, f"describing topic {name}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"describing topic {name}: no answer in time") from None
    return None


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
    existing = _seen(there)
    specs = list(specs)
    found = [(spec, _forbidden(spec)) for spec in specs if spec.name not in existing and not spec.create]
    possible = {spec.name: spec for spec in specs if spec.create and _POSSIBLE.fullmatch(spec.name)}
    missing = [spec for name, spec in possible.items() if name not in existing]
    found += [(possible[str(problem.value)], problem) for problem in _create(admin, missing, pretend=True)]
    present = [spec for spec in specs if spec.name in existing]
    facts = _facts(admin, {spec.name: existing[spec.name] for spec in present})
    found += [(spec, problem) for spec in present for problem in _mismatches(spec, facts[spec.name])]
    found += [(spec, _impossible(spec)) for spec in specs if not _POSSIBLE.fullmatch(spec.name)]
    return CheckedTopics(
        [problem for spec, problem in found if spec.essential],
        [problem for spec, problem in found if not spec.essential],
        [
            f"topic {spec.name} is compacted: of each key only the last change is kept, so consumers that come later, "
            "and landing, miss changes; set cleanup.policy=delete on it"
            for spec in specs
            if spec.keeps_all and _is_compacted(spec, facts.get(spec.name))
        ]
        + [
            f"topic {spec.name} has message.timestamp.type=LogAppendTime, whose times do not tell which transaction a "
            "record is of: one that a broker's crash leaves without its end blocks read_committed consumers until "
            "somebody ends it by hand; set CreateTime on it"
            for spec in present
            if (spec.keeps_all or spec.config.get(TIMESTAMPS) == "CreateTime") and facts[spec.name].stamped
        ]
        + too_few(there, {spec.name: spec.replication for spec in [*present, *beside] if spec.compacted}),
    )


def misfits(admin: AdminClient, specs: Iterable[TopicSpec]) -> dict[str, str]:
    """Of those that exist, what is not as it must be, by name. Those that are missing are no matter here."""
    existing = topic_partitions(admin)
    present = [spec for spec in specs if existing.get(spec.name)]
    facts = _known_facts(admin, {spec.name: existing[spec.name] for spec in present})
    found = {spec.name: _mismatches(spec, facts[spec.name]) for spec in present if spec.name in facts}
    return {name: "; ".join(map(_told, problems)) for name, problems in found.items() if problems}


def look_at_topic(admin: AdminClient, spec: TopicSpec) -> TopicFacts | str:
    """What a topic is now, or why it takes no records, as far as its brokers say. One that is missing is created if it
    may be."""
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
        return why
    known = _known_facts(admin, {name: len(topic.partitions)})
    if name not in known:
        return "the topic is not known to every broker yet"
    least = known[name].least_replicas
    for number, partition in sorted(topic.partitions.items()):
        if len(partition.isrs) < min(least, len(partition.replicas)):
            return f"its partition {number} has {len(partition.isrs)} replicas in sync, min.insync.replicas is {least}"
    return known[name]


def _is_compacted(spec: TopicSpec, facts: TopicFacts | None) -> bool:
    """As it is, or as it would be created."""
    return bool(facts.compacted) if facts is not None else "compact" in spec.config.get("cleanup.policy", "")


def _told(problem: Problem) -> str:
    return f"{problem.problem}; {problem.suggestion}" if problem.suggestion else problem.problem


def _forbidden(spec: TopicSpec) -> Problem:
    return Problem(
        property=spec.property,
        value=spec.name,
        problem="the topic does not exist, and topic.creation.enable is false",
        suggestion="create it by hand, or set topic.creation.enable=true in the worker's file",
    )


def _impossible(spec: TopicSpec) -> Problem:
    return Problem(
        property=spec.property,
        value=spec.name,
        problem="Kafka takes no such name: ASCII letters, digits, '.', '_' and '-' it may have, 249 of them at most",
        suggestion="change the transform or the property that makes it",
    )


def _is_hidden(admin: AdminClient, name: str) -> bool:
    """Whether we have no right to see a topic that is there: lists of topics leave such out."""
    try:
        topic = admin.list_topics(name, timeout=CALL_SECONDS).topics.get(name)
    except KafkaException as caught:
        raise translated(caught.args[0], "listing topics") from None
    return topic is not None and topic.error is not None and topic.error.code() in FORBIDDEN


def _hidden(spec: TopicSpec) -> Problem:
    return Problem(
        property=spec.property,
        value=spec.name,
        problem="the topic exists, but we have no right to use it",
        suggestion="grant DESCRIBE and WRITE on it",
    )


def _create(admin: AdminClient, specs: list[TopicSpec], *, pretend: bool = False) -> list[Problem]:
    """``pretend``: brokers say what stands against it, and create nothing."""
    if not specs:
        return []
    brokers = brokers_there(admin)
    news = [
        NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=wanted(spec.replication, brokers),
            config=dict(spec.config) | ({"cleanup.policy": "compact"} if spec.compacted else {}),
        )
        for spec in specs
    ]
    futures = admin.create_topics(
        news, operation_timeout=CALL_SECONDS, request_timeout=CALL_SECONDS, validate_only=pretend
    )
    problems = []
    for spec in specs:
        try:
            futures[spec.name].result(timeout=2 * CALL_SECONDS)
            if not pretend:
                log.info("created topic %s%s", spec.name, less_than_usual(spec.replication, brokers))
        except KafkaException as caught:
            error: KafkaError = caught.args[0]
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                if _is_hidden(admin, spec.name):
                    problems.append(_hidden(spec))
                continue  # or another worker was quicker
            if is_transient(error):
                raise RetriableDeliveryError(f"creating topic {spec.name}: {describe(error)}") from None
            if error.code() == KafkaError.TOPIC_EXCEPTION:
                problems.append(_impossible(spec))
                continue
            if spec.replication is None and may_be_of_replicas(error):
                # What else stands against it is said of the second attempt.
                if not pretend:
                    tell_other_number(spec.name, brokers, error)
                problems += _create(admin, [replace(spec, replication=-1)], pretend=pretend)
                continue
            if pretend and error.code() not in _STANDS_AGAINST_IT:
                continue  # it may be the question that a broker does not know
            problems.append(
                Problem(
                    property=spec.property,
                    value=spec.name,
                    problem=f"topic cannot be created: {describe(error)}",
                    suggestion="lower its replication factor, or start more brokers"
                    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR
                    else "create it by hand, or grant the right to create topics",
                )
            )
    return problems


def _visible(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        existing = topic_partitions(admin)
        missing = [name for name in names if not existing.get(name)]
        if not missing:
            return existing
        if time.monotonic() >= deadline:
            raise RetriableDeliveryError(f"topics {', '.join(missing)} did not become visible")
        time.sleep(PAUSE_SECONDS)


def _wait_for_leaders(admin: AdminClient, partitions: Mapping[str, int]) -> None:
    """Until those who lead new partitions know it themselves. They are named before, and refuse what comes too early,
    which may be a record in front of one that they take (`SKIPPED`)."""
    places = [(name, number) for name, count in partitions.items() for number in range(count)]
    deadline = time.monotonic() + LED_SECONDS
    while time.monotonic() < deadline:
        try:
            end_offsets(admin, places, seconds=LED_SECONDS)
            return
        except KafkaException as caught:
            error: KafkaError = caught.args[0]
            if not is_transient(error) and error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                return
        except TimeoutError:
            return
        time.sleep(PAUSE_SECONDS)


def _facts(admin: AdminClient, partitions: Mapping[str, int]) -> dict[str, TopicFacts]:
    facts: dict[str, TopicFacts] = {}
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        facts |= _known_facts(admin, {name: count for name, count in partitions.items() if name not in facts})
        unknown = sorted(partitions.keys() - facts.keys())
        if not unknown:
            return facts
        # Of a new topic one broker may tell while another has not heard of it.
        if time.monotonic() >= deadline:
            raise RetriableDeliveryError(f"topics {', '.join(unknown)} are not known to every broker yet")
        time.sleep(PAUSE_SECONDS)


def _known_facts(admin: AdminClient, partitions: Mapping[str, int]) -> dict[str, TopicFacts]:
    """Of those topics that the broker which happens to be asked knows."""
    if not partitions:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in partitions]
    # The futures are kept in one dict until all have answered: dropping one makes its result() wait for ever.
    futures = admin.describe_configs(resources, request_timeout=CALL_SECONDS)
    facts = {}
    for resource, future in futures.items():
        try:
            described = future.result(timeout=2 * CALL_SECONDS)
        except KafkaException as caught:
            error: KafkaError = caught.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if error.code() not in FORBIDDEN:
                # Nothing is known of the topic then: a broker that goes away just now must not look like a wrong topic.
                raise translated(error, f"describing topic {resource.name}") from None
            described = {}
        except TimeoutError:
            raise RetriableDeliveryError(f"describing topic {resource.name}: no answer in time") from None
        policy = described["cleanup.policy"].value or "" if "cleanup.policy" in described else None
        kept = [described[name].value for name in _RETENTION if name in described]
        limit = described["max.message.bytes"].value if "max.message.bytes" in described else None
        times = described[TIMESTAMPS].value if TIMESTAMPS in described else None
        least = described["min.insync.replicas"].value if "min.insync.replicas" in described else None
        facts[resource.name] = TopicFacts(
            resource.name,
            partitions[resource.name],
            # What we have no right to see is not held against the topic.
            compacted=None if policy is None else "compact" in policy,
            max_message_bytes=int(limit) if limit else 1_048_588,
            least_replicas=int(least) if least else 1,
            stamped=times == "LogAppendTime",
            deletes="delete" in (policy or "") and any(most != "-1" for most in kept),
        )
    return facts


def _mismatches(spec: TopicSpec, facts: TopicFacts) -> list[Problem]:
    problems = []
    if spec.compacted is True and facts.compacted is False:
        problems.append(
            Problem(
                property=spec.property,
                value=spec.name,
                problem="the topic exists but is not compacted",
                suggestion="set cleanup.policy=compact on it",
            )
        )
    if spec.compacted is True and facts.compacted and facts.deletes:
        problems.append(
            Problem(
                property=spec.property,
                value=spec.name,
                problem="the topic is compacted, and its records are deleted all the same, after some time or where "
                "they are many: what it is to keep would be lost",
                suggestion="set cleanup.policy=compact on it: kafka-configs.sh --alter --entity-type topics "
                f"--entity-name {spec.name} --add-config cleanup.policy=compact",
            )
        )
    if facts.partitions < spec.least_partitions:
        problems.append(
            Problem(
                property=spec.property,
                value=spec.name,
                problem=f"the topic has {facts.partitions} partitions, {spec.least_partitions} are needed",
                suggestion="choose another topic or add partitions",
            )
        )
    return problems
