"""Topics that are missing are created, or it is said why they cannot be.

In: what each must be. Out: topics that every broker knows and that are led; or what stands against them.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from connector.delivery.end_offsets import end_offsets
from connector.delivery.failures import FORBIDDEN, describe, is_transient, translated
from connector.delivery.replicas import brokers_there, less_than_usual, may_be_of_replicas, tell_other_number, wanted
from connector.delivery.topic_facts import (
    CALL_SECONDS,
    PAUSE_SECONDS,
    VISIBLE_SECONDS,
    TopicSpec,
    hidden_topics,
    topic_partitions,
)
from connector.errors import Problem, RetriableDeliveryError

log = logging.getLogger(__name__)

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

_SUGGESTIONS = {
    KafkaError.INVALID_REPLICATION_FACTOR: "lower its replication factor, or start more brokers",
    # Who may neither see nor create a topic is not told whether it is there.
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "if it is there, grant READ, WRITE and DESCRIBE on it; else create it by "
    "hand, or grant the right to create topics as well",
}


def create_topics(admin: AdminClient, specs: list[TopicSpec], *, pretend: bool = False) -> list[Problem]:
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
            if spec.replication is None and may_be_of_replicas(error):
                # What else stands against it is said of the second attempt.
                if not pretend:
                    tell_other_number(spec.name, brokers, error)
                problems += create_topics(admin, [replace(spec, replication=-1)], pretend=pretend)
            elif (why := _what_stands_against(admin, spec, error, pretend)) is not None:
                problems.append(why)
    return problems


def _what_stands_against(admin: AdminClient, spec: TopicSpec, error: KafkaError, pretend: bool) -> Problem | None:
    """None: the topic is there, or would be."""
    if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return _hidden(spec) if _is_hidden(admin, spec.name) else None  # another worker was quicker
    if is_transient(error):
        raise RetriableDeliveryError(f"creating topic {spec.name}: {describe(error)}") from None
    if error.code() == KafkaError.TOPIC_EXCEPTION:
        return impossible_name(spec)
    if pretend and error.code() not in _STANDS_AGAINST_IT:
        return None  # it may be the question that a broker does not know
    wrong = spec.refused if error.code() in FORBIDDEN else spec.wrong
    return wrong(
        problem=f"topic cannot be created: {describe(error)}",
        suggestion=_SUGGESTIONS.get(error.code(), "create it by hand, or grant the right to create topics"),
    )


def wait_until_visible(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        existing = topic_partitions(admin)
        missing = [name for name in names if not existing.get(name)]
        if not missing:
            return existing
        if time.monotonic() >= deadline:
            raise RetriableDeliveryError(f"topics {', '.join(missing)} did not become visible")
        time.sleep(PAUSE_SECONDS)


def wait_for_leaders(admin: AdminClient, partitions: Mapping[str, int]) -> None:
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


def _is_hidden(admin: AdminClient, name: str) -> bool:
    """Whether we have no right to see a topic that is there: lists of topics leave such out."""
    try:
        topic = admin.list_topics(name, timeout=CALL_SECONDS).topics.get(name)
    except KafkaException as caught:
        raise translated(caught.args[0], "listing topics") from None
    return topic is not None and topic.error is not None and topic.error.code() in FORBIDDEN


def _hidden(spec: TopicSpec) -> Problem:
    return spec.refused(
        problem="the topic exists, but we have no right to use it",
        suggestion="grant DESCRIBE and WRITE on it",
    )


def not_created(admin: AdminClient, specs: Sequence[TopicSpec]) -> list[Problem]:
    """Of topics that no list has, and that are not to be created."""
    hidden = hidden_topics(admin, [spec.name for spec in specs])
    return [_perhaps_hidden(spec) if spec.name in hidden else _not_to_be_created(spec) for spec in specs]


def _perhaps_hidden(spec: TopicSpec) -> Problem:
    return spec.refused(
        problem="we have no right to see the topic, if there is one, and topic.creation.enable is false",
        suggestion="grant READ, WRITE and DESCRIBE on it, and create it by hand if it is not there",
    )


def _not_to_be_created(spec: TopicSpec) -> Problem:
    return spec.wrong(
        problem="the topic does not exist, and topic.creation.enable is false",
        suggestion="create it by hand, or set topic.creation.enable=true in the worker's file",
    )


def is_possible_name(name: str) -> bool:
    return _POSSIBLE.fullmatch(name) is not None


def impossible_name(spec: TopicSpec) -> Problem:
    return spec.wrong(
        problem="Kafka takes no such name: ASCII letters, digits, '.', '_' and '-' it may have, 249 of them at most",
        suggestion="change the transform or the property that makes it",
    )
