"""What topics are, beside what they must be.

In: a client, the names of topics. Out: how many partitions each has, and those of its settings that matter here; what
is not as a `TopicSpec` asks.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ResourceType,
    TopicDescription,
)

from connector.delivery.failures import FORBIDDEN, translated
from connector.delivery.listing import listed
from connector.errors import MissingRight, Problem, RetriableDeliveryError, RightMissing

TIMESTAMPS = "message.timestamp.type"

#: Of a topic that brokers hide: READ and WRITE imply DESCRIBE.
NO_RIGHT = "we have no right to see topic {}, if there is one: grant DESCRIBE, READ and WRITE on it"


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

    def wrong(self, problem: str, suggestion: str | None = None) -> Problem:
        """What is wrong with it, at the property that names it."""
        return Problem(property=self.property, value=self.name, problem=problem, suggestion=suggestion)

    def refused(self, problem: str, suggestion: str | None = None) -> MissingRight:
        """As `wrong`, if it is a right that is missing."""
        return MissingRight(property=self.property, value=self.name, problem=problem, suggestion=suggestion)


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


_RETENTION = ("retention.ms", "retention.bytes")

#: What is said of a topic that there is none of, or can be none.
_NOT_THERE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION})

CALL_SECONDS = 15.0

VISIBLE_SECONDS = 15.0

PAUSE_SECONDS = 0.1


def topic_partitions(admin: AdminClient) -> dict[str, int]:
    """Number of partitions of every topic that we may see."""
    return partition_counts(listed(admin))


def partition_counts(there: ClusterMetadata) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in there.topics.items() if topic.error is None}


def partitions_of(admin: AdminClient, name: str) -> int | None:
    """How many one topic has; None: there is none. Of one that we may not see (`RightMissing`) nobody tells whether it
    is there."""
    there = topic_partitions(admin).get(name)
    if there is not None:
        return there
    # Not by its metadata: brokers create a topic that somebody asks for so (`auto.create.topics.enable`).
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=CALL_SECONDS)
    described = _described(name, asked[name], CALL_SECONDS)
    return None if described is None else len(described.partitions)


def _described(name: str, asked: Future[TopicDescription], seconds: float) -> TopicDescription | None:
    """None: there is no such topic. Who has not answered has not told that."""
    try:
        return asked.result(seconds)
    except KafkaException as caught:
        error: KafkaError = caught.args[0]
        if error.code() in FORBIDDEN:
            raise RightMissing(NO_RIGHT.format(name)) from None
        if error.code() not in _NOT_THERE:
            raise translated(error, f"describing topic {name}") from None
    except TimeoutError:
        raise RetriableDeliveryError(f"describing topic {name}: no answer in time") from None
    return None


def hidden_topics(admin: AdminClient, names: Collection[str]) -> dict[str, str]:
    """Topics that may be there, and that we have no right to see: lists of topics leave them out as they do what was
    deleted. With words for whoever waits for one. ``names``: of what such a list lacks."""
    # The client refuses the empty name, which a transform can make, with a ValueError.
    asking = sorted({*names} - {""})
    if not asking:
        return {}
    # The futures are kept in one dict until all have answered: dropping one makes its result() wait for ever.
    asked = admin.describe_topics(TopicCollection(asking), request_timeout=CALL_SECONDS)
    found = {}
    for name, future in asked.items():
        try:
            _described(name, future, 2 * CALL_SECONDS)
        except RightMissing as error:
            found[name] = str(error)
    return found


def refused_topics(
    admin: AdminClient, names: Collection[str], operation: AclOperation, seconds: float = CALL_SECONDS
) -> set[str]:
    """Those that we may not use so. Who does not answer refuses nothing; brokers before 2.3 tell no rights."""
    asking = sorted({*names} - {""})
    if not asking:
        return set()
    asked = admin.describe_topics(TopicCollection(asking), include_authorized_operations=True, request_timeout=seconds)
    refused = set()
    for name, future in asked.items():
        try:
            allowed = future.result(timeout=2 * seconds).authorized_operations
        except KafkaException as caught:
            if caught.args[0].code() in FORBIDDEN:
                refused.add(name)
        except TimeoutError:
            continue
        else:
            if allowed is not None and operation not in allowed:
                refused.add(name)
    return refused


def may_write(admin: AdminClient, name: str) -> bool:
    """Whether nobody says that we may not write to a topic."""
    return not refused_topics(admin, [name], AclOperation.WRITE)


def facts_of(admin: AdminClient, partitions: Mapping[str, int]) -> dict[str, TopicFacts]:
    facts: dict[str, TopicFacts] = {}
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        facts |= known_facts(admin, {name: count for name, count in partitions.items() if name not in facts})
        unknown = sorted(partitions.keys() - facts.keys())
        if not unknown:
            return facts
        # Of a new topic one broker may tell while another has not heard of it.
        if time.monotonic() >= deadline:
            raise RetriableDeliveryError(f"topics {', '.join(unknown)} are not known to every broker yet")
        time.sleep(PAUSE_SECONDS)


def known_facts(admin: AdminClient, partitions: Mapping[str, int]) -> dict[str, TopicFacts]:
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


def mismatches(spec: TopicSpec, facts: TopicFacts) -> list[Problem]:
    problems = []
    if spec.compacted is True and facts.compacted is False:
        problems.append(
            spec.wrong(
                problem="the topic exists but is not compacted",
                suggestion="set cleanup.policy=compact on it",
            )
        )
    if spec.compacted is True and facts.compacted and facts.deletes:
        problems.append(
            spec.wrong(
                problem="the topic is compacted, and its records are deleted all the same, after some time or where "
                "they are many: what it is to keep would be lost",
                suggestion="set cleanup.policy=compact on it: kafka-configs.sh --alter --entity-type topics "
                f"--entity-name {spec.name} --add-config cleanup.policy=compact",
            )
        )
    if facts.partitions < spec.least_partitions:
        problems.append(
            spec.wrong(
                problem=f"the topic has {facts.partitions} partitions, {spec.least_partitions} are needed",
                suggestion="choose another topic or add partitions",
            )
        )
    return problems
