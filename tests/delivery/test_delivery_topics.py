"""Topics are created when missing and looked at when present; dead letters say what cannot be delivered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from connector.delivery.clients import KafkaClients
from connector.delivery.dead_letters import MAX_VALUE_BYTES, DeadLetter, dead_letter_record
from connector.delivery.topic_facts import TopicSpec
from connector.delivery.topics import check_topics, ensure_topics, prepare_topics
from connector.errors import ConfigurationError, PoisonRow, RetriableDeliveryError

SMALL = {"retention.bytes": "4096"}


@pytest.fixture
def clients(kafka: object) -> KafkaClients:
    return KafkaClients({"bootstrap.servers": kafka.bootstrap_servers})  # type: ignore[attr-defined]


@pytest.mark.kafka
def test_missing_topics_are_created_as_asked(clients: KafkaClients, unique: Callable[[str], str]) -> None:
    name = unique("data")
    facts = ensure_topics(clients.admin(), [TopicSpec(name, 4, 1, {"max.message.bytes": "2000"})])
    assert (facts[name].partitions, facts[name].max_message_bytes, facts[name].compacted) == (4, 2000, False)


@pytest.mark.kafka
def test_names_that_no_topic_can_have_are_said_and_need_no_rights(
    clients: KafkaClients, unique: Callable[[str], str]
) -> None:
    """As transforms make them."""
    names = ["", "..", unique("a b"), unique("ö"), unique("long").ljust(250, "x")]
    specs = [TopicSpec(name, 1, 1, essential=False) for name in names]
    found, unusable = prepare_topics(clients.admin(), specs)
    assert not found and set(unusable) == set(names)
    assert all("Kafka takes no such name" in why and "grant" not in why for why in unusable.values())
    assert [problem.value for problem in check_topics(clients.admin(), specs).awaited] == names


@pytest.mark.kafka
def test_all_that_is_wrong_with_existing_topics_is_said_at_once(
    clients: KafkaClients, unique: Callable[[str], str]
) -> None:
    plain, small = unique("plain"), unique("small")
    ensure_topics(clients.admin(), [TopicSpec(plain, 1, 1), TopicSpec(small, 1, 1, compacted=True)])
    wanted = [
        TopicSpec(plain, compacted=True, property="offset.storage.topic"),
        TopicSpec(small, compacted=True, least_partitions=5, property="offset.storage.partitions"),
    ]
    with pytest.raises(ConfigurationError) as caught:
        ensure_topics(clients.admin(), wanted)
    found = {problem.property: problem.problem for problem in caught.value.problems}
    assert "not compacted" in found["offset.storage.topic"]
    assert "1 partitions, 5 are needed" in found["offset.storage.partitions"]
    assert len(check_topics(clients.admin(), wanted).problems) == 2


@pytest.mark.kafka
def test_a_compacted_topic_whose_records_are_deleted_as_well_is_refused(
    clients: KafkaClients, unique: Callable[[str], str]
) -> None:
    both, admin = {"cleanup.policy": "compact,delete"}, clients.admin()
    lasts = both | {"retention.ms": "-1"}
    topics = {unique(name): config for name, config in (("a", both), ("b", lasts), ("c", lasts | SMALL))}
    ensure_topics(admin, [TopicSpec(name, 1, 1, config) for name, config in topics.items()])
    specs = [TopicSpec(name, 1, 1, compacted=True, property="offset.storage.topic") for name in topics]
    wrong = check_topics(admin, specs).problems
    refused, kept, small = topics
    assert [problem.value for problem in wrong] == [refused, small], f"{kept} keeps everything"
    assert "would be lost" in wrong[0].problem
    assert f"--entity-name {refused} --add-config cleanup.policy=compact" in (wrong[0].suggestion or "")
    with pytest.raises(ConfigurationError):
        ensure_topics(admin, specs)


@pytest.mark.kafka
def test_a_topic_of_changes_that_is_compacted_as_well_is_warned_of(
    clients: KafkaClients, unique: Callable[[str], str]
) -> None:
    name, admin = unique("data"), clients.admin()
    ensure_topics(admin, [TopicSpec(name, 1, 1, {"cleanup.policy": "compact,delete"})])
    (warning,) = check_topics(admin, [TopicSpec(name, keeps_all=True)]).warnings
    assert warning.startswith(f"topic {name} is compacted") and "set cleanup.policy=delete" in warning


class Blind:
    """An admin client whose questions about topics' settings end with an error, the first ``times``."""

    def __init__(self, admin: AdminClient, code: int, times: int = 1 << 30) -> None:
        self._admin = admin
        self._error = KafkaException(KafkaError(code))
        self._left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    def describe_configs(self, resources: list[ConfigResource], **more: Any) -> dict[ConfigResource, Future[Any]]:
        self._left -= 1
        if self._left < 0:
            answered: dict[ConfigResource, Future[Any]] = self._admin.describe_configs(resources, **more)
            return answered
        futures: dict[ConfigResource, Future[Any]] = {resource: Future() for resource in resources}
        for future in futures.values():
            future.set_exception(self._error)
        return futures


@pytest.mark.kafka
@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_a_broker_that_goes_away_does_not_make_topics_wrong(
    clients: KafkaClients, unique: Callable[[str], str], code: int
) -> None:
    spec = TopicSpec(unique("offsets"), 1, 1, compacted=True)
    ensure_topics(clients.admin(), [spec])
    with pytest.raises(RetriableDeliveryError, match=spec.name):
        ensure_topics(Blind(clients.admin(), code), [spec])


@pytest.mark.kafka
def test_a_broker_may_hear_of_a_new_topic_later_than_others(
    clients: KafkaClients, unique: Callable[[str], str]
) -> None:
    spec = TopicSpec(unique("offsets"), 1, 1, compacted=True)
    late = Blind(clients.admin(), KafkaError.UNKNOWN_TOPIC_OR_PART, times=3)
    assert ensure_topics(late, [spec])[spec.name].compacted is True


@pytest.mark.kafka
def test_what_may_not_be_seen_is_not_held_against_a_topic(clients: KafkaClients, unique: Callable[[str], str]) -> None:
    spec = TopicSpec(unique("offsets"), 1, 1, compacted=True)
    blind = Blind(clients.admin(), KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert ensure_topics(blind, [spec])[spec.name].compacted is None


@pytest.mark.kafka
def test_a_topic_that_cannot_be_created_names_its_property(clients: KafkaClients) -> None:
    with pytest.raises(ConfigurationError, match=r"topic\.prefix = 'not a name!'"):
        ensure_topics(clients.admin(), [TopicSpec("not a name!", 1, 1)])


def test_a_dead_letter_says_where_its_row_stands_and_keeps_its_beginning() -> None:
    letter = DeadLetter(
        connector="c",
        task="0",
        topic="p.ks.t",
        table="ks.t",
        stream_id="0xab",
        time="d0c1",
        batch_seq_no=3,
        error=PoisonRow("operation 77 is not known"),
        raw=b"x" * (MAX_VALUE_BYTES + 1),
    )
    record = dead_letter_record("dead", letter)
    headers = {name: (value or b"").decode() for name, value in record.headers}
    assert len(record.value or b"") == MAX_VALUE_BYTES
    assert headers["scylla.cdc.length"] == str(MAX_VALUE_BYTES + 1)
    assert headers["scylla.cdc.stream_id"] == "0xab"
    assert headers["__connect.errors.exception.message"] == "operation 77 is not known"
    assert headers["__connect.errors.stage"] == "TASK_POLL"
    assert not [name for name, _ in dead_letter_record("dead", letter, with_context=False).headers if "connect" in name]
